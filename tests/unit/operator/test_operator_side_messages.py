"""The refusals that only the operator can make, word for word, as a person reads them in the condition Stalled.

What the API server refuses is in docs/reference/refusals.yaml, and tested against a real one.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headwater_contracts.reasons import ConditionType
from headwater_operator.api.pool import InferencePoolSpec
from headwater_operator.core.decide import decide
from headwater_operator.core.snapshot import ForeignObject
from headwater_operator.core.status import pool_status
from support.operator_snapshots import NOW, SETTINGS, pool_spec, snapshot, suffixes, vllm_spec


def stalled(spec: InferencePoolSpec, foreign: tuple[ForeignObject, ...] = (), **settings: Any) -> tuple[str, str, str]:
    """Status, reason and message of the condition Stalled of a pool without groups."""
    seen, rules = snapshot(spec=spec, foreign=foreign), replace(SETTINGS, **settings)
    status = pool_status(seen, decide(seen, rules, NOW, suffixes()), rules, NOW)
    (found,) = (each for each in status["conditions"] if each["type"] == ConditionType.STALLED)
    return found["status"], found["reason"], found["message"]


@pytest.mark.parametrize(
    ("spec", "settings", "reason", "message"),
    [
        (
            vllm_spec(engine={"image": "evil.example/miner:1"}),
            {},
            "ImageNotAllowed",
            (
                "spec.engine.image: 'evil.example/miner:1' is not on the operator's allow list (engine-cpu:1, "
                "engine-cuda:1, engine-sim:1, registry.example/engine-*): use an allowed image, leave the field empty "
                "for the operator's default, or have the operator's setting allowedImages extended"
            ),
        ),
        (
            vllm_spec(engine={"extraArgs": {"seed": "1"}}),
            {},
            "EngineArgumentNotAllowed",
            (
                "spec.engine.extraArgs: seed not on the operator's allow list (max-num-seqs): remove it, or have the "
                "operator's setting allowedEngineArgs extended"
            ),
        ),
        (
            pool_spec(),
            {"allow_sim": False},
            "BackendNotAllowed",
            (
                "spec.engine.backend: sim is not allowed in this installation: set backend to vllm, or have the "
                "operator's setting allowSim turned on"
            ),
        ),
        (
            vllm_spec(engine={"pipelineParallelSize": 2}),
            {},
            "NotSupportedYet",
            "spec.engine.pipelineParallelSize: 2 is not supported yet: set it to 1",
        ),
        (
            vllm_spec(),
            {"default_image_vllm_cuda": ""},
            "InvalidSpec",
            (
                "spec.engine.image: the operator has no default image for backend vllm: set an image, or have the "
                "operator's default images set"
            ),
        ),
    ],
)
def test_a_spec_that_this_installation_cannot_serve_is_stalled_in_these_words(
    spec: InferencePoolSpec, settings: dict[str, Any], reason: str, message: str
) -> None:
    assert stalled(spec, **settings) == ("True", reason, message)


def test_a_name_that_is_taken_is_stalled_in_these_words() -> None:
    status, reason, message = stalled(pool_spec(), (ForeignObject("Service", "pool"),))

    assert (status, reason) == ("True", "NameConflict")
    assert message == (
        "metadata.name: a Service 'pool' that this pool does not own exists in namespace "
        f"{snapshot().namespace!r}: delete or rename it, or give the pool another name"
    )
