"""What each act of a pattern waits for and asserts of a driver."""

from tests.compatibility.patterns import Pattern
from tidegate_spark.contract.protocol import EXIT_STOPPED, QueryReport
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.driver_process import DriverProcess
from tidegate_testing.waiting import wait_for


def queries_of(driver: DriverProcess) -> dict[str, QueryReport]:
    """Return the queries that the agent reports."""
    report = driver.report()
    return {each.name: each for each in report.queries} if report else {}


def notices_of(driver: DriverProcess) -> set[str]:
    """Return the reasons of the events that there are so far."""
    report = driver.report()
    return {str(notice.reason) for notice in report.notices} if report else set()


def await_work(driver: DriverProcess, pattern: Pattern, after: dict[str, int]) -> dict[str, int]:
    """Wait until every query has committed a batch above a known one, is ready, and went on where it was.

    Returns:
        the last batch of each.
    """
    for query in pattern.queries:
        driver.await_batch(0 if query in pattern.fresh else after.get(query, -1) + 1, query)
    wait_for("readiness", lambda: is_ready(driver), 300, 0.2)
    seen = queries_of(driver)
    for query in pattern.queries:
        before = -1 if query in pattern.fresh else after.get(query, -1)
        # Of all batches from the first one on, this process has run those that were left.
        assert seen[query].committed <= seen[query].batch_id - before, (query, seen[query], before)
    return {query: seen[query].batch_id for query in pattern.queries}


def is_ready(driver: DriverProcess) -> bool:
    """Return whether a driver is ready; one that has ended ends the wait."""
    driver.must_run()
    return bool(driver.status("/readyz")[0] == 200)


def await_text(driver: DriverProcess, pattern: Pattern) -> None:
    """Wait for the events of a first start, and for what the script prints."""

    def reported() -> bool:
        driver.must_run()
        assert set(pattern.events) <= notices_of(driver), notices_of(driver)
        assert [text for text in pattern.prints if text not in driver.output] == []
        return True

    wait_for("events and output", reported, 300, 0.2)


def stop(driver: DriverProcess, pattern: Pattern) -> dict[str, int]:
    """Ask for a stop; return the last batch of each query, at whose boundary it was."""
    driver.terminate()
    assert driver.exit_code() == EXIT_STOPPED, driver.output[-3000:]
    end = driver.termination
    assert (end.reason, end.boundary) == (Reason.STOPPED, True), end
    return {query: end.batches[query] for query in pattern.queries}
