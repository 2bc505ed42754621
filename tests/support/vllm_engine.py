"""What tests of real vLLM share: settings that make its output exact, and the models' directory."""

from __future__ import annotations

import pytest

from headwater_engine.settings import EngineSettings
from support.quickstart_model import quickstart_model_dir

# Greedy bfloat16 text changes with the batch; float32 text does not.
EXACT_ARGUMENTS = {"dtype": "float32", "max-num-seqs": "32"}
MAX_MODEL_LEN = 1024
START_SECONDS = 900.0
"""A start takes 45 s on two idle cores, and several times that on busy ones."""

needs_vllm = [
    pytest.mark.vllm,
    pytest.mark.timeout(START_SECONDS),
    # vLLM's and torch's own, at import.
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
    pytest.mark.filterwarnings("ignore::FutureWarning"),
]


def vllm_settings(**changes: object) -> EngineSettings:
    """Settings of an engine over the quickstart model."""
    values: dict[str, object] = {
        "backend": "vllm",
        "model_name": "smollm2",
        "model_path": str(quickstart_model_dir()),
        "max_model_len": MAX_MODEL_LEN,
        "block_size": 16,
        "extra_args": EXACT_ARGUMENTS,
        "log_level": "WARNING",
    }
    return EngineSettings.model_validate(values | changes)
