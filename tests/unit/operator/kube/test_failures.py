"""What the API server's answers mean. Pure."""

import json

import pytest

from tidegate.kube.failures import (
    AlreadyExists,
    Conflict,
    Failure,
    Forbidden,
    Invalid,
    NotFound,
    Throttled,
    Unavailable,
    failure_from_response,
)


def answer(code: int, reason: str = "", retry_after: float = 0.0) -> Failure:
    status = {"kind": "Status", "message": "m", "reason": reason, "details": {"retryAfterSeconds": retry_after}}
    return failure_from_response(code, json.dumps(status).encode(), {})


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        (409, "Conflict", Conflict("m")),
        (409, "AlreadyExists", AlreadyExists("m")),
        (404, "NotFound", NotFound("m")),
        (422, "Invalid", Invalid("m")),
        (400, "BadRequest", Invalid("m")),
        (403, "Forbidden", Forbidden("m")),
        (401, "Unauthorized", Forbidden("m")),
        (500, "InternalError", Unavailable("m", internal_error=True)),
        (500, "", Unavailable("m")),  # such as "etcdserver: leader changed", which nobody has to correct
        (503, "ServiceUnavailable", Unavailable("m")),
    ],
)
def test_each_answer_has_its_meaning(code: int, reason: str, expected: Failure) -> None:
    assert answer(code, reason) == expected


NO_VALUE = 'Pod "orders-driver" is invalid: spec.containers[1].image: Required value'


@pytest.mark.parametrize(
    ("code", "reason", "message", "in_itself"),
    [
        (400, "BadRequest", 'Pod in version "v1" cannot be handled as a Pod: unknown field "spec.x"', True),
        (422, "Invalid", NO_VALUE, True),
        (400, "BadRequest", 'admission webhook "pods.example.com" does not support dry run', False),
        (422, "Invalid", f'admission webhook "pods.example.com" denied the request: {NO_VALUE}', False),
        (
            422,
            "Invalid",
            "pods \"orders-driver\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'b' denied request: a "
            "limit is invalid: none",
            False,
        ),
    ],
)
def test_only_what_the_server_itself_finds_wrong_with_an_object_is_wrong_in_itself(
    code: int, reason: str, message: str, in_itself: bool
) -> None:
    status = {"kind": "Status", "message": message, "reason": reason}
    assert failure_from_response(code, json.dumps(status).encode(), {}) == Invalid(message, in_itself)


BY_CONTAINER = 'pods "orders-driver" is forbidden: maximum memory usage per Container is 100Mi, but limit is 2Gi'


@pytest.mark.parametrize(
    ("message", "limit_range"),
    [
        (BY_CONTAINER, True),
        ('pods "a" is forbidden: [minimum cpu usage per Pod is 1, but request is 500m, maximum memory usage ', True),
        ('pods "a" is forbidden: cpu max limit to request ratio per Container is 2, but provided ratio is 4', True),
        ('pods "a" is forbidden: exceeded quota: q, requested: limits.memory=2Gi, used: 1Gi, limited: 2Gi', False),
        ('pods "a" is forbidden: failed quota: q: must specify limits.cpu for: driver', False),
        (f'admission webhook "limits.example.com" denied the request: {BY_CONTAINER}', False),
        ("pods \"a\" is forbidden: ValidatingAdmissionPolicy 'maximum memory usage per Pod is ' denied request", False),
        ('pods "a" is forbidden: violates PodSecurity "restricted:latest"', False),
    ],
)
def test_a_limit_range_is_known_by_its_words_from_what_may_change_its_mind(message: str, limit_range: bool) -> None:
    status = {"kind": "Status", "message": message, "reason": "Forbidden"}
    assert failure_from_response(403, json.dumps(status).encode(), {}) == Forbidden(message, limit_range=limit_range)


@pytest.mark.parametrize(
    ("details", "terminating"),
    [
        ({"causes": [{"reason": "FieldValueInvalid"}, {"reason": "NamespaceTerminating", "field": "x"}]}, True),
        ({"causes": [{"reason": "FieldValueInvalid", "message": "NamespaceTerminating"}]}, False),
        ({"name": "orders-purge"}, False),
    ],
)
def test_a_namespace_that_is_being_deleted_is_known_by_its_cause(details: dict[str, object], terminating: bool) -> None:
    status = {"kind": "Status", "message": "m", "reason": "Forbidden", "details": details}
    assert failure_from_response(403, json.dumps(status).encode(), {}) == Forbidden("m", terminating)


def test_a_request_to_come_back_later_says_when() -> None:
    assert answer(429, "TooManyRequests", 3) == Throttled("m", 3.0)
    assert failure_from_response(503, b"{}", {"Retry-After": "7"}) == Throttled("HTTP 503", 7.0)


def test_an_answer_that_is_not_from_the_api_server_is_shown() -> None:
    assert failure_from_response(502, b"<html>bad gateway", {}) == Unavailable("<html>bad gateway")


def test_a_date_to_come_back_at_is_no_error() -> None:
    found = failure_from_response(429, b"{}", {"Retry-After": "Wed, 21 Oct 2026 07:28:00 GMT"})
    assert found == Throttled("HTTP 429", 1.0)
