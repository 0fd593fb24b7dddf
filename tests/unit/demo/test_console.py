"""What a person reads while the demo runs."""

import io

import pytest
from rich.console import Console

from devcluster.demo.console import Narrator, StepFailedError
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
    text = " ".join(spoken(decision).split())
    assert text == "San Francisco +7 h 11 Mar 05:00 50.3 °F, wanted 55 (-2 +1.5) too cold: 0"


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
    told = "Running (ready), epoch 2, restarts 1, executors 1 of 2"
    assert headline({"status": status}) == told


def test_a_step_that_fails_says_what_how_and_what_to_do() -> None:
    teller, output = narrator()
    with pytest.raises(StepFailedError) as caught, teller.step("Kafka broker", "make kafka-up"):
        raise OSError("port [9092] is taken")
    teller.failure(caught.value)
    assert "FAILED: Kafka broker" in output.getvalue()
    assert "port [9092] is taken" in output.getvalue()
    assert "what to do: make kafka-up" in output.getvalue()


def test_a_failure_inside_a_step_keeps_its_own_words() -> None:
    teller, _ = narrator()
    with pytest.raises(StepFailedError, match="the inner one"), teller.step("outer", "outer remedy"):
        raise StepFailedError("the inner one", "detail", "inner remedy")


def test_only_the_end_of_a_long_failure_is_shown() -> None:
    teller, output = narrator()
    teller.failure(StepFailedError("x", "\n".join(f"line {n}" for n in range(1000)), "y"))
    assert "line 999" in output.getvalue()
    assert "line 9\n" not in output.getvalue()


def test_without_a_terminal_progress_is_a_line_at_each_quarter() -> None:
    teller, output = narrator()
    with teller.bar("readings", 1000) as progress:
        for done in range(0, 1001, 10):
            progress(done)
    assert [line.split("readings: ")[1] for line in output.getvalue().splitlines()] == [
        "250 of 1,000",
        "500 of 1,000",
        "750 of 1,000",
        "1,000 of 1,000",
    ]
