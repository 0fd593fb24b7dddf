"""When an attack was withstood, when not, and when it was none."""

import dataclasses
import json

import pytest

from tests.attack.__main__ import NOT_HELD, OK, PROVES_NOTHING, exit_code
from tests.attack.report import Result, Taken, results, spread, summary, table
from tests.attack.run import reported

GOOD = Taken("s", True, batch=7, seconds=1.0, cleaned=True, equal=True)
FAILED = Taken("s", False, message="too fast")


def result(*changed: Taken, of: int = 40, **fields: object) -> Result:
    """One of so many, good but for some."""
    taken = (*changed, *[GOOD] * (of - len(changed)))
    return dataclasses.replace(Result(taken, 100, 60.0, of), **fields)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("found", "code"),
    [
        (result(), OK),
        (result(FAILED, FAILED), OK),
        (result(FAILED, FAILED, FAILED), NOT_HELD),
        (result(dataclasses.replace(GOOD, equal=False)), NOT_HELD),
        (result(dataclasses.replace(GOOD, resumed=False), to_resume=1), NOT_HELD),
        (result(dataclasses.replace(GOOD, resumed=True), to_resume=1), OK),
        (result(to_resume=1), PROVES_NOTHING),
        (result(*[dataclasses.replace(GOOD, cleaned=False)] * 5), PROVES_NOTHING),
        (result(wanted=80), NOT_HELD),
        (result(problems=("the driver ended",)), PROVES_NOTHING),
    ],
)
def test_the_exit_code(found: Result, code: int) -> None:
    assert exit_code(found) == code


def test_what_is_wrong_with_a_snapshot_is_in_the_table() -> None:
    shown = table(result(FAILED, dataclasses.replace(GOOD, equal=False, resumed=False, difference="3 keys")))
    assert "s: not ready: too fast" in shown
    assert "s: at batch 7, its state is not what the input says: 3 keys" in shown
    assert "s: resumed at batch 8, it goes on wrongly" in shown
    assert "39 of 40" in shown


def test_the_last_line_is_json_with_all_figures() -> None:
    found = json.loads(json.dumps(summary(result(FAILED), {"snapshots": 40})))
    assert found["attack"]["ready_ratio"] == 0.975
    assert (found["held"], found["parameters"]["snapshots"]) == (True, 40)


def test_a_run_in_which_nothing_became_ready_has_figures() -> None:
    assert results(result(FAILED, of=1))["p99_seconds"] == 0


def test_those_that_are_resumed_are_spread_over_the_run() -> None:
    taken = [dataclasses.replace(GOOD, id=str(number)) for number in range(10)]
    assert [each.id for each in spread(taken, 3)] == ["0", "4", "9"]
    assert [len(spread(taken, number)) for number in (0, 1, 10, 11)] == [0, 1, 10, 10]


def test_a_line_that_is_half_written_is_not_read() -> None:
    assert reported("noise\ntold [3, [[1, 2, 3]]]\ntold [4, [[1") == {3: [(1, 2, 3)]}
