from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater_engine.core.histogram import Recorder, edges_around


@given(st.floats(0.001, 100))
def test_buckets_are_at_most_5_percent_wide_and_one_edge_is_the_objective(slo: float) -> None:
    edges = edges_around(slo, least=0.001, most=600)

    assert slo in edges
    assert edges[0] <= 0.001
    assert edges[-1] >= 600
    assert all(left < right <= left * 1.05 for left, right in itertools.pairwise(edges))


def test_a_sample_at_the_objective_is_within_it() -> None:
    recorder = Recorder(edges_around(0.5, least=0.001, most=10))
    for seconds in (0.5, 0.5000001, 0.0, 1e9):
        recorder.observe(seconds)

    got = recorder.snapshot()

    within = sum(got.counts[: got.edges.index(0.5) + 1])
    assert (within, sum(got.counts)) == (2, 4)
    assert (got.counts[0], got.counts[-1]) == (1, 1)


@given(st.lists(st.floats(0.0005, 700), min_size=1, max_size=200))
def test_percentiles_are_known_within_5_percent(samples: list[float]) -> None:
    recorder = Recorder(edges_around(1.0, least=0.001, most=600))
    for sample in samples:
        recorder.observe(sample)
    got = recorder.snapshot()
    want = sorted(samples)[(len(samples) - 1) * 9 // 10]

    seen, index = 0, 0
    while seen + got.counts[index] <= (len(samples) - 1) * 9 // 10:
        seen += got.counts[index]
        index += 1

    if 0.001 < want < 600:
        assert got.edges[index - 1] <= want <= got.edges[index]
    assert got.sum_seconds == pytest.approx(sum(samples))


def test_several_samples_of_one_value_count_as_many() -> None:
    recorder = Recorder((1.0, 2.0))
    recorder.observe(1.5, 3)

    assert (recorder.snapshot().counts, recorder.snapshot().sum_seconds) == ((0, 3, 0), 4.5)
