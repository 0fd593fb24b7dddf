"""The steps of a run: what waits for what, what a failure ends, and what is printed. Starts short processes."""

import asyncio
import sys
from dataclasses import replace

from tests.gate.run import INTERRUPTED, NOT_RUN, Ended, run
from tests.gate.tiers import Step


def python(code: str, name: str, after: tuple[str, ...] = (), *, ends_the_run: bool = True) -> Step:
    return Step(name, (sys.executable, "-c", code), after, ends_the_run=ends_the_run)


def outcome(*steps: Step) -> tuple[list[Ended], list[str]]:
    lines: list[str] = []
    return asyncio.run(run(steps, lines.append)), lines


def test_each_line_carries_the_name_of_its_step() -> None:
    _, lines = outcome(python("print('one'); print('two')", "unit"), python("print('three')", "e2e", ("unit",)))
    assert lines == ["unit | one", "unit | two", "e2e  | three"]


def test_a_step_waits_for_those_before_it_and_does_not_run_after_one_that_failed() -> None:
    ended, lines = outcome(
        python("raise SystemExit(3)", "tools", ends_the_run=False), python("print('run')", "integration", ("tools",))
    )
    assert [each.code for each in ended] == [3, NOT_RUN]
    assert lines == []


def test_a_step_that_only_follows_another_runs_after_its_failure() -> None:
    fails = python("print('over'); raise SystemExit(1)", "integration", ends_the_run=False)
    ended, lines = outcome(fails, replace(python("print('run')", "e2e"), follows=("integration",)))
    assert [each.code for each in ended] == [1, 0]
    assert lines == ["integration | over", "e2e         | run"]


def test_steps_that_need_nothing_of_each_other_run_at_once(tmp_path: object) -> None:
    # Each waits for what the other makes: one after the other they would never end.
    code = "import pathlib, time\npathlib.Path('{0}/{1}').touch()\n"
    code += "while not pathlib.Path('{0}/{2}').exists(): time.sleep(0.01)"
    ended, _ = outcome(
        python(code.format(tmp_path, "a", "b"), "integration"), python(code.format(tmp_path, "b", "a"), "e2e")
    )
    assert [each.code for each in ended] == [0, 0]


def test_a_failure_that_ends_the_run_interrupts_the_others_and_lets_them_clean_up(tmp_path: object) -> None:
    ready = f"{tmp_path}/ready"
    waits = (
        # As the gate does at its own start: what a shell runs in the background inherits that it is ignored.
        "import signal\nsignal.signal(signal.SIGINT, signal.default_int_handler)\n"
        f"import pathlib, time\ntry:\n    pathlib.Path('{ready}').touch()\n    time.sleep(600)\n"
        "except KeyboardInterrupt:\n    print('cleaned up')\n"
    )
    fails = f"import pathlib, time\nwhile not pathlib.Path('{ready}').exists(): time.sleep(0.01)\nraise SystemExit(1)"
    ended, lines = outcome(
        python(waits, "e2e"), python(fails, "unit"), python("print('never')", "integration", ("unit",))
    )
    assert [each.code for each in ended] == [INTERRUPTED, 1, NOT_RUN]
    assert lines == ["e2e         | cleaned up"]


def test_a_failure_of_a_last_tier_lets_the_others_come_to_their_end() -> None:
    ended, lines = outcome(
        python("raise SystemExit(1)", "integration", ends_the_run=False), python("print('whole')", "e2e")
    )
    assert [each.code for each in ended] == [1, 0]
    assert lines == ["e2e         | whole"]
