"""The operator's settings, from environment variables ``HEADWATER_OPERATOR_*``."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import Field, ValidationError, field_validator
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from headwater_contracts.network import ENGINE_ADMIN_PORT, OPERATOR_METRICS_PORT, OPERATOR_PROBE_PORT
from headwater_operator.core.settings import DecisionSettings

PREFIX = "HEADWATER_OPERATOR_"

CommaList = Annotated[tuple[str, ...], NoDecode]
Port = Annotated[int, Field(ge=0, le=65535)]


class Settings(BaseSettings):
    """One field for each variable; a value that does not fit stops the start with its name."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="ignore")

    namespaces: CommaList = Field(default=(), description="Namespaces to serve, comma-separated; empty: all")
    default_image_sim: str = Field(default="", description="Image of backend sim")
    default_image_vllm_cpu: str = Field(default="", description="Image of backend vllm without accelerators")
    default_image_vllm_cuda: str = Field(default="", description="Image of backend vllm on accelerators")
    allowed_images: CommaList = Field(default=(), description="Glob patterns of further images that a pool may name")
    allowed_engine_args: CommaList = Field(default=(), description="Names that spec.engine.extraArgs may use")
    allow_sim: bool = Field(default=True, description="Whether backend sim may be used")
    image_pull_policy: Literal["Always", "IfNotPresent", "Never"] = Field(
        default="IfNotPresent", description="imagePullPolicy of engine pods"
    )
    admin_token_file: Path | None = Field(default=None, description="File with the master admin token")
    pod_namespace: str = Field(default="default", description="Namespace of the operator itself, and of its Lease")
    pod_name: str = Field(default_factory=socket.gethostname, description="Name of the operator's pod")
    pod_uid: str = Field(default="", description="uid of the operator's pod")
    lease_name: str = Field(default="headwater-operator", description="Lease that the running operator holds")
    lease_seconds: float = Field(default=15.0, ge=3.0, description="How long a dead operator keeps the Lease")
    log_level: Literal["debug", "info", "warning", "error"] = Field(default="info", description="Lowest level logged")
    log_format: Literal["json", "console"] = Field(default="json", description="Form of log lines")
    engine_log_level: Literal["debug", "info", "warning", "error"] = Field(
        default="info", description="Log level of engine pods"
    )
    probe_interval_seconds: float = Field(default=2.0, gt=0, description="Between two probes of an engine")
    engine_admin_port: Port = Field(default=ENGINE_ADMIN_PORT, description="Admin port of engines")
    listen_host: str = Field(default="0.0.0.0", description="Address of the metrics and liveness ports")  # noqa: S104
    metrics_port: Port = Field(default=OPERATOR_METRICS_PORT, description="Port of /metrics and /readyz")
    probe_port: Port = Field(default=OPERATOR_PROBE_PORT, description="Port of /healthz")
    workers: int = Field(default=4, ge=1, le=64, description="Pools reconciled at once")

    @field_validator("namespaces", "allowed_images", "allowed_engine_args", mode="before")
    @classmethod
    def _split(cls, value: Any) -> Any:
        if isinstance(value, str):
            return tuple(part.strip() for part in value.split(",") if part.strip())
        return value

    @field_validator("log_level", "engine_log_level", mode="before")
    @classmethod
    def _lower(cls, value: Any) -> Any:
        return value.lower() if isinstance(value, str) else value

    def identity(self) -> str:
        """Who holds the Lease: the same after a container restart in the same pod, different for any other pod."""
        return f"{self.pod_name}_{self.pod_uid or os.getpid()}"

    def decision_settings(self) -> DecisionSettings:
        """The part that decisions read."""
        return DecisionSettings(
            default_image_sim=self.default_image_sim,
            default_image_vllm_cpu=self.default_image_vllm_cpu,
            default_image_vllm_cuda=self.default_image_vllm_cuda,
            allowed_images=self.allowed_images,
            allowed_engine_args=frozenset(self.allowed_engine_args),
            allow_sim=self.allow_sim,
        )

    def master_token(self) -> bytes:
        """The master admin token. Raises SettingsError if there is no usable file."""
        if self.admin_token_file is None:
            raise SettingsError(f"{PREFIX}ADMIN_TOKEN_FILE is not set: it names the file with the admin token")
        try:
            token = self.admin_token_file.read_bytes().strip()
        except OSError as error:
            raise SettingsError(f"{PREFIX}ADMIN_TOKEN_FILE: {error}") from error
        if len(token) < _SHORTEST_TOKEN:
            raise SettingsError(
                f"{PREFIX}ADMIN_TOKEN_FILE: {self.admin_token_file} holds {len(token)} bytes, "
                f"at least {_SHORTEST_TOKEN} are needed"
            )
        return token


_SHORTEST_TOKEN = 16


class SettingsError(Exception):
    """The environment does not make a usable configuration; the text is for whoever set it."""


def load_settings() -> Settings:
    """Settings from the environment. Raises SettingsError that names each variable at fault."""
    try:
        return Settings()
    except ValidationError as error:
        lines = [
            f"  {PREFIX}{'_'.join(str(part) for part in fault['loc']).upper()}={fault.get('input')!r}: {fault['msg']}"
            for fault in error.errors()
        ]
        raise SettingsError("\n".join(["bad settings:", *lines])) from error
