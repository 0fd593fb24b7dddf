"""Scripts that run for ever: started, killed, started again, stopped, resumed. Real S3 server, real Spark."""

import pytest

from tests.compatibility.acts import await_text, await_work, stop
from tests.compatibility.conftest import Run
from tests.compatibility.patterns import Outcome, Pattern
from tests.compatibility.selection import cases


@pytest.mark.parametrize("pattern", cases(Outcome.ENDLESS))
def test_a_script_that_runs_for_ever_goes_on_after_a_kill_and_after_a_stop(pattern: Pattern, run: Run) -> None:
    first = run(pattern)
    last = await_work(first, pattern, {})
    await_text(first, pattern)
    first.kill()
    second = run(pattern, epoch=2)
    await_work(second, pattern, last)
    last = stop(second, pattern)
    third = run(pattern, epoch=3, version=2)
    if pattern.next_reason:
        third.exit_code()
        assert third.termination.reason == pattern.next_reason, third.termination
        assert [text for text in pattern.says if text not in third.termination.message] == [], third.termination
    else:
        await_work(third, pattern, last)
