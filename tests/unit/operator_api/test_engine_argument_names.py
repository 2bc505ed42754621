"""Engine arguments that no allow list may permit."""

from __future__ import annotations

import pytest

from headwater_operator.api.extra_args import RESERVED, RUNS_CODE, cel_no_prefix_of, folded


@pytest.mark.parametrize(
    "name", ["trust-remote-code", "trust_remote_code", "--trust-remote-code", "trustRemoteCode", "TRUST_REMOTE_CODE"]
)
def test_every_spelling_folds_to_one(name: str) -> None:
    assert folded(name) == "trustremotecode"


def test_the_rule_compares_folded_names() -> None:
    rule = cel_no_prefix_of(("worker-extension-cls",))

    assert "'workerextensioncls'" in rule
    assert "startsWith(k.lowerAscii().replace('-', '').replace('_', ''))" in rule


def test_the_two_lists_share_no_name() -> None:
    assert not set(RUNS_CODE) & set(RESERVED)


@pytest.mark.parametrize("useful", ["max-num-seqs", "dtype", "enforce-eager", "kv-cache-dtype", "quantization", "seed"])
def test_arguments_that_allow_lists_are_for_are_no_prefix_of_a_refused_one(useful: str) -> None:
    refused = [spelled for name in RUNS_CODE + RESERVED for spelled in (folded(name), f"no{folded(name)}")]
    assert [spelled for spelled in refused if spelled.startswith(folded(useful))] == []
