from __future__ import annotations

from collections.abc import Iterator

import pytest
from blockbuster import BlockBuster, blockbuster_ctx


@pytest.fixture(autouse=True)
def no_blocking_call_in_the_loop() -> Iterator[BlockBuster]:
    """Fails a test whose event loop is blocked by a call of our code."""
    with blockbuster_ctx("headwater_engine") as found:
        yield found
