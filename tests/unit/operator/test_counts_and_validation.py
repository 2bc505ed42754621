"""How many groups are wanted, and what only the operator can refuse."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headwater_contracts.reasons import Reason
from headwater_operator.api.pool import InferencePoolSpec
from headwater_operator.core.actions import ApplyService, CreateGroup, CreateRevision
from headwater_operator.core.counts import desired_counts
from headwater_operator.core.decide import decide
from headwater_operator.core.settings import DecisionSettings
from headwater_operator.core.snapshot import ForeignObject, RevisionObservation
from headwater_operator.core.status import pool_status
from headwater_operator.core.validate import find_problem
from headwater_operator.desired.revision import resolve_template
from support.operator_snapshots import (
    NOW,
    REVISION,
    SETTINGS,
    actions,
    condition,
    created,
    exited_pod,
    group,
    plan_for,
    pool_spec,
    roles,
    snapshot,
    standby,
    suffixes,
    told,
    vllm_spec,
)


@pytest.mark.parametrize(
    ("fields", "want"),
    [
        ({"replicas": 3, "warmPool": {"size": 2}}, (3, 2, Reason.FIXED_REPLICAS)),
        ({"replicas": 0, "warmPool": {"size": 1}}, (0, 1, Reason.FIXED_REPLICAS)),
        ({"replicas": None, "autoscaling": {"minReplicas": 2, "maxReplicas": 5}}, (2, 0, Reason.MINIMUM_REPLICAS)),
        ({"replicas": None}, (1, 0, Reason.DEFAULT_REPLICAS)),
        ({"replicas": 3, "warmPool": {"size": 2}, "suspend": True}, (0, 0, Reason.SUSPENDED)),
    ],
)
def test_the_wanted_numbers_follow_the_table(fields: dict[str, Any], want: tuple[int, int, Reason]) -> None:
    assert desired_counts(pool_spec(**fields)) == want


def test_a_changed_number_is_told_once_with_both_values() -> None:
    status = {"desired": {"active": 2}}
    plan = plan_for(group("a"), group("b"), spec=pool_spec(replicas=3), status=status)
    event = next(event for event in plan.events if event.reason is Reason.SCALED_UP)
    assert (event.before, event.after, event.cause) == (2, 3, Reason.FIXED_REPLICAS)
    again = plan_for(group("a"), group("b"), spec=pool_spec(replicas=3), status={"desired": {"active": 3}})
    assert "ScaledUp" not in told(again)


@pytest.mark.parametrize(
    ("spec", "settings", "reason", "words"),
    [
        (pool_spec(), {"allow_sim": False}, Reason.BACKEND_NOT_ALLOWED, ["spec.engine.backend", "set backend to vllm"]),
        (
            vllm_spec(engine={"pipelineParallelSize": 2}),
            {},
            Reason.NOT_SUPPORTED_YET,
            ["spec.engine.pipelineParallelSize: 2", "set it to 1"],
        ),
        (
            vllm_spec(engine={"image": "evil.example/miner:1"}),
            {},
            Reason.IMAGE_NOT_ALLOWED,
            ["spec.engine.image: 'evil.example/miner:1'", "registry.example/engine-*", "leave the field empty"],
        ),
        (
            vllm_spec(),
            {"default_image_vllm_cuda": ""},
            Reason.INVALID_SPEC,
            ["spec.engine.image", "no default image for backend vllm", "set an image"],
        ),
        (
            vllm_spec(engine={"extraArgs": {"max-num-seqs": "8", "seed": "1"}}),
            {},
            Reason.ENGINE_ARGUMENT_NOT_ALLOWED,
            ["spec.engine.extraArgs: seed", "max-num-seqs", "remove it"],
        ),
    ],
)
def test_a_refusal_names_the_field_and_the_remedy(
    spec: InferencePoolSpec, settings: dict[str, Any], reason: Reason, words: list[str]
) -> None:
    problem = find_problem(snapshot(spec=spec), replace(SETTINGS, **settings))
    assert problem is not None
    assert problem.reason is reason
    for word in words:
        assert word in problem.message


@pytest.mark.parametrize(
    ("spec", "settings"),
    [
        (pool_spec(), {}),
        (vllm_spec(engine={"image": "registry.example/engine-cuda:2"}), {}),
        (vllm_spec(engine={"image": "engine-cuda:1"}), {"allowed_images": ()}),
        (vllm_spec(engine={"extraArgs": {"max-num-seqs": "8"}}), {}),
        (vllm_spec(placement={"acceleratorResource": ""}), {"default_image_vllm_cuda": ""}),
    ],
)
def test_what_is_allowed_has_no_problem(spec: InferencePoolSpec, settings: dict[str, Any]) -> None:
    assert find_problem(snapshot(spec=spec), replace(SETTINGS, **settings)) is None


def test_the_default_images_are_listed_among_the_allowed_ones() -> None:
    spec = vllm_spec(engine={"image": "evil.example/miner:1"})

    def listed(**settings: Any) -> str:
        problem = find_problem(snapshot(spec=spec), replace(SETTINGS, **settings))
        return problem.message.partition("allow list (")[2].partition(")")[0] if problem else ""

    assert listed(allowed_images=()) == "engine-cpu:1, engine-cuda:1, engine-sim:1"
    assert listed() == "engine-cpu:1, engine-cuda:1, engine-sim:1, registry.example/engine-*"
    none = {"default_image_sim": "", "default_image_vllm_cpu": "", "default_image_vllm_cuda": ""}
    assert listed(allowed_images=(), **none) == "it is empty"


def test_a_foreign_service_stops_a_new_pool_before_it_makes_anything() -> None:
    plan = plan_for(foreign=(ForeignObject("Service", "pool"),), service_exists=False, revisions=(), status={})
    assert plan.problem is not None
    assert plan.problem.reason is Reason.NAME_CONFLICT
    assert plan.actions == ()


def test_a_refused_spec_is_told_once() -> None:
    spec = vllm_spec(engine={"image": "evil.example/miner:1"})
    first = plan_for(spec=spec)
    assert first.problem in first.events
    stalled = condition("Stalled", message=first.problem.message if first.problem else "")
    assert plan_for(spec=spec, status={"conditions": [stalled]}).events == ()


def test_a_refusal_longer_than_a_condition_holds_is_told_once_too() -> None:
    spec = vllm_spec(engine={"image": "evil.example/miner:1"})
    settings = replace(SETTINGS, allowed_images=tuple(f"registry.example/engine-{n}:*" for n in range(100)))
    first = decide(snapshot(spec=spec), settings, NOW, suffixes())
    status = pool_status(snapshot(spec=spec), first, settings, NOW)
    assert decide(snapshot(spec=spec, status=status), settings, NOW, suffixes()).events == ()


def fallback(settings: DecisionSettings = SETTINGS) -> tuple[int, dict[str, str]]:
    """One of two groups fails while the spec is refused: (groups created, new roles)."""
    spec = pool_spec(engine={"backend": "sim", "image": "evil.example/miner:1"}, warmPool={"size": 1})
    good = RevisionObservation(f"pool-{REVISION}", REVISION, 1, resolve_template(pool_spec(), SETTINGS))
    groups = (group("a", pods=[exited_pod("a")]), group("b"), standby("s"))
    plan = decide(snapshot(*groups, spec=spec, revisions=(good,)), settings, NOW, suffixes())
    assert all(action.revision == REVISION for action in actions(plan, CreateGroup))
    assert actions(plan, CreateRevision) == []
    return created(plan), roles(plan)


def test_under_a_refused_spec_failures_are_replaced_at_the_last_good_revision() -> None:
    assert fallback() == (1, {"a": "quarantined", "s": "active"})


def test_an_image_that_is_no_longer_allowed_is_not_started_again() -> None:
    made, changed = fallback(replace(SETTINGS, default_image_sim="other:1"))
    assert made == 0
    assert changed["s"] == "active"


def test_the_first_plan_of_a_pool_makes_revision_service_and_groups_in_this_order() -> None:
    plan = plan_for(service_exists=False, revisions=(), status={}, spec=pool_spec(warmPool={"size": 1}))
    kinds = [type(action) for action in plan.actions]
    assert kinds == [CreateRevision, ApplyService, CreateGroup, CreateGroup, CreateGroup]
    names = [action.name for action in actions(plan, CreateGroup)]
    assert names == [f"pool-{REVISION[:6]}-0000{number}" for number in (1, 2, 3)]


def test_nothing_is_decided_about_a_pool_that_is_being_deleted() -> None:
    assert plan_for(group("a", pods=[exited_pod("a")]), terminating=True).actions == ()
