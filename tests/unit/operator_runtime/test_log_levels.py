"""What the log keeps of libraries, beside our own lines."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

SCRIPT = """
import logging, sys
import structlog
from headwater_operator.logs import configure_logging
configure_logging(sys.argv[1], "json")
logging.getLogger("kopf.objects").info("Handler 'pool_event' succeeded.")
logging.getLogger("kopf.activities.probe").info("Activity 'operator' succeeded.")
logging.getLogger("aiohttp.access").info("GET /healthz")
logging.getLogger("kopf.objects").warning("trouble")
structlog.get_logger("headwater_operator.x").info("action done", pool="p", group="g", action="SetRole", reason="Why")
"""


def lines(level: str) -> list[dict[str, str]]:
    # A process of its own, since logging is set up once a process.
    got = subprocess.run([sys.executable, "-c", SCRIPT, level], capture_output=True, text=True, check=True)
    return [json.loads(line) for line in got.stderr.splitlines()]


def test_successes_of_kopf_and_answered_probes_are_not_logged_and_troubles_and_our_actions_are() -> None:
    trouble, ours = lines("INFO")
    assert (trouble["logger"], trouble["level"], trouble["event"]) == ("kopf.objects", "warning", "trouble")
    want = {"event": "action done", "pool": "p", "group": "g", "action": "SetRole", "reason": "Why"}
    assert want.items() <= ours.items()


@pytest.mark.parametrize(("level", "want"), [("DEBUG", 5), ("ERROR", 0)])
def test_whoever_debugs_sees_all_of_it(level: str, want: int) -> None:
    assert len(lines(level)) == want
