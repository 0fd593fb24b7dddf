"""``make autoscaling``: each rule on each trace, as a table, and one trace as a picture."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from tests.autoscaling.application import LATE, Model
from tests.autoscaling.command_line import read_arguments, settings_of
from tests.autoscaling.progress import reporting
from tests.autoscaling.run import TICK, Result, compare
from tests.autoscaling.traces import HOUR, MINUTE, TRACES, Trace

POINTS = 600
"""Of a line of the picture, about."""
LAGS_PER_MINUTE = round(MINUTE / TICK)
LINES = ("solid", "dashed", "dashdot", "dotted", (0, (8, 2, 1, 2, 1, 2)))
"""Styles of the rules' lines, which have colours, too."""


def build_table(results: Sequence[Result]) -> Table:
    """Return what each rule did on each trace."""
    table = Table(
        title=f"Executors by rule; late: the oldest row is older than {LATE:.0f} s; lag-seconds: by how much, over time"
    )
    for column in ("trace", "rule"):
        table.add_column(column)
    for column in ("executor-hours", "lag-seconds", "late (min)", "oldest row (s)", "changes", "turns"):
        table.add_column(column, justify="right")
    before = ""
    for each in results:
        if before and each.trace != before:
            table.add_section()
        before = each.trace
        table.add_row(
            each.trace,
            each.rule,
            f"{each.executor_hours:,.1f}",
            f"{each.lag_seconds:,.0f}",
            f"{each.late_minutes:,.0f}",
            f"{each.worst_lag:,.0f}",
            f"{each.changes}",
            f"{each.turns}",
        )
    return table


def draw(file: Path, trace: Trace, results: Sequence[Result]) -> None:
    """Write a picture of a trace: what arrives, how many executors there are by each rule, and how old rows get."""
    every = max(1, round(trace.seconds / MINUTE / POINTS))
    figure = Figure(figsize=(11, 9), dpi=120, layout="constrained")
    figure.suptitle(f"Trace {trace.name}: the same load under each rule", fontweight="bold")
    arrives, executors, lag = figure.subplots(3, 1, sharex=True, height_ratios=(2, 3, 3))
    minutes = range(0, int(trace.seconds / MINUTE), every)
    arrives.fill_between([m / 60 for m in minutes], [trace.rate(m * MINUTE) for m in minutes], color="lightgrey")
    for number, result in enumerate(results):
        style = _style(number)
        steps = [*result.executors, (trace.seconds, result.executors[-1][1])]
        label = f"{result.rule} ({result.executor_hours:,.0f} executor-hours, {result.late_minutes:,.0f} min late)"
        executors.step([at / HOUR for at, _ in steps], [n for _, n in steps], where="post", label=label, **style)
        spans = range(0, len(result.lags), LAGS_PER_MINUTE * every)
        oldest = [max(each for _, each in result.lags[at : at + spans.step]) for at in spans]
        lag.plot([result.lags[at][0] / HOUR for at in spans], oldest, **style)
    lag.axhline(LATE, color="black", linestyle=":", linewidth=1.0)
    lag.annotate(
        f"late: {LATE:.0f} s", (0.005, LATE), xycoords=("axes fraction", "data"), va="bottom", fontsize="small"
    )
    labels = ("rows that arrive\nin a second", "executors wanted", "age of the oldest row\nthat waits (s)")
    for axes, text in zip((arrives, executors, lag), labels, strict=True):
        axes.set_ylabel(text)
        axes.set_ylim(bottom=0)
        axes.grid(visible=True, alpha=0.3)
    _write_hours(lag, trace)
    figure.align_ylabels()
    figure.legend(loc="outside lower center", ncols=2, frameon=False)
    _settle(figure)
    # The same figures make the same file.
    same: dict[str, Any] = {"metadata": {"Date": None}} if file.suffix == ".svg" else {}
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": trace.name}):
        figure.savefig(file, **same)


def _settle(figure: Figure) -> None:
    """Keep the layout that was found, to a ten-thousandth of the picture: its last digits are others each time."""
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes in figure.axes:
        left, bottom, width, height = axes.get_position().bounds
        axes.set_position((round(left, 4), round(bottom, 4), round(width, 4), round(height, 4)))


def _style(number: int) -> dict[str, Any]:
    """Return how a rule's lines look: ours, the first, above the others, which are lighter."""
    width = 1.0 if number else 2.5
    return {
        "color": f"C{number}",
        "linestyle": LINES[number % len(LINES)],
        "linewidth": width,
        "zorder": 10 - number,
    }


def _write_hours(axes: Axes, trace: Trace) -> None:
    """Name the hours of the day below the picture, not more than a dozen of them."""
    hours = trace.seconds / HOUR
    every = next(each for each in (1, 2, 4, 6, 12) if hours / each <= 12 or each == 12)
    ticks = [at for at in range(int(hours) + 1) if (at + trace.begins) % every == 0]
    axes.set_xlim(0, hours)
    axes.set_xticks(ticks, [f"{(at + trace.begins) % 24:02.0f}:00" for at in ticks])
    axes.set_xlabel("time of day (UTC)")


def main(arguments: list[str]) -> int:
    """Run what the command line asks for; return the exit code."""
    asked = read_arguments(arguments, __doc__)
    console, results = Console(width=None if sys.stdout.isatty() else 120), list[Result]()
    traces = {name: TRACES[name]() for name in asked.traces}
    with reporting(list(traces.values())) as reporter:
        for name, trace in traces.items():
            found = compare(trace, Model(interval=asked.interval), asked.seed, settings_of(asked), reporter.begins)
            results += found
            if name == asked.drawn:
                reporter.begins(trace, "the picture", 1.0)
                draw(asked.picture, trace, found)
            reporter.is_done(trace)
    console.print(f"picture: {asked.picture}", highlight=False)
    console.print(build_table(results))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
