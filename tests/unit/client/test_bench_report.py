"""The figures of a bench run, and its JSON form against the documented schema."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from headwater_client.bench import synthetic_prompt
from headwater_client.core.chunks import Usage
from headwater_client.core.failures import Failure, FailureKind
from headwater_client.core.report import BenchSettings, build_report
from headwater_client.core.stats import StreamRecord

SETTINGS = BenchSettings("http://x", "tiny", requests=4, concurrency=2, max_tokens=8)


def _schema() -> dict[str, Any]:
    page = Path(__file__).parents[3] / "docs/reference/bench.md"
    (block,) = re.findall(r"```json schema\n(.*?)```", page.read_text(), re.DOTALL)
    schema: dict[str, Any] = json.loads(block)
    return schema


def _good(started: float, *arrivals: float, usage: Usage | None = None) -> StreamRecord:
    return StreamRecord(started, arrivals[-1], arrivals, usage, "stop")


def _bad(kind: FailureKind, message: str = "m", status: int | None = None) -> StreamRecord:
    return StreamRecord(0.0, 1.0, (0.5, 99.0), failure=Failure(kind, message, status))


def test_figures_count_whole_streams_and_errors_count_the_others() -> None:
    records = [
        _good(0.0, 1.0, 2.0, 4.0),
        _good(10.0, 10.5, 11.0),
        _bad(FailureKind.HTTP, "busy", 503),
        _bad(FailureKind.HTTP, "busy", 503),
        _bad(FailureKind.TRUNCATED),
    ]
    got = build_report(SETTINGS, records, 10.0).to_json()
    assert got["requests"] == {"total": 5, "succeeded": 2, "failed": 3, "per_second": 0.2}
    assert got["tokens"] == {"prompt": None, "output": 5, "output_per_second": 0.5, "counted_by": "chunks"}
    assert got["ttft_seconds"] == {"count": 2, "mean": 0.75, "p50": 0.5, "p90": 1.0, "p99": 1.0, "max": 1.0}
    assert got["itl_seconds"]["count"] == 3
    assert got["itl_seconds"]["max"] == 2.0
    assert got["e2e_seconds"]["max"] == 4.0
    assert got["errors"]["by_kind"] == {
        "connect": 0, "http": 2, "in_band": 0, "truncated": 1, "timeout": 0, "protocol": 0,
    }  # fmt: skip
    assert got["errors"]["by_status"] == {"503": 2}
    assert [sample["message"] for sample in got["errors"]["samples"]] == ["busy", "m"]


@pytest.mark.parametrize(
    ("usages", "want"), [((True, True), "usage"), ((True, False), "mixed"), ((False, False), "chunks")]
)
def test_the_report_says_how_tokens_were_counted(usages: tuple[bool, bool], want: str) -> None:
    records = [_good(0.0, 1.0, usage=Usage(5, 40) if with_usage else None) for with_usage in usages]
    got = build_report(SETTINGS, records, 1.0)
    assert got.counted_by == want
    assert got.output_tokens == sum(40 if with_usage else 1 for with_usage in usages)


@pytest.mark.parametrize(
    "records",
    [
        [],
        [_good(0.0, 1.0, 2.0, usage=Usage(1, 2))],
        [_bad(kind) for kind in FailureKind],
        [_bad(FailureKind.HTTP, "", 404)],
    ],
)
def test_the_json_form_follows_the_documented_schema(records: list[StreamRecord]) -> None:
    got = json.loads(json.dumps(build_report(SETTINGS, records, 1.0).to_json()))
    jsonschema.Draft202012Validator(_schema()).validate(got)


def test_the_documented_schema_names_every_field() -> None:
    """A field added to the report without being documented is refused by the schema."""
    got = build_report(SETTINGS, [], 1.0).to_json() | {"undocumented": 1}
    assert list(jsonschema.Draft202012Validator(_schema()).iter_errors(got))


def test_synthetic_prompts_have_the_asked_length_and_different_beginnings() -> None:
    prompts = [synthetic_prompt(100, number) for number in range(50)]
    assert {len(prompt.split()) for prompt in prompts} == {98}
    assert len({prompt[:5] for prompt in prompts}) == 50
