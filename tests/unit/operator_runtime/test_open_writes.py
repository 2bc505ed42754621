"""Writes without an answer stay open; a create's name is used again as long as it may come through."""

from __future__ import annotations

import asyncio

import pytest

from headwater_operator import errors
from headwater_operator.adapters.expectations import REUSE_SECONDS, Expectations, Write

CREATE = Write("ReplicaGroup", "n", "p-abc-x", creates=True)


@pytest.mark.parametrize("error", [errors.Refused("no"), errors.AlreadyExists("there"), errors.Stale("old"), None])
def test_a_write_with_a_definite_answer_is_settled(error: errors.OperatorError | None) -> None:
    expectations: Expectations[str] = Expectations()
    try:
        with expectations.writing("p", CREATE):
            if error is not None:
                raise error
    except errors.OperatorError:
        pass
    assert expectations.open("p") == []


@pytest.mark.parametrize("error", [errors.OutcomeUnknown("silence"), asyncio.CancelledError()])
def test_a_write_without_an_answer_stays_open(error: BaseException) -> None:
    expectations: Expectations[str] = Expectations()
    with pytest.raises(type(error)), expectations.writing("p", CREATE):
        raise error
    assert expectations.open("p") == [CREATE]
    assert expectations.open("other") == []


def test_a_create_that_was_looked_up_and_not_found_lends_its_name_to_the_next_one_for_a_while() -> None:
    expectations: Expectations[str] = Expectations()
    with pytest.raises(errors.OutcomeUnknown), expectations.writing("p", CREATE):
        raise errors.OutcomeUnknown("silence")
    expectations.absent("p", CREATE, now=100.0)
    assert expectations.open("p") == []
    assert expectations.tried_names("p", now=100.0 + REUSE_SECONDS) == ["p-abc-x"]
    assert expectations.tried_names("p", now=101.0 + REUSE_SECONDS) == []


def test_a_change_that_was_looked_up_and_not_found_lends_no_name() -> None:
    expectations: Expectations[str] = Expectations()
    expectations.absent("p", Write("Pod", "n", "p-abc-x-0"), now=0.0)
    assert expectations.tried_names("p", now=0.0) == []
