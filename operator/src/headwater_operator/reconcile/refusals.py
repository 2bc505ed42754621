"""What the API server refused, so that a pool can say it and does not ask again at once."""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from headwater_operator.adapters.cache import PoolKey
from headwater_operator.core.snapshot import NEW_GROUP, Refusal

FIRST_WAIT_SECONDS = 1.0
LAST_WAIT_SECONDS = 60.0


@dataclass(slots=True)
class _Refusal:
    message: str
    times: int
    since: float
    next_try: float


class Refusals:
    """By pool and object name, in memory: after a restart the API server is simply asked again."""

    def __init__(self) -> None:
        self._by_pool: dict[PoolKey, dict[str, _Refusal]] = {}
        self._generations: dict[PoolKey, int] = {}

    def begin(self, pool: PoolKey, generation: int, groups: Iterable[str]) -> None:
        """Before a decision: a changed spec asks anew, and pods of groups that are gone are forgotten."""
        if self._generations.get(pool) != generation:
            self._by_pool.pop(pool, None)
        self._generations[pool] = generation
        refused, known = self._by_pool.get(pool, {}), set(groups)
        for name in [name for name in refused if name != NEW_GROUP and name.rpartition("-")[0] not in known]:
            del refused[name]

    def add(self, pool: PoolKey, name: str, message: str, now: float) -> bool:
        """Notes a refusal; true if it says something new."""
        refused = self._by_pool.setdefault(pool, {})
        before = refused.get(name)
        times, since = (before.times + 1, before.since) if before is not None else (1, now)
        wait = min(FIRST_WAIT_SECONDS * 2.0 ** min(times - 1, 10), LAST_WAIT_SECONDS)
        refused[name] = _Refusal(message, times, since, now + wait)
        return before is None or before.message != message

    def keep(self, pool: PoolKey, wanted: Collection[str]) -> None:
        """After a decision: what is not asked for any more is neither told nor waited for."""
        refused = self._by_pool.get(pool, {})
        for name in refused.keys() - wanted:
            del refused[name]

    def accepted(self, pool: PoolKey, name: str) -> None:
        """The object was made after all."""
        self._by_pool.get(pool, {}).pop(name, None)

    def wait_seconds(self, pool: PoolKey, name: str, now: float) -> float:
        """How long not to ask again; 0 if it may be asked."""
        refusal = self._by_pool.get(pool, {}).get(name)
        return 0.0 if refusal is None else max(0.0, refusal.next_try - now)

    def next_try_seconds(self, pool: PoolKey, now: float) -> float | None:
        """Until the first refused object may be asked for again."""
        waits = [refusal.next_try - now for refusal in self._by_pool.get(pool, {}).values()]
        return max(0.05, min(waits)) if waits else None

    def standing(self, pool: PoolKey, now: float) -> dict[str, Refusal]:
        """Object name → what the API server said, for a snapshot."""
        refused = self._by_pool.get(pool, {})
        return {name: Refusal(refusal.message, now - refusal.since) for name, refusal in refused.items()}

    def forget(self, pool: PoolKey) -> None:
        """Drops all that is known of a pool."""
        self._by_pool.pop(pool, None)
        self._generations.pop(pool, None)
