"""The Deployment's environment and the operator's settings agree, name by name and value by value."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from headwater_operator.settings import PREFIX, Settings, load_settings
from support import helm

# Left at their defaults: nothing outside the operator knows better.
NOT_IN_THE_CHART = {"lease_seconds", "engine_admin_port", "listen_host"}

SET: dict[str, Any] = {
    "watchNamespaces": ["team-a", "team-b"],
    "engine": {
        "images": {"sim": "localhost/sim:1", "vllmCpu": "localhost/cpu:1", "vllmCuda": "localhost/cuda:1"},
        "allowedImages": ["registry.example/llm/*", "localhost/engine-?:dev"],
        "allowedEngineArgs": ["seed", "max-num-seqs"],
        "allowSim": True,
        "pullPolicy": "Never",
        "logLevel": "WARNING",
    },
    "operator": {"logLevel": "DEBUG", "logFormat": "console", "probeIntervalSeconds": 0.5, "workers": 7},
}


def environment(values: helm.Values | None = None) -> dict[str, dict[str, Any]]:
    (container,) = helm.only(helm.render(values), "Deployment")["spec"]["template"]["spec"]["containers"]
    return {entry["name"]: entry for entry in container["env"]}


@pytest.fixture
def settings_from(monkeypatch: pytest.MonkeyPatch) -> Any:
    """The operator's settings as it would read them in the rendered pod."""

    def load(values: helm.Values | None = None) -> Settings:
        for name, entry in environment(values).items():
            monkeypatch.setenv(name, entry.get("value", "from-the-pod"))
        return load_settings()

    return load


def test_every_variable_is_a_setting_and_every_setting_is_covered() -> None:
    got = {name.removeprefix(PREFIX).lower() for name in environment()}
    assert got == set(Settings.model_fields) - NOT_IN_THE_CHART


def test_operator_reads_what_the_values_say(settings_from: Any) -> None:
    got = settings_from(SET)
    assert got.namespaces == ("team-a", "team-b")
    assert got.default_image_sim == "localhost/sim:1"
    assert got.default_image_vllm_cpu == "localhost/cpu:1"
    assert got.default_image_vllm_cuda == "localhost/cuda:1"
    assert got.allowed_images == ("registry.example/llm/*", "localhost/engine-?:dev")
    assert got.allowed_engine_args == ("seed", "max-num-seqs")
    assert got.allow_sim is True
    assert got.image_pull_policy == "Never"
    assert (got.log_level, got.engine_log_level, got.log_format) == ("debug", "warning", "console")
    assert (got.probe_interval_seconds, got.workers) == (0.5, 7)


def test_operator_reads_the_default_values(settings_from: Any) -> None:
    got = settings_from()
    assert got.namespaces == ()
    assert got.default_image_vllm_cuda == "ghcr.io/headwater/engine-cuda:0.1.0"
    assert got.allowed_images == ()
    assert got.allow_sim is False
    assert got.admin_token_file == Path("/etc/headwater/admin-token/token")
    assert (got.metrics_port, got.probe_port) == (8080, 8081)


def test_engine_images_follow_the_registry() -> None:
    got = environment({"image": {"registry": "mirror.example/headwater"}})
    assert got[f"{PREFIX}DEFAULT_IMAGE_VLLM_CPU"]["value"] == "mirror.example/headwater/engine-cpu:0.1.0"


def test_pod_tells_the_operator_who_it_is() -> None:
    got = {
        name: entry["valueFrom"]["fieldRef"]["fieldPath"]
        for name, entry in environment().items()
        if "valueFrom" in entry
    }
    assert got == {
        f"{PREFIX}POD_NAME": "metadata.name",
        f"{PREFIX}POD_NAMESPACE": "metadata.namespace",
        f"{PREFIX}POD_UID": "metadata.uid",
    }


@pytest.mark.parametrize("level", ["DEBUG", "INFO", "WARNING", "ERROR"])
def test_every_log_level_that_the_schema_allows_is_one_that_the_operator_takes(level: str, settings_from: Any) -> None:
    assert settings_from({"operator": {"logLevel": level}}).log_level == level.lower()
