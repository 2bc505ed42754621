"""Stage rollout: one step at a time from old revisions to the one that the spec asks for.

| observed                                                   | step                                              |
|------------------------------------------------------------|---------------------------------------------------|
| standby of an old revision that never loaded               | delete it: its place goes to the new revision     |
| new standby loaded, old active left, nothing draining      | promote the new one                               |
| more active than wanted, all of them serving               | drain one old (stage replacement)                 |
| all active new, more loaded standbys than wanted           | delete one old standby                            |
| old groups left, room within maxSurge                      | create a standby of the new revision              |
| no room (maxSurge 0, or the new pod fits on no node)       | delete one old standby, else drain one old active |
|                                                            | if maxUnavailable allows it                       |

A new revision that does not load never costs a group that serves. ``paused`` stops before the next step;
``partition`` old active groups stay. Nothing here counts steps: each is derived from what exists, so a second
change midway, a rollback or a restart needs no special case.
"""

from __future__ import annotations

from headwater_contracts.reasons import Reason, Role
from headwater_operator.core.crashloop import create_within_budget
from headwater_operator.core.draft import Draft, Member, Step
from headwater_operator.core.replacement import drain, retire, serves, victim_order


def rolling(draft: Draft) -> bool:
    """Groups of another revision stand where new ones should."""
    return draft.target is not None and draft.problem is None and bool(_old_active(draft) or _old_standbys(draft))


def plan_rollout(draft: Draft) -> None:
    """The next step, if one is due and safe."""
    _announce(draft)
    if not rolling(draft) or draft.snapshot.spec.rollout.paused:
        return
    for member in _old_standbys(draft):
        if not member.health.loaded:
            _retire(draft, member, f"standby group {member.name} of an old revision has not loaded")
    if not _exchange_active(draft) and not _retire_standby(draft):
        _make_room(draft)
    _surge(draft)


def _announce(draft: Draft) -> None:
    status = draft.snapshot.status
    update, before = draft.update_revision, status.get("updateRevision")
    if update is None or draft.problem is not None:
        return
    if before and before != update and rolling(draft):
        draft.note(Reason.ROLLOUT_STARTED, f"from revision {before} to {update}")
    current = status.get("currentRevision")
    kept = any(draft.is_old(member) for member in draft.having(Role.ACTIVE))
    if current and before == update and current != update and not rolling(draft) and not kept:
        draft.note(Reason.ROLLOUT_FINISHED, f"all groups are of revision {update}")


def _old_standbys(draft: Draft) -> list[Member]:
    return [member for member in draft.having(Role.STANDBY) if draft.is_old(member) and not member.changed]


def _old_active(draft: Draft) -> list[Member]:
    """Old active groups beyond the partition, the one whose loss costs least first."""
    old = [member for member in draft.having(Role.ACTIVE) if draft.is_old(member) and not member.changed]
    old.sort(key=lambda member: victim_order(draft, member))
    return old[: max(0, len(old) - draft.snapshot.spec.rollout.partition)]


def _new_standbys(draft: Draft) -> list[Member]:
    return [member for member in draft.having(Role.STANDBY) if not draft.is_old(member)]


def _exchange_active(draft: Draft) -> bool:
    """At most one voluntary removal is in flight, so a bad step costs one group. The old group drains only when the
    new one serves: Ready by the kubelet is not yet in the Service."""
    old = _old_active(draft)
    ready = [member for member in _new_standbys(draft) if member.promotable and not member.changed]
    balanced = len(draft.having(Role.ACTIVE)) == draft.desired_active
    if not old or not ready or draft.having(Role.DRAINING) or not balanced:
        return False
    chosen = ready[0]
    message = f"group {chosen.name} of the new revision is loaded and takes the place of {old[0].name}"
    draft.set_role(Step.PROMOTE, chosen, Role.ACTIVE, Reason.PROMOTED, message)
    draft.note(Reason.PROMOTED, message, cause=Reason.ROLLOUT_STARTED)
    return True


def _retire_standby(draft: Draft) -> bool:
    """Old standbys go last, when all active groups are new, each only after a new one is loaded."""
    loaded = [member for member in draft.having(Role.STANDBY) if member.promotable]
    old = _old_standbys(draft)
    if not old or _old_active(draft) or len(loaded) <= draft.desired_standby + draft.unmet:
        return False
    _retire(draft, old[-1], f"standby group {old[-1].name} of an old revision has a loaded successor")
    return True


def _retire(draft: Draft, member: Member, message: str) -> None:
    retire(draft, member, Reason.RETIRED, message)
    if member.deleted:
        draft.note(Reason.RETIRED, message)


def _make_room(draft: Draft) -> None:
    new = _new_standbys(draft)
    stuck = any(member.unschedulable for member in new)
    no_surge = draft.snapshot.spec.rollout.max_surge == 0 and all(member.health.loaded for member in new)
    short = draft.serving_or_warm < draft.desired_active + draft.desired_standby
    leaving = draft.having(Role.DRAINING) or any(member.group.terminating for member in draft.members)
    if not (stuck or no_surge) or short or leaving:
        return
    old = _old_standbys(draft)
    if old:
        _retire(draft, old[-1], f"standby group {old[-1].name} makes room for the new revision")
        return
    active = _old_active(draft)
    left = sum(serves(draft, member) for member in draft.having(Role.ACTIVE) if member not in active[:1])
    if active and left >= draft.desired_active - draft.snapshot.spec.rollout.max_unavailable:
        drain(draft, active[0], Reason.RETIRED, "it makes room for the new revision")


def _surge(draft: Draft) -> None:
    """Draining groups still hold their accelerators, so they count against the surge."""
    spec = draft.snapshot.spec
    wanted = draft.desired_active + draft.desired_standby
    held = draft.serving_or_warm + len(draft.having(Role.DRAINING))
    kept = len([member for member in draft.having(Role.ACTIVE) if draft.is_old(member)]) - len(_old_active(draft))
    new = sum(not draft.is_old(member) for member in draft.having(Role.ACTIVE, Role.STANDBY)) + draft.created
    count = min(wanted + spec.rollout.max_surge - held, wanted - kept - new)
    create_within_budget(draft, count, Reason.ROLLOUT_STARTED, "a group of the new revision")
