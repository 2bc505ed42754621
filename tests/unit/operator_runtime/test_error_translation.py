"""Status answers of the API server as our errors: whose fault, and may it have happened."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headwater_operator import errors
from headwater_operator.adapters.rest import _plural, translate


def status(code: int, reason: str = "", message: str = "m", **details: Any) -> str:
    return json.dumps({"kind": "Status", "code": code, "reason": reason, "message": message, "details": details})


@pytest.mark.parametrize(
    ("code", "text", "writing", "want"),
    [
        (404, status(404, "NotFound"), True, errors.NotFound),
        (410, status(410, "Expired"), False, errors.WatchExpired),
        (409, status(409, "AlreadyExists"), True, errors.AlreadyExists),
        (409, status(409, "Conflict"), True, errors.Stale),
        (422, status(422, "Invalid", causes=[{"field": "metadata.uid"}]), True, errors.Stale),
        (422, status(422, "Invalid", causes=[{"field": "spec.role"}]), True, errors.Refused),
        (403, status(403, "Forbidden", "exceeded quota"), True, errors.Refused),
        (400, status(400, "BadRequest"), True, errors.Refused),
        (500, status(500, "", "failed to create typed patch object (...)"), True, errors.Refused),
        (500, status(500, "InternalError"), True, errors.OutcomeUnknown),
        (504, status(504, "Timeout"), True, errors.OutcomeUnknown),
        (503, "upstream is gone", False, errors.Failed),
        (401, status(401, "Unauthorized"), True, errors.Failed),
        (429, status(429, "TooManyRequests"), True, errors.Failed),
    ],
)
def test_each_answer_has_one_error(code: int, text: str, writing: bool, want: type[Exception]) -> None:
    assert type(translate(code, text, writing=writing)) is want


def test_the_servers_wish_to_wait_is_kept_as_data() -> None:
    got = translate(429, status(429, "TooManyRequests", retryAfterSeconds=7), writing=True)
    assert isinstance(got, errors.Failed)
    assert got.retry_after_seconds == 7


def test_the_servers_own_sentence_is_the_message() -> None:
    got = translate(403, status(403, "Forbidden", "exceeded quota: gpus, requested: 8"), writing=True)
    assert str(got) == "exceeded quota: gpus, requested: 8"


@pytest.mark.parametrize(
    ("path", "want"),
    [
        ("/api/v1/namespaces/n/pods", "pods"),
        ("/api/v1/namespaces/n/pods/x", "pods"),
        ("/api/v1/nodes", "nodes"),
        ("/apis/headwater.dev/v1alpha1/inferencepools", "inferencepools"),
        ("/apis/headwater.dev/v1alpha1/namespaces/n/replicagroups/x/status", "replicagroups/status"),
    ],
)
def test_metric_labels_name_resources_and_never_objects(path: str, want: str) -> None:
    assert _plural(path) == want
