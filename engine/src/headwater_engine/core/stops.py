"""Stop strings over a stream of text that arrives in arbitrary pieces.

An Aho-Corasick automaton (CACM 18(6), 1975) reads each character once. Its state is the longest suffix of the
text that begins some stop string; just that suffix is held back, and nothing else is. The match that completes
first wins; of those that complete at the same character, the longest.

Worked example, stops ``["abcd", "bx"]``, text ``ab`` ``x`` ``y``:

======  =====================  ========  =================================
piece   state after it         released  why
======  =====================  ========  =================================
``ab``  ``ab`` begins "abcd"   nothing   both characters may start a stop
``x``   ``bx`` is a stop       ``a``     matched: the text ends before it
======  =====================  ========  =================================
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence


class StopSet:
    """The automaton of one request's stop strings. Node 0 is the root, a state in which nothing is held."""

    def __init__(self, stops: Sequence[str]) -> None:
        self.next: list[dict[str, int]] = [{}]
        self.fail: list[int] = [0]
        self.match: list[int] = [0]
        """Length of the longest stop string that ends in this state, or 0."""
        self.hold: list[int] = [0]
        """Length of the longest suffix that a further character may turn into a stop string."""
        depth = [0]
        for stop in stops:
            self._insert(stop, depth)
        self._link(depth)

    def _insert(self, stop: str, depth: list[int]) -> None:
        if not stop:
            raise ValueError("a stop string is empty")
        node = 0
        for char in stop:
            child = self.next[node].get(char)
            if child is None:
                child = len(self.next)
                self.next[node][char] = child
                self.next.append({})
                self.fail.append(0)
                self.match.append(0)
                self.hold.append(0)
                depth.append(depth[node] + 1)
            node = child
        self.match[node] = len(stop)

    def _link(self, depth: list[int]) -> None:
        queue = deque(self.next[0].values())
        while queue:
            node = queue.popleft()
            fail = self.fail[node]
            self.match[node] = self.match[node] or self.match[fail]
            self.hold[node] = depth[node] if self.next[node] else self.hold[fail]
            for char, child in self.next[node].items():
                self.fail[child] = self.step(fail, char)
                queue.append(child)

    def step(self, node: int, char: str) -> int:
        """The state after one more character; amortised constant time."""
        while True:
            child = self.next[node].get(char)
            if child is not None:
                return child
            if node == 0:
                return 0
            node = self.fail[node]


class StopMatcher:
    """One request's place in the automaton, and the text that it holds back."""

    def __init__(self, stops: StopSet) -> None:
        self._stops = stops
        self._node = 0
        self._held = ""

    @property
    def held(self) -> str:
        """Text received and not released."""
        return self._held

    def feed(self, text: str, *, armed: bool = True) -> tuple[str, str | None]:
        """The text that can be released, and the stop string that ended it, if one did.

        What completes while not ``armed`` is ordinary text, but may still begin a later match.
        """
        stops, node = self._stops, self._node
        for index, char in enumerate(text):
            node = stops.step(node, char)
            if armed and stops.match[node]:
                whole = self._held + text[: index + 1]
                cut = len(whole) - stops.match[node]
                self._node, self._held = 0, ""
                return whole[:cut], whole[cut:]
        whole = self._held + text
        cut = len(whole) - stops.hold[node]
        self._node, self._held = node, whole[cut:]
        return whole[:cut], None

    def flush(self) -> str:
        """What was held back in vain."""
        held, self._held, self._node = self._held, "", 0
        return held
