"""What a process has shown, for an operator that was away. Pure."""

import dataclasses

import pytest

from tidegate_spark.contract.control_protocol import ControlReport
from tidegate_spark.contract.protocol import MOST_WORKED, AgentReport, DriverState, QueryReport, Worked
from tidegate_spark.monitoring.worked import with_shown

BEGAN = 1000.0


def query(name: str, committed: int, until: float = 0.0, *, lag: int = -1, at_batch: bool = False) -> QueryReport:
    last = BEGAN + until if committed else 0.0
    return QueryReport(name, committed=committed, last_commit_time=last, lag_rows=lag, at_batch=at_batch)


def report(*queries: QueryReport) -> AgentReport:
    return AgentReport("orders", "0b1c", 6, DriverState.RUNNING, queries=queries, ready=True)


def shown(*queries: QueryReport, known: tuple[Worked, ...] = ()) -> tuple[Worked, ...]:
    return with_shown(known, report(*queries), BEGAN)


def worked(batches: int, until: float, since: float = BEGAN) -> Worked:
    return Worked(batches, since, BEGAN + until)


def test_a_query_that_waits_for_input_does_not_hold_up_what_another_one_shows() -> None:
    assert shown(query("a", 900, 3600), query("b", 0)) == (worked(900, 3600),)
    assert shown(query("a", 900, 3600), query("b", 2, 60, lag=0)) == (worked(900, 3600),)


def test_one_that_has_work_holds_it_up_and_what_was_shown_before_stays() -> None:
    before = shown(query("a", 900, 3600), query("b", 0))
    assert shown(query("a", 901, 3604), query("b", 0, at_batch=True), known=before) == before
    assert shown(query("a", 901, 3604), query("b", 2, 3603, lag=7), known=before) == (*before, worked(2, 3604))


def test_who_shows_most_batches_is_named_with_who_has_shown_some_until_later() -> None:
    assert shown(query("a", 900, 600), query("b", 40, 3600), query("c", 30, 900)) == (
        worked(900, 600),
        worked(40, 3600),
    )


def test_all_queries_that_have_work_show_as_many_as_the_slowest_of_them() -> None:
    assert shown(query("a", 900, 600, lag=5), query("b", 40, 590, at_batch=True)) == (worked(40, 600),)


SHOWS_NOTHING = {
    "it is not ready": dataclasses.replace(report(query("a", 9, 60)), ready=False),
    "it is paused": dataclasses.replace(report(query("a", 9, 60)), control=ControlReport(paused=True)),
    "one has failed": report(query("a", 9, 60), dataclasses.replace(query("b", 7, 50), active=False, failed=True)),
    "none has a batch": report(query("a", 0)),
    "none runs": report(dataclasses.replace(query("a", 9, 60), active=False)),
}


@pytest.mark.parametrize("now", SHOWS_NOTHING.values(), ids=SHOWS_NOTHING.keys())
def test_nothing_is_shown_while(now: AgentReport) -> None:
    known = (worked(3, 30),)
    assert with_shown(known, now, BEGAN) == known


def test_the_process_that_ran_for_longest_counts_beside_the_one_with_most_batches_and_the_latest() -> None:
    before = (worked(500, 7200), worked(100, 9000, since=BEGAN - 100))
    later = with_shown(before, report(query("a", 3, 9100)), BEGAN + 9000)
    assert later == (*before, worked(3, 9100, since=BEGAN + 9000))


def test_the_work_of_days_is_not_left_out_for_queries_that_had_more_batches_in_their_first_hour() -> None:
    early = [query(f"q{number}", 9000 - number, 600.0 + number) for number in range(9)]
    assert worked(40, 259_200) in shown(*early, query("last", 40, 259_200))
    again = report(*(query(f"q{number}", 30 - number, 259_300.0 + number) for number in range(9)))
    assert worked(40, 259_200) in with_shown(shown(query("last", 40, 259_200)), again, BEGAN + 259_290)


def test_there_is_never_more_of_it_than_there_is_room_for() -> None:
    queries = [query(f"q{number}", 100 - number, 60.0 + number) for number in range(50)]
    assert len(shown(*queries)) == MOST_WORKED
