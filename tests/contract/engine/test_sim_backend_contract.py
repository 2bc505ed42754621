"""The simulated engine passes the suite of every backend, in virtual time."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator

import pytest

from headwater_engine.backends.sim import tokenizer
from headwater_engine.backends.sim.backend import SimBackend, SimOptions
from headwater_engine.backends.sim.faults import Faults
from headwater_engine.backends.sim.profile import H100_LLAMA70B_TP8, TEST_FAST, Profile
from headwater_engine.clock import LoopClock
from headwater_engine.ports import Backend
from support.backend_contract import BackendContract

pytestmark = pytest.mark.looptime


def _build(profile: Profile) -> SimBackend:
    def no_exit(_code: int) -> None:
        raise AssertionError("the contract crashes nothing")

    return SimBackend(
        SimOptions(profile, ranks=8, load_seconds=0), clock=LoopClock(), chance=random.Random(1), faults=Faults(no_exit)
    )


@pytest.fixture(params=[TEST_FAST, H100_LLAMA70B_TP8], ids=lambda profile: str(profile.name))
def profile(request: pytest.FixtureRequest) -> Profile:
    assert isinstance(request.param, Profile)
    return request.param


@pytest.fixture
async def unstarted_backend(profile: Profile) -> Backend:
    return _build(profile)


@pytest.fixture
async def backend(profile: Profile) -> AsyncIterator[Backend]:
    started = _build(profile)
    await started.start()
    yield started
    await started.stop()


class TestSimBackend(BackendContract):
    def decode(self, backend: Backend, token_ids: tuple[int, ...]) -> str | None:
        return tokenizer.decode(token_ids).decode(errors="replace")
