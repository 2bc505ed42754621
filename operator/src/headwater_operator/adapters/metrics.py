"""The operator's Prometheus metrics, on a registry of their own."""

from __future__ import annotations

from collections import Counter as Tally
from collections.abc import Iterable

import prometheus_client as prometheus

from headwater_contracts import metrics as names
from headwater_operator.adapters.cache import PoolKey

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 15.0)


class OperatorMetrics:
    """Every series of one operator process."""

    def __init__(self) -> None:
        registry = self.registry = prometheus.CollectorRegistry()
        pool = ("namespace", "pool")
        self._reconcile = prometheus.Histogram(
            names.OPERATOR_RECONCILE_SECONDS, "Duration of reconciles", ("result",), buckets=_SECONDS, registry=registry
        )
        self._calls = prometheus.Counter(
            names.OPERATOR_API_CALLS, "Calls to the API server", ("verb", "resource", "code"), registry=registry
        )
        self._groups = prometheus.Gauge(
            names.OPERATOR_GROUPS, "Replica groups", (*pool, "role", "phase"), registry=registry
        )
        self._promotions = prometheus.Counter(
            names.OPERATOR_PROMOTIONS, "Standbys made active", (*pool, "reason"), registry=registry
        )
        self._replacements = prometheus.Counter(
            names.OPERATOR_REPLACEMENTS, "Groups quarantined as unhealthy", (*pool, "reason"), registry=registry
        )
        self._signal_age = prometheus.Gauge(
            names.OPERATOR_SIGNAL_AGE_SECONDS, "Age of the oldest engine state of a pool", pool, registry=registry
        )
        self._watch_age = prometheus.Gauge(
            "headwater_watch_age_seconds", "Since the last data of a watch", ("kind",), registry=registry
        )
        self._queue = prometheus.Gauge("headwater_queue_length", "Pools waiting for a reconcile", registry=registry)
        self._oldest = prometheus.Gauge(
            "headwater_queue_oldest_age_seconds", "Age of the oldest queued pool", registry=registry
        )
        self._shown: dict[PoolKey, set[tuple[str, str]]] = {}

    def call(self, verb: str, resource: str, status: int) -> None:
        """Counts a call to the API server; status 0 means no answer."""
        self._calls.labels(verb, resource, str(status) if status else "none").inc()

    def reconciled(self, result: str, seconds: float) -> None:
        """Records one reconcile: ok, refused, failed or crashed."""
        self._reconcile.labels(result).observe(seconds)

    def promoted(self, pool: PoolKey, reason: str) -> None:
        """Counts a standby made active."""
        self._promotions.labels(*pool, reason).inc()

    def quarantined(self, pool: PoolKey, reason: str) -> None:
        """Counts a group found unhealthy."""
        self._replacements.labels(*pool, reason).inc()

    def groups(self, pool: PoolKey, roles_and_phases: Iterable[tuple[str, str]]) -> None:
        """Sets a pool's group counts; combinations that are gone fall to nothing."""
        counts = Tally(roles_and_phases)
        for gone in self._shown.get(pool, set()) - counts.keys():
            self._groups.remove(*pool, *gone)
        for labels, count in counts.items():
            self._groups.labels(*pool, *labels).set(count)
        self._shown[pool] = set(counts)

    def signal_age(self, pool: PoolKey, seconds: float | None) -> None:
        """Sets the age of a pool's signals; unknown removes the series."""
        if seconds is None:
            self._drop(self._signal_age, pool)
        else:
            self._signal_age.labels(*pool).set(seconds)

    def watch_age(self, kind: str, seconds: float) -> None:
        """Sets the age of a kind's last watch data."""
        self._watch_age.labels(kind).set(seconds)

    def queue(self, length: int, oldest_seconds: float) -> None:
        """Sets the queue's figures."""
        self._queue.set(length)
        self._oldest.set(oldest_seconds)

    def forget(self, pool: PoolKey) -> None:
        """Drops the gauges of a pool that is gone."""
        self.groups(pool, ())
        self._shown.pop(pool, None)
        self._drop(self._signal_age, pool)

    def exposition(self) -> tuple[bytes, str]:
        """Body and content type of ``/metrics``."""
        return prometheus.generate_latest(self.registry), prometheus.CONTENT_TYPE_LATEST

    @staticmethod
    def _drop(gauge: prometheus.Gauge, labels: PoolKey) -> None:
        try:
            gauge.remove(*labels)
        except KeyError:
            return
