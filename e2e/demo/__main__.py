"""``python -m e2e.demo``: runs the demo and reports its outcome."""

from __future__ import annotations

import sys

from rich.console import Console

from e2e.demo.display import Display
from e2e.demo.failure import explain
from e2e.demo.report import say_next, say_times, say_why
from e2e.demo.run import run
from e2e.demo.settings import parse


def main() -> int:
    """Exit code 0 after a whole answer, 1 after a failure that it explains, 130 after Ctrl-C."""
    settings = parse()
    display = Display(Console())
    display.console.print(f"[bold]Headwater demo[/], backend {settings.backend.name}\n", highlight=False)
    try:
        outcome = run(settings, display)
    except KeyboardInterrupt:
        display.console.print("\nInterrupted. Everything is left as it is; run the demo again to go on.")
        return 130
    except Exception as error:
        failure = explain(error)
        if failure is None:
            raise
        say_why(failure, display.console)
        return 1
    say_times(display)
    say_next(settings, outcome, display.console)
    return 0


if __name__ == "__main__":
    sys.exit(main())
