"""Up and down of a control plane without nodes: repeated, concurrent, interrupted, damaged."""

import os
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from e2e.cluster import processes
from e2e.cluster.state import State
from e2e.cluster.waiting import wait_for

from support.local_cluster import apply, begin, cluster, get, kubectl, running_cluster, traces

LONE = ("--nodes", 0)


@pytest.fixture(scope="module")
def lone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[State]:
    with running_cluster(tmp_path_factory.mktemp("lone") / "cluster", *LONE) as state:
        yield state


def config_map(name: str) -> dict[str, object]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}}


def test_a_second_up_changes_nothing_and_says_so(lone: State) -> None:
    want = processes.running(lone)
    again = cluster("up", "--state", lone.dir)
    assert (again.returncode, processes.running(lone)) == (0, want)
    assert "up already, nothing to do" in again.stdout


def test_up_with_another_size_is_refused_with_the_remedy(lone: State) -> None:
    got = cluster("up", "--state", lone.dir, "--nodes", 2)
    assert got.returncode == 1
    assert "has --nodes 0, not 2; take it down first" in got.stderr


def test_aggregated_apis_can_learn_the_front_proxy_authority(lone: State) -> None:
    got = get(lone, "--namespace=kube-system", "configmap/extension-apiserver-authentication")["data"]
    assert got["requestheader-client-ca-file"] == (lone.pki / "front-proxy-ca.crt").read_text()
    assert got["requestheader-allowed-names"] == '["front-proxy-client"]'


def test_two_clusters_run_side_by_side_and_one_down_spares_the_other(lone: State, tmp_path: Path) -> None:
    with running_cluster(tmp_path / "other", *LONE) as other:
        apply(other, config_map("only-here"))
        assert "only-here" not in kubectl(lone, "get", "configmap", "-oname")
        apply(lone, config_map("also-here"))
        assert "also-here" not in kubectl(other, "get", "configmap", "-oname")
    assert kubectl(lone, "get", "--raw=/readyz") == "ok"


def test_up_starts_a_killed_api_server_again_with_its_data(lone: State) -> None:
    apply(lone, config_map("kept"))
    alive = processes.running(lone)
    os.kill(alive["kube-apiserver"], signal.SIGKILL)
    wait_for("the end of the API server", lambda: "kube-apiserver" not in processes.running(lone))
    mended = cluster("up", "--state", lone.dir)
    assert "starting again: kube-apiserver" in mended.stdout
    assert kubectl(lone, "get", "configmap/kept", "-oname").strip() == "configmap/kept"
    assert processes.running(lone)["etcd"] == alive["etcd"]


def test_down_leaves_nothing_though_a_process_was_killed_and_records_are_lost(tmp_path: Path) -> None:
    with running_cluster(tmp_path / "cluster", *LONE) as state:
        assert traces(state), "the check must see a running cluster"
        os.kill(processes.running(state)["etcd"], signal.SIGKILL)
        for record in (state.dir / "run").iterdir():
            record.unlink()
        down = cluster("down", "--state", state.dir)
        assert (down.returncode, traces(state)) == (0, [])


def test_down_leaves_nothing_of_an_up_that_was_killed(tmp_path: Path) -> None:
    state = State(tmp_path / "cluster")
    with begin("up", "--state", state.dir, *LONE) as up:
        wait_for("the first process", lambda: processes.running(state))
        up.kill()
    down = cluster("down", "--state", state.dir)
    assert (down.returncode, traces(state)) == (0, [])


def test_up_clears_away_an_up_that_was_killed(tmp_path: Path) -> None:
    state = State(tmp_path / "cluster")
    with begin("up", "--state", state.dir, *LONE) as up:
        wait_for("the first process", lambda: processes.running(state))
        up.kill()
    with running_cluster(state.dir, *LONE):
        assert kubectl(state, "get", "--raw=/readyz") == "ok"


def test_of_two_ups_at_once_one_starts_and_the_other_finds_it_done(tmp_path: Path) -> None:
    directory = tmp_path / "cluster"
    with begin("up", "--state", directory, *LONE) as first, begin("up", "--state", directory, *LONE) as second:
        said = sorted(p.communicate()[0].split(" after ")[0].split(",")[0] for p in (first, second))
    assert (first.returncode, second.returncode) == (0, 0)
    assert said == ["cluster is up", "cluster is up already"]
    cluster("down", "--state", directory)


def test_a_folder_with_other_files_is_neither_used_nor_emptied(tmp_path: Path) -> None:
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "precious").write_text("mine")
    up = cluster("up", "--state", tmp_path, *LONE)
    assert up.returncode == 1
    assert "is not empty (conf, ...) and holds no cluster" in up.stderr
    cluster("down", "--state", tmp_path)
    assert (tmp_path / "conf" / "precious").read_text() == "mine"


def test_missing_programs_are_named_with_the_command_that_installs_them(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "python3").symlink_to(sys.executable)
    environment = {**os.environ, "PATH": str(tmp_path / "bin"), "HEADWATER_CLUSTER_PROVIDER": "bundled"}
    got = cluster("up", "--state", tmp_path / "cluster", "--nodes", 1, environment=environment)
    assert got.returncode == 1
    for program in ("openssl", "containerd", "unshare"):
        assert program in got.stderr.partition("\n")[0]
    assert "apt-get install --no-install-recommends containerd" in got.stderr
    assert not (tmp_path / "cluster").exists()


def test_commands_on_no_cluster_say_how_to_start_one(tmp_path: Path) -> None:
    for command in ("status", "kubeconfig", "env"):
        got = cluster(command, "--state", tmp_path / "none")
        assert (got.returncode, "no cluster in" in got.stderr) == (1, True)
    assert cluster("down", "--state", tmp_path / "none").returncode == 0
