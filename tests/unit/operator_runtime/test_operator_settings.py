"""Settings from the environment, and what a mistake in them says."""

from __future__ import annotations

from pathlib import Path

import pytest

from headwater_operator.main import main
from headwater_operator.settings import PREFIX, Settings, SettingsError, load_settings


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in Settings.model_fields:
        monkeypatch.delenv(PREFIX + name.upper(), raising=False)


def test_comma_lists_are_split_and_blanks_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PREFIX + "NAMESPACES", "a, b,,c ")
    monkeypatch.setenv(PREFIX + "ALLOWED_IMAGES", "")
    got = load_settings()
    assert got.namespaces == ("a", "b", "c")
    assert got.allowed_images == ()


def test_decisions_get_what_the_installation_allows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PREFIX + "DEFAULT_IMAGE_SIM", "sim:1")
    monkeypatch.setenv(PREFIX + "ALLOWED_IMAGES", "reg/engine-*:*")
    monkeypatch.setenv(PREFIX + "ALLOWED_ENGINE_ARGS", "seed,dtype")
    monkeypatch.setenv(PREFIX + "ALLOW_SIM", "false")
    got = load_settings().decision_settings()
    assert got.default_image_sim == "sim:1"
    assert got.allowed_images == ("reg/engine-*:*",)
    assert got.allowed_engine_args == {"seed", "dtype"}
    assert got.allow_sim is False


def test_every_bad_value_is_named_with_its_variable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PREFIX + "METRICS_PORT", "99999")
    monkeypatch.setenv(PREFIX + "IMAGE_PULL_POLICY", "Sometimes")
    with pytest.raises(SettingsError) as caught:
        load_settings()
    assert PREFIX + "METRICS_PORT='99999'" in str(caught.value)
    assert PREFIX + "IMAGE_PULL_POLICY='Sometimes'" in str(caught.value)


def test_the_lease_holder_is_the_same_after_a_restart_in_the_same_pod_and_another_in_another() -> None:
    same = [Settings(pod_name="op-1", pod_uid="u1").identity() for _ in range(2)]
    assert same[0] == same[1]
    assert Settings(pod_name="op-1", pod_uid="u2").identity() != same[0]


def test_a_missing_token_file_stops_the_start_with_its_variable(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(PREFIX + "ADMIN_TOKEN_FILE", str(tmp_path / "absent"))
    assert main([]) == 2
    assert PREFIX + "ADMIN_TOKEN_FILE" in capsys.readouterr().err


def test_a_token_too_short_to_guard_anything_is_refused(tmp_path: Path) -> None:
    short = tmp_path / "token"
    short.write_bytes(b"secret\n")
    with pytest.raises(SettingsError, match="at least 16"):
        Settings(admin_token_file=short).master_token()


def test_the_token_is_read_without_the_line_end(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_bytes(b"0123456789abcdef0123\n")
    assert Settings(admin_token_file=file).master_token() == b"0123456789abcdef0123"


def test_help_names_every_variable(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--help"])
    assert caught.value.code == 0
    text = capsys.readouterr().out
    missing = [name for name in Settings.model_fields if PREFIX + name.upper() not in text]
    assert missing == []


def test_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["--version"])
    assert caught.value.code == 0
    assert capsys.readouterr().out.startswith("headwater-operator ")
