"""What the engine counts about its requests. Plain numbers; the metrics endpoint reads them."""

from __future__ import annotations

from collections import Counter

from headwater_engine.core.histogram import Recorder, edges_around

# vLLM's own buckets, so that its dashboards work (vllm/v1/metrics/loggers.py).
TTFT_BUCKETS = (
    0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
    160.0, 640.0, 2560.0,
)  # fmt: skip
ITL_BUCKETS = (
    0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5, 5.0, 7.5, 10.0, 20.0, 40.0, 80.0,
)  # fmt: skip
E2E_BUCKETS = (
    0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0, 120.0, 240.0, 480.0, 960.0,
    1920.0, 7680.0,
)  # fmt: skip


class Meters:
    """Totals and histograms since the engine started."""

    def __init__(self, *, slo_ttft: float, slo_itl: float) -> None:
        self.prompt_tokens = 0
        self.generation_tokens = 0
        self.finished: Counter[str] = Counter()
        self.aborts: Counter[str] = Counter()
        self.ttft = Recorder(edges_around(slo_ttft, least=0.001, most=600.0))
        self.itl = Recorder(edges_around(slo_itl, least=0.001, most=60.0))
        self.ttft_coarse = Recorder(TTFT_BUCKETS)
        self.itl_coarse = Recorder(ITL_BUCKETS)
        self.e2e_coarse = Recorder(E2E_BUCKETS)

    def first_token(self, seconds: float) -> None:
        """Time from a request's admission to its first token."""
        self.ttft.observe(seconds)
        self.ttft_coarse.observe(seconds)

    def next_tokens(self, seconds: float, tokens: int) -> None:
        """``tokens`` that came together, ``seconds`` after the ones before."""
        self.itl.observe(seconds / tokens, tokens)
        self.itl_coarse.observe(seconds / tokens, tokens)
