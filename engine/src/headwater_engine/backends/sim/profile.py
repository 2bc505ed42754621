"""How long a step takes. Constants come from published measurements; none are guessed silently.

``h100-llama70b-tp8``: medians of the Splitwise/SageServe performance model for Llama-2-70B on 8×H100, TP=8
(shashwatj07/SageServe, data/perf_model.csv, MIT).

- decode, 512-token prompts, by batch: 1: 30 ms, 8: 32.5, 16: 34.2, 32: 38.6, 64: 50.2. The line
  30.0 + 0.3 ms a sequence is within 3% of each.
- prefill, one step of n prompt tokens: 128: 58 ms, 512: 54, 1,024: 78, 2,048: 137, 4,096: 390, 8,192: 845,
  16,384: 1,552, 32,768: 2,936; batches of 512-token prompts fall on the same curve by their total. What
  exceeds the decode base of 30 ms is interpolated linearly between these points.

A step of d decoding sequences and p prefill tokens takes base + d × per sequence + prefill(p).

KV memory is 80 layers × 2 × 8 KV heads × 128 × 2 B = 320 KiB a token; 8×80 GB at 92% less 140 GB of weights
hold 1.37 million tokens. Loading time is not in the source; it is kept short on purpose.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass

KV_BYTES_PER_TOKEN_70B = 80 * 2 * 8 * 128 * 2
_KV_TOKENS_70B = int((8 * 80e9 * 0.92 - 140e9) / KV_BYTES_PER_TOKEN_70B)


@dataclass(frozen=True, slots=True)
class Profile:
    """Durations in seconds at timeScale 1. ``prefill`` holds (tokens of a step, seconds beyond the base)."""

    name: str
    step_base: float
    step_per_sequence: float
    prefill: tuple[tuple[int, float], ...]
    kv_tokens: int
    max_num_seqs: int
    max_num_batched_tokens: int
    max_model_len: int
    load: float

    def step_seconds(self, decoding: int, prefill_tokens: int) -> float:
        """Duration of one step."""
        return self.step_base + decoding * self.step_per_sequence + self._prefill_seconds(prefill_tokens)

    def _prefill_seconds(self, tokens: int) -> float:
        points = self.prefill
        right = min(max(bisect_right(points, (tokens, float("inf"))), 1), len(points) - 1)
        (x0, y0), (x1, y1) = points[right - 1], points[right]
        return y0 + (tokens - x0) * (y1 - y0) / (x1 - x0)


H100_LLAMA70B_TP8 = Profile(
    name="h100-llama70b-tp8",
    step_base=0.030,
    step_per_sequence=0.0003,
    prefill=(
        (0, 0.0),
        (128, 0.022),
        (512, 0.024),
        (1024, 0.048),
        (2048, 0.107),
        (4096, 0.360),
        (8192, 0.815),
        (16384, 1.522),
        (32768, 2.906),
    ),
    kv_tokens=_KV_TOKENS_70B,
    max_num_seqs=1024,
    max_num_batched_tokens=2048,
    max_model_len=32768,
    load=2.0,
)

# Not a measurement: steps of about 2 ms and little KV, so that tests are quick and preemption is near.
TEST_FAST = Profile(
    name="test-fast",
    step_base=0.002,
    step_per_sequence=0.000005,
    prefill=((0, 0.0), (1000, 0.002)),
    kv_tokens=65536,
    max_num_seqs=512,
    max_num_batched_tokens=2048,
    max_model_len=4096,
    load=0.05,
)

PROFILES = {profile.name: profile for profile in (H100_LLAMA70B_TP8, TEST_FAST)}
