"""Percentiles and records: exact figures on known samples."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater_client.core.chunks import Chunk, Usage
from headwater_client.core.failures import Failure, FailureKind
from headwater_client.core.stats import Recorder, StreamRecord, Summary, percentile, summarize


@pytest.mark.parametrize(
    ("count", "percent", "want"),
    [(10, 50, 5), (10, 90, 9), (10, 99, 10), (10, 100, 10), (10, 0.1, 1), (1, 50, 1), (100, 99, 99), (101, 99, 100)],
)
def test_a_percentile_is_the_nearest_rank_sample(count: int, percent: float, want: float) -> None:
    got = percentile([float(value) for value in range(1, count + 1)], percent)
    assert got == want


@given(st.lists(st.floats(0, 1e6), min_size=1), st.floats(0.01, 100))
def test_a_percentile_is_a_sample_that_enough_samples_do_not_exceed(values: list[float], percent: float) -> None:
    ordered = sorted(values)
    got = percentile(ordered, percent)
    assert got in values
    assert sum(value <= got for value in values) >= len(values) * percent / 100 - 1e-6


def test_a_summary_does_not_depend_on_order() -> None:
    want = Summary(4, 2.5, 2.0, 4.0, 4.0, 4.0)
    assert summarize([4.0, 1.0, 3.0, 2.0]) == want


def test_a_summary_of_nothing_is_unknown_and_not_zero() -> None:
    assert summarize([]) == Summary(0, None, None, None, None, None)


def _record(*chunks: Chunk, ended: float) -> StreamRecord:
    recorder = Recorder(100.0)
    for chunk in chunks:
        recorder.add(chunk)
    return recorder.finish(ended)


def test_latencies_come_from_the_times_at_which_text_arrived() -> None:
    got = _record(
        Chunk(100.1, ""),  # the role alone is no token
        Chunk(100.5, "a"),
        Chunk(100.75, "b"),
        Chunk(101.75, "c", "stop"),
        Chunk(102.0, usage=Usage(7, 6)),
        ended=102.5,
    )
    assert got.ttft_seconds == 0.5
    assert got.gaps_seconds == (0.25, 1.0)
    assert got.e2e_seconds == 2.5
    assert got.output_tokens == 6, "the server's usage counts, not the number of chunks"
    assert got.tpot_seconds == 0.25
    assert got.finish_reason == "stop"


def test_without_usage_each_chunk_with_text_counts_as_one_token() -> None:
    got = _record(Chunk(101, "a"), Chunk(102, ""), Chunk(103, "b"), ended=104)
    assert got.output_tokens == 2


def test_a_stream_without_text_has_no_first_token_time() -> None:
    got = Recorder(1.0).finish(2.0, Failure(FailureKind.CONNECT, "refused"))
    assert (got.ttft_seconds, got.tpot_seconds, got.gaps_seconds, got.e2e_seconds) == (None, None, (), 1.0)
