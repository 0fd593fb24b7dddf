"""Look into a dump of the flights' model, offline: a table, a picture, and a model that is fixed by what was seen.

``python -m devcluster.demo.flights_analysis --help``. What is looked for: by how much do the means of routes and of
days differ, beside what chance alone makes of as few flights? A mean of so many flights as the variance within groups
is times the variance between them is to be believed by half: chance is as large then as what makes groups differ. The
analysis of variance of the dump's tallies (flights, minutes, squares) says both; no single flight is needed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import sys
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

import boto3
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from rich.console import Console
from rich.table import Table

from devcluster.demo.flights_dump import Dump, DumpError, Fetch, Tally, bucket, folder, read_dump

NEVER = 1e6
"""The weight, in flights, with which a mean never gets its own way: nothing speaks for groups that differ."""
SHOWN = 4
"""Carriers whose days are drawn: those with most flights."""


@dataclass(frozen=True)
class Spread:
    """Of minutes that flights lost on their way, by groups of them."""

    groups: int
    within: float
    """Variance of flights of one group."""
    between: float
    """Variance of the means of groups, less what chance makes of it; not positive: they do not differ."""

    @property
    def weight(self) -> float | None:
        """Flights after which a group's mean is believed by half; None: never."""
        return self.within / self.between if self.between > 0 else None


def spread(tallies: Mapping[Any, Tally]) -> Spread:
    """Return the spread of groups within their carriers, each called by a tuple that starts with one.

    The estimators are those of the one-way analysis of variance with random effects, pooled over carriers.

    Raises:
        DumpError: there are too few flights or groups.
    """
    by_carrier: dict[str, list[Tally]] = defaultdict(list)
    for group, tally in tallies.items():
        by_carrier[group[0]].append(tally)
    return pooled(by_carrier.values())


def pooled(families: Any) -> Spread:
    """Return the spread of groups within families of them; see :func:`spread`."""
    groups = flights = freedom = 0
    scatter = distance = effective = 0.0
    for family in families:
        number = sum(tally.flights for tally in family)
        mean = sum(tally.minutes for tally in family) / number
        groups, flights, freedom = groups + len(family), flights + number, freedom + len(family) - 1
        scatter += sum(tally.scatter for tally in family)
        distance += sum(tally.flights * (tally.mean - mean) ** 2 for tally in family)
        effective += number - sum(tally.flights**2 for tally in family) / number
    if flights <= groups or effective <= 0:
        raise DumpError("there are too few flights in the dump to compare groups of them")
    within = scatter / (flights - groups)
    return Spread(groups, within, (distance - freedom * within) / effective)


@dataclass(frozen=True)
class Finding:
    """What a dump says of how flights differ."""

    flights: int
    overall: float
    """Mean of all, minutes."""
    carriers: Spread
    routes: Spread
    days: Spread

    def model(self, version: str) -> dict[str, Any]:
        """Return the model that uses it, as the sample reads it."""
        day = self.days.weight
        return {
            "version": version,
            "overall": round(self.overall, 3),
            "carrierWeight": round(self.carriers.weight or NEVER, 3),
            "routeWeight": round(self.routes.weight or NEVER, 3),
            "dayWeight": None if day is None else round(day, 3),
        }


def analyse(dump: Dump) -> Finding:
    """Return what a dump says. Pure; raises as :func:`spread`."""
    flights, minutes = (sum(column) for column in list(zip(*dump.total.values(), strict=True))[:2])
    carriers = pooled([list(dump.total.values())])
    return Finding(flights, minutes / flights, carriers, spread(dump.routes), spread(dump.days))


def build_table(found: Finding) -> Table:
    """Return it for a terminal."""
    table = Table("", "groups", "differ by (minutes)", "flights of one by", "weight in flights")
    for column in table.columns[1:]:
        column.justify = "right"
    for name, of in (
        ("carriers", found.carriers),
        ("routes of a carrier", found.routes),
        ("days of a carrier", found.days),
    ):
        weight = "never" if of.weight is None else f"{of.weight:.1f}"
        differ = math.sqrt(max(of.between, 0.0))
        table.add_row(name, f"{of.groups:,}", f"{differ:.1f}", f"{math.sqrt(of.within):.1f}", weight)
    return table


# --- the picture ------------------------------------------------------------------------------------------------------


def draw(file: Path, dump: Dump, found: Finding) -> None:
    """Write a picture: carriers' days beside what chance alone would make of them, routes likewise, and the spreads."""
    figure = Figure(figsize=(12, 9), layout="constrained")
    places = figure.subplot_mosaic([["days", "days"], ["routes", "spreads"]], height_ratios=[1.1, 1])
    _draw_days(places["days"], dump)
    _draw_routes(places["routes"], dump, found)
    _draw_spreads(places["spreads"], found)
    figure.suptitle(f"What {found.flights:,} flights lost on their way (minutes; negative: made up)")
    figure.savefig(file)


def _draw_days(axes: Axes, dump: Dump) -> None:
    largest = sorted(dump.total, key=lambda group: -dump.total[group].flights)[:SHOWN]
    for number, (carrier,) in enumerate(largest):
        of = sorted((day, tally) for (whose, day), tally in dump.days.items() if whose == carrier)
        days: list[Any] = [date.fromisoformat(day) for day, _ in of]
        mean = dump.total[carrier,].mean
        deviation = math.sqrt(dump.total[carrier,].scatter / max(dump.total[carrier,].flights - 1, 1))
        chance = [2 * deviation / math.sqrt(tally.flights) for _, tally in of]
        color = f"C{number}"
        axes.plot(days, [tally.mean - mean for _, tally in of], color=color, marker=".", linewidth=1, label=carrier)
        if not number:
            label = f"chance alone would leave 95 % of {carrier}'s days here"
            axes.fill_between(days, [-c for c in chance], chance, color=color, alpha=0.15, label=label)
    axes.axhline(0, color="grey", linewidth=0.8)
    low, high = axes.get_ylim()
    axes.set_ylim(low, high + (high - low) / 6)  # room for the legend above the highest day
    axes.set_ylabel("minutes")
    axes.set_title("Days of the four largest carriers, beside the carrier's mean")
    axes.legend(ncols=SHOWN + 1, loc="upper right")


def _draw_routes(axes: Axes, dump: Dump, found: Finding) -> None:
    weight = found.routes.weight or NEVER
    flights = [tally.flights for tally in dump.routes.values()]
    own = [tally.mean - dump.total[group[0],].mean for group, tally in dump.routes.items()]
    drawn = [mean * number / (number + weight) for mean, number in zip(own, flights, strict=True)]
    axes.scatter(flights, own, s=10, color="lightgrey", label="mean of a route")
    axes.scatter(flights, drawn, s=10, color="C0", label="as the model believes it")
    numbers = sorted(set(flights))
    chance = [2 * math.sqrt(found.routes.within / number) for number in numbers]
    axes.plot(numbers, chance, color="grey", linewidth=0.8, label="95 % of chance")
    axes.plot(numbers, [-each for each in chance], color="grey", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_ylim(-40, 40)
    axes.xaxis.set_major_formatter("{x:,.0f}")
    axes.set_xlabel("flights that have landed")
    axes.set_ylabel("minutes")
    axes.set_title("Routes, beside their carrier's mean")
    axes.legend(loc="upper right")


def _draw_spreads(axes: Axes, found: Finding) -> None:
    names = ("carriers", "routes", "days")
    differ = [math.sqrt(max(of.between, 0.0)) for of in (found.carriers, found.routes, found.days)]
    bars = axes.bar(names, differ, color=["lightgrey", "C0", "C1"])
    axes.bar_label(bars, [f"{each:.1f}" for each in differ])
    axes.margins(y=0.1)
    axes.set_ylabel("minutes")
    axes.set_title("Standard deviation of their means, chance taken off")


def show(fetch: Fetch, picture: Path, version: str, console: Console) -> tuple[Dump, dict[str, Any]]:
    """Read a dump, print the table, write the picture; return the dump and the fixed model."""
    dump = read_dump(fetch)
    found = analyse(dump)
    console.print(build_table(found))
    draw(picture, dump, found)
    console.print(f"picture: {picture}", highlight=False)
    return dump, found.model(version)


def main() -> int:
    """Analyse a dump of the flights' model: print how flights differ, draw it, write a model that goes by it."""
    parser = argparse.ArgumentParser(
        prog="python -m devcluster.demo.flights_analysis",
        description=main.__doc__,
        formatter_class=argparse.ArgumentDefaultsHelpFormatter,
    )
    parser.add_argument("dump", help="folder of the dump, or its s3:// address (keys: AWS_ACCESS_KEY_ID, …)")
    parser.add_argument("--endpoint", default=argparse.SUPPRESS, help="address of the object store, if it is not AWS")
    parser.add_argument("--picture", type=Path, default=Path("flights.png"), help="file to write")
    parser.add_argument("--model", type=Path, default=Path("model.json"), help="file to write")
    parser.add_argument("--version", default="by-days", help="what the model is called in predictions")
    options = parser.parse_args()
    fetch = folder(Path(options.dump))
    if options.dump.startswith("s3://"):
        region = os.environ.get("AWS_DEFAULT_REGION", "us-east-1")
        endpoint = getattr(options, "endpoint", None)
        fetch = bucket(boto3.client("s3", endpoint_url=endpoint, region_name=region), options.dump)
    try:
        _, model = show(fetch, options.picture, options.version, Console())
    except (OSError, DumpError) as error:
        print(f"flights_analysis: {error}", file=sys.stderr)
        return 1
    options.model.write_text(json.dumps(model, indent=1) + "\n")
    print(f"model: {options.model}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
