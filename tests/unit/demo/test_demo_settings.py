"""Which cluster and which example the demo takes, and what it says at its end."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from e2e.cluster.errors import ClusterError
from e2e.demo.failure import explain
from e2e.demo.report import next_commands
from e2e.demo.run import Outcome
from e2e.demo.settings import BACKENDS, parse
from e2e.kit.install import InstallError, run_streaming
from e2e.kit.kubectl import Kubectl

from headwater_operator.api.honored import fields_not_honored
from headwater_operator.api.parsing import parse_pool


def test_the_current_kubeconfig_is_never_used_unasked(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("HEADWATER_DEMO_KUBECONFIG", raising=False)
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "production"))
    assert parse([]).kubeconfig is None
    monkeypatch.setenv("HEADWATER_DEMO_KUBECONFIG", str(tmp_path / "mine"))
    assert parse([]).kubeconfig == tmp_path / "mine"
    assert parse(["--kubeconfig", str(tmp_path / "other")]).kubeconfig == tmp_path / "other"


def test_the_backend_comes_from_the_argument_then_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("BACKEND", raising=False)
    assert parse([]).backend.name == "vllm"
    monkeypatch.setenv("BACKEND", "sim")
    assert parse([]).backend.name == "sim"
    assert parse(["--backend", "vllm"]).backend.name == "vllm"


def test_pretended_gpus_are_shared_evenly_and_a_running_cluster_is_left_as_it_is() -> None:
    assert parse(["--nodes", "1"]).gpus_per_node == 24
    assert parse(["--nodes", "2"]).gpus_per_node == 16, "12 would hold one group of 8 each"
    assert parse(["--nodes", "3"]).gpus_per_node == 8
    assert parse([]).gpus_per_node is None


@pytest.mark.parametrize("name", BACKENDS)
def test_the_examples_of_the_demo_are_valid_and_wholly_acted_on(name: str) -> None:
    spec = parse_pool(yaml.safe_load(BACKENDS[name].example.read_text()))
    assert spec.engine.backend.value == name
    assert fields_not_honored(spec) == ()


def test_an_error_that_a_step_is_known_to_raise_becomes_advice_and_a_defect_does_not() -> None:
    got = explain(ClusterError("runc is missing: apt-get install runc"))
    assert got is not None
    assert "runc is missing" in got.what
    assert explain(ZeroDivisionError()) is None


def test_a_failing_command_gives_its_exit_code_and_the_end_of_its_output() -> None:
    seen: list[str] = []
    script = "for i in $(seq 99); do echo line $i; done; echo oops >&2; exit 3"
    with pytest.raises(InstallError, match=r"making it failed \(exit code 3\)") as caught:
        run_streaming(["sh", "-c", script], seen.append, what="making it")
    assert len(seen) == 100
    assert caught.value.details.splitlines()[-1] == "oops"
    assert len(caught.value.details.splitlines()) == 30


@pytest.mark.parametrize(
    ("url", "want"),
    [("http://10.200.192.7:80", "--url http://10.200.192.7:80"), ("http://127.0.0.1:43211", "port-forward service/p")],
)
def test_the_next_commands_name_the_cluster_and_a_url_that_outlives_the_demo(url: str, want: str) -> None:
    outcome = Outcome(Kubectl(Path("/x/kubeconfig"), "/x/bin/kubectl"), "p", "m", url)
    got = "\n".join(next_commands(parse(["--backend", "sim"]), outcome))
    assert "export KUBECONFIG=/x/kubeconfig" in got
    assert want in got
    assert "43211" not in got
    assert "make cluster-down" in got
