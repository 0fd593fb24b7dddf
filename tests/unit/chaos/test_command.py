"""The exit code tells lost or wrong records from a run that proves nothing, and both from success."""

import signal
from dataclasses import replace
from typing import Any

import pytest

from tests.chaos.__main__ import BLIND, INCOMPLETE, OK, WRONG, exit_code, last_of, main, to_go_on
from tests.chaos.checker import Mistake, Verdict
from tests.chaos.faults import Fault, Kind
from tests.chaos.report import Outcome
from tests.chaos.run import Result


def result(kinds: tuple[str, ...] = (), problems: tuple[str, ...] = (), **wrong: Any) -> Result:
    mistakes = tuple(Mistake(kind, "a", 1, 0.0, 1) for kind in kinds)
    fields = {"wrong": (), "unexpected": (), "wrong_states": (), "repeats": (1.0,), **wrong}
    return Result((), Verdict(10, 11, mistakes, **fields), 60.0, problems)


@pytest.mark.parametrize(
    ("found", "plant", "code"),
    [
        (result(), "none", OK),
        (result(("lost",)), "none", WRONG),
        (result(("doubled",)), "none", WRONG),
        (result(wrong=((0, 1),)), "none", WRONG),
        (result(unexpected=((0, 1),)), "none", WRONG),
        (result(wrong_states=("a",)), "none", WRONG),
        (result(problems=("only 3 of 5 faults happened",)), "none", INCOMPLETE),
        (result(("lost",), problems=("a problem",)), "none", WRONG),
        (result(("lost",)), "loss", WRONG),
        (result(("doubled",)), "duplicate", WRONG),
        (result(), "loss", BLIND),
        (result(("lost",)), "duplicate", BLIND),
    ],
)
def test_the_exit_code(found: Result, plant: str, code: int) -> None:
    assert exit_code(found, plant) == code


def test_a_dry_run_prints_the_seed_and_the_order_and_starts_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--dry-run", "--faults", "3", "--seed", "7"]) == OK
    first, *faults = capsys.readouterr().out.splitlines()
    assert "seed 7, 3 faults" in first
    assert len(faults) == 3


def outcome(number: int, recovered: float | None) -> Outcome:
    fault = Fault(number, Kind.ETCD, inside=False, moment=0.0, orderly=True)
    return Outcome(fault, "etcd", 100.0, inside=False, since=99.0, recovered=recovered, gap=1.0)


def test_a_part_of_the_same_plan_is_run_when_another_run_was_asked_to_end(capsys: pytest.CaptureFixture[str]) -> None:
    ended = replace(result(), outcomes=(outcome(8, 101.0), outcome(9, 102.0)), signal=signal.SIGTERM)
    assert exit_code(ended, "none") == 128 + signal.SIGTERM
    assert to_go_on(7, 40, last_of(ended, 8) + 1, (Kind.ETCD,)) == (
        "to go on: make chaos N=40 ARGS='--seed 7 --first 10 --only etcd'"
    )
    main(["--dry-run", "--faults", "40", "--seed", "7", "--only", "etcd"])
    whole = capsys.readouterr().out.splitlines()
    main(["--dry-run", "--faults", "40", "--seed", "7", "--first", "10", "--only", "etcd"])
    assert capsys.readouterr().out.splitlines()[1:] == whole[10:]


def test_a_fault_that_was_not_survived_is_run_again() -> None:
    assert last_of(replace(result(), outcomes=(outcome(1, 101.0), outcome(2, None))), 1) == 1
    assert last_of(result(), 5) == 4
