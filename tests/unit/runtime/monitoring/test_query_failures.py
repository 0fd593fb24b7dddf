"""How a script's own end is put down to the query that failed before."""

import dataclasses
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql.streaming.query import StreamingQuery

from tidegate_spark.contract.reasons import Reason
from tidegate_spark.driver import driver as driver_module
from tidegate_spark.driver.driver import Driver
from tidegate_spark.monitoring import watch
from tidegate_spark.process.outcome import Outcome
from tidegate_spark.queries.entries import Entry

EXITED = Outcome(Reason.APPLICATION_FAILED, "The application called sys.exit(1).", "SystemExit")
EXITED_AT_ONCE = Outcome(Reason.APPLICATION_FAILED, "The application called os._exit(1).", "SystemExit")
AWAY = Outcome(Reason.STORAGE_UNAVAILABLE, "Query 'orders': A store does not answer.")
OWN = Outcome(Reason.APPLICATION_FAILED, "Query 'orders': no column 'a'")


def both(failure: Outcome, outcome: Outcome) -> Outcome:
    return dataclasses.replace(failure, message=f"{failure.message} {outcome.message}")


def queries(monkeypatch: pytest.MonkeyPatch, end: Outcome | None) -> Any:
    monkeypatch.setattr(watch, "outcome_of", lambda entry: end)
    monkeypatch.setattr(watch, "has_unwound", lambda query: True)
    ended = Entry("orders", "main.py:1", named=True, query=cast(StreamingQuery, SimpleNamespace(isActive=False)))
    return SimpleNamespace(not_ended_well=lambda: [ended], note_ended_well=lambda entry: None, elsewhere=tuple)


@pytest.mark.parametrize(
    ("outcome", "end", "is_end_of"),
    [
        (EXITED, AWAY, both(AWAY, EXITED)),
        (EXITED, OWN, EXITED),
        (EXITED, None, EXITED),
        (Outcome(Reason.BROKER_UNAVAILABLE, "no broker"), AWAY, Outcome(Reason.BROKER_UNAVAILABLE, "no broker")),
    ],
)
def test_a_script_that_exits_when_the_storage_failed_its_query_ends_by_the_storage(
    monkeypatch: pytest.MonkeyPatch, outcome: Outcome, end: Outcome | None, is_end_of: Outcome
) -> None:
    assert watch.cause_of(outcome, queries(monkeypatch, end)) == is_end_of


@pytest.mark.parametrize(
    ("code", "end", "is_end_of"), [(1, AWAY, both(AWAY, EXITED_AT_ONCE)), (1, None, EXITED_AT_ONCE), (0, OWN, OWN)]
)
def test_so_does_one_that_ends_the_process_at_once(
    monkeypatch: pytest.MonkeyPatch, code: int, end: Outcome | None, is_end_of: Outcome
) -> None:
    asked: list[Outcome] = []
    event = SimpleNamespace(set=lambda: None)
    ending = SimpleNamespace(
        script_returned=event, script_ended=event, request=asked.append, await_end=lambda: None, lost=("", "")
    )
    driver: Any = SimpleNamespace(_ending=ending, _queries=queries(monkeypatch, end), _judge=lambda outcome: outcome)
    with pytest.raises(AssertionError):
        Driver._end_at_once(driver, code)
    assert asked == [is_end_of]


def test_a_jvm_that_has_gone_changes_nothing_of_a_scripts_end(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(entry: object) -> None:
        raise ConnectionRefusedError

    asked = queries(monkeypatch, None)
    monkeypatch.setattr(watch, "outcome_of", gone)
    assert watch.cause_of(EXITED, asked) == EXITED


class Asked:
    """The end, which somebody asks for after some waits."""

    def __init__(self, waits: int) -> None:
        self.waits = waits

    def is_set(self) -> bool:
        return self.waits == 0

    def wait(self, seconds: float) -> None:
        self.waits -= 1


@pytest.mark.parametrize(("running", "said"), [(("clicks", "orders"), 1), ((), 0)])
def test_a_driver_that_goes_on_after_its_script_says_once_for_which_queries(
    monkeypatch: pytest.MonkeyPatch, running: tuple[str, ...], said: int
) -> None:
    lines: list[str] = []
    monkeypatch.setattr(driver_module.log, "info", lambda form, *values: lines.append(form % values))
    monkeypatch.setattr(driver_module, "waiting", lambda: lambda: False)
    monkeypatch.setattr(watch, "first_failure", lambda queries: None)
    entries = [Entry(name, "main.py:1", named=True) for name in running]
    driver: Any = SimpleNamespace(
        _ending=SimpleNamespace(requested=Asked(6)),
        _queries=SimpleNamespace(active=lambda: entries, starting=not running, elsewhere=tuple),
    )
    assert Driver._await_rest(driver, watch.COMPLETED) == watch.COMPLETED
    assert len(lines) == said
    assert all("its queries run: 'clicks', 'orders'" in line for line in lines)
