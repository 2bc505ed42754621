"""Settings, frames, last words and the loop's guard."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from headwater_contracts import engine_env
from headwater_engine.adapters.process import LoopGuard, write_last_words
from headwater_engine.api.frames import AnswerHead, ChatFrames, json_text
from headwater_engine.core.generation import Usage
from headwater_engine.settings import EngineSettings


def test_settings_are_exactly_the_environment_of_the_contract() -> None:
    promised = {value for name, value in vars(engine_env).items() if name.isupper() and name != "PREFIX"}

    assert {engine_env.PREFIX + name.upper() for name in EngineSettings.model_fields} == promised


def test_settings_are_read_from_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        engine_env.BACKEND: "sim",
        engine_env.PREFIX_CACHING: "false",
        engine_env.EXTRA_ARGS: '{"kv-blocks": "7"}',
        engine_env.SIM_TIME_SCALE: "2.5",
        engine_env.MAX_MODEL_LEN: "",
        engine_env.LOG_LEVEL: "debug",
    }.items():
        monkeypatch.setenv(name, value)

    got = EngineSettings()

    assert (got.prefix_caching, got.extra_args, got.sim_time_scale) == (False, {"kv-blocks": "7"}, 2.5)
    assert (got.max_model_len, got.log_level) == (None, "DEBUG")


@pytest.mark.parametrize(
    "values",
    [
        {"backend": "vllm"},
        {"backend": "vllm", "model_path": "/m", "sim_scripts": True},
        {"backend": "sim", "admin_token_sha256": "secret"},
        {"backend": "sim", "health_interval_seconds": 0},
        {"backend": "sim", "tensor_parallel_size": 0},
    ],
)
def test_settings_that_make_no_sense_are_refused(values: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        EngineSettings(**values)  # type: ignore[arg-type]


@given(st.text())
def test_any_text_in_a_frame_is_one_line_for_every_reader_and_comes_back_whole(text: str) -> None:
    frames = ChatFrames(AnswerHead("id", 1, "m"), include_usage=False, continuous_usage=False)

    frame = frames.text(text, Usage(1))

    assert frame.endswith(b"\n\n")
    assert len(frame[:-2].decode().splitlines()) == 1
    assert json.loads(frame[6:])["choices"][0]["delta"]["content"] == text
    assert json.loads(json_text(text)) == text


def test_last_words_go_where_the_kubelet_reads_them(tmp_path: Path) -> None:
    path = tmp_path / "termination-log"
    write_last_words("nobody listens", path)
    assert not path.exists()

    path.touch()
    write_last_words("why", path)
    assert path.read_text() == "why"


def test_the_loop_guard_fires_once_the_beats_end_and_not_while_they_go_on() -> None:
    stuck, pause = threading.Event(), threading.Event()
    guard = LoopGuard(2.0, stuck.set)
    guard.start()
    for _ in range(30):
        guard.beat()
        pause.wait(0.1)
    assert not stuck.is_set()

    assert stuck.wait(60)


def test_a_stopped_loop_guard_does_not_fire() -> None:
    stuck = threading.Event()
    guard = LoopGuard(0.05, stuck.set)
    guard.start()
    guard.stop()
    guard._thread.join(60)

    assert not stuck.is_set()


class Looks(threading.Event):
    """Stands in for the guard's event: each look finds what the script says, without waiting; then the guard stops."""

    def __init__(self, guard: LoopGuard, *beaten: bool) -> None:
        super().__init__()
        self.left = list(beaten)
        self.waited = 0.0
        self._guard = guard

    def wait(self, timeout: float | None = None) -> bool:
        assert timeout is not None
        self.waited += timeout
        if self.left:
            return self.left.pop(0)
        self._guard.stop()
        return True


def stuck_after(*beaten: bool) -> list[float]:
    """When a guard with a patience of 2 s called its loop stuck, in seconds waited, if its looks find ``beaten``."""
    stuck: list[float] = []
    guard = LoopGuard(2.0, lambda: stuck.append(looks.waited))
    looks = guard._beaten = Looks(guard, *beaten)
    guard.start()
    guard._thread.join(60)
    assert not guard._thread.is_alive()
    return stuck


def test_a_pause_of_the_whole_process_is_one_missed_look_and_not_a_stuck_loop() -> None:
    assert stuck_after(True, False, True, *[False] * 9, True) == []


def test_a_loop_that_misses_every_look_is_stuck_after_the_whole_patience() -> None:
    assert stuck_after(*[False] * 50) == [pytest.approx(2.0)]
