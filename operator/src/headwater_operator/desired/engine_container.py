"""Environment and volumes of the engine container, from a template and the pool's runtime settings."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from headwater_contracts import engine_env as env
from headwater_contracts.network import ENGINE_ADMIN_PORT, ENGINE_HTTP_PORT
from headwater_operator.api.duration import parse_duration
from headwater_operator.api.engine import Backend, Engine, Simulation
from headwater_operator.api.group import GroupTemplate
from headwater_operator.api.model import HuggingFaceSource
from headwater_operator.api.pool import InferencePoolSpec

HOME = "/tmp"  # noqa: S108 - an emptyDir of the pod alone; the root file system is read-only
WEIGHTS_MOUNT = "/models/weights"
CACHE_MOUNT = "/cache"


@dataclass(frozen=True, slots=True)
class ModelMounts:
    """How a pod gets at its weights."""

    path: str = ""
    revision: str = ""
    volumes: tuple[Mapping[str, Any], ...] = ()
    mounts: tuple[Mapping[str, Any], ...] = ()
    environment: tuple[Mapping[str, Any], ...] = field(default=())


def model_mounts(template: GroupTemplate) -> ModelMounts:
    """Path, volumes and environment for the template's model source. The sim backend loads no weights."""
    source = template.model.source
    if template.engine.backend is Backend.SIM:
        return ModelMounts()
    if source.hugging_face is not None:
        return _hugging_face(source.hugging_face, template.model.cache.persistent_volume_claim)
    offline = ({"name": "HF_HUB_OFFLINE", "value": "1"},)
    if source.persistent_volume_claim is not None:
        claim = source.persistent_volume_claim
        return ModelMounts(
            path=f"{WEIGHTS_MOUNT}/{claim.path}".rstrip("/"),
            volumes=({"name": "weights", "persistentVolumeClaim": {"claimName": claim.claim_name, "readOnly": True}},),
            mounts=({"name": "weights", "mountPath": WEIGHTS_MOUNT, "readOnly": True},),
            environment=offline,
        )
    return ModelMounts(path=source.image_path or "", environment=offline)


def _hugging_face(source: HuggingFaceSource, cache_claim: str) -> ModelMounts:
    volume: dict[str, Any] = {"name": "model-cache", "emptyDir": {}}
    if cache_claim:
        volume = {"name": "model-cache", "persistentVolumeClaim": {"claimName": cache_claim}}
    environment: list[Mapping[str, Any]] = [{"name": "HF_HOME", "value": CACHE_MOUNT}]
    if source.token_secret is not None:
        secret = {"name": source.token_secret.name, "key": source.token_secret.key}
        environment.append({"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": secret}})
    return ModelMounts(
        path=source.repo,
        revision=source.revision,
        volumes=(volume,),
        mounts=({"name": "model-cache", "mountPath": CACHE_MOUNT},),
        environment=tuple(environment),
    )


@dataclass(frozen=True, slots=True)
class PodIdentity:
    """Names that an engine learns about itself."""

    pool: str
    group: str
    token_digest: str
    log_level: str


def engine_environment(
    template: GroupTemplate, spec: InferencePoolSpec, model: ModelMounts, identity: PodIdentity
) -> list[dict[str, Any]]:
    """The container's ``env`` list: names of ``headwater_contracts.engine_env`` and what the model source needs."""
    values = {
        **_engine_values(template.engine),
        env.MODEL_NAME: template.model.name,
        env.MODEL_PATH: model.path,
        env.MODEL_REVISION: model.revision,
        env.HTTP_PORT: str(ENGINE_HTTP_PORT),
        env.ADMIN_PORT: str(ENGINE_ADMIN_PORT),
        env.ADMIN_TOKEN_SHA256: identity.token_digest,
        env.GROUP: identity.group,
        env.POOL: identity.pool,
        env.LOG_LEVEL: identity.log_level,
        **_runtime_values(spec),
        "HOME": HOME,
    }
    pod_name = {"name": env.POD_NAME, "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.name"}}}
    plain = [{"name": name, "value": value} for name, value in values.items()]
    return [*plain, pod_name, *(dict(item) for item in model.environment)]


def _engine_values(engine: Engine) -> dict[str, str]:
    values = {
        env.BACKEND: str(engine.backend),
        env.TENSOR_PARALLEL_SIZE: str(engine.tensor_parallel_size),
        env.PIPELINE_PARALLEL_SIZE: str(engine.pipeline_parallel_size),
        env.MAX_MODEL_LEN: str(engine.max_model_len),
        env.BLOCK_SIZE: str(engine.block_size),
        env.MAX_NUM_BATCHED_TOKENS: str(engine.max_num_batched_tokens),
        env.PREFIX_CACHING: str(engine.prefix_caching).lower(),
        env.EXTRA_ARGS: json.dumps(engine.extra_args, sort_keys=True, separators=(",", ":")),
    }
    if engine.backend is Backend.SIM:
        simulation = engine.simulation or Simulation()
        values[env.SIM_PROFILE] = simulation.profile
        values[env.SIM_TIME_SCALE] = simulation.time_scale
    return values


def _runtime_values(spec: InferencePoolSpec) -> dict[str, str]:
    durations = {
        env.DRAIN_TIMEOUT_SECONDS: spec.drain.timeout,
        env.ENDPOINT_SETTLE_SECONDS: spec.drain.endpoint_settle,
        env.STARTUP_DEADLINE_SECONDS: spec.health.startup_deadline,
        env.HEALTH_INTERVAL_SECONDS: spec.health.interval,
        env.SLO_TTFT_SECONDS: spec.slo.ttft_p90 if spec.slo else None,
        env.SLO_ITL_SECONDS: spec.slo.inter_token_latency_p99 if spec.slo else None,
    }
    values = {name: f"{parse_duration(text):g}" for name, text in durations.items() if text is not None}
    return {**values, env.HEALTH_FAILURE_THRESHOLD: str(spec.health.failure_threshold)}
