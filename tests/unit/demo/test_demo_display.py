"""The demo's progress on a terminal and in a log."""

from __future__ import annotations

import io
import re

import pytest
from e2e.demo.display import Display
from rich.console import Console


def _display(*, terminal: bool) -> tuple[Display, io.StringIO]:
    output = io.StringIO()
    return Display(Console(file=output, force_terminal=terminal, width=60, color_system=None)), output


def test_without_a_terminal_each_line_is_printed_once() -> None:
    display, output = _display(terminal=False)
    with display.step("Building"):
        for lines in (("pod a: Pending",), ("pod a: Pending", "event x"), ("pod a: Running", "event x")):
            display.show(*lines)
    got = re.sub(r"\d+\.\d s", "N s", output.getvalue())
    assert got.splitlines() == [
        "  … Building",
        "    pod a: Pending",
        "    event x",
        "    pod a: Running",
        "  ✓ Building  N s",
    ]


def test_a_log_in_a_terminal_shows_the_last_lines_and_leaves_one_line_behind() -> None:
    display, output = _display(terminal=True)
    with display.step("Building"):
        for number in range(20):
            display.log(f"line {number}")
        assert display._lines == [f"line {number}" for number in range(15, 20)]
    assert "✓ Building" in output.getvalue().rstrip().splitlines()[-1]


@pytest.mark.parametrize("terminal", [True, False])
def test_a_failed_step_is_marked_and_timed_and_the_error_goes_on(terminal: bool) -> None:
    display, output = _display(terminal=terminal)
    with pytest.raises(KeyError), display.step("Building"):
        raise KeyError
    assert "✗ Building" in output.getvalue()
    assert display.steps[0].seconds is not None
