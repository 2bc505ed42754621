"""Every row of the table of bad specs, applied to a real API server: refused, in exactly these words."""

from __future__ import annotations

import json

import pytest
from e2e.kit.kubectl import Kubectl

from support.refusals import Refusal, load, messages

ROWS = load()
BY_MECHANISM = {row.mechanism: row for row in ROWS if row.before is None}


@pytest.fixture(scope="module")
def shared(cluster: Kubectl) -> Kubectl:
    """One namespace for all rows: a refused object leaves nothing behind."""
    cluster.run("create", "namespace", "refusals")
    return cluster.in_namespace("refusals")


@pytest.mark.parametrize("row", ROWS, ids=str)
def test_it_is_refused_at_apply_with_field_and_remedy(row: Refusal, shared: Kubectl) -> None:
    if row.before is not None:
        shared.apply(row.stored())
    done = shared.attempt("apply", "-f", "-", stdin=json.dumps(row.applied()))
    if row.before is not None:
        shared.run("delete", row.kind, row.name)

    assert done.returncode != 0, done.stdout
    assert messages(done.stderr) == row.want


@pytest.mark.parametrize("row", BY_MECHANISM.values(), ids=lambda row: row.mechanism)
def test_server_side_apply_is_refused_alike(row: Refusal, shared: Kubectl) -> None:
    done = shared.attempt("apply", "--server-side", "-f", "-", stdin=json.dumps(row.applied()))

    assert done.returncode != 0, done.stdout
    field = row.want[0].split(": ")[0].removeprefix('unknown field "spec').removesuffix('"')
    assert field in done.stderr


def test_refused_objects_leave_nothing_behind(shared: Kubectl) -> None:
    assert shared.list("ipool") == []
    assert shared.list("rgroup") == []
