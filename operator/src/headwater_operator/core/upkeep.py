"""Stages around the decision: what must exist, what lags behind, and what nobody needs any more."""

from __future__ import annotations

from headwater_contracts.admin import EnginePhase
from headwater_contracts.reasons import ConditionType, Reason, Role
from headwater_operator.api.pool import InferencePoolSpec
from headwater_operator.core.actions import (
    ApplyService,
    CancelDrain,
    CreatePod,
    CreateRevision,
    DeleteRevision,
    LabelPod,
)
from headwater_operator.core.conditions import MESSAGE_LIMIT, shorten
from headwater_operator.core.draft import Draft, Member, Step, Target
from headwater_operator.core.facts import fresh_state
from headwater_operator.core.validate import find_problem
from headwater_operator.core.verdicts import blindness, pods_of
from headwater_operator.desired.revision import resolve_template, revision_hash


def plan_foundation(draft: Draft) -> None:
    """The revision that new groups are made of, and the Service. A fault of the spec falls back to what served."""
    draft.problem = find_problem(draft.snapshot, draft.settings)
    _note_problem(draft)
    if draft.problem is None:
        _aim_at_spec(draft)
    else:
        draft.target = _fallback(draft)
    if not draft.snapshot.service_exists and not draft.snapshot.foreign and draft.problem is None:
        draft.act(Step.FOUNDATION, ApplyService())


def _note_problem(draft: Draft) -> None:
    if draft.problem is None:
        return
    stored = shorten(draft.problem.message, MESSAGE_LIMIT)
    for condition in draft.snapshot.status.get("conditions") or ():
        if condition.get("type") == ConditionType.STALLED and condition.get("message") == stored:
            return
    draft.events.append(draft.problem)


def _aim_at_spec(draft: Draft) -> None:
    spec: InferencePoolSpec = draft.snapshot.spec
    revision = revision_hash(spec)
    known = next((item for item in draft.snapshot.revisions if item.revision == revision), None)
    template = known.template if known else resolve_template(spec, draft.settings)
    draft.target, draft.update_revision = Target(revision, template), revision
    highest = max((item.number for item in draft.snapshot.revisions), default=0)
    if known is None or known.number < highest:
        draft.act(Step.FOUNDATION, CreateRevision(revision, highest + 1, template))


def _fallback(draft: Draft) -> Target | None:
    """The last revision that was fully rolled out, as long as its image is still allowed."""
    current = draft.snapshot.status.get("currentRevision")
    for item in draft.snapshot.revisions:
        image = (item.template.get("engine") or {}).get("image", "")
        if item.revision == current and draft.settings.image_allowed(image):
            return Target(item.revision, item.template)
    return None


def plan_upkeep(draft: Draft) -> None:
    """Missing pods, lagging labels, engines that still drain although their group shall not, old revisions."""
    for member in draft.having(Role.ACTIVE, Role.STANDBY):
        _complete(draft, member)
        _undrain(draft, member)
    for member in draft.members:
        if member.live and not member.changed:
            _label(draft, member)
    _trim_revisions(draft)


def _complete(draft: Draft, member: Member) -> None:
    if member.health.loaded or member.changed:
        return
    ranks = {pod.rank for pod in member.group.pods}
    draft.act(
        Step.CREATE_POD, *(CreatePod(member.name, rank) for rank in range(pods_of(member.group)) if rank not in ranks)
    )


def _undrain(draft: Draft, member: Member) -> None:
    state = fresh_state(member.group)
    going = any(pod.terminating for pod in member.group.pods)
    if not member.changed and not going and state is not None and state.phase is EnginePhase.DRAINING:
        draft.act(Step.UNDRAIN, CancelDrain(member.name))


def _label(draft: Draft, member: Member) -> None:
    lagging = [pod for pod in member.group.pods if pod.role_label != member.role and not pod.terminating]
    draft.act(Step.LABEL, *(LabelPod(pod.name, member.name, member.role) for pod in lagging))


def _trim_revisions(draft: Draft) -> None:
    used = {member.group.revision for member in draft.members}
    used |= {draft.update_revision or "", str(draft.snapshot.status.get("currentRevision"))}
    used |= {draft.target.revision} if draft.target else set()
    idle = sorted(
        (item for item in draft.snapshot.revisions if item.revision not in used), key=lambda item: item.number
    )
    excess = len(draft.snapshot.revisions) - draft.settings.revision_history_limit
    draft.act(Step.CLEAN_UP, *(DeleteRevision(item.name) for item in idle[: max(0, excess)]))


def note_capacity(draft: Draft) -> None:
    """Tells once when pods stop fitting on the nodes."""
    message = next(
        (unschedulable_message(member) for member in draft.members if member.live and member.unschedulable), None
    )
    if message is None:
        return
    for condition in draft.snapshot.status.get("conditions") or ():
        if condition.get("type") == ConditionType.CAPACITY_AVAILABLE and condition.get("status") == "False":
            return
    draft.note(Reason.CAPACITY_SHORT, message, warning=True)


def note_blindness(draft: Draft) -> None:
    """Tells once when the operator loses sight of most engines."""
    blind = blindness(draft.snapshot)
    if blind is None:
        return
    for condition in draft.snapshot.status.get("conditions") or ():
        if condition.get("type") == ConditionType.SLO_MET and condition.get("reason") == blind[0]:
            return
    draft.note(blind[0], blind[1], warning=True)


def unschedulable_message(member: Member) -> str:
    """The scheduler's own words about a group's pod."""
    for pod in member.group.pods:
        if pod.scheduled is False:
            return f"pod {pod.name}: {pod.unschedulable_message or 'no node fits'}"
    return ""
