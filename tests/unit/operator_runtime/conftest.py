"""No blocking call may hide in the operator's coroutines."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from blockbuster import blockbuster_ctx


@pytest.fixture(autouse=True)
def _no_blocking_calls() -> Iterator[None]:
    with blockbuster_ctx("headwater_operator"):
        yield
