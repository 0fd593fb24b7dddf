"""Which steps a run has, for what it is asked."""

from pathlib import Path

import pytest

from tests.gate.tiers import CHECK, E2E, EVERYTHING, GATE, INTEGRATION, UNIT, Request, Step, steps, workers

ALL = (CHECK, UNIT, INTEGRATION, E2E)


def asked(**differences: object) -> dict[str, Step]:
    values: dict[str, object] = {
        "tiers": ALL,
        "selection": GATE,
        "workers": 2,
        "reports": Path("/reports"),
        "files": {},
    }
    return {step.name: step for step in steps(Request(**(values | differences)))}  # type: ignore[arg-type]


def test_a_step_comes_after_those_that_it_waits_for() -> None:
    order = list(asked())
    assert all(
        order.index(first) < order.index(step.name)
        for step in asked().values()
        for first in (*step.after, *step.follows)
    )


def test_tiers_with_spark_run_one_after_the_other_and_those_that_are_not_asked_for_are_not_waited_for() -> None:
    made = asked()
    assert made[INTEGRATION].after == (UNIT, "tools")
    assert (made[E2E].after, made[E2E].follows) == ((UNIT, "tools", "images"), (INTEGRATION,))
    alone = asked(tiers=(E2E,))[E2E]
    assert (alone.after, alone.follows) == (("tools", "images"), ())


def test_tests_without_servers_wait_for_nothing_that_is_built() -> None:
    assert list(asked(tiers=(CHECK, UNIT))) == [CHECK, UNIT]
    assert asked()[UNIT].after == asked()[CHECK].after == ()


def test_a_cluster_that_is_given_has_room_for_one_worker_and_brings_its_images() -> None:
    made = asked(tiers=(E2E,), foreign_cluster=True)
    assert list(made) == ["tools", E2E]
    assert "--numprocesses" not in made[E2E].command


def test_the_gate_leaves_out_what_is_long_and_everything_leaves_out_nothing() -> None:
    assert "not long" in asked()[UNIT].command
    assert "-m" not in asked(selection=EVERYTHING)[UNIT].command[3:]


def test_a_slice_runs_its_files_and_no_tier_of_which_it_has_none() -> None:
    made = asked(tiers=(UNIT, E2E), files={UNIT: ["tests/unit/test_a.py"], E2E: ()})
    assert "tests/unit/test_a.py" in made[UNIT].command
    assert "tests/unit" not in made[UNIT].command
    assert E2E not in made


@pytest.mark.parametrize("tier", [UNIT, INTEGRATION, E2E])
def test_each_tier_writes_a_report(tier: str) -> None:
    assert f"--junitxml=/reports/{tier}.xml" in asked()[tier].command


def test_a_number_of_workers_is_read_and_anything_else_is_refused_with_the_remedy() -> None:
    assert workers("4") == 4
    for wrong in ("abc", "0", "-1", "1.5"):
        with pytest.raises(ValueError, match=f"WORKERS={wrong}: use the number of processes"):
            workers(wrong)
