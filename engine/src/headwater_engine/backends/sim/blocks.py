"""Paged KV with prefix sharing, as vLLM keeps it.

Tokens lie in blocks of fixed size. A full block is named by the hash of its tokens and of all before it
(and of the cache salt), and may be shared. A block that nobody uses any more keeps its name and content
until its place is needed, oldest first.

Example, block size 4: prompt A = abcdefgh takes blocks 0 (abcd) and 1 (efgh). When A ends both are free but
named. Prompt B = abcdxy finds block 0, computes only xy, and takes block 2 for them.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Sequence


class BlockPool:
    """Counts, shares and evicts blocks. A block is in use while at least one sequence refers to it."""

    def __init__(self, total: int, block_size: int, *, prefix_caching: bool = True) -> None:
        self.total = total
        self.block_size = block_size
        self._prefix_caching = prefix_caching
        self._references: dict[int, int] = {}
        self._free: OrderedDict[int, None] = OrderedDict((block, None) for block in range(total))
        self._block_of: dict[int, int] = {}
        self._name_of: dict[int, int] = {}

    @property
    def used(self) -> int:
        """Blocks in use now; named but unused ones count as free."""
        return len(self._references)

    @property
    def available(self) -> int:
        """Blocks that ``take`` could give."""
        return len(self._free)

    def match(self, names: Iterable[int]) -> list[int]:
        """The longest run of blocks that hold what ``names`` names, not taken yet."""
        found: list[int] = []
        if self._prefix_caching:
            for name in names:
                block = self._block_of.get(name)
                if block is None:
                    break
                found.append(block)
        return found

    def share(self, blocks: Sequence[int]) -> None:
        """Refers once more to each of ``blocks``."""
        for block in blocks:
            self._references[block] = self._references.get(block, 0) + 1
            self._free.pop(block, None)

    def take(self, count: int) -> list[int]:
        """``count`` empty blocks; the caller has checked ``available``."""
        taken = []
        for _ in range(count):
            block, _none = self._free.popitem(last=False)
            name = self._name_of.pop(block, None)
            if name is not None:
                del self._block_of[name]
            self._references[block] = 1
            taken.append(block)
        return taken

    def release(self, blocks: Sequence[int]) -> None:
        """Drops one reference to each; the tail of a sequence is evicted before its head."""
        for block in reversed(blocks):
            self._references[block] -= 1
            if self._references[block] == 0:
                del self._references[block]
                self._free[block] = None

    def publish(self, block: int, name: int) -> None:
        """Names a full block, so that others can share it; the first block of a name keeps it."""
        if self._prefix_caching and block not in self._name_of and name not in self._block_of:
            self._name_of[block] = name
            self._block_of[name] = block


def first_name(salt: str | None) -> int:
    """Where a chain of names starts: other salts share nothing."""
    return hash(("salt", salt))


def next_name(previous: int, tokens: Sequence[int]) -> int:
    """Name of a full block after the block called ``previous``."""
    return hash((previous, tuple(tokens)))
