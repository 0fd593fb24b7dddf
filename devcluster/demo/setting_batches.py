"""Whether each decision was made in a batch in which the message with its setting was in force. Pure.

Three independent tellers are compared: the topic says where a reading stands, the checkpoint up to where each batch
has read the topic, and a message's resource from which batch on it was in force.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from devcluster.demo.scenario import Setting
from devcluster.demo.snapshot_cut import Position, Positions

Ends = Mapping[int, Mapping[int, int]]
"""By batch and partition, the offset after the last record of the topic of readings that is in the batch."""


@dataclass(frozen=True)
class Found:
    """What was found of different decisions."""

    in_force: int = 0
    """Those made in a batch in which the message with their setting was in force."""
    unknown: int = 0
    """Those whose batch the checkpoint does not have: Spark keeps what is about the newest batches."""
    too_late: tuple[str, ...] = ()
    """Ids of those whose setting was in force from a later batch on only, or of which there is no setting."""


def check(
    decisions: Iterable[Mapping[str, Any]],
    sent: Mapping[str, Sequence[Setting]],
    reported: Mapping[str, Mapping[str, Any]],
    positions: Positions,
    ends: Ends,
) -> Found:
    """Return what is found.

    Args:
        decisions: as they were consumed, repeats among them.
        sent: the settings of each message, by its name, in the order in which they were sent.
        reported: the status of each message, which is in force.
        positions: where each reading stands in the topic.
        ends: where each batch ends, by the checkpoint.
    """
    carriers = _carriers(sent)
    in_force, unknown, too_late = 0, 0, list[str]()
    for name, decision in {str(each["id"]): each for each in decisions}.items():
        sensor, time = str(decision["sensor"]), datetime.fromisoformat(str(decision["time"]))
        message = _newest(carriers.get(sensor, ()), time)
        batch = batch_of(positions[sensor, time], ends)
        if message is None or (batch is not None and reported[message]["batch"] > batch):
            too_late.append(name)
        elif batch is None:
            unknown += 1
        else:
            in_force += 1
    return Found(in_force, unknown, tuple(too_late))


def batch_of(position: Position, ends: Ends) -> int | None:
    """Return the batch that a record is in; None if that cannot be known.

    A record before the end of a batch is in an earlier one if it is before the end of that as well; so what
    is before the end of the oldest batch that is known may be in any, unless that is the first one of all.
    """
    partition, offset = position
    batch = next((batch for batch in sorted(ends) if offset < ends[batch].get(partition, 0)), None)
    return batch if batch is None or batch == 0 or batch - 1 in ends else None


def _carriers(sent: Mapping[str, Sequence[Setting]]) -> dict[str, list[tuple[datetime, str]]]:
    """Return, by sensor, its settings' times and messages; of equal times the last sent stands last."""
    found: dict[str, list[tuple[datetime, str]]] = {}
    for name, settings in sent.items():
        for setting in settings:
            found.setdefault(setting.sensor, []).append((setting.time, name))
    return {sensor: sorted(carriers, key=lambda each: each[0]) for sensor, carriers in found.items()}


def _newest(carriers: Sequence[tuple[datetime, str]], time: datetime) -> str | None:
    position = bisect_right(carriers, time, key=lambda each: each[0])
    return carriers[position - 1][1] if position else None
