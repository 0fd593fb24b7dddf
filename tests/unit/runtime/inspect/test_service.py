"""One look at a time, for a bounded time, in a thread of its own; what Spark told before is answered at once."""

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest

from tidegate_spark.inspect import service
from tidegate_spark.inspect.errors import (
    BusyError,
    InspectionError,
    NotThereError,
    NotYetError,
    TooSlowError,
    UnavailableError,
)
from tidegate_spark.inspect.last_progress import LastProgress
from tidegate_spark.inspect.questions import Operators, Rows, Sources, Windows
from tidegate_spark.inspect.service import Inspection, InspectionService
from tidegate_testing.waiting import wait_for

ROWS = Rows("main", 0)


@dataclass
class Looking:
    """Answers when it is let."""

    go: threading.Event = field(default_factory=threading.Event)
    begun: threading.Event = field(default_factory=threading.Event)
    threads: set[str] = field(default_factory=set)
    error: Exception | None = None
    operator: str = "dedupe"

    def answer(self, question: Inspection) -> dict[str, Any]:
        self.threads.add(f"{threading.current_thread().name} {threading.get_ident()}")
        self.begun.set()
        self.go.wait(30)
        if self.error is not None:
            raise self.error
        return {"query": question.query, "operators": [{"operator": 0, "operatorName": self.operator, "state": []}]}


@pytest.fixture
def looking() -> Iterator[Looking]:
    made = Looking()
    yield made
    made.go.set()


def service_of(reader: Looking | None, *names: str) -> InspectionService:
    last = LastProgress()
    reported = {"batchId": 3, "stateOperators": [{"operatorName": "dedupe", "numRowsTotal": 5}], "sources": []}
    last.note("main", reported)
    return InspectionService(last, lambda: names or None, lambda: reader)


def in_background(asked: InspectionService) -> threading.Thread:
    thread = threading.Thread(target=asked.ask, args=(ROWS,), daemon=True)
    thread.start()
    return thread


def test_a_second_look_is_told_that_there_is_one_and_what_spark_told_is_answered_meanwhile(looking: Looking) -> None:
    asked = service_of(looking, "main", "other")
    first = in_background(asked)
    assert looking.begun.wait(30)
    with pytest.raises(BusyError, match=r"another inspection is under way.*at most 20.*'main'") as error:
        asked.ask(Windows("other"))
    assert (error.value.status, error.value.retry_after_seconds) == (429, 5)
    assert asked.ask(Operators())["queries"][0]["operators"][0]["rows"] == 5
    assert [each["query"] for each in asked.ask(Sources())["queries"]] == ["main", "other"]
    looking.go.set()
    first.join(30)
    assert asked.ask(Windows("other"))["query"] == "other"


def test_all_looks_are_of_one_thread_because_sparks_job_groups_belong_to_threads(looking: Looking) -> None:
    looking.go.set()
    asked = service_of(looking, "main")
    for _ in range(3):
        asked.ask(ROWS)
    (thread,) = looking.threads
    assert thread.startswith("inside ")


def test_who_asks_does_not_wait_for_longer_than_they_said(looking: Looking, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(service, "GRACE_SECONDS", -0.9)
    asked = service_of(looking, "main")
    with pytest.raises(
        TooSlowError, match=r"no answer after 1 s.*--seconds of the command, seconds= of the request; at most 60"
    ):
        asked.ask(Rows("main", 0, seconds=1))
    # It is still under way, and its place is not given to another one.
    with pytest.raises(BusyError):
        asked.ask(ROWS)
    looking.go.set()
    wait_for("the look's end", lambda: _answers(asked), 30, 0.01)


def _answers(asked: InspectionService) -> bool:
    try:
        return bool(asked.ask(Rows("main", 0, seconds=20)))
    except BusyError:
        return False


@pytest.mark.parametrize("error", [NotYetError("nothing yet"), RuntimeError("broken"), KeyError("x")])
def test_a_look_that_fails_leaves_the_place_to_the_next(looking: Looking, error: Exception) -> None:
    looking.go.set()
    looking.error = error
    asked = service_of(looking, "main")
    for _ in range(2):
        with pytest.raises(InspectionError) as raised:
            asked.ask(ROWS)
        assert raised.value.status == (409 if isinstance(error, NotYetError) else 500)
    looking.error = None
    assert asked.ask(ROWS)["query"] == "main"


def test_nothing_is_looked_at_while_spark_does_not_run(looking: Looking) -> None:
    for question in (Operators(), Sources(), ROWS):
        with pytest.raises(UnavailableError, match=r"starting or ending.*/v1/progress") as error:
            service_of(looking).ask(question)
        assert error.value.status == 503
    with pytest.raises(UnavailableError):
        service_of(None, "main").ask(ROWS)


def test_a_query_that_is_not_there_is_told_with_those_that_are(looking: Looking) -> None:
    for question in (Operators("nobody"), Sources("nobody"), Windows("nobody"), Rows("nobody", 0)):
        with pytest.raises(NotThereError, match="no query 'nobody'; there are: main, other"):
            service_of(looking, "main", "other").ask(question)
    assert not looking.begun.is_set()


def test_figures_of_another_operator_are_not_taken_for_those_of_this_one(looking: Looking) -> None:
    looking.go.set()
    looking.operator = "stateStoreSave"
    (operator,) = service_of(looking, "main").ask(Operators("main"))["operators"]
    assert operator == {"operator": 0, "operatorName": "stateStoreSave", "state": []}


def test_what_operators_keep_is_told_with_their_figures(looking: Looking) -> None:
    looking.go.set()
    answer = service_of(looking, "main").ask(Operators("main"))
    (operator,) = answer["operators"]
    assert (operator["rows"], operator["state"], answer["figuresOfBatch"]) == (5, [], 3)
