"""The exit code tells lost or wrong records from a run that proves nothing, and both from success."""

from typing import Any

import pytest

from tests.chaos.__main__ import BLIND, INCOMPLETE, OK, WRONG, exit_code, main
from tests.chaos.checker import Mistake, Verdict
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
