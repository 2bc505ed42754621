"""How many cores the workers may use."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater_engine.backends.vllm import machine


@pytest.mark.parametrize(
    ("text", "want"), [("max 100000\n", None), ("200000 100000\n", 2), ("150000 100000", 2), ("10000 100000", 1)]
)
def test_a_cpu_limit_is_read_in_whole_cores(text: str, want: int | None) -> None:
    assert machine.parse_quota(text) == want


@pytest.mark.parametrize(("limit", "want"), [("100000 100000", 1), ("9900000 100000", 4), ("max 100000", 4)])
def test_the_smaller_of_limit_and_affinity_counts(
    limit: str, want: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quota = tmp_path / "cpu.max"
    quota.write_text(limit)
    monkeypatch.setattr(machine, "CPU_QUOTA", quota)
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {0, 1, 2, 3})

    assert machine.usable_cores() == want


def test_without_a_limit_file_the_affinity_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "CPU_QUOTA", tmp_path / "none")
    monkeypatch.setattr("os.sched_getaffinity", lambda _pid: {0, 1, 2})

    assert machine.usable_cores() == 3
