"""What is replayed: the records, and their order. Reads the data set's files; no other I/O, no chance, no clock.

Input are the hourly temperatures of Seattle and San Francisco of 2010 in degrees Fahrenheit (NOAA normals, from the
package ``vega_datasets``). Each city has 8,759 of the year's 8,760 hours: both lack 14 March, 03:00. A missing hour is
no reading; nothing is invented in its place. The files name no time zone; their times are taken as UTC.

A sensor is a city and a shift: ``seattle+7`` reports at each hour what was measured in Seattle seven hours later. So
two series make hundreds of sensors that pass through the same day at different times.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache
from typing import Any

from vega_datasets import data

HOUR = timedelta(hours=1)
CITIES = {"seattle": "seattle_temps", "san-francisco": "sf_temps"}
"""Name of the city in a sensor's name, and of its series in the data set."""


@dataclass(frozen=True)
class Reading:
    """A sensor's temperature in degrees Fahrenheit."""

    sensor: str
    time: datetime
    temperature: float

    def fields(self) -> dict[str, Any]:
        """Return the record as it goes to Kafka."""
        return {"sensor": self.sensor, "time": iso(self.time), "temperature": self.temperature}


@dataclass(frozen=True)
class Setting:
    """What a sensor's temperature should be from ``time`` on, in degrees Fahrenheit."""

    sensor: str
    time: datetime
    desired: float
    up_delta: float
    down_delta: float

    def fields(self) -> dict[str, Any]:
        """Return the record as it goes to Kafka."""
        return {
            "sensor": self.sensor,
            "time": iso(self.time),
            "desired": self.desired,
            "upDelta": self.up_delta,
            "downDelta": self.down_delta,
        }


Record = Reading | Setting

AHEAD = 24
"""Hours over which a setting's choice looks ahead."""


def iso(time: datetime) -> str:
    """Return ``time`` (UTC) as records spell it."""
    return time.strftime("%Y-%m-%dT%H:%M:%SZ")


def encode(record: Record) -> bytes:
    """Return the record as the value of a Kafka message."""
    return json.dumps(record.fields(), separators=(",", ":")).encode()


@cache
def series(city: str) -> dict[datetime, float]:
    """Return the temperature of each measured hour of a city."""
    table = getattr(data, CITIES[city])()  # the two files spell dates differently; the package's loader knows both
    return {
        date.to_pydatetime().replace(tzinfo=UTC): float(temperature)
        for date, temperature in zip(table["date"], table["temp"], strict=True)
    }


@dataclass(frozen=True)
class Scenario:
    """Which part of the data is replayed. The same values give the same records.

    Records come in order of time. At equal times settings come before readings. Each sensor gets a setting at the start
    (every 40th sensor only half a day later: until then it is not controlled) and another one each
    ``hours_between_settings``: on the hour, which is also a reading's time, for every other sensor, else between two.
    """

    readings: int = 24_000
    shifts: int = 120
    start: datetime = datetime(2010, 3, 10, tzinfo=UTC)
    hours_between_settings: int = 24

    def __post_init__(self) -> None:
        if not 1 <= self.shifts <= 1000:
            raise ValueError(f"shifts must be from 1 to 1000, not {self.shifts}")
        if self.hours_between_settings < 1:
            raise ValueError(f"hours_between_settings must be at least 1, not {self.hours_between_settings}")
        if not 1 <= self.readings <= self.most_readings():
            raise ValueError(f"readings must be from 1 to {self.most_readings():,}, not {self.readings:,}")

    def most_readings(self) -> int:
        """Return how many readings can be replayed from ``start`` on until a sensor's series ends."""
        last = min(max(series(city)) for city in CITIES) - (self.shifts + AHEAD) * HOUR
        hours = (last - self.start) // HOUR
        return (hours - 1) * len(CITIES) * self.shifts  # one hour less: the one that is missing

    def sensors(self) -> list[str]:
        """Return the sensors' names."""
        return [f"{city}+{shift}" for shift in range(self.shifts) for city in CITIES]

    def records(self) -> Iterator[Record]:
        """Yield settings and readings in the order in which they are sent."""
        sensors = self.sensors()
        left, hour = self.readings, 0
        while left:
            due = [s for index, sensor in enumerate(sensors) for s in self._settings(index, sensor, hour)]
            yield from sorted(due, key=lambda setting: setting.time)
            for sensor in sensors:
                time = self.start + hour * HOUR
                temperature = measured(sensor, time)
                if temperature is not None and left:
                    left -= 1
                    yield Reading(sensor, time, temperature)
            hour += 1

    def _settings(self, index: int, sensor: str, hour: int) -> Iterator[Setting]:
        """Yield the setting that is due after the previous hour's reading and not after this hour's, if any."""
        late_start = 12 if index % 40 == 39 else 0
        change = (hour - 1 - index) % self.hours_between_settings == 0 and hour > late_start
        if hour != late_start and not change:
            return
        time = self.start + hour * HOUR
        if change and index % 2:
            time -= HOUR / 2
        ordinal = index + hour // self.hours_between_settings
        yield Setting(
            sensor,
            time,
            desired=self._usual(sensor, hour) + (-2, 0, 3)[ordinal % 3],
            up_delta=(1.5, 2.0, 4.0)[ordinal % 3],
            down_delta=(2.0, 1.0)[ordinal % 2],
        )

    def _usual(self, sensor: str, hour: int) -> float:
        """Return the mean of the sensor's next day, in whole degrees: what a setting is chosen around."""
        ahead = [measured(sensor, self.start + (hour + h) * HOUR) for h in range(AHEAD)]
        known = [temperature for temperature in ahead if temperature is not None]
        return float(round(sum(known) / len(known)))


def measured(sensor: str, time: datetime) -> float | None:
    """Return what the sensor reports at ``time``, or None if its city has no measurement there."""
    city, _, shift = sensor.rpartition("+")
    return series(city).get(time + int(shift) * HOUR)
