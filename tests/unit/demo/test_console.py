"""What a person reads while the demo runs."""

import io
import re

import pytest
from rich.console import Console

from devcluster.demo.console import Narrator, StepFailedError
from devcluster.demo.oracle import expected_decisions
from devcluster.demo.scenario import Scenario
from devcluster.demo.watch import headline, spoken


def narrator() -> tuple[Narrator, io.StringIO]:
    output = io.StringIO()
    return Narrator(Console(file=output, width=200, highlight=False)), output


def test_a_decision_is_readable() -> None:
    decision = {
        "id": "san-francisco+7@2010-03-11T05:00:00Z",
        "sensor": "san-francisco+7",
        "time": "2010-03-11T05:00:00Z",
        "decision": 0,
        "temperature": 50.3,
        "desired": 55.0,
        "upDelta": 1.5,
        "downDelta": 2.0,
    }
    assert spoken(decision) == "San Francisco   +7  11 Mar 05:00  50.3 °F, wanted 55 (-2 +1.5) too cold"


def test_a_new_resource_has_a_headline_before_it_has_a_status() -> None:
    assert headline({}).startswith("Pending (not seen yet)")


def test_the_headline_names_phase_reason_epoch_and_executors() -> None:
    status = {
        "phase": "Running",
        "epoch": 2,
        "conditions": [{"type": "Ready", "status": "True", "reason": "Running"}],
        "driver": {"restarts": 1},
        "executors": {"wanted": 2, "running": 1},
    }
    reported = "Running (ready), epoch 2, restarts 1, executors 1 of 2"
    assert headline({"status": status}) == reported


def on_a_terminal(*lines: str) -> list[str]:
    """What a terminal of 80 columns shows of lines that are said."""
    output = io.StringIO()
    reporter = Narrator(Console(file=output, width=80, force_terminal=True, no_color=True, highlight=False))
    for line in lines:
        reporter.say(line)
    return [re.sub(r"\x1b\[[0-9;]*m", "", line).rstrip() for line in output.getvalue().splitlines()]


def test_a_long_line_wraps_below_itself_on_a_terminal() -> None:
    reported = (
        "  temperature-control: Starting (not ready yet: DriverStarting), epoch 1, restarts 0, executors 0 of 2 [x]"
    )
    assert on_a_terminal(reported) == [
        " 0:00    temperature-control: Starting (not ready yet: DriverStarting), epoch 1,",
        "         restarts 0, executors 0 of 2 [x]",
    ]


def test_every_decision_of_the_demo_is_one_line_of_a_terminal() -> None:
    decisions = expected_decisions(Scenario(readings=12_000).records()).values()
    longest = max((f"  {spoken(decision)}" for decision in decisions), key=len)
    assert len(on_a_terminal(longest)) == 1


def test_into_a_file_every_thing_is_one_line_without_control_characters() -> None:
    output = io.StringIO()
    reporter = Narrator(Console(file=output, width=20, highlight=False, soft_wrap=True))
    with reporter.step("a step whose title is longer than the file is wide", "remedy"):
        reporter.say("  something of the same length as that", "cyan")
    assert [line[7:].partition(" in ")[0] for line in output.getvalue().splitlines()] == [
        "a step whose title is longer than the file is wide …",
        "  something of the same length as that",
        "  done",
    ]


def test_a_bar_can_be_shown_where_a_wait_was_shown_before() -> None:
    output = io.StringIO()
    reporter = Narrator(Console(file=output, width=80, force_terminal=True, highlight=False))
    with reporter.step("outer", "remedy", moving=False):
        with reporter.waiting("first"):
            reporter.say("one")
        with reporter.bar("readings", 10) as progress:
            progress(10)
    assert "10/10" in output.getvalue()


def test_a_step_that_fails_says_what_how_and_what_to_do() -> None:
    reporter, output = narrator()
    with pytest.raises(StepFailedError) as caught, reporter.step("Kafka broker", "make kafka-up"):
        raise OSError("port [9092] is taken")
    reporter.failure(caught.value)
    assert "FAILED: Kafka broker" in output.getvalue()
    assert "port [9092] is taken" in output.getvalue()
    assert "what to do: make kafka-up" in output.getvalue()


def test_a_failure_inside_a_step_keeps_its_own_words() -> None:
    reporter, _ = narrator()
    with pytest.raises(StepFailedError, match="the inner one"), reporter.step("outer", "outer remedy"):
        raise StepFailedError("the inner one", "detail", "inner remedy")


def test_only_the_end_of_a_long_failure_is_shown() -> None:
    reporter, output = narrator()
    reporter.failure(StepFailedError("x", "\n".join(f"line {n}" for n in range(1000)), "y"))
    assert "line 999" in output.getvalue()
    assert "line 9\n" not in output.getvalue()


def test_without_a_terminal_progress_is_a_line_at_each_quarter() -> None:
    reporter, output = narrator()
    with reporter.bar("readings", 1000) as progress:
        for done in range(0, 1001, 10):
            progress(done)
    assert [line.split("readings: ")[1] for line in output.getvalue().splitlines()] == [
        "250 of 1,000",
        "500 of 1,000",
        "750 of 1,000",
        "1,000 of 1,000",
    ]
