"""What ``make autoscaling`` takes, and that the docs show what it finds. Reads the docs."""

import re
from functools import partial
from io import StringIO
from pathlib import Path

import pytest
from rich.console import Console

from tests.autoscaling.__main__ import draw, main
from tests.autoscaling.application import Model
from tests.autoscaling.command_line import read_arguments, settings_of
from tests.autoscaling.progress import reporting
from tests.autoscaling.rules import Tidegate
from tests.autoscaling.run import USUAL, enough, run
from tests.autoscaling.traces import HOUR, TRACES, make

DOCS = Path(__file__).parents[4] / "docs"
PICTURE = "pictures/autoscaling.svg"
WRONG = {
    "a negative interval": (["--interval", "-3"], "argument --interval: '-3' is no number of seconds from 0"),
    "an interval in words": (["--interval", "soon"], "argument --interval: 'soon' is no number of seconds from 0"),
    "no interval at all": (["--interval", "nan"], "argument --interval: 'nan' is no number of seconds from 0"),
    "an endless interval": (["--interval", "inf"], "argument --interval: 'inf' is no number of seconds from 0"),
    "more than the CRD takes": (
        ["--target-utilization", "96"],
        "argument --target-utilization: '96' is no whole number from 10 to 95",
    ),
    "a share": (["--target-utilization", "0.7"], "'0.7' is no whole number from 10 to 95"),
    "a span without a unit": (["--stabilization", "15"], "argument --stabilization: '15' is no span of time"),
    "no span": (["--scale-down-interval", "0m"], "argument --scale-down-interval: '0m' is no span of time"),
    "no such trace": (["--traces", "stairs"], "argument --traces: invalid choice: 'stairs'"),
    "a picture of what is not simulated": (
        ["--traces", "step", "--drawn", "burst"],
        "--drawn burst: it is none of --traces step",
    ),
}


@pytest.mark.parametrize("name", WRONG)
def test_an_argument_that_can_not_be_is_named_with_what_is_expected(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments, message = WRONG[name]
    with pytest.raises(SystemExit) as ended:
        read_arguments(arguments)
    assert (ended.value.code, message in capsys.readouterr().err) == (2, True)


def test_without_arguments_all_is_as_usual() -> None:
    asked = read_arguments([])
    assert (asked.traces, asked.seed, asked.interval) == (list(TRACES), 1, Model().interval)
    assert (asked.drawn, asked.picture) == ("flights", Path("autoscaling.png"))
    assert settings_of(asked) == USUAL


def test_settings_are_written_as_in_a_spec() -> None:
    asked = settings_of(
        read_arguments(["--target-utilization", "85", "--scale-down-interval", "5m", "--stabilization", "1m"])
    )
    assert (asked.utilization, asked.down_interval, asked.stabilization) == (0.85, 300.0, 60.0)


def test_the_picture_is_of_the_first_trace_if_the_usual_one_is_not_simulated() -> None:
    assert read_arguments(["--traces", "step", "burst"]).drawn == "step"
    assert read_arguments(["--traces", "step", "flights"]).drawn == "flights"


def test_a_picture_is_the_same_each_time(tmp_path: Path) -> None:
    trace = make("steady", HOUR, lambda t: 500.0)
    found, pictures = run(trace, Tidegate(USUAL), Model(), 1, 3), [f"{number}.svg" for number in range(5)]
    for name in pictures:
        draw(tmp_path / name, trace, [found])
    assert len({(tmp_path / name).read_bytes() for name in pictures}) == 1


def two_hours(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Have two traces of an hour each instead of those that there are; return their names."""
    names = ["even", "uneven"]
    for name in list(TRACES):
        monkeypatch.delitem(TRACES, name)
    for name in names:
        monkeypatch.setitem(TRACES, name, partial(make, name, HOUR, lambda t: 300.0))
    return names


def test_in_a_file_or_a_pipe_a_line_for_each_trace_says_how_far_it_is_and_the_table_is_alone(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    names, picture = two_hours(monkeypatch), tmp_path / "even.png"
    assert main(["--traces", *names, "--picture", str(picture)]) == 0
    out, reported = capsys.readouterr()
    assert [re.sub(r"\d+ s", "n s", line) for line in reported.splitlines()] == [
        "trace even: done after n s; 1 to go",
        "trace uneven: done after n s",
    ]
    assert (out.startswith(f"picture: {picture}"), "done after" in out, picture.exists()) == (True, False, True)


def test_on_a_terminal_a_line_moves_with_the_rule_that_is_simulated_and_goes_when_it_is_done() -> None:
    screen = StringIO()
    console = Console(file=screen, force_terminal=True, width=120, color_system=None, highlight=False)
    trace = make("even", HOUR, lambda t: 300.0)
    with reporting([trace, trace], console) as reporter:
        reporter.begins(trace, "HPA on CPU, 70%", 0.5)
        reporter.is_done(trace)
        reporter.begins(trace, "the picture", 1.0)
    shown = screen.getvalue()
    assert "100% even: the picture" in shown
    assert shown.endswith(("\x1b[2K", "\x1b[?25h")), "nothing of it stays"
    assert "done after" not in shown


def rows() -> dict[tuple[str, str], list[str]]:
    """Return the table of the docs: the cells behind trace and rule."""
    page = (DOCS / "autoscaling.md").read_text()
    found = re.findall(rf"^\| ({'|'.join(TRACES)}) \| (.+?) \| (.+) \|$", page, re.MULTILINE)
    return {(trace, rule): cells.split(" | ") for trace, rule, cells in found}


def test_the_table_of_the_docs_is_what_the_simulation_finds() -> None:
    trace, model = TRACES["burst"](), Model()
    found = run(trace, Tidegate(USUAL), model, 1, enough(trace.rate(0.0), model, USUAL.utilization))
    reported = (f"{found.executor_hours:,.1f}", f"{found.lag_seconds:,.0f}", f"{found.late_minutes:,.0f}")
    # If it is not: `make autoscaling ARGS="--picture docs/pictures/autoscaling.svg"`, and its table into the page.
    assert rows()[("burst", "Tidegate")] == [*reported, f"{found.worst_lag:,.0f}", f"{found.changes}"]


def test_the_picture_of_the_docs_is_of_the_run_that_the_table_shows() -> None:
    assert f"({PICTURE})" in (DOCS / "autoscaling.md").read_text()
    reported = re.findall(r">([^<>]+) \(([\d,]+) executor-hours, ([\d,]+) min late\)<", (DOCS / PICTURE).read_text())
    table = {rule: cells for (trace, rule), cells in rows().items() if trace == "flights"}
    shown = {rule: (f"{float(cells[0].replace(',', '')):,.0f}", cells[2]) for rule, cells in table.items()}
    assert {rule.replace("&#x27;", "'"): (hours, late) for rule, hours, late in reported} == shown
