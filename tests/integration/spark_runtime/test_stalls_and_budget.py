"""What counts as a failure, how many are answered by another start, and what a stall is: the real driver."""

from pathlib import Path

import pytest

from tidegate_spark.contract.protocol import EXIT_APPLICATION, EXIT_OK, RestartSettings
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.driver_process import ObjectStore
from tidegate_testing.waiting import wait_for

from .conftest import StartDriver, driver_logs


def test_a_batch_in_which_nothing_moves_fails_the_liveness_probe_and_ends_as_a_stall(start_driver: StartDriver) -> None:
    settings = RestartSettings(stall_timeout_seconds=6)
    driver = start_driver("stuck", "stuck.py", restart=settings, stop_grace_seconds=12)
    driver.await_batch(0)
    wait_for("the liveness probe to fail", lambda: driver.status("/healthz")[0] == 503, 300)
    assert "'main'" in driver.status("/healthz")[1]
    driver.terminate()
    assert driver.exit_code() == EXIT_APPLICATION, driver.output[-3000:]
    ended = driver.termination
    assert ended.reason is Reason.STALLED
    assert not ended.boundary
    assert len(ended.failures) == 1


@pytest.mark.long
def test_a_long_batch_whose_tasks_finish_is_not_stalled(start_driver: StartDriver) -> None:
    # Far longer than a task takes, also on a busy machine; shorter than a batch, whose tasks sleep for 50 s in all.
    driver = start_driver("long", "long_batch.py", restart=RestartSettings(stall_timeout_seconds=35))
    seen: set[int] = set()

    def first_batch_is_over() -> bool:
        seen.add(driver.status("/healthz")[0] if driver.report() else 200)
        return driver.batch() >= 0

    wait_for("a long batch", first_batch_is_over, 600, 0.5)
    assert seen == {200}


@pytest.mark.long
def test_a_script_that_raises_is_named_after_its_queries_stopped_and_ends_for_good_if_it_does_once_too_often(
    start_driver: StartDriver, object_store: ObjectStore, tmp_path: Path
) -> None:
    settings = RestartSettings(max_failures=1)
    pod = {"TIDEGATE_WORK_DIRECTORY": str(tmp_path / "pod")}
    first = start_driver("raising", "raising.py", restart=settings, variables=pod)
    assert first.exit_code() == EXIT_APPLICATION, first.output[-3000:]
    assert first.termination.reason is Reason.APPLICATION_FAILED
    assert first.termination.exception == "LookupError"
    script = first.config.main.removeprefix("local://")
    assert first.termination.message == f"the table of limits is empty ({script}, line 10)"
    assert first.termination.boundary
    (log,) = driver_logs(object_store, first.config.storage)
    assert "LookupError: the table of limits is empty" in log
    second = start_driver("raising", "raising.py", restart=settings, variables=pod)
    assert second.exit_code() == EXIT_OK, second.output[-3000:]
    ended = second.termination
    assert ended.reason is Reason.RESTART_BUDGET_EXHAUSTED
    assert ended.exception == first.termination.exception
    assert first.termination.message in ended.message
    assert len(ended.failures) == 2


def test_a_driver_that_was_killed_counts_at_its_next_start(start_driver: StartDriver, tmp_path: Path) -> None:
    settings = RestartSettings(max_failures=0)
    pod = {"TIDEGATE_WORK_DIRECTORY": str(tmp_path / "pod")}
    first = start_driver("killed", "counting.py", restart=settings, variables=pod)
    first.await_batch(0)
    first.kill()
    second = start_driver("killed", "counting.py", restart=settings, variables=pod)
    assert second.exit_code() == EXIT_OK, second.output[-3000:]
    assert second.termination.reason is Reason.RESTART_BUDGET_EXHAUSTED
    assert "without a termination message" in second.termination.message
