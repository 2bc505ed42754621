"""Progress of the demo's steps: a live view on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rich.console import Console, ConsoleRenderable, Group
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

KEPT_LINES = 5


@dataclass
class Step:
    """One step of the demo and how long it took."""

    title: str
    began: float
    seconds: float | None = None


@dataclass
class Display:
    """Shows which step runs, for how long, and what it is at."""

    console: Console
    steps: list[Step] = field(default_factory=list)
    _lines: list[str] = field(default_factory=list)
    _shown: set[str] = field(default_factory=set)

    @contextmanager
    def step(self, title: str) -> Iterator[None]:
        """Runs a step; its time is shown at its end, also if it fails."""
        step = Step(title, time.monotonic())
        self.steps.append(step)
        self._lines, self._shown = [], set()
        try:
            with self._view(step):
                yield
        except BaseException:
            self._end(step, "[red]✗[/]")
            raise
        self._end(step, "[green]✓[/]")

    @contextmanager
    def timed(self, title: str) -> Iterator[None]:
        """Times a step that writes to the terminal by itself."""
        step = Step(title, time.monotonic())
        self.steps.append(step)
        try:
            yield
        finally:
            step.seconds = time.monotonic() - step.began

    def log(self, line: str) -> None:
        """Adds a line to what the step says; the last few stay in view."""
        self.show(*self._lines[-KEPT_LINES + 1 :], line)

    def show(self, *lines: str) -> None:
        """Replaces what the step says. Without a terminal only lines not seen before are printed."""
        self._lines = list(lines)
        if self.console.is_terminal:
            return
        for line in lines:
            if line not in self._shown:
                self._shown.add(line)
                self._print(f"    {line}")

    @contextmanager
    def _view(self, step: Step) -> Iterator[None]:
        if not self.console.is_terminal:
            self._print(f"  … {step.title}")
            yield
            return
        spinner = Spinner("dots")

        def render() -> ConsoleRenderable:
            spinner.update(text=Text(f"{step.title}  {time.monotonic() - step.began:.0f} s"))
            dim = (Text(f"    {line}", style="dim", no_wrap=True, overflow="ellipsis") for line in self._lines)
            return Group(spinner, *dim)

        with Live(console=self.console, get_renderable=render, refresh_per_second=8, transient=True):
            yield

    def _end(self, step: Step, mark: str) -> None:
        step.seconds = time.monotonic() - step.began
        self.console.print(f"  {mark} {step.title}  [dim]{step.seconds:.1f} s[/]", highlight=False, soft_wrap=True)

    def _print(self, text: str) -> None:
        self.console.print(text, markup=False, highlight=False, soft_wrap=True)
