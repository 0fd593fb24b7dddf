"""A script ends where the interpreter would end it, and what it does with signals decides nothing."""

from pathlib import Path

import pytest

from tidegate_spark.contract.protocol import EXIT_APPLICATION, EXIT_OK, EXIT_STOPPED
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.waiting import wait_for

from .conftest import StartDriver

TOLD = "told, and the query is active: False"


def test_a_script_goes_on_with_its_threads_after_its_last_line_and_does_at_its_end_what_it_left_for_then(
    start_driver: StartDriver, tmp_path: Path
) -> None:
    source = tmp_path / "input"
    source.mkdir()
    (source / "a.txt").write_text("x\ny\nz\n")
    driver = start_driver("late", "late_threads.py", args=(str(source),))
    assert driver.exit_code() == EXIT_OK, driver.output[-3000:]
    assert driver.termination.reason is Reason.COMPLETED
    assert driver.termination.batches == {"a": 0, "b": 0}
    said = [line for line in driver.output.splitlines() if line.startswith(("the last", "from the pool", "called"))]
    assert (said[0], sorted(said[1:3]), said[3:]) == (
        "the last line",
        ["from the pool: a", "from the pool: b"],
        ["called at exit"],
    )


def test_a_script_that_stops_spark_at_its_end_has_ended_well(start_driver: StartDriver) -> None:
    driver = start_driver("finally", "stopped_in_finally.py")
    assert driver.exit_code() == EXIT_OK, driver.output[-3000:]
    assert driver.termination.reason is Reason.COMPLETED
    assert driver.termination.batches["main"] >= 0


@pytest.mark.parametrize(
    ("way", "source", "message"),
    [
        ("finished", "", ""),
        ("watchdog", "", "The application called os._exit(3)."),
        pytest.param("batch", "4", "os._exit(4) inside a batch", marks=pytest.mark.long),
        pytest.param("batch", "0", "os._exit(0) inside a batch", marks=pytest.mark.long),
        pytest.param("jvm", "0", "", marks=pytest.mark.long),
        pytest.param("jvm", "7", "The application called System.exit(7).", marks=pytest.mark.long),
    ],
)
def test_a_script_that_ends_the_process_at_once_leaves_its_queries_at_a_boundary_and_a_reason(
    start_driver: StartDriver, tmp_path: Path, way: str, source: str, message: str
) -> None:
    """A function of the query's own is inside its batch, which cannot end then, and is not waited for."""
    (tmp_path / "words").mkdir()
    (tmp_path / "words" / "a.txt").write_text("x\ny\n")
    driver = start_driver(
        "at-once", "at_once.py", args=(way, source or str(tmp_path / "words")), stop_grace_seconds=900
    )
    assert driver.exit_code() == (EXIT_APPLICATION if message else EXIT_OK), driver.output[-3000:]
    end = driver.termination
    assert end.reason is (Reason.APPLICATION_FAILED if message else Reason.COMPLETED)
    assert (end.boundary, end.batch_failed) == (way != "batch", way == "batch")
    assert end.batches["main"] >= 0
    assert message in end.message


def test_a_stop_that_comes_as_a_batch_fails_says_why_it_failed(start_driver: StartDriver, tmp_path: Path) -> None:
    driver = start_driver("fails", "fails_at_stop.py", args=(str(tmp_path / "fail"),), stop_grace_seconds=900)
    wait_for("the batch", lambda: driver.ended() or "inside the batch" in driver.output, 600, 0.2)
    driver.terminate()
    wait_for("the stop", lambda: driver.ended() or "stopping: Stopped" in driver.output, 600, 0.2)
    (tmp_path / "fail").touch()
    assert driver.exit_code() == EXIT_STOPPED, driver.output[-3000:]
    end = driver.termination
    assert (end.reason, end.boundary, end.batch_failed) == (Reason.STOPPED, False, True)
    assert "A batch of 'main' failed as the driver stopped (ValueError: the table is full)" in end.message


def test_a_stop_is_reported_of_a_script_whose_way_of_ending_is_at_once(start_driver: StartDriver) -> None:
    driver = start_driver("at-once", "at_once.py", args=("handler", "nowhere"))
    driver.await_batch(1)
    wait_for("the script's handler", lambda: driver.ended() or "the handler is set" in driver.output, 600, 0.2)
    driver.terminate()
    assert driver.exit_code() == EXIT_STOPPED, driver.output[-3000:]
    assert (driver.termination.reason, driver.termination.boundary) == (Reason.STOPPED, True)
    assert "the last line" in driver.output
    assert "is ended after" not in driver.output


def test_what_a_script_says_of_its_arguments_is_in_the_reason_for_its_end(start_driver: StartDriver) -> None:
    driver = start_driver("usage", "usage.py", args=("--topics", "orders"))
    assert driver.exit_code() == EXIT_APPLICATION
    assert driver.termination.message.endswith(
        "sys.exit(2). Its last words on standard error: usage: orders [-h] --topic TOPIC\n"
        "orders: error: the following arguments are required: --topic"
    ), driver.termination.message


@pytest.mark.parametrize(
    "way",
    [
        "asyncio",
        pytest.param("handler", marks=pytest.mark.long),
        pytest.param("ignored", marks=pytest.mark.long),
        pytest.param("blocked", marks=pytest.mark.long),
        pytest.param("sigwait", marks=pytest.mark.long),
        pytest.param("faulthandler", marks=pytest.mark.long),
    ],
)
def test_a_stop_is_at_a_batch_boundary_whatever_the_script_does_with_signals(
    start_driver: StartDriver, way: str
) -> None:
    """Its own handler is called when the batch has ended."""
    driver = start_driver("signals", "own_signals.py", args=(way,))
    driver.await_batch(1, "counts")
    wait_for("the script's handler", lambda: driver.ended() or "the handler is set" in driver.output, 600, 0.2)
    driver.terminate()
    assert driver.exit_code() == EXIT_STOPPED, driver.output[-3000:]
    assert driver.termination.reason is Reason.STOPPED
    assert driver.termination.boundary
    output = driver.output
    # What it prints tells that no query ran any more; the order of lines does not: stdout and stderr are two pipes.
    assert (TOLD in output) == (way in {"asyncio", "handler", "sigwait"})
    assert "is ended after" not in output or way not in {"asyncio", "handler", "sigwait"}


def test_a_script_with_the_usual_handler_ends_as_one_without(start_driver: StartDriver, tmp_path: Path) -> None:
    """The handler is not called once the script has come to its end: it would take the place of the last words."""
    endless = start_driver("endless", "usual_handler.py", args=("endless",))
    endless.await_batch(1)
    endless.await_batch(1, "other")
    endless.terminate()
    assert endless.exit_code() == EXIT_STOPPED, endless.output[-3000:]
    assert (endless.termination.reason, endless.termination.boundary) == (Reason.STOPPED, True)
    assert endless.termination.committed > 0
    endless.release()

    (tmp_path / "words").mkdir()
    (tmp_path / "words" / "a.txt").write_text("x\ny\n")
    finite = start_driver("finite", "usual_handler.py", args=(str(tmp_path / "words"),))
    assert finite.exit_code() == EXIT_OK, finite.output[-3000:]
    assert finite.termination.reason is Reason.COMPLETED
    assert finite.termination.batches == {"main": 0}
