from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from support.engine_process import EngineProcess, engine_process


@pytest.fixture(scope="module")
def shared_engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EngineProcess]:
    """One engine for a module; use ``engine``, which checks that each test leaves it idle."""
    with engine_process(tmp_path_factory.mktemp("engine"), {"KEEP_ALIVE_SECONDS": "0.2"}) as engine:
        yield engine


@pytest.fixture
def engine(shared_engine: EngineProcess) -> Iterator[EngineProcess]:
    """An idle engine with scripts enabled and a comment after 0.2 s of silence."""
    yield shared_engine
    shared_engine.wait_idle()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Callable[..., EngineProcess]]:
    """Starts an engine of one's own with settings as keywords; ``ready=False`` does not wait for it."""

    def one(*, ready: bool = True, **env: str) -> EngineProcess:
        return stack.enter_context(engine_process(tmp_path, env, ready=ready))

    with ExitStack() as stack:
        yield one
