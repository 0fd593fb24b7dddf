"""Reduces the entries of the log to what is in force. Pure, and never raises for a message's content.

A batch has a position in the log, which is in Spark's offset log: so the result is the same on each replay, in driver
and workers. A message that can expire counts by the first decision in the log, ``accepted`` or ``void``, which always
comes before a position behind the message is given to a query.
"""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from tidegate_spark.contract.control_protocol import PAUSE, RELOAD_CONFIG, RELOAD_MODEL, RESUME, SET_LOG_LEVEL
from tidegate_spark.control_log.entries import Entry, Kind, is_by_writer

MOST_BEFORE = 3
"""Versions of one model, and messages of one type, that are kept beside the newest."""


class OtherBranchError(Exception):
    """The entries take back some of what is folded already: begin at ``position`` or before."""

    def __init__(self, position: int) -> None:
        """Name the last position that is not rolled back."""
        super().__init__(f"everything after {position} was rolled back")
        self.position = position


class Verdict(str, Enum):
    """What is known of a message at the end of some entries."""

    IN_FORCE = "in force"
    UNDECIDED = "undecided"
    """It can expire, and nothing was decided yet."""
    REJECTED = "rejected"
    EXPIRED = "expired"
    ROLLED_BACK = "rolled back"


@dataclass(frozen=True)
class Model:
    """A version of a model, in some object store."""

    uri: str
    sha256: str
    sequence: int


@dataclass(frozen=True)
class State:
    """Everything that is in force at a position."""

    position: int = 0
    config: dict[str, Any] = field(default_factory=dict)
    models: dict[str, Model] = field(default_factory=dict)
    models_before: dict[str, tuple[Model, ...]] = field(default_factory=dict)
    """The versions before those, the newest first: for who cannot have, or cannot load, the newest one."""
    last: dict[str, Entry] = field(default_factory=dict)
    """The newest message of each type."""
    last_before: dict[str, tuple[Entry, ...]] = field(default_factory=dict)
    """The messages before those, the newest first, each with another payload: for handlers that fail for the newest."""
    paused: bool = False
    log_level: str = ""
    """Empty: as it was when Spark started."""
    messages: int = 0
    """How many there were."""
    lineage: int = 0
    """The newest that began with a rollback; 0: none did."""
    consumed: dict[str, int] = field(default_factory=dict)
    """Part of a broker's topic -> the offset from which on nothing is in the log yet, whatever was rolled back."""


def consumed_after(before: Mapping[str, int], entries: Iterable[Entry]) -> dict[str, int]:
    """Return from where on topics are to be read behind ``entries``, in which every message of theirs is."""
    consumed = dict(before)
    for entry in entries:
        if entry.offset >= 0:
            following = entry.offset if entry.kind is Kind.CONSUMED else entry.offset + 1
            # A driver that lost the fence and does not know it may say late what is known already.
            consumed[entry.origin] = max(following, consumed.get(entry.origin, 0))
    return consumed


def reduce_entries(state: State, entries: Sequence[Entry]) -> State:
    """Return what is in force after ``entries``.

    Args:
        state: what was in force before the first of them.
        entries: in the order of the log, without a gap, all after ``state.position``.

    Raises:
        OtherBranchError: they roll back to before ``state.position``.
    """
    lowest = min((marker.of for marker in rollbacks(entries, state.lineage)), default=state.position)
    if lowest < state.position:
        raise OtherBranchError(lowest)
    found = verdicts(entries, state.lineage)
    for entry in entries:
        if found.get(entry.sequence) is Verdict.IN_FORCE:
            state = _applied(state, entry)
    lineage = max((marker.lineage for marker in rollbacks(entries, state.lineage)), default=state.lineage)
    return dataclasses.replace(
        state,
        position=entries[-1].sequence if entries else state.position,
        lineage=max(lineage, state.lineage),
        # There may be any number of writers, and no other application has them: the log alone remembers those.
        consumed=consumed_after(state.consumed, (entry for entry in entries if not is_by_writer(entry))),
    )


def in_force(entries: Sequence[Entry], lineage: int = 0) -> tuple[Entry, ...]:
    """Return those messages among ``entries`` that are in force after the last of them, in their order."""
    found = verdicts(entries, lineage)
    return tuple(entry for entry in entries if found.get(entry.sequence) is Verdict.IN_FORCE)


def verdicts(entries: Iterable[Entry], lineage: int = 0) -> dict[int, Verdict]:
    """Return sequence -> what is known of each message, rejected ones among them.

    Args:
        entries: in the order of the log.
        lineage: the newest before them that began with a rollback.
    """
    entries = tuple(entries)
    gone = [(marker.of, marker.sequence) for marker in rollbacks(entries, lineage)]
    decided = _decisions(entries)
    found: dict[int, Verdict] = {}
    for entry in entries:
        if entry.kind is Kind.REJECTED:
            found[entry.sequence] = Verdict.REJECTED
        elif entry.kind is Kind.MESSAGE:
            if any(low < entry.sequence < high for low, high in gone):
                found[entry.sequence] = Verdict.ROLLED_BACK
            else:
                found[entry.sequence] = _verdict(entry, decided)
    return found


def rollbacks(entries: Iterable[Entry], lineage: int) -> list[Entry]:
    """Return the entries that take others back: of a lineage that is no newer than one before, none counts."""
    counting = []
    for entry in entries:
        # Whoever begins to fill an old lineage late, after another process went on with a newer one, changes nothing.
        if entry.kind is Kind.ROLLED_BACK and entry.lineage > lineage:
            counting.append(entry)
            lineage = entry.lineage
    return counting


def is_whole(entries: Iterable[Entry], after: int, upto: int, lineage: int = 0) -> bool:
    """Return whether of the entries behind one position up to another none is missing, unless it was rolled back.

    Args:
        entries: those that there are.
        after: a position.
        upto: another one.
        lineage: the newest before them that began with a rollback.
    """
    entries = tuple(entries)
    gone = [(marker.of, marker.sequence) for marker in rollbacks(entries, lineage)]
    missing = set(range(after + 1, upto + 1)).difference(entry.sequence for entry in entries)
    return all(any(low < number < high for low, high in gone) for number in missing)


def merged(config: Mapping[str, Any], patch: Mapping[str, Any]) -> dict[str, Any]:
    """Return ``config`` with ``patch`` (JSON Merge Patch, RFC 7386): objects are merged, null removes."""
    result = dict(config)
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        elif isinstance(value, dict):
            before = result.get(key)
            result[key] = merged(before if isinstance(before, dict) else {}, value)
        else:
            result[key] = value
    return result


def _verdict(entry: Entry, decided: Mapping[int, Kind]) -> Verdict:
    if not entry.expires:
        return Verdict.IN_FORCE
    decision = decided.get(entry.sequence)
    if decision is None:
        return Verdict.UNDECIDED
    return Verdict.IN_FORCE if decision is Kind.ACCEPTED else Verdict.EXPIRED


def _decisions(entries: Iterable[Entry]) -> dict[int, Kind]:
    decided: dict[int, Kind] = {}
    for entry in entries:
        if entry.kind in (Kind.ACCEPTED, Kind.VOID):
            decided.setdefault(entry.of, entry.kind)
    return decided


def _applied(state: State, entry: Entry) -> State:
    payload = _object(entry.payload)
    changed = _with_last(state, entry)
    if entry.type == RELOAD_CONFIG:
        return dataclasses.replace(changed, config=merged(state.config, payload))
    if entry.type == RELOAD_MODEL:
        return _with_model(changed, str(payload.get("name", "")), payload, entry.sequence)
    if entry.type in (PAUSE, RESUME):
        return dataclasses.replace(changed, paused=entry.type == PAUSE)
    if entry.type == SET_LOG_LEVEL:
        return dataclasses.replace(changed, log_level=str(payload.get("level", "")).upper())
    return changed


def _with_last(state: State, entry: Entry) -> State:
    now = state.last.get(entry.type)
    before = (*((now,) if now is not None else ()), *state.last_before.get(entry.type, ()))
    # Sent once more it would fail once more, and is not to push out what did not.
    different = tuple(each for each in before if each.payload != entry.payload)[:MOST_BEFORE]
    return dataclasses.replace(
        state,
        last={**state.last, entry.type: entry},
        last_before={**state.last_before, entry.type: different},
        messages=state.messages + 1,
    )


def _with_model(state: State, name: str, payload: Mapping[str, Any], sequence: int) -> State:
    model = Model(str(payload.get("uri", "")), str(payload.get("sha256", "")), sequence)
    now = state.models.get(name)
    before = (*((now,) if now is not None else ()), *state.models_before.get(name, ()))
    different = tuple(each for each in before if each.sha256 != model.sha256)[:MOST_BEFORE]
    return dataclasses.replace(
        state,
        models={**state.models, name: model},
        models_before={**state.models_before, name: different},
    )


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
