"""Stage validate: what only the operator can refuse. The first row that applies becomes the pool's problem.

| # | observed                                     | reason                   |
|---|----------------------------------------------|--------------------------|
| 1 | a Service of the pool's name is not ours     | NameConflict             |
| 2 | backend sim where the installation forbids it| BackendNotAllowed        |
| 3 | more than one pod a group                    | NotSupportedYet          |
| 4 | an image outside the allow list              | ImageNotAllowed          |
| 5 | no image given and no default known          | InvalidSpec              |
| 6 | an engine argument outside the allow list    | EngineArgumentNotAllowed |
"""

from __future__ import annotations

from headwater_contracts.reasons import Reason
from headwater_operator.api.engine import Backend
from headwater_operator.api.extra_args import folded
from headwater_operator.api.pool import InferencePoolSpec
from headwater_operator.core.actions import EventNote
from headwater_operator.core.settings import DecisionSettings
from headwater_operator.core.snapshot import PoolSnapshot
from headwater_operator.desired.revision import default_image


def find_problem(snapshot: PoolSnapshot, settings: DecisionSettings) -> EventNote | None:
    """The first fault that a person must mend, with the field and the remedy; None if there is none."""
    spec = snapshot.spec
    for check in (_name_conflict(snapshot), _backend(spec, settings), _pipeline(spec), _image(spec, settings)):
        if check is not None:
            return check
    return _engine_arguments(spec, settings)


def _problem(reason: Reason, message: str) -> EventNote:
    return EventNote(reason, message, warning=True)


def _name_conflict(snapshot: PoolSnapshot) -> EventNote | None:
    for foreign in snapshot.foreign:
        return _problem(
            Reason.NAME_CONFLICT,
            f"metadata.name: a {foreign.kind} {foreign.name!r} that this pool does not own exists in namespace "
            f"{snapshot.namespace!r}: delete or rename it, or give the pool another name",
        )
    return None


def _backend(spec: InferencePoolSpec, settings: DecisionSettings) -> EventNote | None:
    if spec.engine.backend is not Backend.SIM or settings.allow_sim:
        return None
    return _problem(
        Reason.BACKEND_NOT_ALLOWED,
        "spec.engine.backend: sim is not allowed in this installation: set backend to vllm, or have the "
        "operator's setting allowSim turned on",
    )


def _pipeline(spec: InferencePoolSpec) -> EventNote | None:
    if spec.engine.pipeline_parallel_size == 1:
        return None
    return _problem(
        Reason.NOT_SUPPORTED_YET,
        f"spec.engine.pipelineParallelSize: {spec.engine.pipeline_parallel_size} is not supported yet: set it to 1",
    )


def _image(spec: InferencePoolSpec, settings: DecisionSettings) -> EventNote | None:
    image = spec.engine.image
    if not image and not default_image(spec, settings):
        return _problem(
            Reason.INVALID_SPEC,
            f"spec.engine.image: the operator has no default image for backend {spec.engine.backend}: set an image, "
            "or have the operator's default images set",
        )
    if not image or settings.image_allowed(image):
        return None
    allowed = ", ".join(sorted({*settings.default_images(), *settings.allowed_images}) or ["it is empty"])
    return _problem(
        Reason.IMAGE_NOT_ALLOWED,
        f"spec.engine.image: {image!r} is not on the operator's allow list ({allowed}): use an allowed image, "
        "leave the field empty for the operator's default, or have the operator's setting allowedImages extended",
    )


def _engine_arguments(spec: InferencePoolSpec, settings: DecisionSettings) -> EventNote | None:
    allowed = {folded(name) for name in settings.allowed_engine_args}
    refused = sorted(name for name in spec.engine.extra_args if folded(name) not in allowed)
    if not refused:
        return None
    listed = ", ".join(sorted(settings.allowed_engine_args)) or "none"
    return _problem(
        Reason.ENGINE_ARGUMENT_NOT_ALLOWED,
        f"spec.engine.extraArgs: {', '.join(refused)} not on the operator's allow list ({listed}): remove it, or "
        "have the operator's setting allowedEngineArgs extended",
    )
