"""From stored objects to models: names, defaults, and problems with their paths."""

from __future__ import annotations

import pytest
from pydantic import ValidationError

from headwater_operator.api.group import GroupTemplate
from headwater_operator.api.parsing import InvalidSpec, parse_group, parse_pool, parse_template
from headwater_operator.api.pool import Backend, WarmPoolTier
from support.refusals import BASE_SPECS, manifest


def test_api_names_and_python_names_are_the_same_fields() -> None:
    got = parse_pool(
        manifest(
            "InferencePool",
            "a",
            {
                "engine": {"backend": "sim", "tensorParallelSize": 2},
                "slo": {"ttftP90": "600ms", "interTokenLatencyP99": "50ms", "kvCacheUtilizationPercent": 80},
                "admission": {"maxEstimatedTTFT": "800ms"},
                "warmPool": {"tier": "Sleeping"},
            },
        )
    )

    assert got.engine.backend is Backend.SIM
    assert got.engine.tensor_parallel_size == 2
    assert got.slo is not None
    assert (got.slo.ttft_p90, got.slo.inter_token_latency_p99) == ("600ms", "50ms")
    assert got.admission is not None
    assert got.admission.max_estimated_ttft == "800ms"
    assert got.warm_pool.tier is WarmPoolTier.SLEEPING


def test_a_quantity_may_be_a_bare_number_as_in_a_pod() -> None:
    assert parse_pool(manifest("InferencePool", "a", {"resources": {"cpu": 2}})).resources.cpu == "2"


def test_what_is_absent_stays_absent() -> None:
    got = parse_pool(manifest("InferencePool", "a", {}))

    assert (got.replicas, got.autoscaling, got.slo, got.admission, got.degradation) == (None,) * 5
    assert got.placement.accelerator_product is None
    assert got.engine.simulation is None


def test_every_problem_is_named_with_its_path() -> None:
    change = {
        "drain": {"timeout": "600"},
        "health": {"interval": "1ms"},
        "placement": {"tolerations": [{"operator": "Sometimes"}]},
        "hostNetwork": True,
    }

    with pytest.raises(InvalidSpec) as error:
        parse_pool(manifest("InferencePool", "a", change))

    got = str(error.value)
    assert "spec.drain.timeout: " in got
    assert "spec.health.interval: must be a duration from 100ms to 5m" in got
    assert "spec.placement.tolerations[0].operator: " in got
    assert "spec.hostNetwork: is not a field that this operator knows: remove it, or upgrade the operator" in got


@pytest.mark.parametrize("spec", [None, [], "text", 3])
def test_a_spec_that_is_no_object_is_refused(spec: object) -> None:
    with pytest.raises(InvalidSpec, match=r"^spec: "):
        parse_pool({"spec": spec})


def test_an_object_without_spec_is_refused() -> None:
    with pytest.raises(InvalidSpec, match=r"spec\.model: Field required"):
        parse_pool({})


def test_a_template_survives_being_written_and_read() -> None:
    want = parse_group(manifest("ReplicaGroup", "a", {})).template

    assert parse_template(want.to_object()) == want


def test_a_template_of_another_shape_is_refused() -> None:
    with pytest.raises(InvalidSpec, match=r"template\.pods: is not a field"):
        parse_template({**BASE_SPECS["ReplicaGroup"]["template"], "pods": []})


def test_models_are_frozen() -> None:
    template: GroupTemplate = parse_group(manifest("ReplicaGroup", "a", {})).template

    with pytest.raises(ValidationError):
        template.tier = WarmPoolTier.SLEEPING  # type: ignore[misc]
