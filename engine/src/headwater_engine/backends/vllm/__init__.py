"""Real vLLM, driven in process. Nothing here imports vLLM before ``VllmBackend.start``."""

from __future__ import annotations

from headwater_engine.backends.vllm.backend import VllmBackend
from headwater_engine.ports import Backend
from headwater_engine.settings import EngineSettings


def create_backend(settings: EngineSettings) -> Backend:
    """The backend, not started yet. Raises ValueError for engine arguments that the pool's spec decides."""
    return VllmBackend(settings)
