"""An unknown vLLM is refused at start, by name."""

from __future__ import annotations

from importlib import metadata

import pytest

from headwater_engine.backends.vllm import private
from headwater_engine.errors import LoadFailed


@pytest.mark.parametrize("version", ["0.32.0", "0.32.4", "0.32.0+cpu"])
def test_the_known_version_passes(version: str) -> None:
    private.check_version(version)


@pytest.mark.parametrize("version", ["0.31.2", "0.33.0", "1.0.0", "0.320.0"])
def test_another_version_is_refused_with_both_versions_named(version: str) -> None:
    with pytest.raises(LoadFailed, match=rf"vLLM {version} is installed.*only vLLM 0\.32\.x"):
        private.check_version(version)


def test_every_missing_name_is_listed() -> None:
    names = [("json", "loads"), ("json", "burns"), ("json.decoder", "JSONDecoder.decode"), ("no_such_module", "thing")]

    with pytest.raises(LoadFailed) as refused:
        private.check_names("0.32.9", names)

    assert str(refused.value) == "vLLM 0.32.9 lacks what this Headwater uses: json.burns, no_such_module.thing"


def test_an_image_without_vllm_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", missing)

    with pytest.raises(LoadFailed, match="vLLM is not installed"):
        private.installed_version()
