"""The result of a bench run: its JSON form (docs/reference/bench.md) and its figures."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from headwater_client.core.failures import FailureKind
from headwater_client.core.stats import StreamRecord, Summary, summarize

SCHEMA = "headwater.bench/v1"
MAX_ERROR_SAMPLES = 5


@dataclass(frozen=True, slots=True)
class BenchSettings:
    """What was asked of a run."""

    url: str
    model: str
    requests: int
    concurrency: int
    max_tokens: int
    ignore_eos: bool = False
    prompt_tokens: int | None = None
    rate_per_second: float | None = None
    timeout_seconds: float = 600.0


@dataclass(frozen=True, slots=True)
class Report:
    """Figures of one run. Latencies and tokens count streams that succeeded, errors the others."""

    settings: BenchSettings
    interrupted: bool
    duration_seconds: float
    succeeded: int
    failed: int
    prompt_tokens: int | None
    output_tokens: int
    counted_by: str
    ttft: Summary
    itl: Summary
    tpot: Summary
    e2e: Summary
    errors: dict[FailureKind, int]
    statuses: dict[str, int]
    samples: tuple[dict[str, Any], ...]

    @property
    def output_tokens_per_second(self) -> float:
        """Throughput of the whole run."""
        return _rate(self.output_tokens, self.duration_seconds)

    def to_json(self) -> dict[str, Any]:
        """The documented JSON object."""
        return {
            "schema": SCHEMA,
            "settings": asdict(self.settings),
            "interrupted": self.interrupted,
            "duration_seconds": self.duration_seconds,
            "requests": {
                "total": self.succeeded + self.failed,
                "succeeded": self.succeeded,
                "failed": self.failed,
                "per_second": _rate(self.succeeded, self.duration_seconds),
            },
            "tokens": {
                "prompt": self.prompt_tokens,
                "output": self.output_tokens,
                "output_per_second": self.output_tokens_per_second,
                "counted_by": self.counted_by,
            },
            "ttft_seconds": asdict(self.ttft),
            "itl_seconds": asdict(self.itl),
            "tpot_seconds": asdict(self.tpot),
            "e2e_seconds": asdict(self.e2e),
            "errors": {
                "by_kind": {kind.value: self.errors.get(kind, 0) for kind in FailureKind},
                "by_status": self.statuses,
                "samples": list(self.samples),
            },
        }


def build_report(
    settings: BenchSettings, records: Sequence[StreamRecord], duration_seconds: float, *, interrupted: bool = False
) -> Report:
    """Figures from the records of all requests that ended."""
    good = [record for record in records if record.failure is None]
    failures = [record.failure for record in records if record.failure is not None]
    usages = [record.usage for record in good if record.usage is not None]
    return Report(
        settings=settings,
        interrupted=interrupted,
        duration_seconds=duration_seconds,
        succeeded=len(good),
        failed=len(failures),
        prompt_tokens=sum(usage.prompt_tokens for usage in usages) if usages else None,
        output_tokens=sum(record.output_tokens for record in good),
        counted_by=_counted_by(len(usages), len(good)),
        ttft=summarize(record.ttft_seconds for record in good if record.ttft_seconds is not None),
        itl=summarize(gap for record in good for gap in record.gaps_seconds),
        tpot=summarize(record.tpot_seconds for record in good if record.tpot_seconds is not None),
        e2e=summarize(record.e2e_seconds for record in good),
        errors=dict(Counter(failure.kind for failure in failures)),
        statuses=dict(Counter(str(failure.status) for failure in failures if failure.status is not None)),
        samples=_samples(records),
    )


def _samples(records: Sequence[StreamRecord]) -> tuple[dict[str, Any], ...]:
    """The first few different failures."""
    seen: dict[tuple[str, str], dict[str, Any]] = {}
    for record in records:
        if (failure := record.failure) is not None and len(seen) < MAX_ERROR_SAMPLES:
            sample = {"kind": failure.kind.value, "status": failure.status, "message": failure.message}
            seen.setdefault((failure.kind.value, failure.message), sample)
    return tuple(seen.values())


def _counted_by(with_usage: int, total: int) -> str:
    if with_usage == total:
        return "usage"
    return "mixed" if with_usage else "chunks"


def _rate(count: int, seconds: float) -> float:
    return count / seconds if seconds > 0 else 0.0
