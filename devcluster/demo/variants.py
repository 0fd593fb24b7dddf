"""Compare what two variants of the sample decided on the same input: a table and a picture. Reads Kafka, writes a file.

``python -m devcluster.demo.variants --help``. The comparison is pure.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from devcluster.demo.compare import read_topic
from devcluster.demo.scenario import HOUR, measured

Decision = Mapping[str, Any]
TOTAL = "together"
MARKS = {1: "^", 0: "v"}
"""Too warm points up, too cold down."""


@dataclass(frozen=True)
class Row:
    """What two variants decided about the sensors of one city."""

    city: str
    sensors: int
    """About which one of them, or both, decided something."""
    first: int
    second: int
    """How many decisions each took."""
    both: int
    """How many of them are the same: sensor, time and decision."""


def without_repeats(decisions: Iterable[Decision]) -> dict[str, Decision]:
    """Return decisions by id: output is at least once. Pure."""
    return {str(decision["id"]): decision for decision in decisions}


def compare_variants(first: Iterable[Decision], second: Iterable[Decision]) -> list[Row]:
    """Return a row for each city, by name, and one for all of them. Pure."""
    one, two = without_repeats(first), without_repeats(second)
    cities = sorted({_city(decision) for decision in (*one.values(), *two.values())})
    rows = [_row(city, *({i: d for i, d in of.items() if _city(d) == city} for of in (one, two))) for city in cities]
    return [*rows, _row(TOTAL, one, two)]


def _row(city: str, one: Mapping[str, Decision], two: Mapping[str, Decision]) -> Row:
    sensors = {str(decision["sensor"]) for decision in (*one.values(), *two.values())}
    both = sum(i in two and two[i]["decision"] == decision["decision"] for i, decision in one.items())
    return Row(city, len(sensors), len(one), len(two), both)


def _city(decision: Decision) -> str:
    return str(decision["sensor"]).rpartition("+")[0]


def most_different(first: Iterable[Decision], second: Iterable[Decision]) -> str:
    """Return the sensor about which one variant decided more than the other; of several the first by name. Pure."""
    counts: dict[str, int] = {}
    for sign, decisions in ((1, first), (-1, second)):
        for decision in without_repeats(decisions).values():
            counts[str(decision["sensor"])] = counts.get(str(decision["sensor"]), 0) + sign
    return min(counts, key=lambda sensor: (-abs(counts[sensor]), sensor), default="")


def build_table(rows: Sequence[Row], names: tuple[str, str]) -> Table:
    """Return the rows for a terminal. Pure."""
    table = Table("", "sensors", *names, "the same", "first alone", "second alone", "per sensor")
    for column in table.columns[1:]:
        column.justify = "right"
    for row in rows:
        each = " / ".join(f"{count / max(row.sensors, 1):.1f}" for count in (row.first, row.second))
        counts = (row.sensors, row.first, row.second, row.both, row.first - row.both, row.second - row.both)
        table.add_row(row.city, *(f"{count:,}" for count in counts), each, end_section=row is rows[-1])
    return table


def draw(file: Path, first: Iterable[Decision], second: Iterable[Decision], names: tuple[str, str]) -> None:
    """Write a picture: how many decisions each variant took in the course of time, and one sensor in detail."""
    of = {name: _in_order(decisions) for name, decisions in zip(names, (first, second), strict=True)}
    figure = Figure(figsize=(11, 8), layout="constrained")
    above, below = figure.subplots(2, 1)
    for name, decisions in of.items():
        above.step([_time(d) for d in decisions], list(range(1, len(decisions) + 1)), where="post", label=name)
    above.set_title("Decisions, all sensors together")
    above.legend()
    sensor = most_different(*of.values())
    times = sorted(_time(d) for decisions in of.values() for d in decisions if d["sensor"] == sensor)
    if times:
        hours = [times[0] + HOUR * h for h in range(int((times[-1] - times[0]) / HOUR) + 1)]
        known = [(hour, value) for hour in hours if (value := measured(sensor, hour)) is not None]
        below.plot([hour for hour, _ in known], [value for _, value in known], color="lightgrey", label="temperature")
    for number, (name, decisions) in enumerate(of.items()):
        for value, mark in MARKS.items():
            shown = [d for d in decisions if (d["sensor"], d["decision"]) == (sensor, value)]
            # Side by side and not one upon the other.
            places = [d["temperature"] + 0.6 * (2 * number - 1) for d in shown]
            label = f"{name}: {'too warm' if value else 'too cold'}"
            below.scatter([_time(d) for d in shown], places, marker=mark, color=f"C{number}", label=label)
    below.set_title(f"{sensor}: temperature (°F) and decisions")
    below.legend()
    figure.savefig(file)


def _in_order(decisions: Iterable[Decision]) -> list[Decision]:
    return sorted(without_repeats(decisions).values(), key=lambda decision: (decision["time"], decision["id"]))


def _time(decision: Decision) -> datetime:
    return datetime.fromisoformat(str(decision["time"]))


def show(brokers: str, topics: tuple[str, str], picture: Path, console: Console) -> list[Row]:
    """Read both topics, print the table, write the picture, and return the rows."""
    first, second = (read_topic(brokers, topic) for topic in topics)
    rows = compare_variants(first, second)
    console.print(build_table(rows, topics))
    draw(picture, first, second, topics)
    console.print(f"picture: {picture}", highlight=False)
    return rows


def main() -> int:
    """Compare the decisions of two variants of the sample."""
    parser = argparse.ArgumentParser(
        prog="python -m devcluster.demo.variants",
        description=main.__doc__,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    brokers = "Kafka bootstrap servers: host:port[,host:port]"
    parser.add_argument("--brokers", required=True, default=argparse.SUPPRESS, help=brokers)
    parser.add_argument("--first", default="decisions-as-it-is", help="topic of one variant's decisions")
    parser.add_argument("--second", default="decisions-calm", help="topic of the other's")
    parser.add_argument("--picture", type=Path, default=Path("variants.png"), help="file to write")
    options = parser.parse_args()
    show(options.brokers, (options.first, options.second), options.picture, Console())
    return 0


if __name__ == "__main__":
    sys.exit(main())
