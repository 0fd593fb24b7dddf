"""What the decisions must be, computed independently over all records at once. Pure; shares no code with the sample.

The sample folds a stream into state, batch by batch. Here everything is known: for each reading the setting is looked
up in the sensor's complete, sorted history.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from operator import attrgetter
from typing import Any

from devcluster.demo.scenario import Reading, Record, Setting, iso


@dataclass(frozen=True)
class Variant:
    """An application that goes on, after a snapshot of another one, with another margin.

    Attributes:
        margin: degrees added to both deltas of every setting.
        is_before: whether a reading was in the snapshot's batches, and thus judged without the margin.
    """

    margin: float
    is_before: Callable[[Reading], bool]


def expected_decisions(records: Iterable[Record], variant: Variant | None = None) -> dict[str, dict[str, Any]]:
    """Return the decision records by id, given settings and readings in the order in which they are sent.

    Those of a variant are the ones that it sends itself: about readings after its snapshot.
    """
    settings: dict[str, list[Setting]] = defaultdict(list)
    readings: dict[str, list[Reading]] = defaultdict(list)
    for record in records:
        if isinstance(record, Setting):
            settings[record.sensor].append(record)
        else:
            readings[record.sensor].append(record)
    by_id: dict[str, dict[str, Any]] = {}
    for sensor, of_sensor in readings.items():
        for decision in _decisions(of_sensor, sorted(settings[sensor], key=attrgetter("time")), variant):
            by_id[decision["id"]] = decision
    return by_id


def _decisions(readings: list[Reading], history: list[Setting], variant: Variant | None) -> Iterable[dict[str, Any]]:
    """Yield the decisions of one sensor; ``history`` is sorted, of equal times the last sent stands last."""

    def margin(reading: Reading) -> float:
        return 0.0 if variant is None or variant.is_before(reading) else variant.margin

    def is_right(reading: Reading, setting: Setting) -> bool:
        lowest = setting.desired - setting.down_delta - margin(reading)
        return lowest <= reading.temperature <= setting.desired + setting.up_delta + margin(reading)

    times = [setting.time for setting in history]
    first_of_time = {reading.time: reading for reading in reversed(readings)}
    verdicts = []
    for time in sorted(first_of_time):
        position = bisect_right(times, time)
        if position:
            verdicts.append((first_of_time[time], history[position - 1]))
    before: bool | None = None
    for reading, setting in ((r, s) for r, s in verdicts if not is_right(r, s)):
        warm = reading.temperature > setting.desired + setting.up_delta + margin(reading)
        is_theirs = variant is not None and variant.is_before(reading)
        if warm is not before and not is_theirs:
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
