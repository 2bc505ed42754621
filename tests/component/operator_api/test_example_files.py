"""The example pools are accepted as they stand in the documentation."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml
from e2e.kit.kubectl import Kubectl

from support.refusals import merged

EXAMPLES = sorted((Path(__file__).resolve().parents[3] / "docs/examples").glob("*.yaml"))


@pytest.mark.parametrize("example", EXAMPLES, ids=lambda path: path.stem)
def test_an_example_is_accepted_and_stored_as_written(example: Path, kubectl: Kubectl) -> None:
    kubectl.run("apply", "-f", str(example))
    wanted = yaml.safe_load(example.read_text(encoding="utf-8"))
    got = kubectl.get("ipool", wanted["metadata"]["name"])
    assert got is not None
    assert merged(got["spec"], wanted["spec"]) == got["spec"], "what was written must stay as it was"
