"""Continuous batching, one step at a time, without clock or input and output.

``plan`` chooses what the next step computes; the caller lets its duration pass; ``commit`` makes it so. Running
sequences come first, each with the tokens that it still has to compute (one when decoding, a chunk when
prefilling), within the step's token budget; then waiting ones are admitted while budget, seats and blocks
last. When blocks run out the youngest running sequence is preempted: it gives back its blocks, goes to the
head of the queue, and computes prompt and output again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from headwater_engine.backends.sim import tokenizer
from headwater_engine.backends.sim.blocks import BlockPool, first_name, next_name
from headwater_engine.backends.sim.generator import Generator
from headwater_engine.ports import FinishReason, GenerateRequest


@dataclass(slots=True, eq=False)
class Sequence:
    """One request in the scheduler. ``computed`` counts tokens whose KV is in ``blocks``."""

    request: GenerateRequest
    generator: Generator
    held: Callable[[], bool] = lambda: False
    """True while the reader is too far behind; the sequence keeps its KV and is left out of steps."""
    output: list[int] = field(default_factory=list)
    computed: int = 0
    blocks: list[int] = field(default_factory=list)
    names: list[int] = field(default_factory=list)
    """Names of its full blocks, as far as they have been worked out."""
    running: bool = False
    gone: bool = False

    @property
    def length(self) -> int:
        """Tokens of prompt and output."""
        return len(self.request.prompt_token_ids) + len(self.output)

    def name(self, index: int, block_size: int) -> int:
        """Name of its block ``index``, which is full."""
        while len(self.names) <= index:
            start = len(self.names) * block_size
            previous = self.names[-1] if self.names else first_name(self.request.cache_salt)
            self.names.append(next_name(previous, self._slice(start, start + block_size)))
        return self.names[index]

    def _slice(self, start: int, end: int) -> tuple[int, ...]:
        prompt = self.request.prompt_token_ids
        shift = len(prompt)
        return (*prompt[start:end], *self.output[max(start - shift, 0) : max(end - shift, 0)])


@dataclass(slots=True)
class Plan:
    """Tokens to compute for each sequence, and the sums that the step's duration depends on."""

    items: list[tuple[Sequence, int]] = field(default_factory=list)
    decoding: int = 0
    prefill_tokens: int = 0

    def add(self, sequence: Sequence, count: int) -> None:
        """Puts ``count`` tokens of a sequence into the step."""
        self.items.append((sequence, count))
        if sequence.output and count == 1:
            self.decoding += 1
        else:
            self.prefill_tokens += count


@dataclass(frozen=True, slots=True)
class Output:
    """A token that a step gave a sequence."""

    sequence: Sequence
    token: int
    finish: FinishReason | None


class Scheduler:
    """Owns the queue, the running list and the blocks."""

    def __init__(self, pool: BlockPool, *, max_num_seqs: int, max_num_batched_tokens: int) -> None:
        self.pool = pool
        self.waiting: deque[Sequence] = deque()
        self.running: list[Sequence] = []
        self.preemptions = 0
        self._max_num_seqs = max_num_seqs
        self._budget = max_num_batched_tokens

    def add(self, sequence: Sequence) -> None:
        """Queues a sequence."""
        self.waiting.append(sequence)

    def remove(self, sequence: Sequence) -> None:
        """Ends a sequence at once and gives back its blocks; safe to repeat."""
        if sequence.gone:
            return
        sequence.gone = True
        self._free(sequence)
        if sequence.running:
            self.running.remove(sequence)
        else:
            self.waiting.remove(sequence)

    def plan(self) -> Plan:
        """The next step; empty when nothing can run."""
        plan = Plan()
        budget, preempted = self._budget, self.preemptions
        for sequence in tuple(self.running):
            if budget == 0:
                break
            # A sequence preempted within this loop is in the queue by now.
            if sequence.held() or not sequence.running:
                continue
            count = min(sequence.length - sequence.computed, budget)
            if self._make_room(sequence, count):
                plan.add(sequence, count)
                budget -= count
        if self.preemptions == preempted:
            self._admit(plan, budget)
        return plan

    def commit(self, plan: Plan, *, garbage: bool = False) -> Iterator[Output]:
        """Applies a step; yields the tokens that it generated."""
        for sequence, count in plan.items:
            if sequence.gone:
                continue
            self._compute(sequence, count)
            if sequence.computed < sequence.length:
                continue
            token = sequence.generator.next(garbage=garbage)
            sequence.output.append(token)
            finish = _finish(sequence, token)
            if finish is not None:
                self.remove(sequence)
            yield Output(sequence, token, finish)

    def _admit(self, plan: Plan, budget: int) -> None:
        while budget > 0 and self.waiting and len(self.running) < self._max_num_seqs:
            sequence = self.waiting[0]
            shared = self._cached(sequence)
            computed = len(shared) * self.pool.block_size
            count = min(sequence.length - computed, budget)
            self.pool.share(shared)
            needed = self._blocks_for(computed + count) - len(shared)
            if needed > self.pool.available:
                self.pool.release(shared)
                return
            sequence.blocks, sequence.computed, sequence.running = shared + self.pool.take(needed), computed, True
            self.running.append(self.waiting.popleft())
            plan.add(sequence, count)
            budget -= count

    def _make_room(self, sequence: Sequence, count: int) -> bool:
        """Gives ``sequence`` blocks for ``count`` more tokens, by preemption if need be."""
        needed = self._blocks_for(sequence.computed + count) - len(sequence.blocks)
        while needed > self.pool.available:
            victim = self.running[-1]
            self._preempt(victim)
            if victim is sequence:
                return False
        sequence.blocks += self.pool.take(needed)
        return True

    def _preempt(self, victim: Sequence) -> None:
        # The victim is the youngest, so it is not in the plan yet: that is filled from the oldest on.
        self.preemptions += 1
        self._free(victim)
        self.running.remove(victim)
        victim.running = False
        self.waiting.appendleft(victim)

    def _cached(self, sequence: Sequence) -> list[int]:
        # The last token is always computed: that yields the next one.
        full = (sequence.length - 1) // self.pool.block_size
        return self.pool.match(sequence.name(index, self.pool.block_size) for index in range(full))

    def _compute(self, sequence: Sequence, count: int) -> None:
        size = self.pool.block_size
        before, sequence.computed = sequence.computed, sequence.computed + count
        for index in range(before // size, sequence.computed // size):
            self.pool.publish(sequence.blocks[index], sequence.name(index, size))

    def _free(self, sequence: Sequence) -> None:
        self.pool.release(sequence.blocks)
        sequence.blocks, sequence.computed = [], 0

    def _blocks_for(self, tokens: int) -> int:
        return -(-tokens // self.pool.block_size)


def _finish(sequence: Sequence, token: int) -> FinishReason | None:
    sampling, count = sequence.request.sampling, len(sequence.output)
    if token == tokenizer.END and not sampling.ignore_eos:
        return "stop"
    # A stop token needs min_tokens others before it.
    if token in sampling.stop_token_ids and count > sampling.min_tokens:
        return "stop"
    return "length" if count >= sampling.max_tokens else None
