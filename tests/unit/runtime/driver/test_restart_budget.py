"""When an application's failures are too many. Uses files in a temporary directory."""

from pathlib import Path

import pytest

from tidegate_spark.contract.protocol import AgentReport, DriverState, QueryReport, RestartSettings, Worked
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.driver.restart_budget import ACCOUNT, MARK, WORKED, RestartBudget
from tidegate_spark.process.outcome import Outcome

SETTINGS = RestartSettings(max_failures=2, window_seconds=100, healthy_seconds=50)
FAILED = Outcome(Reason.APPLICATION_FAILED, "no such column", "AnalysisException")


class Pod:
    """Processes one after the other on one directory; two clocks, of which people set only the first."""

    def __init__(self, directory: Path, settings: RestartSettings = SETTINGS) -> None:
        self.directory, self.settings, self.now, self.set_by = directory, settings, 1000.0, 0.0

    def start(self) -> tuple[RestartBudget, Outcome | None]:
        account = RestartBudget(str(self.directory), self.settings, lambda: self.now + self.set_by, lambda: self.now)
        return account, account.begin()

    def run(self, outcome: Outcome | None, seconds: float = 1.0, committed: bool = False) -> Outcome | None:
        """Run one process; None as its outcome is a kill. Return how it ends, or why it refuses to start."""
        account, refusal = self.start()
        self.now += seconds
        return refusal or (account.end(outcome, committed) if outcome else None)


@pytest.fixture
def pod(tmp_path: Path) -> Pod:
    return Pod(tmp_path / "work")


def test_as_many_failures_as_allowed_are_answered_by_another_start_and_one_more_is_not(pod: Pod) -> None:
    assert [pod.run(FAILED), pod.run(FAILED)] == [FAILED, FAILED]
    last = pod.run(FAILED)
    assert last is not None
    assert (last.reason, last.exception) == (Reason.RESTART_BUDGET_EXHAUSTED, "AnalysisException")
    assert "3 failures of the application within 100 s" in last.message
    assert "AnalysisException: no such column" in last.message


def test_failures_before_the_window_do_not_count(pod: Pod) -> None:
    for _ in range(10):
        assert pod.run(FAILED, seconds=60) == FAILED


def test_a_healthy_process_clears_what_was_before_it(pod: Pod) -> None:
    pod.run(FAILED)
    pod.run(FAILED)
    assert pod.run(FAILED, seconds=50, committed=True) == FAILED
    assert pod.run(FAILED) == FAILED


def test_a_healthy_process_clears_what_was_before_it_though_it_is_killed(pod: Pod) -> None:
    pod.run(FAILED)
    pod.run(FAILED)
    account, _ = pod.start()
    assert len(account.check(committed=True)) == 2
    pod.now += 49
    assert len(account.check(committed=True)) == 2
    pod.now += 1
    assert len(account.check(committed=False)) == 2
    assert account.check(committed=True) == ()
    after, refusal = pod.start()
    assert (refusal, after.times) == (None, (pod.now,))


def test_a_look_after_the_end_does_not_forget_the_failure_that_was_the_end(pod: Pod) -> None:
    account, _ = pod.start()
    pod.now += 60
    account.end(FAILED, committed=True)
    assert account.check(committed=True) == (pod.now,)


@pytest.mark.parametrize("jump", [90.0, -90.0])
def test_a_clock_that_is_set_makes_no_process_healthy_and_keeps_none_from_it(pod: Pod, jump: float) -> None:
    pod.settings = RestartSettings(max_failures=9, window_seconds=1000, healthy_seconds=50)
    pod.run(FAILED)
    account, _ = pod.start()
    pod.set_by = jump
    pod.now += 49
    account.check(committed=True)
    pod.set_by = 0.0
    assert len(account.times) == 1
    pod.set_by = jump
    pod.now += 1
    assert account.check(committed=True) == ()


def test_a_long_run_without_a_batch_is_not_healthy(pod: Pod) -> None:
    pod.run(FAILED)
    pod.run(FAILED)
    last = pod.run(FAILED, seconds=50, committed=False)
    assert last is not None
    assert last.reason is Reason.RESTART_BUDGET_EXHAUSTED


def test_a_process_that_was_killed_counts_when_the_next_one_starts(pod: Pod) -> None:
    assert [pod.run(None), pod.run(None), pod.run(None)] == [None, None, None]
    _, refusal = pod.start()
    assert refusal is not None
    assert refusal.reason is Reason.RESTART_BUDGET_EXHAUSTED
    assert "without a termination message" in refusal.message


@pytest.mark.parametrize("reason", [Reason.STOPPED, Reason.BROKER_UNAVAILABLE, Reason.STORAGE_UNAVAILABLE])
def test_stops_and_faults_of_the_surroundings_never_count(pod: Pod, reason: Reason) -> None:
    outcome = Outcome(reason, "because")
    assert [pod.run(outcome) for _ in range(20)] == [outcome] * 20
    assert pod.start()[0].times == ()


def test_a_stall_counts(pod: Pod) -> None:
    pod.run(Outcome(Reason.STALLED, "no task finished"))
    assert len(pod.start()[0].times) == 1


def test_failures_in_a_pod_that_was_lost_count_in_the_next(tmp_path: Path) -> None:
    settings = RestartSettings(max_failures=2, window_seconds=100, failures=(950.0, 990.0, 1.0))
    last = Pod(tmp_path, settings).run(FAILED)
    assert last is not None
    assert last.reason is Reason.RESTART_BUDGET_EXHAUSTED


def test_they_are_taken_over_once_and_not_at_each_start(tmp_path: Path) -> None:
    pod = Pod(tmp_path, RestartSettings(max_failures=5, window_seconds=100, failures=(990.0,)))
    pod.run(FAILED)
    assert len(pod.start()[0].times) == 2


def test_no_failure_is_allowed_if_none_is_allowed(tmp_path: Path) -> None:
    last = Pod(tmp_path, RestartSettings(max_failures=0)).run(FAILED)
    assert last is not None
    assert "1 failure of" in last.message


def test_a_damaged_account_starts_a_new_one(pod: Pod) -> None:
    pod.run(FAILED)
    (pod.directory / ACCOUNT).write_text("{")
    assert pod.run(FAILED) == FAILED


def test_an_account_that_cannot_be_written_keeps_nobody_from_running(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    pod = Pod(tmp_path / "file" / "work")
    assert pod.run(FAILED) == FAILED


def test_an_orderly_end_leaves_no_mark(pod: Pod) -> None:
    pod.run(FAILED)
    assert not (pod.directory / MARK).exists()


# --- what the processes have shown ------------------------------------------------------------------------------------


def run_for(pod: Pod, seconds: int, batches: int) -> RestartBudget:
    """Start a process that commits, and leave it running."""
    account, _ = pod.start()

    def report() -> AgentReport:
        query = QueryReport("main", committed=batches, last_commit_time=pod.now)
        return AgentReport("app", "0b1c", 4, DriverState.RUNNING, queries=(query,), ready=True)

    for _ in range(seconds):
        pod.now += 1
        account.note(report)
    return account


def test_what_a_process_has_shown_is_known_to_the_next_one_though_it_was_killed(pod: Pod) -> None:
    assert run_for(pod, 3600, 900).worked == (Worked(900, 1000.0, 4600.0),)
    assert run_for(pod, 5, 1).worked == (Worked(900, 1000.0, 4600.0),)
    assert pod.start()[0].worked == (Worked(900, 1000.0, 4600.0),)


def test_it_is_known_when_the_budget_is_exhausted_before_anything_runs(pod: Pod) -> None:
    run_for(pod, 3600, 900)
    assert [pod.run(None), pod.run(None)] == [None, None]
    account, refusal = pod.start()
    assert refusal is not None
    assert account.worked == (Worked(900, 1000.0, 4600.0),)


@pytest.mark.parametrize("text", ["", "{", "[3]", '[["a", 1, 2]]', "7", "[[1, 2]]"])
def test_a_note_that_cannot_be_read_shows_nothing(pod: Pod, text: str) -> None:
    pod.directory.mkdir()
    (pod.directory / WORKED).write_text(text)
    assert pod.start()[0].worked == ()
