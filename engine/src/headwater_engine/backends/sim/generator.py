"""Deterministic text: the same prompt and seed give the same tokens, whatever the batch."""

from __future__ import annotations

import random
import zlib
from collections.abc import Sequence

from headwater_engine.backends.sim import tokenizer
from headwater_engine.ports import Sampling

_FULL_STOP = tokenizer.encode(".")[0]
_BANNED = -100.0
_MEAN_SENTENCE = 12
_ONE_IN_MULTIBYTE = 15


class Generator:
    """Draws one request's tokens in order; ``garbage`` makes it draw bare bytes."""

    def __init__(self, prompt: Sequence[int], sampling: Sampling, chance: random.Random) -> None:
        self._random = random.Random(_seed(prompt, sampling, chance))
        self._sampling = sampling
        natural = self._random.randint(16, 256)
        self._end = None if sampling.ignore_eos else max(natural, sampling.min_tokens + 1)
        self._queue: list[int] = []
        self._count = 0

    def next(self, *, garbage: bool = False) -> int:
        """The next token id; ``tokenizer.END`` when the text ends by itself."""
        self._count += 1
        if self._end is not None and self._count >= self._end:
            return tokenizer.END
        if garbage:
            return self._random.randrange(256)
        for _ in range(100):
            token = self._draw()
            if self._sampling.logit_bias.get(token, 0.0) > _BANNED:
                return token
        return _FULL_STOP

    def _draw(self) -> int:
        if not self._queue:
            self._queue = self._phrase()
        return self._queue.pop(0)

    def _phrase(self) -> list[int]:
        if self._random.randrange(_ONE_IN_MULTIBYTE) == 0:
            return list(tokenizer.encode(" " + self._random.choice(tokenizer.MULTIBYTE)))
        if self._random.randrange(_MEAN_SENTENCE) == 0:
            return [_FULL_STOP]
        return [self._random.choice(tokenizer.WORD_IDS)]


def _seed(prompt: Sequence[int], sampling: Sampling, chance: random.Random) -> int:
    # hash() of text differs between processes; a checksum of the ids does not.
    prompt_seed = zlib.crc32(",".join(map(str, prompt)).encode())
    if sampling.temperature == 0:
        return prompt_seed
    drawn = chance.getrandbits(32) if sampling.seed is None else sampling.seed
    return prompt_seed * 0x1_0000_0001 + drawn
