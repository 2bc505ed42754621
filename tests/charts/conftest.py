"""Brings helm before the first test, whose own time limit a cold build would exceed."""

from __future__ import annotations

from pathlib import Path

import pytest

from support import helm

HERE = Path(__file__).parent


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    if not config.option.collectonly and any(HERE in item.path.parents for item in items):
        helm.helm_binary()
