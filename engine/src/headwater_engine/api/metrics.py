"""Prometheus metrics, read from the engine's own figures at each scrape."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import accumulate

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector

from headwater_contracts import metrics
from headwater_contracts.admin import EnginePhase, EngineState, Histogram
from headwater_engine.core.meters import Meters

_LABELS = ["model_name", "engine"]


class EngineCollector(Collector):
    """vLLM's metrics by vLLM's names, and Headwater's own."""

    def __init__(self, model: str, state: Callable[[], EngineState], meters: Meters) -> None:
        self._values = [model, "0"]
        self._state = state
        self._meters = meters

    def collect(self) -> Iterator[Metric]:
        """All metrics as of now."""
        state, meters = self._state(), self._meters
        yield from self._gauges(state)
        yield self._counter(metrics.PROMPT_TOKENS, "Prompt tokens received.", meters.prompt_tokens)
        yield self._counter(metrics.GENERATION_TOKENS, "Tokens generated.", meters.generation_tokens)
        yield self._counter(metrics.ENGINE_STEPS, "Steps of the backend.", state.step)
        aborts = CounterMetricFamily(
            metrics.ENGINE_ABORTS, "Requests ended before their finish.", labels=[*_LABELS, "cause"]
        )
        for cause, count in meters.aborts.items():
            aborts.add_metric([*self._values, cause], count)
        yield aborts
        yield self._histogram(metrics.TTFT_SECONDS, "Time to first token.", meters.ttft_coarse.snapshot())
        yield self._histogram(metrics.ITL_SECONDS, "Time between tokens.", meters.itl_coarse.snapshot())
        yield self._histogram(metrics.E2E_SECONDS, "Time of a whole request.", meters.e2e_coarse.snapshot())

    def _gauges(self, state: EngineState) -> Iterator[Metric]:
        yield self._gauge(metrics.REQUESTS_RUNNING, "Requests in the running batch.", state.running)
        yield self._gauge(metrics.REQUESTS_WAITING, "Requests waiting for a place.", state.waiting)
        if state.kv_used_blocks is not None and state.kv_total_blocks:
            usage = state.kv_used_blocks / state.kv_total_blocks
            yield self._gauge(metrics.KV_CACHE_USAGE, "Share of KV blocks in use.", usage)
        phase = GaugeMetricFamily(metrics.ENGINE_PHASE, "1 for the phase the engine is in.", labels=[*_LABELS, "phase"])
        for each in EnginePhase:
            phase.add_metric([*self._values, each.value], float(each is state.phase))
        yield phase

    def _gauge(self, name: str, text: str, value: float) -> Metric:
        family = GaugeMetricFamily(name, text, labels=_LABELS)
        family.add_metric(self._values, value)
        return family

    def _counter(self, name: str, text: str, value: float) -> Metric:
        family = CounterMetricFamily(name, text, labels=_LABELS)
        family.add_metric(self._values, value)
        return family

    def _histogram(self, name: str, text: str, histogram: Histogram) -> Metric:
        edges = [*map(str, histogram.edges), "+Inf"]
        buckets = list(zip(edges, accumulate(map(float, histogram.counts)), strict=True))
        family = HistogramMetricFamily(name, text, labels=_LABELS)
        family.add_metric(self._values, buckets, histogram.sum_seconds)
        return family


def metrics_registry(collector: EngineCollector) -> CollectorRegistry:
    """A registry of this engine alone; the library's global one is shared with vLLM."""
    registry = CollectorRegistry()
    registry.register(collector)
    return registry
