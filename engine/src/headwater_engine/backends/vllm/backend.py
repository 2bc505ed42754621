"""The Backend port over vLLM's AsyncLLM."""

from __future__ import annotations

import asyncio
import copy
import os
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import aclosing, suppress
from itertools import count
from typing import Any, TypeVar, cast

import structlog

from headwater_engine.backends.vllm import private
from headwater_engine.backends.vllm.config import base_environment, check_extra_arguments, plan_engine
from headwater_engine.backends.vllm.machine import usable_cores
from headwater_engine.backends.vllm.private import Delta, Engine
from headwater_engine.backends.vllm.processes import Member, ProcessTree, rank_states
from headwater_engine.backends.vllm.stats import Figures, Flight, count_waiting
from headwater_engine.errors import BackendDead, CallerError, EngineError, LoadFailed, PromptTooLong
from headwater_engine.ports import BackendState, FinishReason, GenerateRequest, Step
from headwater_engine.settings import EngineSettings

T = TypeVar("T")
SCAN_SECONDS = 0.5
TAIL_TOKENS = 8
"""More tokens than a character has bytes, so that the window holds the whole of a cut one."""


class VllmBackend:
    """One vLLM engine, its processes and its requests in flight."""

    def __init__(self, settings: EngineSettings) -> None:
        check_extra_arguments(settings)
        self._settings = settings
        self._figures = Figures(time.monotonic)
        self._flights: dict[str, Flight] = {}
        self._serial = count()
        self._engine: Engine | None = None
        self._tree: ProcessTree | None = None
        self._ranks: tuple[Member, ...] = ()
        self._gone: set[int] = set()
        self._dead: str | None = None
        self._stopping = False
        self._ended = False
        self._spawning = threading.Event()
        self._loaded = threading.Event()
        self._stop_lock = asyncio.Lock()
        self._words = ThreadPoolExecutor(max_workers=1, thread_name_prefix="tokenizer")
        self._encoder: Any = None
        self._log = structlog.get_logger("headwater.engine.vllm")

    # life

    async def start(self) -> None:
        """Loads the model: 40 to 85 s for a small one on CPU, most of it imports. Raises LoadFailed."""
        self._tree = tree = await asyncio.to_thread(ProcessTree)
        await asyncio.to_thread(tree.open)
        try:
            async with asyncio.TaskGroup() as group:
                follower = group.create_task(_follow(tree))
                engine = await _in_daemon_thread(self._load)
                follower.cancel()
            await asyncio.to_thread(tree.settle)
            self._encoder = await self._in_words(copy.deepcopy, engine.tokenizer)
            self._ranks = tree.ranks()
            tree.watch(self._process_exited)
            self._engine = engine
            await engine.ping(self._settings.startup_deadline_seconds)
        except (ExceptionGroup, BackendDead, TimeoutError) as failure:
            await self.stop()
            raise _load_failure(failure) from failure

    def _load(self) -> Engine:
        """Runs in a thread of its own. A stop meanwhile is seen before each of the long steps."""
        try:
            version = private.installed_version()
            private.check_version(version)
            _set_defaults(base_environment(self._settings))
            private.check_names(version)
            plan = plan_engine(self._settings, cpu=private.is_cpu(), cores=usable_cores())
            _set_defaults(plan.environment)
            for note in plan.notes:
                self._log.info("adapted to CPU", note=note)
            self._spawning.set()
            if self._stopping:
                raise LoadFailed("stopped while loading")
            engine = Engine.load(plan, self._figures)
            if self._stopping:
                engine.shutdown()
                raise LoadFailed("stopped while loading")
            return engine
        finally:
            self._loaded.set()

    async def stop(self) -> None:
        """Ends streams, then processes: in order within 20 s, by SIGKILL after that."""
        self._stopping = True
        async with self._stop_lock:
            try:
                if self._engine is not None and not self._ended:
                    await self._shut_down(self._engine)
            finally:
                self._ended = True
                # Also when the caller's patience with vLLM is at its end.
                await self._end_processes()
            self._words.shutdown(wait=False)

    async def _shut_down(self, engine: Engine) -> None:
        """In order where the engine lives; what is dead or hangs is left to ``_end_processes``."""
        engine.fail_all()
        engine.quiesce()
        if self._dead is not None:
            return
        try:
            async with asyncio.timeout(private.SHUTDOWN_SECONDS):
                await _in_daemon_thread(engine.shutdown)
        except TimeoutError:
            self._log.warning("vllm did not shut down in time: its processes are killed")

    async def _end_processes(self) -> None:
        tree, self._tree = self._tree, None
        if tree is not None:
            await self._abandon_load(tree)
            await tree.end()

    async def _abandon_load(self, tree: ProcessTree) -> None:
        """A load that has begun to start processes fails as soon as these are killed; one that hasn't won't."""
        while self._spawning.is_set() and not self._loaded.is_set():
            await asyncio.to_thread(tree.kill)
            await asyncio.to_thread(self._loaded.wait, SCAN_SECONDS)

    def _process_exited(self, member: Member) -> None:
        self._gone.add(member.pid)
        if self._stopping or self._dead is not None:
            return
        rank = next((f"rank {n}" for n, worker in enumerate(self._ranks) if worker == member), "the engine core")
        self._dead = f"the process of {rank} (pid {member.pid}) ended"
        self._log.error("engine is dead", reason=self._dead)
        self._figures.clear()
        if self._engine is not None:
            self._engine.fail_all()

    def _running(self) -> Engine:
        if self._dead is not None:
            raise BackendDead(self._dead)
        if self._stopping:
            raise BackendDead("the engine is stopped")
        return self._loaded_engine()

    def _loaded_engine(self) -> Engine:
        if self._engine is None:
            raise BackendDead("the engine is not loaded")
        return self._engine

    # requests

    async def submit(self, request: GenerateRequest) -> AsyncIterator[Step]:
        """Starts with the first ``anext``; closing it aborts."""
        engine = self._running()
        self._check_length(request, engine)
        flight = Flight(f"{request.id}-{next(self._serial)}", self._figures.step)
        self._flights[request.id] = flight
        tail: deque[int] = deque(maxlen=TAIL_TOKENS)
        try:
            async with aclosing(cast("Any", engine.generate(request, flight.id))) as deltas:
                async for delta in deltas:
                    flight.started = True
                    if flight.aborted or delta.finish == "abort":
                        return
                    tail.extend(delta.token_ids)
                    yield _step(delta, tail, engine.tokenizer)
        except BackendDead as error:
            raise BackendDead(self._dead or str(error)) from error
        finally:
            if self._flights.get(request.id) is flight:
                del self._flights[request.id]

    def _check_length(self, request: GenerateRequest, engine: Engine) -> None:
        prompt, output, most = len(request.prompt_token_ids), request.sampling.max_tokens, engine.max_model_len
        if prompt == 0:
            raise CallerError("the prompt is empty", param="prompt")
        if prompt + output > most:
            raise PromptTooLong(
                f"{prompt} prompt tokens and {output} of output exceed the model's context of {most} tokens",
                param="max_tokens" if prompt < most else "prompt",
                code="context_length_exceeded",
            )

    async def abort(self, request_id: str) -> None:
        """Ends a request within one step; unknown ids are ignored."""
        flight = self._flights.get(request_id)
        if flight is None:
            return
        # One that vLLM does not know yet, because its prompt is still on the way, ends with its first delta.
        flight.aborted = True
        await self._loaded_engine().abort(flight.id)

    # words

    async def tokenize(self, text: str, *, add_special_tokens: bool = True) -> tuple[int, ...]:
        """Token ids of a plain prompt."""
        self._running()
        ids = await self._in_words(self._encoder.encode, text, add_special_tokens=add_special_tokens)
        return tuple(ids)

    async def apply_chat_template(self, messages: Sequence[Mapping[str, Any]]) -> tuple[int, ...]:
        """Token ids of a chat prompt. Raises ValueError when the template refuses the messages."""
        self._running()
        return tuple(await self._in_words(_render_chat, self._encoder, [dict(message) for message in messages]))

    async def _in_words(self, function: Callable[..., T], *arguments: Any, **options: Any) -> T:
        """One thread with a tokenizer of its own: the fast ones cannot be used by two threads at once."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._words, lambda: function(*arguments, **options))

    # figures

    def state(self) -> BackendState:
        """Figures of the last step."""
        engine, figures = self._engine, self._figures
        total = engine.total_blocks if engine is not None else None
        return BackendState(
            step=figures.step,
            running=figures.running,
            waiting=count_waiting(figures, list(self._flights.values())),
            suspended=0,
            kv_used_blocks=None if total is None else round(figures.kv_usage_ratio * total),
            kv_total_blocks=total,
            kv_block_size_tokens=None if engine is None else engine.block_size,
            last_step_monotonic=figures.last_step_monotonic,
            ranks=rank_states(self._ranks, self._gone),
        )

    async def ping(self, deadline_seconds: float) -> None:
        """Round trip through the engine core to every worker. Raises BackendDead or TimeoutError."""
        await self._running().ping(deadline_seconds)

    @property
    def max_model_len(self) -> int:
        """Most tokens of prompt and output together. Raises BackendDead before the model is loaded."""
        return self._loaded_engine().max_model_len

    @property
    def vocab_size(self) -> int:
        """All token ids are below it. Raises BackendDead before the model is loaded."""
        return self._loaded_engine().vocab_size


def _step(delta: Delta, tail: deque[int], tokenizer: Any) -> Step:
    if delta.finish is None:
        return Step(delta.token_ids, delta.text)
    if delta.finish == "error":
        raise EngineError("vLLM ended the request with an error")
    finish: FinishReason = "length" if delta.finish == "length" else "stop"
    # A token that stops generation has no text.
    ids = list(tail)[:-1] if finish == "stop" else list(tail)
    return Step(delta.token_ids, delta.text + _cut_character(ids, tokenizer), finish)


def _cut_character(last_token_ids: list[int], tokenizer: Any) -> str:
    """One U+FFFD if the output ends inside a character: vLLM holds that back and drops it at the end."""
    text: str = tokenizer.decode(last_token_ids, skip_special_tokens=True) if last_token_ids else ""
    return "\ufffd" if text.endswith("\ufffd") else ""


def _render_chat(tokenizer: Any, messages: list[dict[str, Any]]) -> list[int]:
    from jinja2 import TemplateError

    try:
        ids = tokenizer.apply_chat_template(messages, add_generation_prompt=True, tokenize=True, return_dict=False)
    except (TemplateError, TypeError, KeyError) as error:
        raise ValueError(f"the chat template refuses the messages: {error}") from error
    return cast("list[int]", ids)


def _set_defaults(environment: Mapping[str, str]) -> None:
    for name, value in environment.items():
        os.environ.setdefault(name, value)


def _load_failure(failure: Exception) -> LoadFailed:
    while isinstance(failure, ExceptionGroup):
        failure = failure.exceptions[0]
    return failure if isinstance(failure, LoadFailed) else LoadFailed(f"vLLM did not start: {failure!r}")


async def _follow(tree: ProcessTree) -> None:
    """Tells the reaper of each process as it appears."""
    while True:
        await asyncio.to_thread(tree.scan)
        await asyncio.sleep(SCAN_SECONDS)


async def _in_daemon_thread(function: Callable[[], T]) -> T:
    """Like to_thread, but a call that never returns does not keep the process from ending."""
    loop = asyncio.get_running_loop()
    future: asyncio.Future[T] = loop.create_future()

    def deliver(result: T | None, error: BaseException | None) -> None:
        if future.done():
            return
        if error is None:
            future.set_result(cast("T", result))
        else:
            future.set_exception(error)

    def run() -> None:
        result, error = None, None
        try:
            result = function()
        except BaseException as caught:  # noqa: BLE001 - handed to whoever waits
            error = caught
        with suppress(RuntimeError):  # the loop is closed: nobody waits any more
            loop.call_soon_threadsafe(deliver, result, error)

    threading.Thread(target=run, name="vllm", daemon=True).start()
    return await future
