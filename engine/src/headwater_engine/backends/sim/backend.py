"""The simulated engine behind the Backend port."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from headwater_contracts.admin import RankState
from headwater_engine.backends.sim import scripts, tokenizer
from headwater_engine.backends.sim.blocks import BlockPool
from headwater_engine.backends.sim.faults import Faults
from headwater_engine.backends.sim.generator import Generator
from headwater_engine.backends.sim.mailbox import Mailbox
from headwater_engine.backends.sim.player import Player
from headwater_engine.backends.sim.profile import Profile
from headwater_engine.backends.sim.scheduler import Output, Plan, Scheduler
from headwater_engine.backends.sim.scheduler import Sequence as Scheduled
from headwater_engine.clock import Clock
from headwater_engine.errors import BackendDead, EngineError, LoadFailed, PromptTooLong
from headwater_engine.ports import BackendState, GenerateRequest, Step


@dataclass(frozen=True, slots=True)
class SimOptions:
    """What a simulated engine is made of; None takes the profile's value."""

    profile: Profile
    time_scale: float = 1.0
    block_size: int = 16
    kv_blocks: int | None = None
    max_model_len: int | None = None
    max_num_seqs: int | None = None
    max_num_batched_tokens: int | None = None
    prefix_caching: bool = True
    ranks: int = 1
    mailbox_steps: int = 64
    load_seconds: float | None = None
    load_error: str | None = None


class SimBackend:
    """Implements Backend in virtual or real time, whatever ``clock`` says."""

    def __init__(self, options: SimOptions, *, clock: Clock, chance: random.Random, faults: Faults) -> None:
        self._faults = faults
        self._options = options
        self._clock = clock
        self._chance = chance
        profile = options.profile
        blocks = options.kv_blocks or profile.kv_tokens // options.block_size
        self._pool = BlockPool(blocks, options.block_size, prefix_caching=options.prefix_caching)
        self._scheduler = Scheduler(
            self._pool,
            max_num_seqs=options.max_num_seqs or profile.max_num_seqs,
            max_num_batched_tokens=options.max_num_batched_tokens or profile.max_num_batched_tokens,
        )
        self._sequences: dict[str, tuple[Scheduled, Mailbox]] = {}
        self._players: dict[str, Player] = {}
        self._wake = asyncio.Event()
        self._steps = 0
        self._last_step: float | None = None
        self._loop_task: asyncio.Task[None] | None = None
        self._dead: BackendDead | None = BackendDead("not started")

    # Life

    async def start(self) -> None:
        """Passes the loading time. Raises LoadFailed when the options say so."""
        options = self._options
        begun = self._clock.now()
        while (left := self._load_seconds() - (self._clock.now() - begun)) > 0:
            # In slices, since the fault slow_start may come meanwhile.
            await self._clock.sleep(min(left, 0.1))
        if options.load_error is not None:
            raise LoadFailed(options.load_error)
        self._dead = None
        # Owned by this object: stop() ends it, and its failure ends every request.
        self._loop_task = asyncio.create_task(self._run(), name="sim-steps")

    async def stop(self) -> None:
        """Ends the step loop and every request."""
        task, self._loop_task = self._loop_task, None
        if task is not None:
            task.cancel()
            with suppress(asyncio.CancelledError, BackendDead):
                await task
        self._die(BackendDead("stopped"))

    def _load_seconds(self) -> float:
        given = self._options.load_seconds
        seconds = self._options.profile.load if given is None else given
        if self._faults.load_seconds is not None:
            seconds = self._faults.load_seconds
        return seconds / self._options.time_scale

    # Requests

    async def submit(self, request: GenerateRequest) -> AsyncIterator[Step]:
        """Yields steps, see Backend."""
        self._check(request)
        source = self._play(request) if request.script is not None else self._enqueue(request)
        try:
            while (step := await source.get()) is not None:
                yield step
                if step.finish is not None:
                    return
        finally:
            await self.abort(request.id)

    def _enqueue(self, request: GenerateRequest) -> Mailbox:
        mailbox = Mailbox(self._options.mailbox_steps, self._wake.set)
        generator = Generator(request.prompt_token_ids, request.sampling, self._chance)
        sequence = Scheduled(request, generator)
        sequence.held = lambda: mailbox.full or self._stalled(sequence)
        self._sequences[request.id] = (sequence, mailbox)
        self._scheduler.add(sequence)
        self._wake.set()
        return mailbox

    def _play(self, request: GenerateRequest) -> Player:
        script = scripts.parse(request.script or ())
        player = self._players[request.id] = Player(script, self._clock, self._count_step)
        return player

    async def abort(self, request_id: str) -> None:
        """Ends a request now; a step under way goes on without it."""
        player = self._players.pop(request_id, None)
        if player is not None:
            player.close()
        sequence, mailbox = self._sequences.pop(request_id, (None, None))
        if sequence is not None and mailbox is not None:
            self._scheduler.remove(sequence)
            mailbox.close()
            # What it held may let others in.
            self._wake.set()

    def _check(self, request: GenerateRequest) -> None:
        if self._dead is not None:
            raise self._dead
        if request.id in self._sequences or request.id in self._players:
            raise EngineError(f"request id {request.id} is in flight already")
        if self._faults.errors > 0:
            self._faults.errors -= 1
            raise EngineError("injected error")
        prompt, asked = len(request.prompt_token_ids), request.sampling.max_tokens
        if prompt + asked > self.max_model_len:
            raise PromptTooLong(
                f"{prompt} prompt tokens and {asked} output tokens exceed the context of {self.max_model_len}",
                param="max_tokens",
                code="context_length_exceeded",
            )

    # Steps

    async def _run(self) -> None:
        try:
            while True:
                await self._step()
        except BackendDead as error:
            self._die(error)

    async def _step(self) -> None:
        await self._faults.gate.wait()
        if self._faults.out_of_memory:
            raise BackendDead("out of memory")
        plan = self._scheduler.plan()
        if not plan.items:
            self._wake.clear()
            await self._wake.wait()
            return
        await self._clock.sleep(self._duration(plan))
        # A hang that begins meanwhile takes this step with it.
        await self._faults.gate.wait()
        for output in self._scheduler.commit(plan, garbage=self._faults.garbage):
            self._deliver(output)
        self._count_step()

    def _duration(self, plan: Plan) -> float:
        seconds = self._options.profile.step_seconds(plan.decoding, plan.prefill_tokens)
        return seconds * self._faults.slow_factor / self._options.time_scale

    def _deliver(self, output: Output) -> None:
        request_id = output.sequence.request.id
        _sequence, mailbox = self._sequences[request_id]
        silent = output.finish == "stop"
        raw = b"" if silent else tokenizer.piece(output.token)
        mailbox.put(Step((output.token,), "", output.finish, raw=(raw,)))
        if output.finish is not None:
            del self._sequences[request_id]

    def _count_step(self) -> None:
        self._steps += 1
        self._last_step = self._clock.now()

    def _stalled(self, sequence: Scheduled) -> bool:
        limit = self._faults.stall_after_tokens
        return limit is not None and len(sequence.output) >= limit

    def _die(self, error: BackendDead) -> None:
        if self._dead is None:
            self._dead = error
        for sequence, mailbox in self._sequences.values():
            self._scheduler.remove(sequence)
            mailbox.close(error)
        self._sequences.clear()
        for player in self._players.values():
            player.close(error)
        self._players.clear()

    # Words

    async def tokenize(self, text: str, *, add_special_tokens: bool = True) -> tuple[int, ...]:
        """Token ids of a plain prompt."""
        ids = tokenizer.encode(text)
        return (tokenizer.BEGIN, *ids) if add_special_tokens else ids

    async def apply_chat_template(self, messages: Sequence[Mapping[str, Any]]) -> tuple[int, ...]:
        """Token ids of a chat prompt."""
        return tokenizer.chat_prompt(messages)

    # Figures

    def state(self) -> BackendState:
        """Figures as of now."""
        running = self._scheduler.running
        return BackendState(
            step=self._steps,
            running=len(running) + len(self._players),
            waiting=len(self._scheduler.waiting),
            suspended=sum(1 for _, mailbox in self._sequences.values() if mailbox.full),
            kv_used_blocks=self._pool.used,
            kv_total_blocks=self._pool.total,
            kv_block_size_tokens=self._pool.block_size,
            last_step_monotonic=self._last_step,
            ranks=tuple(
                RankState(rank, alive=self._dead is None and rank not in self._faults.dead_ranks)
                for rank in range(self._options.ranks)
            ),
        )

    def inject(self, body: Mapping[str, Any]) -> None:
        """Puts a fault in force, see ``faults``."""
        self._faults.apply(body)
        # Its end may let requests go on.
        self._wake.set()

    async def ping(self, deadline_seconds: float) -> None:
        """Answers unless dead, hung or deaf."""
        if self._dead is not None:
            raise self._dead
        if self._faults.hung or self._faults.deaf:
            await self._clock.sleep(deadline_seconds)
            raise TimeoutError("no answer to a ping")

    @property
    def max_model_len(self) -> int:
        """The profile's, or the options', at most what the KV cache holds."""
        asked = self._options.max_model_len or self._options.profile.max_model_len
        return min(asked, self._pool.total * self._pool.block_size)

    @property
    def vocab_size(self) -> int:
        """Token ids are below it."""
        return tokenizer.VOCAB_SIZE
