"""What must be predicted and learned of flights, computed independently over all records at once. Pure.

Shares no code with the sample, which folds a stream into tallies, batch by batch. Here everything is known: of each
group of flights (a carrier, a route or a day of one) there is the list of all that landed, with running sums, and how
many of them had landed before a departure is looked up by bisection.
"""

from __future__ import annotations

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from devcluster.demo.flights_data import Flight, Record

DAYS_KEPT = 100


@dataclass(frozen=True)
class Weights:
    """A model of the sample's: how many flights a mean counts for that another one is drawn towards."""

    version: str
    overall: float
    carrier: float
    route: float
    day: float | None

    @classmethod
    def of(cls, model: Mapping[str, Any]) -> Weights:
        """Return the model that a file of the sample's holds."""
        weights = (model["carrierWeight"], model["routeWeight"], model["dayWeight"])
        return cls(str(model["version"]), model["overall"], *weights)


BUILT_IN = Weights("built-in", 0.0, 20, 20, None)


@dataclass
class _Landed:
    """Flights of a group that landed, in their order."""

    places: list[int] = field(default_factory=list)
    sums: list[int] = field(default_factory=lambda: [0])

    def add(self, place: int, lost: int) -> None:
        self.places.append(place)
        self.sums.append(self.sums[-1] + lost)

    def mean_before(self, place: int, towards: float, weight: float) -> float:
        """Return the mean of those that landed before ``place``, as far as they are to be believed."""
        number = bisect_left(self.places, place)
        if not number:
            return towards
        belief = number / (number + weight)
        return belief * (self.sums[number] / number) + (1 - belief) * towards


class Hindsight:
    """All records of a replay, in the order in which they were sent."""

    def __init__(self, records: Iterable[Record]) -> None:
        """Take them in."""
        self._landed: dict[Hashable, _Landed] = defaultdict(_Landed)
        self._left: dict[str, tuple[int, Flight]] = {}
        for place, record in enumerate(records):
            flight = record.flight
            if record.is_landing:
                for group in ("all", *_groups(flight)):
                    self._landed[group].add(place, lost(flight))
            else:
                self._left[flight.id] = (place, flight)

    def flights(self) -> Iterable[Flight]:
        """Return those that left, in the order of their departure."""
        return (flight for _, flight in self._left.values())

    def expected(self, flight_id: str, weights: Weights) -> float:
        """Return the delay at arrival that is to be predicted by a model."""
        place, flight = self._left[flight_id]
        carrier, route, day = (self._landed.get(group, _Landed()) for group in _groups(flight))
        mean = carrier.mean_before(place, weights.overall, weights.carrier)
        expected = flight.departure_delay + route.mean_before(place, mean, weights.route)
        if weights.day is not None:
            expected += day.mean_before(place, mean, weights.day) - mean
        return expected

    def expected_of_anybody(self, flight_id: str) -> float:
        """Return what one mean for all flights predicts: of the two yardsticks the better one."""
        place, flight = self._left[flight_id]
        return flight.departure_delay + self._landed["all"].mean_before(place, 0.0, 1.0)

    def predictions(self, model_of: Callable[[str], Weights]) -> dict[str, dict[str, Any]]:
        """Return the prediction records by id, given by which model each flight was predicted."""
        made = {}
        for flight in self.flights():
            weights = model_of(flight.id)
            made[flight.id] = {
                "id": flight.id,
                "carrier": flight.carrier,
                "origin": flight.origin,
                "dest": flight.dest,
                "day": flight.day,
                "departureDelay": flight.departure_delay,
                "expected": self.expected(flight.id, weights),
                "model": weights.version,
            }
        return made


def lost(flight: Flight) -> int:
    """Return the minutes that a flight that landed lost on its way."""
    assert flight.arrival_delay is not None
    return flight.arrival_delay - flight.departure_delay


def _groups(flight: Flight) -> tuple[Hashable, Hashable, Hashable]:
    carrier = flight.carrier
    return (carrier, (carrier, flight.origin, flight.dest), (carrier, flight.day))


Tallies = dict[tuple[str, ...], tuple[int, int, int]]
"""Of each group of flights: how many, their minutes lost, and the squares of these."""


def expected_state(records: Iterable[Record]) -> dict[str, Tallies]:
    """Return what an application has learned that has seen these records: ``total``, ``routes``, ``days``."""
    groups: dict[str, dict[tuple[str, ...], list[int]]] = {
        name: defaultdict(list) for name in ("total", "routes", "days")
    }
    for flight in (record.flight for record in records if record.is_landing):
        groups["total"][flight.carrier,].append(lost(flight))
        groups["routes"][flight.carrier, flight.origin, flight.dest].append(lost(flight))
        groups["days"][flight.carrier, flight.day].append(lost(flight))
    for carrier in {group[0] for group in groups["days"]}:
        days = sorted(day for of, day in groups["days"] if of == carrier)
        for day in days[:-DAYS_KEPT]:
            del groups["days"][carrier, day]
    return {name: {group: _tally(minutes) for group, minutes in of.items()} for name, of in groups.items()}


def _tally(minutes: list[int]) -> tuple[int, int, int]:
    return len(minutes), sum(minutes), sum(each * each for each in minutes)
