"""Scripts that come to their end: killed in the middle, run again, and once more. Real S3 server, real Spark."""

import pytest

from tests.compatibility.acts import queries_of
from tests.compatibility.conftest import Run
from tests.compatibility.patterns import Outcome, Pattern
from tests.compatibility.selection import cases
from tidegate_spark.contract.protocol import EXIT_OK
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.driver_process import DriverProcess
from tidegate_testing.waiting import wait_for


def await_middle(driver: DriverProcess, pattern: Pattern) -> None:
    def is_there() -> bool:
        # Some have so little to do that they may be through it before anybody looks.
        if driver.ended() or pattern.middle:
            return driver.ended() or pattern.middle in driver.output
        return any(query.batch_id >= 0 for query in queries_of(driver).values())

    wait_for("the middle of the script", is_there, 600, 0.05)


def assert_completes(driver: DriverProcess, pattern: Pattern) -> None:
    assert driver.exit_code() == EXIT_OK, driver.output[-3000:]
    assert driver.termination.reason is Reason.COMPLETED, driver.termination
    assert [text for text in pattern.prints if text not in driver.output] == [], driver.output[-3000:]


@pytest.mark.parametrize("pattern", cases(Outcome.FINITE))
def test_a_script_with_an_end_is_completed_after_a_kill_in_its_middle_and_when_it_is_run_again(
    pattern: Pattern, run: Run
) -> None:
    first = run(pattern)
    await_middle(first, pattern)
    if first.ended():
        assert_completes(first, pattern)
    first.kill()
    assert_completes(run(pattern, epoch=2), pattern)
    assert_completes(run(pattern, epoch=3), pattern)
