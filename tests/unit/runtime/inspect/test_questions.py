"""Which question a path and its parameters are. Pure."""

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate_spark.inspect.errors import BadQuestionError, NotThereError
from tidegate_spark.inspect.questions import Operators, Rows, Sources, Windows, is_question, question_of


@pytest.mark.parametrize(
    ("path", "question"),
    [
        ("/v1/state", Operators()),
        ("/v1/state/main", Operators("main")),
        ("/v1/state/main?seconds=3", Operators("main", 3)),
        ("/v1/state/a%2Fb%20c/0", Rows("a/b c", 0)),
        (
            "/v1/state/main/2?name=by+kind&key=%7B%22a%22%3A1%7D&filter=value.n%3E%3D1&limit=7&seconds=60",
            Rows("main", 2, "by kind", '{"a":1}', "value.n>=1", 7, False, 60),
        ),
        ("/v1/state/main/2?count=true", Rows("main", 2, count=True)),
        ("/v1/sources", Sources()),
        ("/v1/sources/main", Sources("main")),
        ("/v1/windows/main", Windows("main")),
        ("/v1/windows/main/1?which=all&rows=0&limit=5", Windows("main", 1, which="all", rows=0, limit=5)),
    ],
)
def test_a_path_is_a_question(path: str, question: object) -> None:
    assert is_question(path)
    assert question_of(path) == question


@pytest.mark.parametrize("path", ["//v1/state/main/0", "///v1/windows/main?seconds=60"])
def test_a_path_with_more_slashes_than_one_before_it_is_a_question_as_it_is_to_the_handler(path: str) -> None:
    """As what keeps its threads apart from those of orders and reports."""
    assert is_question(path)


@pytest.mark.parametrize(
    "path", ["/v1/progress", "/v1/stat", "/v2/state", "/", "", "state", "/v1", "//[/v1/state", "http://[/v1/state"]
)
def test_other_paths_are_none(path: str) -> None:
    assert not is_question(path)


@pytest.mark.parametrize(
    "path", ["/v1/windows", "/v1/state/", "/v1/state/main/0/x", "/v1/sources/main/0", "/v1/state//0"]
)
def test_a_path_that_is_not_there_is_told_with_those_that_are(path: str) -> None:
    with pytest.raises(NotThereError, match=r"/v1/windows/<query>/<operator>"):
        question_of(path)


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/v1/state/main/x", "<operator>: is a number.*'x'"),
        ("/v1/state/main/0?limit=0", "limit: is a number from 1 to 1000, not '0'"),
        ("/v1/state/main/0?limit=ten", "limit: .*'ten'"),
        ("/v1/state/main/0?limit=9999999999999999999", "limit: "),
        ("/v1/state/main/0?seconds=61", "seconds: is a number from 1 to 60"),
        ("/v1/state/main/0?count=yes", "count: is one of true, false"),
        ("/v1/windows/main?which=half", "which: is one of open, closed, all"),
        (
            "/v1/state/main/0?colour=red",
            "colour: is no parameter of /v1/state/main/0; it has count, filter, key, limit",
        ),
        ("/v1/state?limit=3", "limit: is no parameter of /v1/state; it has no parameters"),
        (
            "/v1/state/main?key=to",
            r"key: .* it has seconds; rows of an operator's state are at /v1/state/main/<operator>",
        ),
        ("/v1/state/main?colour=red", "colour: is no parameter of /v1/state/main; it has seconds$"),
        ("/v1/state/main/0?key=a&key=b", "key: is given twice"),
        ("/v1/state/main/0?filter=", "filter: is empty"),
        ("/v1/state/main/0?key=" + "a" * 9000, "the question: has 9021 characters"),
    ],
)
def test_what_can_not_be_meant_is_told_with_the_parameter_and_the_remedy(path: str, message: str) -> None:
    with pytest.raises(BadQuestionError, match=message) as error:
        question_of(path)
    assert error.value.status == 400


@given(st.text(max_size=60))
def test_whatever_is_asked_is_answered_with_a_question_or_a_reason(text: str) -> None:
    for path in ("/v1/state/main/0?" + text, "/v1/" + text):
        with contextlib.suppress(BadQuestionError, NotThereError):
            question_of(path)
