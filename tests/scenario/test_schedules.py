"""Two thousand schedules of misfortune: nothing that may never happen does, and everything comes to rest."""

import os
import subprocess
import sys
from pathlib import Path
from typing import get_args

from tests.scenario.coverage import EFFECTS
from tests.scenario.schedule import run
from tests.scenario.telling import quiet
from tidegate.decide.actions import Action
from tidegate.decide.control.actions import ControlAction

ROOT = Path(__file__).parents[2]
SCHEDULES = 2000


def test_every_schedule_comes_to_rest_and_breaks_no_rule() -> None:
    told = subprocess.run(
        [sys.executable, "-m", "tests.scenario", "--count", str(SCHEDULES), "--keep-going"],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(("operator", "spark_app", "tests/support", "."))},
        capture_output=True,
        text=True,
        check=False,
    )
    print(told.stdout)
    assert told.returncode == 0, told.stdout + told.stderr


def test_a_schedule_runs_the_same_way_each_time() -> None:
    quiet()

    def course() -> list[tuple[float, str, str]]:
        seen: list[tuple[float, str, str]] = []
        run(7, lambda at, who, text: seen.append((at, who, text)))
        return seen

    assert course() == course()


def test_the_table_of_effects_names_every_action() -> None:
    actions = (*get_args(Action), *get_args(ControlAction))
    assert set(EFFECTS) == {action.__name__ for action in actions}
