"""What an engine is told by its environment: exactly the names of ``headwater_contracts.engine_env``."""

from __future__ import annotations

from typing import Any, Literal

from pydantic import Field, field_validator, model_validator
from pydantic_settings import BaseSettings, SettingsConfigDict

from headwater_contracts import engine_env, network


class EngineSettings(BaseSettings):
    """Durations in seconds. An unset variable and an empty one mean the same: the default."""

    model_config = SettingsConfigDict(env_prefix=engine_env.PREFIX, env_ignore_empty=True, extra="ignore", frozen=True)

    backend: Literal["vllm", "sim"]
    model_name: str = Field(default="default", min_length=1)
    model_path: str = ""
    model_revision: str | None = None
    tensor_parallel_size: int = Field(default=1, ge=1)
    pipeline_parallel_size: int = Field(default=1, ge=1)
    max_model_len: int | None = Field(default=None, ge=1)
    block_size: int | None = Field(default=None, ge=1)
    max_num_batched_tokens: int | None = Field(default=None, ge=1)
    prefix_caching: bool = True
    extra_args: dict[str, str] = Field(default_factory=dict)

    sim_profile: str = "h100-llama70b-tp8"
    sim_time_scale: float = Field(default=1.0, gt=0)
    sim_scripts: bool = False

    http_port: int = Field(default=network.ENGINE_HTTP_PORT, ge=0, le=65535)
    admin_port: int = Field(default=network.ENGINE_ADMIN_PORT, ge=0, le=65535)
    admin_token_sha256: str | None = Field(default=None, pattern="^[0-9a-f]{64}$")

    drain_timeout_seconds: float = Field(default=600.0, ge=0)
    endpoint_settle_seconds: float = Field(default=5.0, ge=0)
    startup_deadline_seconds: float = Field(default=1800.0, gt=0)
    health_interval_seconds: float = Field(default=5.0, gt=0)
    health_failure_threshold: int = Field(default=3, ge=1)
    slo_ttft_seconds: float = Field(default=1.0, gt=0)
    slo_itl_seconds: float = Field(default=0.1, gt=0)
    max_waiting: int = Field(default=2048, ge=1)
    keep_alive_seconds: float = Field(default=10.0, gt=0)
    client_stall_seconds: float = Field(default=30.0, gt=0)
    stream_stall_seconds: float = Field(default=30.0, gt=0)

    group: str | None = None
    pool: str | None = None
    pod_name: str | None = None
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = "INFO"

    @field_validator("log_level", mode="before")
    @classmethod
    def _upper(cls, value: Any) -> Any:
        return value.upper() if isinstance(value, str) else value

    @model_validator(mode="after")
    def _consistent(self) -> EngineSettings:
        if self.backend == "vllm" and not self.model_path:
            raise ValueError(f"{engine_env.MODEL_PATH} is required for the backend vllm")
        if self.sim_scripts and self.backend != "sim":
            raise ValueError(f"{engine_env.SIM_SCRIPTS} is for the backend sim alone")
        return self
