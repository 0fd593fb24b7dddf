"""A run of many schedules that is asked to end says how far it has got, so that the next one goes on there."""

import signal

import pytest

from tests.scenario import __main__ as command
from tests.scenario.deadly_work import be_interrupted
from tests.scenario.ranges import Progress
from tests.scenario.schedule import Result
from tests.scenario.workers import BLOCK, Lost, run_all
from tidegate_testing.asked_to_end import Stop


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_run_that_gets_a_signal_ends_its_block_and_says_where_to_go_on(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def ask_in_second_block(seeds: range, name: str) -> list[Result]:
        if seeds.start == 7 + BLOCK:
            signal.raise_signal(number)
        return [Result(seed) for seed in seeds]

    before = signal.getsignal(number)
    monkeypatch.setattr(command, "run_block", ask_in_second_block)
    assert command.main(["--first", "7", "--count", str(4 * BLOCK), "--processes", "1"]) == 128 + number
    next_one = 7 + 2 * BLOCK
    reported = capsys.readouterr().out
    assert f"held: seeds 7 to {next_one - 1}\n" in reported
    assert f"make scenario N={2 * BLOCK} ARGS='--first {next_one}'\n" in reported
    assert signal.getsignal(number) is before


def test_a_run_that_is_asked_to_end_runs_what_is_under_way_and_begins_nothing_more() -> None:
    stop = Stop()
    news = run_all(range(8 * BLOCK), 2, be_interrupted, stop)
    done = [next(news)]
    stop.number = signal.SIGINT
    done += news
    assert not any(isinstance(each, Lost) for each in done)
    run = {result.seed for results in done if not isinstance(results, Lost) for result in results}
    assert run == set(range(2 * BLOCK))


def test_seeds_beyond_one_that_is_missing_are_run_again() -> None:
    progress = Progress(range(5, 15))
    progress.note(Result(seed) for seed in (7, 8))
    assert str(progress) == "held: no seed from 5 on\nto go on: make scenario N=10 ARGS='--first 5'"
    progress.note(Result(seed) for seed in (5, 6, 11))
    assert str(progress) == "held: seeds 5 to 8\nto go on: make scenario N=6 ARGS='--first 9'"


def test_a_run_of_a_course_says_that_it_is_to_go_on_with_that_course() -> None:
    progress = Progress(range(5), "--course lost-labels ")
    progress.note([Result(0)])
    assert str(progress) == "held: seeds 0 to 0\nto go on: make scenario N=4 ARGS='--course lost-labels --first 1'"


def test_seeds_that_fail_are_named_beside_those_that_held() -> None:
    progress = Progress(range(5))
    progress.note([Result(3, ["two drivers"]), Result(0), Result(1, ["two drivers"]), Result(2), Result(4)])
    assert str(progress) == "held: seeds 0 to 4, but for 1 3"
