"""Scripts that do not run here say at their first start why, and what to do. Real S3 server, real Spark."""

import pytest

from tests.compatibility.conftest import Run
from tests.compatibility.patterns import Outcome, Pattern
from tests.compatibility.selection import cases


@pytest.mark.parametrize("pattern", cases(Outcome.REFUSED))
def test_a_script_that_does_not_run_here_says_at_its_first_start_why_and_what_to_do(pattern: Pattern, run: Run) -> None:
    driver = run(pattern)
    driver.exit_code()
    assert driver.termination.reason == pattern.reason, (driver.termination, driver.output[-3000:])
    assert [text for text in pattern.says if text not in driver.termination.message] == [], driver.termination
