"""What the decisions must be, computed independently over all records at once. Pure; shares no code with the sample.

The sample folds a stream into state, batch by batch. Here everything is known: for each reading the setting is looked
up in the sensor's complete, sorted history.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterable
from operator import attrgetter
from typing import Any

from devcluster.demo.scenario import Reading, Record, Setting, iso


def expected_decisions(records: Iterable[Record]) -> dict[str, dict[str, Any]]:
    """Return the decision records by id, given settings and readings in the order in which they are sent."""
    settings: dict[str, list[Setting]] = defaultdict(list)
    readings: dict[str, list[Reading]] = defaultdict(list)
    for record in records:
        if isinstance(record, Setting):
            settings[record.sensor].append(record)
        else:
            readings[record.sensor].append(record)
    by_id: dict[str, dict[str, Any]] = {}
    for sensor, of_sensor in readings.items():
        for decision in _decisions(of_sensor, sorted(settings[sensor], key=attrgetter("time"))):
            by_id[decision["id"]] = decision
    return by_id


def _decisions(readings: list[Reading], history: list[Setting]) -> Iterable[dict[str, Any]]:
    """Yield the decisions of one sensor; ``history`` is sorted, of equal times the last sent stands last."""
    times = [setting.time for setting in history]
    first_of_time = {reading.time: reading for reading in reversed(readings)}
    verdicts = []
    for time in sorted(first_of_time):
        position = bisect_right(times, time)
        if position:
            verdicts.append((first_of_time[time], history[position - 1]))
    verdicts = [(r, s) for r, s in verdicts if not s.desired - s.down_delta <= r.temperature <= s.desired + s.up_delta]
    before: bool | None = None
    for reading, setting in verdicts:
        warm = reading.temperature > setting.desired + setting.up_delta
        if warm is not before:
            yield {
                "id": f"{reading.sensor}@{iso(reading.time)}",
                "sensor": reading.sensor,
                "time": iso(reading.time),
                "decision": int(warm),
                "temperature": reading.temperature,
                "desired": setting.desired,
                "upDelta": setting.up_delta,
                "downDelta": setting.down_delta,
            }
        before = warm
