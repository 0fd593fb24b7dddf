"""How good predictions of flights were, beside two yardsticks; and whether they are the ones that were due. Pure.

The yardsticks: a flight arrives as late as it left; and all flights lose the same on their way, the mean of all that
have landed. What is predicted is a mean, so the root of the mean squared error is what it is to be judged by; the mean
of the absolute error stands beside it.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rich.table import Table

from devcluster.demo.compare import Comparison, compare
from devcluster.demo.flights_oracle import BUILT_IN, Hindsight, Weights

Prediction = Mapping[str, Any]
TOLERANCE = 1e-6
"""Minutes by which two computations of one mean may differ."""


@dataclass(frozen=True)
class Score:
    """Of predictions of some flights, minutes."""

    rmse: float
    mae: float

    def __str__(self) -> str:
        return f"{self.rmse:.2f} / {self.mae:.2f}"


@dataclass(frozen=True)
class Row:
    """The flights that were predicted by one model and landed."""

    model: str
    flights: int
    as_it_left: Score
    one_mean: Score
    built_in: Score
    """What the built-in model would have said of the same flights."""
    predicted: Score
    better_days: float
    """Of the days, on how many the model's squared error was the smaller one of these two."""


def same(one: Prediction, other: Prediction) -> bool:
    """Return whether two records say the same."""
    if {**one, "expected": 0} != {**other, "expected": 0}:
        return False
    minutes = [each.get("expected", math.nan) for each in (one, other)]
    return math.isclose(*minutes, rel_tol=0, abs_tol=TOLERANCE)


def check(hindsight: Hindsight, consumed: Sequence[Prediction], models: Iterable[Weights]) -> Comparison:
    """Compare predictions with the due ones, each by the model that it names.

    One of a model that is not among ``models`` is wrong; so is one of an earlier model after a carrier's first one of a
    later: ``models`` are in the order in which they came into force.
    """
    by_rank = list(models)
    ranks = {weights.version: rank for rank, weights in enumerate(by_rank)}
    named = {str(each["id"]): str(each["model"]) for each in reversed(consumed)}
    newest: dict[str, int] = defaultdict(int)
    model_of: dict[str, Weights] = {}
    for flight in hindsight.flights():
        rank = ranks.get(named.get(flight.id, ""), 0)
        newest[flight.carrier] = max(rank, newest[flight.carrier])
        model_of[flight.id] = by_rank[newest[flight.carrier]]
    return compare(hindsight.predictions(model_of.__getitem__), consumed, same, "predictions")


def rows(hindsight: Hindsight, consumed: Iterable[Prediction]) -> list[Row]:
    """Return a row for each model, in the order of their first predictions."""
    predicted = {str(each["id"]): each for each in consumed}
    by_model: dict[str, list[tuple[Any, Prediction]]] = defaultdict(list)
    for flight in hindsight.flights():
        if flight.arrival_delay is not None and flight.id in predicted:
            by_model[str(predicted[flight.id]["model"])].append((flight, predicted[flight.id]))
    return [_row(hindsight, model, of) for model, of in by_model.items()]


def _row(hindsight: Hindsight, model: str, of: list[tuple[Any, Prediction]]) -> Row:
    errors: dict[str, list[float]] = defaultdict(list)
    days: dict[str, float] = defaultdict(float)
    for flight, prediction in of:
        said = {
            "as_it_left": flight.departure_delay,
            "one_mean": hindsight.expected_of_anybody(flight.id),
            "built_in": hindsight.expected(flight.id, BUILT_IN),
            "predicted": prediction["expected"],
        }
        for name, minutes in said.items():
            errors[name].append(minutes - flight.arrival_delay)
        days[flight.day] += errors["built_in"][-1] ** 2 - errors["predicted"][-1] ** 2
    better = sum(difference > 0 for difference in days.values()) / len(days)
    return Row(model, len(of), **{name: _score(of_name) for name, of_name in errors.items()}, better_days=better)


def _score(errors: Sequence[float]) -> Score:
    number = len(errors)
    return Score(math.sqrt(math.fsum(e * e for e in errors) / number), math.fsum(map(abs, errors)) / number)


def build_table(found: Sequence[Row]) -> Table:
    """Return the rows for a terminal."""
    names = ("as late as it left", "one mean for all", "the built-in model", "what was predicted")
    table = Table(
        "model", "flights", *names, "better days", caption="minutes: root of mean square / mean of absolute error"
    )
    for column in table.columns[1:]:
        column.justify = "right"
    for row in found:
        scores = (row.as_it_left, row.one_mean, row.built_in, row.predicted)
        better = "" if row.model == BUILT_IN.version else f"{row.better_days:.0%}"
        table.add_row(row.model, f"{row.flights:,}", *map(str, scores), better)
    return table
