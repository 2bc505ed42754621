"""Settings become vLLM's arguments and environment."""

from __future__ import annotations

import pytest

from headwater_engine.backends.vllm import create_backend
from headwater_engine.backends.vllm.config import base_environment, plan_engine
from headwater_engine.settings import EngineSettings


def settings(**changes: object) -> EngineSettings:
    return EngineSettings.model_validate({"backend": "vllm", "model_path": "/models/m"} | changes)


def arguments(*, cpu: bool = False, **changes: object) -> tuple[str, ...]:
    return plan_engine(settings(**changes), cpu=cpu, cores=2).arguments


def test_what_the_pool_decides_becomes_arguments() -> None:
    got = arguments(
        model_revision="abc",
        tensor_parallel_size=8,
        pipeline_parallel_size=2,
        max_model_len=4096,
        block_size=16,
        max_num_batched_tokens=8192,
        prefix_caching=False,
    )

    assert got == (
        "--model=/models/m",
        "--revision=abc",
        "--tensor-parallel-size=8",
        "--pipeline-parallel-size=2",
        "--max-model-len=4096",
        "--block-size=16",
        "--max-num-batched-tokens=8192",
        "--no-enable-prefix-caching",
        "--disable-log-stats",
    )


def test_what_the_pool_leaves_open_is_left_to_vllm_on_gpus() -> None:
    assert arguments() == (
        "--model=/models/m",
        "--tensor-parallel-size=1",
        "--pipeline-parallel-size=1",
        "--enable-prefix-caching",
        "--disable-log-stats",
    )


@pytest.mark.parametrize(("asked", "want"), [(1, 32), (16, 32), (32, 32), (33, 64), (128, 128)])
def test_cpu_rounds_the_block_size_up_to_a_multiple_of_32(asked: int, want: int) -> None:
    assert f"--block-size={want}" in arguments(cpu=True, block_size=asked)


def test_each_adaptation_to_cpu_is_named_in_a_note() -> None:
    plan = plan_engine(settings(block_size=16), cpu=True, cores=2)

    assert [note.split(":")[0] for note in plan.notes] == [
        "block size 16 raised to 32",
        "at most 128 tokens a step",
        "eager mode",
    ]


def test_what_needs_no_adaptation_has_no_note() -> None:
    fitting = settings(block_size=64, max_num_batched_tokens=256, extra_args={"enforce_eager": "false"})

    plan = plan_engine(fitting, cpu=True, cores=2)

    assert plan.notes == ()
    assert {"--block-size=64", "--max-num-batched-tokens=256", "--no-enforce-eager"} <= set(plan.arguments)


@pytest.mark.parametrize(
    ("name", "value", "want"),
    [
        ("dtype", "float32", "--dtype=float32"),
        ("max_num_seqs", "64", "--max-num-seqs=64"),
        ("--max-num-seqs", " 64 ", "--max-num-seqs=64"),
        ("hf-overrides", '{"rope_theta": 1e6}', '--hf-overrides={"rope_theta": 1e6}'),
        ("enforce-eager", "true", "--enforce-eager"),
        ("enable-chunked-prefill", "false", "--no-enable-chunked-prefill"),
        ("no-enable-chunked-prefill", "true", "--no-enable-chunked-prefill"),
    ],
)
def test_extra_arguments_are_written_as_vllms_command_line_has_them(name: str, value: str, want: str) -> None:
    assert arguments(extra_args={name: value})[-1] == want


@pytest.mark.parametrize(
    "name", ["model", "block_size", "--tensor-parallel-size", "no-enable-prefix-caching", "config"]
)
def test_an_extra_argument_that_the_pool_decides_is_refused_before_anything_is_loaded(name: str) -> None:
    with pytest.raises(ValueError, match=name):
        create_backend(settings(extra_args={name: "1"}))


def test_a_local_model_is_never_looked_up_in_a_hub() -> None:
    assert base_environment(settings())["HF_HUB_OFFLINE"] == "1"
    assert "HF_HUB_OFFLINE" not in base_environment(settings(model_path="org/model"))


def test_the_engines_processes_are_spawned_and_report_nothing_home() -> None:
    environment = base_environment(settings(log_level="WARNING"))

    assert environment["VLLM_WORKER_MULTIPROC_METHOD"] == "spawn"
    assert environment["VLLM_NO_USAGE_STATS"] == "1"
    assert environment["VLLM_LOGGING_LEVEL"] == "WARNING"


@pytest.mark.parametrize(("cores", "ranks", "want"), [(1, 1, "1"), (2, 1, "1"), (8, 1, "7"), (8, 2, "3"), (2, 8, "1")])
def test_cpu_workers_share_the_cores_and_leave_one_to_the_server(cores: int, ranks: int, want: str) -> None:
    plan = plan_engine(settings(tensor_parallel_size=ranks), cpu=True, cores=cores)

    assert plan.environment["OMP_NUM_THREADS"] == want
    assert plan.environment["VLLM_CPU_OMP_THREADS_BIND"] == "nobind"
    assert plan.environment["VLLM_CPU_KVCACHE_SPACE"] == "1"


def test_gpus_get_no_cpu_environment() -> None:
    assert plan_engine(settings(), cpu=False, cores=64).environment == {}
