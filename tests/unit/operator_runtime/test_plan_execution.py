"""How a plan is carried out when something in the middle of it fails."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Any

from structlog.testing import capture_logs

from headwater_contracts.admin import EngineState
from headwater_contracts.reasons import Reason, Role
from headwater_operator import errors
from headwater_operator.adapters.expectations import Expectations
from headwater_operator.api.pool import InferencePoolSpec
from headwater_operator.core import actions as act
from headwater_operator.core.snapshot import NEW_GROUP, GroupObservation, PodObservation, PoolSnapshot, Refusal
from headwater_operator.desired.refs import BuildSettings
from headwater_operator.ports import Object
from headwater_operator.reconcile.apply import Executor
from headwater_operator.reconcile.pool import _true_events
from headwater_operator.reconcile.refusals import Refusals

NOW = datetime(2026, 1, 1, tzinfo=UTC)
KEY = ("n", "p")
TEMPLATE: dict[str, Any] = {
    "model": {"name": "m", "source": {"imagePath": "/m"}},
    "engine": {"backend": "sim", "image": "i:1"},
    "placement": {},
    "resources": {},
}


@dataclass
class Api:
    """Reader and writer: records what is asked, fails as told."""

    fails: dict[str, errors.OperatorError] = field(default_factory=dict)
    """By ``verb Kind name``."""
    asked: list[str] = field(default_factory=list)

    def get(self, kind: str, namespace: str, name: str) -> Object | None:
        return None

    def owned(self, kind: str, namespace: str, owner_uid: str) -> list[Object]:
        return []

    def all(self, kind: str) -> list[Object]:
        return []

    def _do(self, what: str) -> None:
        self.asked.append(what)
        if what in self.fails:
            raise self.fails[what]

    async def apply(self, body: Object, *, subresource: str | None = None) -> Object:
        self._do(f"apply {body['kind']} {body['metadata']['name']}")
        return body

    async def create(self, body: Object) -> Object:
        self._do(f"create {body['kind']} {body['metadata']['name']}")
        return body

    async def delete(self, kind: str, namespace: str, name: str, *, uid: str) -> None:
        self._do(f"delete {kind} {name} {uid}")

    async def refresh(self, kind: str, namespace: str, name: str) -> Object | None:
        self._do(f"refresh {kind} {name}")
        return None


@dataclass
class Engines:
    unreachable: bool = False
    calls: list[str] = field(default_factory=list)
    asked_now: list[str] = field(default_factory=list)

    async def state(self, ip: str, token: str) -> EngineState:
        raise AssertionError("a plan asks no engine for its state")

    async def drain(self, ip: str, token: str, *, timeout_seconds: float, settle_seconds: float) -> None:
        self.calls.append(f"drain {ip} {token} {timeout_seconds:g} {settle_seconds:g}")
        if self.unreachable:
            raise errors.EngineUnreachable("refused")

    async def undrain(self, ip: str, token: str) -> None:
        self.calls.append(f"undrain {ip} {token}")

    def token(self, namespace: str, group: str) -> str:
        return f"token-of-{group}"

    def ask_now(self, pod_uid: str) -> None:
        self.asked_now.append(pod_uid)


class Counts:
    def __init__(self) -> None:
        self.seen: list[tuple[str, str]] = []

    def promoted(self, pool: tuple[str, str], reason: str) -> None:
        self.seen.append(("promoted", reason))

    def quarantined(self, pool: tuple[str, str], reason: str) -> None:
        self.seen.append(("quarantined", reason))


@dataclass
class StillClock:
    at: float = 0.0

    def now(self) -> datetime:
        return NOW

    def monotonic(self) -> float:
        return self.at


def executor(api: Api, engines: Engines | None = None, counts: Counts | None = None) -> Executor:
    engines = engines or Engines()
    return Executor(
        reader=api,
        writer=api,
        control=engines,
        engines=engines,
        expectations=Expectations(),
        refusals=Refusals(),
        counters=counts or Counts(),
        clock=StillClock(),
        build=BuildSettings(),
    )


def group(name: str, role: Role = Role.ACTIVE, *, pods: bool = True) -> GroupObservation:
    pod = PodObservation(
        f"{name}-0",
        f"uid-{name}-0",
        0,
        str(role),
        "Running",
        ready=True,
        terminating=False,
        created_at=NOW,
        ip="10.0.0.1",
    )
    return GroupObservation(
        name, f"uid-{name}", role, "r" * 10, TEMPLATE, NOW, terminating=False, generation=1, annotations={}, status={},
        pods=(pod,) if pods else (),
    )  # fmt: skip


def snapshot(*groups: GroupObservation) -> PoolSnapshot:
    spec = InferencePoolSpec.model_validate({"model": {"name": "m", "source": {"imagePath": "/m"}}})
    return PoolSnapshot("n", "p", "pu", 1, False, spec, {}, {}, groups, (), (), True)


def plan(*actions: act.Action, events: tuple[act.EventNote, ...] = ()) -> act.Plan:
    return act.Plan(actions, events, 1, 0, Reason.FIXED_REPLICAS, "r" * 10)


def set_role(
    name: str, role: Role, message: str = "", annotations: Mapping[str, str | None] | None = None
) -> act.SetRole:
    return act.SetRole(name, role, Reason.PROMOTED, message, annotations or {})


def create(name: str, message: str = "") -> act.CreateGroup:
    return act.CreateGroup(name, Role.STANDBY, "r" * 10, TEMPLATE, Reason.WARM_POOL_REFILL, message)


async def test_an_error_stops_the_list_and_what_was_done_is_told_apart() -> None:
    api = Api(fails={"apply ReplicaGroup b": errors.Stale("changed")})
    actions = (
        set_role("a", Role.DRAINING, "a drains"),
        set_role("b", Role.ACTIVE, "b comes"),
        create("c", "c is made"),
    )
    notes = tuple(act.EventNote(Reason.PROMOTED, text) for text in ("a drains", "b comes", "c is made"))
    asked = plan(*actions, events=notes)
    got = await executor(api).apply_plan(asked, snapshot(group("a"), group("b", Role.STANDBY)))
    assert isinstance(got.error, errors.Stale)
    assert "create ReplicaGroup c" not in api.asked
    assert [note.message for note in _true_events(asked, got)] == ["a drains"]


async def test_a_plan_that_was_carried_out_tells_all_its_events() -> None:
    asked = plan(create("c"), events=(act.EventNote(Reason.SCALED_UP, "from 1 to 2"),))
    got = await executor(Api()).apply_plan(asked, snapshot())
    assert got.error is None
    assert _true_events(asked, got) == asked.events


async def test_what_goes_with_no_action_is_told_of_a_plan_that_stopped_too() -> None:
    notes = (
        act.EventNote(Reason.SCALED_UP, "from 1 to 2"),
        act.EventNote(Reason.CRASH_LOOP_HOLD, "6 groups failed"),
        act.EventNote(Reason.PROMOTED, "b comes"),
    )
    api = Api(fails={"apply ReplicaGroup b": errors.Stale("changed")})
    asked = plan(set_role("b", Role.ACTIVE, "b comes"), create("c", "c is made"), events=notes)
    got = await executor(api).apply_plan(asked, snapshot(group("b", Role.STANDBY)))
    assert [note.reason for note in _true_events(asked, got)] == [Reason.SCALED_UP, Reason.CRASH_LOOP_HOLD]


async def test_a_replacement_of_which_half_was_done_is_told() -> None:
    api = Api(fails={"apply ReplicaGroup b": errors.Stale("changed")})
    message = "group a: engine exited; promoted b"
    actions = (set_role("a", Role.QUARANTINED, message), set_role("b", Role.ACTIVE, message))
    asked = plan(*actions, events=(act.EventNote(Reason.REPLACED, message),))
    got = await executor(api).apply_plan(asked, snapshot(group("a"), group("b", Role.STANDBY)))
    assert _true_events(asked, got) == asked.events


async def test_a_role_change_brings_the_pods_labels_with_it_and_is_counted() -> None:
    api, counts = Api(), Counts()
    actions = (set_role("a", Role.QUARANTINED), set_role("b", Role.ACTIVE))
    await executor(api, counts=counts).apply_plan(plan(*actions), snapshot(group("a"), group("b", Role.STANDBY)))
    assert api.asked == ["apply ReplicaGroup a", "apply Pod a-0", "apply ReplicaGroup b", "apply Pod b-0"]
    assert counts.seen == [("quarantined", "Promoted"), ("promoted", "Promoted")]


async def test_a_pod_that_went_before_its_label_changed_stops_nothing() -> None:
    api = Api(fails={"apply Pod a-0": errors.NotFound("gone")})
    got = await executor(api).apply_plan(plan(set_role("a", Role.QUARANTINED), create("c")), snapshot(group("a")))
    assert got.error is None
    assert api.asked[-1] == "create ReplicaGroup c"


async def test_a_refused_pod_holds_up_no_other_and_is_not_asked_for_again_at_once() -> None:
    api = Api(fails={"create Pod a-0": errors.Refused("quota")})
    on, groups = executor(api), (group("a", pods=False), group("b", pods=False))
    asked = plan(act.CreatePod("a", 0), act.CreatePod("b", 0))
    got = await on.apply_plan(asked, snapshot(*groups))
    assert api.asked == ["create Pod a-0", "create Pod b-0"]
    assert got.error is None
    assert got.news == [act.EventNote(Reason.POD_REFUSED, "the API server refuses a-0: quota", warning=True)]
    assert on.refusals.standing(KEY, 0.0) == {"a-0": Refusal("quota", 0.0)}
    api.asked.clear()
    await on.apply_plan(asked, snapshot(*groups))
    assert api.asked == ["create Pod b-0"]


async def test_a_refused_group_takes_its_pods_out_of_the_plan_and_its_events_are_not_told() -> None:
    api = Api(fails={"create ReplicaGroup c": errors.Refused("quota")})
    on = executor(api)
    asked = plan(
        create("c", "c is made"), act.CreatePod("c", 0), events=(act.EventNote(Reason.SCALED_UP, "c is made"),)
    )
    got = await on.apply_plan(asked, snapshot())
    assert api.asked == ["create ReplicaGroup c"]
    assert _true_events(asked, got) == ()
    assert on.refusals.standing(KEY, 0.0) == {NEW_GROUP: Refusal("quota", 0.0)}
    assert got.news == [act.EventNote(Reason.GROUP_REFUSED, "the API server refuses a new group: quota", warning=True)]
    again = await on.apply_plan(plan(create("d")), snapshot())
    assert api.asked == ["create ReplicaGroup c"]
    assert again.done == []


async def test_a_group_that_is_refused_under_one_name_after_another_is_news_once() -> None:
    def refused(name: str) -> errors.OperatorError:
        return errors.Refused(f'replicagroups.headwater.dev "{name}" is forbidden: exceeded quota: q')

    api = Api(fails={f"create ReplicaGroup {name}": refused(name) for name in ("c", "d")})
    on = executor(api)
    news: list[act.EventNote] = []
    for number, name in enumerate(("c", "d")):
        later = replace(on, clock=StillClock(100.0 * number))
        news += (await later.apply_plan(plan(create(name)), snapshot())).news
    assert len(api.asked) == 2
    assert [note.message for note in news] == [
        "the API server refuses a new group: replicagroups.headwater.dev is forbidden: exceeded quota: q"
    ]


async def test_a_refused_object_that_is_not_wanted_any_more_is_not_waited_for() -> None:
    api = Api(fails={"create ReplicaGroup c": errors.Refused("quota"), "create Pod a-0": errors.Refused("quota")})
    on, groups = executor(api), (group("a", pods=False),)
    await on.apply_plan(plan(act.CreatePod("a", 0), create("c")), snapshot(*groups))
    assert on.refusals.next_try_seconds(KEY, 0.0) is not None
    await on.apply_plan(plan(), snapshot(*groups))
    assert on.refusals.next_try_seconds(KEY, 100.0) is None


async def test_an_engine_out_of_reach_stops_nothing_and_is_asked_again_soon() -> None:
    api, engines = Api(), Engines(unreachable=True)
    actions = (act.StartDrain("a", 30, 5), set_role("b", Role.ACTIVE))
    got = await executor(api, engines).apply_plan(plan(*actions), snapshot(group("a"), group("b", Role.STANDBY)))
    assert got.error is None
    assert engines.calls == ["drain 10.0.0.1 token-of-a 30 5"]
    assert engines.asked_now == ["uid-a-0"]
    assert "apply ReplicaGroup b" in api.asked


async def test_a_drain_is_taken_back_at_the_engine() -> None:
    engines = Engines()
    await executor(Api(), engines).apply_plan(plan(act.CancelDrain("a")), snapshot(group("a", Role.DRAINING)))
    assert engines.calls == ["undrain 10.0.0.1 token-of-a"]


async def test_a_group_is_deleted_by_its_uid() -> None:
    api = Api()
    await executor(api).apply_plan(plan(act.DeleteGroup("a", "uid-a", Reason.DRAINED, "")), snapshot(group("a")))
    assert api.asked == ["delete ReplicaGroup a uid-a"]


async def test_a_write_without_an_answer_stays_open_with_its_name() -> None:
    api = Api(fails={"create ReplicaGroup c": errors.OutcomeUnknown("silence")})
    on = executor(api)
    got = await on.apply_plan(plan(create("c")), snapshot())
    assert isinstance(got.error, errors.OutcomeUnknown)
    assert [(write.name, write.creates) for write in on.expectations.open(KEY)] == [("c", True)]


async def test_each_action_is_logged_with_pool_group_and_reason() -> None:
    actions = (create("c", "c is made"), set_role("a", Role.DRAINING, "a drains"))
    with capture_logs() as lines:
        await executor(Api()).apply_plan(plan(*actions), snapshot(group("a")))
    got = [(line["pool"], line["group"], line["action"], line["reason"], line["detail"]) for line in lines]
    assert got == [
        ("p", "c", "CreateGroup", "WarmPoolRefill", "c is made"),
        ("p", "a", "SetRole", "Promoted", "a drains"),
    ]
