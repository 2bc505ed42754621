"""Fields that are accepted and not acted on are named, and only those."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from headwater_operator.api.honored import NOT_HONORED, fields_not_honored, fields_partly_honored
from headwater_operator.api.parsing import parse_pool
from support.refusals import manifest

AWAY_FROM_DEFAULT: dict[str, Any] = {
    "engine.pipelineParallelSize": 2,
    "autoscaling": {"maxReplicas": 3},
    "slo.kvCacheUtilizationPercent": 80,
    "slo.objectivePercent": "99.9",
    "admission": {"maxQueueTime": "1s"},
    "degradation": {"maxOutputTokens": 8},
    "warmPool.tier": "Sleeping",
    "rollout.progressDeadline": "2h",
}


def change_of(path: str) -> dict[str, Any]:
    value: Any = AWAY_FROM_DEFAULT[path]
    for part in reversed(path.split(".")):
        value = {part: value}
    return dict(value)


@pytest.mark.parametrize("path", NOT_HONORED)
def test_a_field_away_from_its_default_is_named(path: str) -> None:
    got = fields_not_honored(parse_pool(manifest("InferencePool", "a", change_of(path))))

    assert got == (f"spec.{path}",)


def test_a_pool_of_defaults_has_nothing_to_name() -> None:
    assert fields_not_honored(parse_pool(manifest("InferencePool", "a", {}))) == ()


def test_defaults_that_are_written_out_are_not_named() -> None:
    spec = parse_pool(manifest("InferencePool", "a", {}))

    assert fields_not_honored(parse_pool({"spec": spec.to_object()})) == ()


def test_fields_that_are_acted_on_are_not_named() -> None:
    change = {
        "slo": {"ttftP90": "1s", "interTokenLatencyP99": "20ms"},
        "rollout": {"maxSurge": 2, "maxUnavailable": 1, "paused": True},
        "failure": {"maxReplacements": 1, "window": "2h", "retainFailed": "0s"},
    }

    spec = parse_pool(manifest("InferencePool", "a", change))
    assert fields_not_honored(spec) == ()
    assert fields_partly_honored(spec) == {}


def test_a_partition_is_named_as_acting_in_part() -> None:
    spec = parse_pool(manifest("InferencePool", "a", {"rollout": {"partition": 1}}))
    assert fields_not_honored(spec) == ()
    assert "replaced at the new one" in fields_partly_honored(spec)["spec.rollout.partition"]


def test_all_are_named_at_once_in_the_order_of_the_spec() -> None:
    example = Path(__file__).resolve().parents[3] / "docs" / "examples" / "every-field.yaml"
    got = fields_not_honored(parse_pool(yaml.safe_load(example.read_text(encoding="utf-8"))))

    assert set(got) <= {f"spec.{path}" for path in NOT_HONORED}
    assert list(got) == [f"spec.{path}" for path in NOT_HONORED if f"spec.{path}" in got]
    assert "spec.autoscaling" in got
