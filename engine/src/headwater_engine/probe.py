"""The one-token test inference: proof that the whole scheduler works, at the price of one token."""

from __future__ import annotations

import itertools
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import cast

from headwater_engine.ports import Backend, GenerateRequest, Sampling, Step

_PROMPT = "ok"


class Probe:
    """Its requests go straight to the backend, past every count of requests, tokens and times."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._numbers = itertools.count()

    async def run(self) -> None:
        """One token. Raises what the backend raises."""
        name = f"watchdog-{next(self._numbers)}"
        request = GenerateRequest(
            id=name,
            prompt_token_ids=await self._backend.tokenize(_PROMPT),
            sampling=Sampling(max_tokens=1, temperature=0.0, ignore_eos=True),
            # A salt of its own: a cached prefix would prove less, and would take the place of a useful one.
            cache_salt=name,
        )
        steps = cast("AsyncGenerator[Step]", self._backend.submit(request))
        async with aclosing(steps):
            async for _step in steps:
                pass
