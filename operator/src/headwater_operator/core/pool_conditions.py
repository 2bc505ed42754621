"""The ten conditions of a pool.

Ready and Reconciling follow the spec, so that ``kubectl wait``, Flux and Argo CD settle:

| observed                                   | Ready              | Reconciling | Stalled |
|--------------------------------------------|--------------------|-------------|---------|
| a fault of the spec                        | False              | False       | True    |
| too few groups serve: fault for a person   | False              | False       | True    |
| too few groups serve: loading, crash hold  | False              | True        | False   |
| rollout not finished                       | False              | True        | False   |
| enough groups serve                        | True               | False       | False   |
"""

from __future__ import annotations

from headwater_contracts.reasons import ConditionType, Reason
from headwater_operator.api.duration import parse_duration
from headwater_operator.api.honored import fields_not_honored, fields_partly_honored
from headwater_operator.core.conditions import Finding
from headwater_operator.core.pool_view import PoolView
from headwater_operator.core.verdicts import blindness


def pool_findings(view: PoolView) -> tuple[Finding, ...]:
    """All ten, in the order of the API's documentation."""
    ready = _ready(view)
    stalled = _stalled(view, ready)
    return (
        ready,
        _reconciling(ready, stalled),
        stalled,
        _warm_pool(view),
        _scaling_active(view),
        Finding(ConditionType.SCALING_LIMITED, False, Reason.NOT_AUTOSCALING, "the number of groups is fixed"),
        _capacity(view),
        _slo(view),
        _rolled_out(view),
        _spec_honored(view),
    )


def _ready(view: PoolView) -> Finding:
    kind, plan = ConditionType.READY, view.plan
    count = f"{len(view.serving)} of {plan.desired_active} active groups serve"
    if plan.problem is not None:
        return Finding(kind, False, plan.problem.reason, plan.problem.message)
    if plan.desired_active == 0 and (view.active or view.draining):
        return Finding(kind, False, Reason.PROGRESSING, "groups still drain")
    if len(view.serving) < view.needed or not view.snapshot.service_exists:
        reason, why = _why_not_ready(view)
        return Finding(kind, False, reason, f"{count}; {why}")
    if plan.rolling:
        reason, how = _rollout_state(view)
        return Finding(kind, False, reason, f"{count}; {how}")
    if plan.desired_active == 0:
        reason = Reason.SUSPENDED if view.snapshot.spec.suspend else Reason.GROUPS_SERVING
        return Finding(kind, True, reason, "no active groups are wanted")
    return Finding(kind, True, Reason.GROUPS_SERVING, count)


def _why_not_ready(view: PoolView) -> tuple[Reason, str]:
    if not view.snapshot.service_exists:
        return Reason.PROGRESSING, "the Service does not exist yet"
    if fault := view.fault():
        return fault
    if view.plan.hold is not None:
        return Reason.CRASH_LOOP_HOLD, view.plan.hold.message
    if unschedulable := view.unschedulable():
        return Reason.CAPACITY_SHORT, unschedulable
    loading = sum(not view.health[group.name].loaded for group in (*view.active, *view.standby))
    if loading:
        return Reason.GROUPS_NOT_READY, f"{loading} groups are loading"
    return Reason.GROUPS_NOT_READY, "groups are on their way into the Service"


def _stalled(view: PoolView, ready: Finding) -> Finding:
    kind = ConditionType.STALLED
    if view.plan.problem is not None:
        return Finding(kind, True, view.plan.problem.reason, view.plan.problem.message)
    fault = view.lasting_fault()
    if fault is not None and ready.status is False:
        return Finding(kind, True, fault[0], fault[1])
    return Finding(kind, False, Reason.NO_PROBLEM, "nothing needs a person")


def _reconciling(ready: Finding, stalled: Finding) -> Finding:
    kind = ConditionType.RECONCILING
    if stalled.status:
        return Finding(kind, False, stalled.reason, "waits for a person, see Stalled")
    if ready.status:
        return Finding(kind, False, Reason.CONVERGED, "the spec is reached")
    return Finding(kind, True, Reason.PROGRESSING, ready.message)


def _warm_pool(view: PoolView) -> Finding:
    kind, want, have = ConditionType.WARM_POOL_READY, view.plan.desired_standby, len(view.warm)
    count = f"{min(have, want)} of {want} standby groups are loaded"
    if have >= want:
        return Finding(kind, True, Reason.WARM_POOL_FULL, count)
    why = (view.fault() or (None, view.unschedulable()))[1]
    if why is None and view.plan.hold is not None:
        why = view.plan.hold.message
    return Finding(kind, False, Reason.WARM_POOL_SHORT, f"{count}; {why}" if why else count)


def _scaling_active(view: PoolView) -> Finding:
    kind = ConditionType.SCALING_ACTIVE
    if view.snapshot.spec.autoscaling is None:
        return Finding(kind, False, Reason.NOT_AUTOSCALING, "the number of groups is fixed")
    return Finding(
        kind,
        False,
        Reason.AUTOSCALING_NOT_SUPPORTED,
        "this version does not scale by itself and holds autoscaling.minReplicas",
    )


def _capacity(view: PoolView) -> Finding:
    kind, message = ConditionType.CAPACITY_AVAILABLE, view.unschedulable()
    if message is not None:
        return Finding(kind, False, Reason.CAPACITY_SHORT, message)
    return Finding(kind, True, Reason.CAPACITY_AVAILABLE, "no pod waits for a node")


def _slo(view: PoolView) -> Finding:
    kind, slo, signals = ConditionType.SLO_MET, view.snapshot.spec.slo, view.signals
    if blind := blindness(view.snapshot):
        return Finding(kind, None, blind[0], blind[1])
    targets = {
        "ttftP90": (slo.ttft_p90 if slo else None, signals.ttft_p90_seconds),
        "interTokenLatencyP99": (slo.inter_token_latency_p99 if slo else None, signals.itl_p99_seconds),
    }
    wanted = {name: (text, got) for name, (text, got) in targets.items() if text is not None}
    if not wanted:
        return Finding(kind, None, Reason.NO_DATA, "spec.slo sets no latency target")
    above = [
        f"{name} ({text})" for name, (text, got) in wanted.items() if got is not None and got > parse_duration(text)
    ]
    if above:
        return Finding(kind, False, Reason.ABOVE_TARGETS, f"above spec.slo: {', '.join(above)}")
    if all(got is None for _, got in wanted.values()):
        return Finding(kind, None, Reason.NO_DATA, "no requests within the signal window")
    return Finding(kind, True, Reason.WITHIN_TARGETS, "within the latency targets of spec.slo")


def _rolled_out(view: PoolView) -> Finding:
    kind = ConditionType.ROLLED_OUT
    if view.plan.problem is not None:
        return Finding(kind, False, view.plan.problem.reason, view.plan.problem.message)
    if not view.plan.rolling:
        stay = f", but for {view.kept_old} that spec.rollout.partition keeps" if view.kept_old else ""
        return Finding(kind, True, Reason.ROLLOUT_FINISHED, f"all groups are of the revision of the spec{stay}")
    return Finding(kind, False, *_rollout_state(view))


def _rollout_state(view: PoolView) -> tuple[Reason, str]:
    """How far a rollout is, and what it waits for beyond its own steps."""
    reason, progress = Reason.PROGRESSING, _rollout_progress(view)
    if view.snapshot.spec.rollout.paused:
        return reason, f"paused by spec.rollout.paused; {progress}"
    if fault := view.fault():
        return fault[0], f"{progress}; {fault[1]}"
    if view.plan.hold is not None:
        return Reason.CRASH_LOOP_HOLD, f"{progress}; {view.plan.hold.message}"
    if unschedulable := view.unschedulable():
        return Reason.CAPACITY_SHORT, f"{progress}; the next step waits for room{_room_remedy(view)}: {unschedulable}"
    return reason, progress


def _room_remedy(view: PoolView) -> str:
    """Empty where a group already gives way, or may."""
    if view.snapshot.spec.rollout.max_unavailable > 0 or view.leaving:
        return ""
    return (
        " (free capacity, or set spec.rollout.maxUnavailable to 1: then an old group goes before its successor is up)"
    )


def _rollout_progress(view: PoolView) -> str:
    revision = view.plan.update_revision
    new = [sum(group.revision == revision for group in groups) for groups in (view.active, view.standby)]
    return (
        f"{new[0]} of {len(view.active)} active and {new[1]} of {len(view.standby)} standby groups are of "
        f"revision {revision}"
    )


def _spec_honored(view: PoolView) -> Finding:
    kind, spec = ConditionType.SPEC_HONORED, view.snapshot.spec
    fields, partly = fields_not_honored(spec), fields_partly_honored(spec)
    said = [f"without effect in this version: {', '.join(fields)}"] if fields else []
    said += [f"in part only in this version: {path} ({how})" for path, how in partly.items()]
    if not said:
        return Finding(kind, True, Reason.ALL_HONORED, "all fields that are set have an effect")
    return Finding(kind, False, Reason.FIELDS_NOT_HONORED, "; ".join(said))
