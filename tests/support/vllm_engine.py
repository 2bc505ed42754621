"""What tests of real vLLM share: settings that make its output exact, and the models' directory."""

from __future__ import annotations

import json
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from headwater_engine.backends.vllm.processes import SHARED_MEMORY, Member, descendants, mapped_segments
from headwater_engine.settings import EngineSettings
from support.engine_process import MODEL, EngineProcess, engine_process
from support.quickstart_model import quickstart_model_dir

# Greedy bfloat16 text changes with the batch; float32 text does not.
EXACT_ARGUMENTS = {"dtype": "float32", "max-num-seqs": "32"}
MAX_MODEL_LEN = 1024
START_SECONDS = 900.0
"""A start takes 45 s on two idle cores, and several times that on busy ones."""

needs_vllm = [
    pytest.mark.vllm,
    pytest.mark.timeout(START_SECONDS),
    # vLLM's and torch's own, at import.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


def vllm_settings(**changes: object) -> EngineSettings:
    """Settings of an engine over the quickstart model."""
    values: dict[str, object] = {
        "backend": "vllm",
        "model_name": "smollm2",
        "model_path": str(quickstart_model_dir()),
        "max_model_len": MAX_MODEL_LEN,
        "block_size": 16,
        "extra_args": EXACT_ARGUMENTS,
        "log_level": "WARNING",
    }
    return EngineSettings.model_validate(values | changes)


@contextmanager
def vllm_process(directory: Path) -> Iterator[EngineProcess]:
    """The real engine process over real vLLM, ready to serve."""
    environment = {
        "BACKEND": "vllm",
        "SIM_SCRIPTS": "0",
        "MODEL_NAME": MODEL,
        "MODEL_PATH": str(quickstart_model_dir()),
        "MAX_MODEL_LEN": str(MAX_MODEL_LEN),
        "BLOCK_SIZE": "16",
        "EXTRA_ARGS": json.dumps(EXACT_ARGUMENTS),
    }
    with engine_process(directory, environment, ready=False) as engine:
        _wait_ready(engine)
        yield engine


def _wait_ready(engine: EngineProcess) -> None:
    deadline = time.monotonic() + START_SECONDS
    pause = threading.Event()
    while engine.state()["phase"] != "ready":
        assert engine.process.poll() is None, engine.log.read_text()
        assert time.monotonic() < deadline, engine.log.read_text()
        pause.wait(0.2)


@dataclass(frozen=True)
class Belongings:
    """The processes beneath a server and the shared memory they map."""

    members: tuple[Member, ...]
    segments: frozenset[str]

    @classmethod
    def of(cls, pid: int) -> Belongings:
        """As of now."""
        members = tuple(descendants(pid))
        segments = frozenset[str]().union(*(mapped_segments(member.pid) for member in members))
        return cls(members, segments)

    @property
    def core(self) -> Member:
        """The process between the server and its only worker."""
        parents = {member.parent for member in self.members}
        return next(member for member in self.members if member.pid in parents)

    def kill_core(self) -> None:
        """SIGKILL to the engine core."""
        os.kill(self.core.pid, signal.SIGKILL)

    def left(self) -> list[str]:
        """What of it is still there."""
        here = [f"process {member.pid}" for member in self.members if member.alive]
        return here + [f"segment {name}" for name in self.segments if Path(SHARED_MEMORY, name).exists()]
