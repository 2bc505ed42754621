"""``POST /v1/chat/completions`` and ``POST /v1/completions``, on bare ASGI."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Callable
from dataclasses import dataclass

import structlog

from headwater_engine.api import failures
from headwater_engine.api.exchange import ClientGoneError, Exchange
from headwater_engine.api.frames import AnswerHead, ChatFrames, CompletionFrames, Frames
from headwater_engine.api.parse import MAX_BODY_BYTES, Job, ServedModel, make_job, parse_body
from headwater_engine.api.protocol import ChatBody, CompletionBody, GenerationBody
from headwater_engine.api.stream import StreamLimits, StreamWriter
from headwater_engine.clock import Clock
from headwater_engine.core.admission import admit
from headwater_engine.core.generation import Generation
from headwater_engine.core.inflight import EndCause, InFlight, Registry
from headwater_engine.core.lifecycle import Lifecycle
from headwater_engine.core.meters import Meters
from headwater_engine.errors import BackendDead
from headwater_engine.ports import Backend, FinishReason

_log = structlog.get_logger("headwater.requests")


@dataclass(frozen=True, slots=True)
class Serving:
    """What the endpoints work with."""

    backend: Backend
    model: ServedModel
    lifecycle: Lifecycle
    registry: Registry
    meters: Meters
    clock: Clock
    wall_seconds: Callable[[], float]
    max_waiting: int
    limits: StreamLimits
    on_dead: Callable[[BackendDead], None]
    """Called when a request meets a dead backend: nobody need wait for the watchdog's next ping."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One of the two endpoints."""

    serving: Serving
    body: type[GenerationBody]
    frames: type[Frames]
    id_prefix: str

    async def __call__(self, exchange: Exchange) -> None:
        """Answers one request; every error before the first byte is a real HTTP error."""
        try:
            await self._serve(exchange)
        except ClientGoneError:
            self.serving.meters.aborts[EndCause.CLIENT_GONE] += 1

    async def _serve(self, exchange: Exchange) -> None:
        serving = self.serving
        # Before the body is read, so that a refusal is cheap.
        self._admit()
        body = parse_body(self.body, await exchange.body(MAX_BODY_BYTES))
        engine_id = f"{self.id_prefix}-{uuid.uuid4().hex}"
        job = await make_job(serving.backend, serving.model, body, engine_id)
        # Again, since reading and tokenizing took time; from here to the registry nothing waits.
        self._admit()
        inflight = InFlight(exchange.request_id, exchange.connection_lost)
        serving.registry.add(inflight)
        try:
            await self._generate(exchange, job, inflight)
        finally:
            serving.registry.remove(inflight)

    def _admit(self) -> None:
        serving = self.serving
        state = serving.lifecycle.admission(serving.clock.now())
        admit(state, waiting=serving.registry.waiting, max_waiting=serving.max_waiting)

    async def _generate(self, exchange: Exchange, job: Job, inflight: InFlight) -> None:
        serving = self.serving
        generation = Generation(serving.backend, job.request, job.rules, inflight, serving.meters, serving.clock)
        head = AnswerHead(job.request.id, int(serving.wall_seconds()), serving.model.name)
        frames = self.frames(head, include_usage=job.include_usage, continuous_usage=job.continuous_usage)
        error: BaseException | None = None
        try:
            if job.stream:
                error = await StreamWriter(
                    exchange, generation, frames, inflight, serving.limits, serving.clock, self._all_scheduled
                ).run()
            else:
                await _answer(exchange, generation, frames, inflight)
        except BaseException as raised:
            error = raised
            raise
        finally:
            self._note(exchange, job, generation, inflight, error)

    def _all_scheduled(self) -> bool:
        # With nobody waiting, none can be a preempted one that waits for its turn.
        return self.serving.backend.state().waiting == 0

    def _note(
        self, exchange: Exchange, job: Job, generation: Generation, inflight: InFlight, error: BaseException | None
    ) -> None:
        if isinstance(error, BackendDead):
            self.serving.on_dead(error)
        cause = inflight.cause
        if cause is not None:
            self.serving.meters.aborts[cause] += 1
        elif error is not None:
            self.serving.meters.aborts["error"] += 1
        level = "info" if error is None or cause is not None else "error"
        getattr(_log, level)(
            "request ended",
            request_id=exchange.request_id,
            engine_id=job.request.id,
            stream=job.stream,
            cause=None if cause is None else cause.value,
            error=None if error is None else repr(error),
            prompt_tokens=generation.usage.prompt,
            completion_tokens=generation.usage.completion,
            ttft_seconds=generation.first_token_seconds,
            seconds=round(generation.seconds, 4),
        )


def chat_endpoint(serving: Serving) -> Endpoint:
    """``POST /v1/chat/completions``."""
    return Endpoint(serving, ChatBody, ChatFrames, "chatcmpl")


def completions_endpoint(serving: Serving) -> Endpoint:
    """``POST /v1/completions``."""
    return Endpoint(serving, CompletionBody, CompletionFrames, "cmpl")


async def _answer(exchange: Exchange, generation: Generation, frames: Frames, inflight: InFlight) -> None:
    """A whole answer at once. A client that hangs up meanwhile aborts it all the same."""
    async with asyncio.TaskGroup() as group:
        collecting = group.create_task(_collect(generation))
        watching = group.create_task(_watch(exchange, inflight))
        inflight.ended.add_done_callback(lambda _: collecting.cancel())
        await asyncio.wait((collecting,))
        watching.cancel()
    cause = inflight.cause
    if cause is EndCause.CLIENT_GONE:
        return
    if collecting.cancelled():
        raise failures.ended(cause or EndCause.EXITING)
    text, finish, error = collecting.result()
    if error is not None:
        raise error
    await exchange.json(200, frames.answer(text, finish, generation.usage))


async def _collect(generation: Generation) -> tuple[str, FinishReason, Exception | None]:
    # An exception would end the whole task group, so it is a value here.
    text: list[str] = []
    finish: FinishReason = "stop"
    try:
        async for delta in generation.deltas():
            text.append(delta.text)
            finish = delta.finish or finish
    except Exception as error:  # noqa: BLE001 - raised again by the caller
        return "", finish, error
    return "".join(text), finish, None


async def _watch(exchange: Exchange, inflight: InFlight) -> None:
    await exchange.disconnected()
    inflight.end(EndCause.CLIENT_GONE)
