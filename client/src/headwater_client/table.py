"""A bench report for a person."""

from __future__ import annotations

from rich.console import Console
from rich.table import Table

from headwater_client.core.report import Report
from headwater_client.core.stats import Summary
from headwater_client.core.terminal import printable


def print_report(report: Report, console: Console) -> None:
    """Prints counts, throughput, latencies and errors."""
    settings = report.settings
    console.print(
        f"{settings.model} at {settings.url}: {report.succeeded} of {report.succeeded + report.failed} requests whole, "
        f"{settings.concurrency} at a time, {report.duration_seconds:.1f} s"
        + (" (interrupted)" if report.interrupted else ""),
        markup=False,
        highlight=False,
        soft_wrap=True,
    )
    console.print(
        f"{report.output_tokens} tokens (by {report.counted_by}), {report.output_tokens_per_second:.1f} tokens/s",
        highlight=False,
    )
    console.print(_latencies(report))
    for sample in report.samples:
        status = f" {sample['status']}" if sample["status"] else ""
        text = printable(f"{sample['kind']}{status}: {sample['message']}")
        console.print(text, markup=False, highlight=False, soft_wrap=True)
    if report.errors:
        counts = ", ".join(f"{kind.value} {count}" for kind, count in sorted(report.errors.items()))
        console.print(f"errors: {counts}", highlight=False)


def _latencies(report: Report) -> Table:
    table = Table("ms")
    for name in ("mean", "p50", "p90", "p99", "max"):
        table.add_column(name, justify="right")
    rows = (("TTFT", report.ttft), ("ITL", report.itl), ("TPOT", report.tpot), ("E2E", report.e2e))
    for name, summary in rows:
        table.add_row(name, *_cells(summary))
    return table


def _cells(summary: Summary) -> list[str]:
    values = (summary.mean, summary.p50, summary.p90, summary.p99, summary.max)
    return ["-" if value is None else f"{value * 1000:.1f}" for value in values]
