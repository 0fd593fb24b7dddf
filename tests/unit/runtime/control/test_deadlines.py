"""Work that never ends is waited for no longer than it may take, and there are never more threads than places."""

import sys
import threading
from collections.abc import Iterator

import pytest

from tidegate_spark.control.messages import deadlines as module
from tidegate_spark.control.messages.deadlines import MOST_AT_WORK, Attempt, Deadlines, OverdueError
from tidegate_spark.control.worker.shared_lock import SharedLock
from tidegate_testing.fake_operations import at_work, await_work
from tidegate_testing.waiting import wait_for

SHORT = 0.03
"""Seconds that pass where nothing that is waited for can happen."""


@pytest.fixture
def free() -> Iterator[threading.Event]:
    """Set, it lets everything end that hangs."""
    made = threading.Event()
    yield made
    made.set()


def test_what_is_done_in_time_is_returned_or_raised() -> None:
    deadlines = Deadlines(60)
    assert deadlines.run("it", lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        deadlines.run("it", lambda: 1 / 0)
    with pytest.raises(SystemExit):
        deadlines.run("it", lambda: sys.exit(3))


def test_what_hangs_is_given_up_with_a_line_in_the_log(free: threading.Event, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(OverdueError, match=r"^it took longer than 0\.03 s \(spec\.control\.messageTimeoutSeconds\)$"):
        Deadlines(SHORT).run("it", free.wait)
    assert "it took longer than" in caplog.text
    free.set()
    await_work()


def test_what_takes_long_is_in_the_log_once_and_before_it_is_given_up(
    free: threading.Event, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(module, "SLOW_SECONDS", 0.0)
    slow = Deadlines(60, most=1).attempt("it", lambda _: free.wait())
    assert not slow.wait(0)
    assert not slow.wait(0)
    said = "control: it takes longer than 0 s and is given up after 60 s (spec.control.messageTimeoutSeconds)"
    assert [record.getMessage() for record in caplog.records] == [said]
    free.set()
    assert slow.wait()
    assert slow.result() is True
    assert len(caplog.records) == 1


def test_what_waits_long_for_a_place_says_for_what(
    free: threading.Event, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    deadlines = Deadlines(60, most=1)
    assert not deadlines.attempt("it", lambda _: free.wait()).wait(0)
    monkeypatch.setattr(module, "SLOW_SECONDS", 0.0)
    assert not deadlines.attempt("another", lambda _: 7).wait(0)
    assert "another takes longer than 0 s" in caplog.text
    assert caplog.text.rstrip().endswith("it waits for earlier ones that were given up and still run")


def test_what_is_done_at_once_says_nothing(caplog: pytest.LogCaptureFixture) -> None:
    assert Deadlines(60).run("it", lambda: 7) == 7
    assert caplog.records == []


def test_there_are_no_more_threads_than_places_however_much_hangs(free: threading.Event) -> None:
    deadlines = Deadlines(SHORT)
    for _ in range(MOST_AT_WORK):
        with pytest.raises(OverdueError):
            deadlines.run("it", free.wait)
    for _ in range(3):
        with pytest.raises(OverdueError, match="earlier ones that were given up still run"):
            deadlines.run("another", lambda: 7)
    assert at_work() == MOST_AT_WORK
    free.set()
    await_work()
    assert deadlines.run("another", lambda: 7) == 7


def test_one_waits_for_a_place_within_its_own_time(free: threading.Event) -> None:
    deadlines = Deadlines(60, most=1)
    first = deadlines.attempt("it", lambda _: free.wait())
    assert not first.wait(0)
    second = deadlines.attempt("another", lambda _: 7)
    assert not second.wait(0)
    free.set()
    assert second.wait()
    assert second.result() == 7


def test_a_failing_work_is_repeated_until_it_succeeds_or_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "FIRST_PAUSE_SECONDS", 0.001)
    tries: list[int] = []

    def third_time() -> int:
        tries.append(len(tries))
        if len(tries) < 2:
            raise ConnectionError("not yet")
        return len(tries)

    attempt: Attempt[int] = Deadlines(60).attempt("it", lambda it: it.repeated(third_time))
    assert attempt.wait()
    assert attempt.result() == 2

    def never() -> int:
        raise ConnectionError("no answer")

    given_up: Attempt[int] = Deadlines(SHORT).attempt("it", lambda it: it.repeated(never))
    assert given_up.wait()
    with pytest.raises(OverdueError, match=r"ConnectionError: no answer$"):
        given_up.result()
    await_work()


def test_a_lock_may_be_entered_by_work_for_its_holder_and_no_longer(free: threading.Event) -> None:
    lock, entered = SharedLock(), []

    def enter() -> None:
        with lock.held(), lock.held():
            entered.append(threading.current_thread().name)

    def late() -> None:
        free.wait()
        enter()

    with lock.held():
        Deadlines(60).run("it", enter)
        given_up = Deadlines(SHORT).attempt("late", lambda _: late())
        assert given_up.wait()
    assert entered == ["control-work"]
    with lock.held():
        free.set()
        # It is no longer for who held the lock, so that it has to wait for this holder.
        stranger = threading.Thread(target=enter, name="stranger")
        stranger.start()
        stranger.join(SHORT)
        assert entered == ["control-work"]
    stranger.join()
    wait_for("both", lambda: sorted(entered) == ["control-work", "control-work", "stranger"], timeout=60)
