"""Stage counts: how many groups are wanted, and why. Numbers only.

| suspend | replicas | autoscaling | active      | standby       | reason          |
|---------|----------|-------------|-------------|---------------|-----------------|
| yes     | any      | any         | 0           | 0             | Suspended       |
| no      | n        | –           | n           | warmPool.size | FixedReplicas   |
| no      | –        | yes         | minReplicas | warmPool.size | MinimumReplicas |
| no      | –        | –           | 1           | warmPool.size | DefaultReplicas |
"""

from __future__ import annotations

from headwater_contracts.reasons import Reason
from headwater_operator.api.pool import InferencePoolSpec
from headwater_operator.core.draft import Draft


def desired_counts(spec: InferencePoolSpec) -> tuple[int, int, Reason]:
    """Active groups, standby groups, and the reason for them."""
    if spec.suspend:
        return 0, 0, Reason.SUSPENDED
    if spec.replicas is not None:
        return spec.replicas, spec.warm_pool.size, Reason.FIXED_REPLICAS
    if spec.autoscaling is not None:
        return spec.autoscaling.min_replicas, spec.warm_pool.size, Reason.MINIMUM_REPLICAS
    return 1, spec.warm_pool.size, Reason.DEFAULT_REPLICAS


def plan_counts(draft: Draft) -> None:
    """Sets the wanted numbers and tells of a change against what the status last said."""
    active, standby, reason = desired_counts(draft.snapshot.spec)
    draft.desired_active, draft.desired_standby, draft.desired_reason = active, standby, reason
    before = (draft.snapshot.status.get("desired") or {}).get("active")
    if before is None or before == active:
        return
    what = Reason.SCALED_UP if active > before else Reason.SCALED_DOWN
    draft.note(what, f"from {before} to {active} active groups ({reason})", cause=reason, counts=(before, active))
