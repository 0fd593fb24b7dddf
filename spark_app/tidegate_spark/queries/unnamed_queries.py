"""What an unnamed query is called that has a ``checkpointLocation`` of its own. I/O through the object store's port.

The first unnamed query of a script is ``main``, wherever it has its checkpoint: a location that is edited, or another
one at each start, loses no state. Each further one is called after its location. Which queries are called so, and which
locations ``main`` had, is noted in the storage before they start: by that, threads may start them in another order at
the next start, and versions may come and go.
"""

from __future__ import annotations

import datetime
import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from tidegate_spark.contract.json_form import from_stored, to_json
from tidegate_spark.contract.object_paths import EMPTY_START, NAMES_PREFIX
from tidegate_spark.contract.protocol import Fault
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.queries import query_messages as messages
from tidegate_spark.storage.app_objects import AppObjects
from tidegate_spark.storage.s3_client import FaultError
from tidegate_spark.storage.store import NewerStorageError, naming_newer

UNNAMED = "main"
"""The name of a script's first unnamed query."""
NOTES_FILE = f"{NAMES_PREFIX}/unnamed.json"
MOST_KEPT = 200
"""Locations, and queries called after one, that are kept noted: the latest."""

_RANDOM = re.compile(
    r"(?<![0-9a-z])(?:[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[0-9a-f]{32})(?![0-9a-z])|(?:^|/)tmp[0-9a-z_]{8}(?:/|$)",
    re.IGNORECASE,
)
"""A UUID, and what ``tempfile`` makes."""
_SINCE_1970 = re.compile(r"(?<!\d)(\d{10})(?:\d{3}){0,3}(?!\d)")
"""Seconds, or thousandths of them, and so on."""
_DAY_SECONDS = 86400
_DATE_FORMATS = ("%Y%m%d", "%Y-%m-%d", "%Y_%m_%d", "%Y.%m.%d", "%Y/%m/%d")


class UndecidedError(Exception):
    """An unnamed query cannot be told from another one; the message says what to do."""


@dataclass(frozen=True)
class Notes:
    """What is noted of an application's unnamed queries."""

    main: tuple[str, ...] = ()
    """The locations that ``main`` had, the latest one last."""
    others: tuple[str, ...] = ()
    """Names of those that are called after their locations."""


def plain_location(location: str) -> str:
    """Return a location as it is compared: the same one for each spelling of it. Pure."""
    scheme, separator, path = re.sub(r"^file:/+", "/", location.strip()).rpartition("://")
    kind = "s3a" if scheme in ("s3", "s3n") else scheme
    return kind + separator + re.sub(r"/+", "/", path).rstrip("/")


def name_of_location(location: str) -> str:
    """Return what a query with this location is called: a plain word, no longer than names may be. Pure."""
    place = plain_location(location)
    words = [each for each in place.rpartition("://")[2].split("/") if each][-2:]
    plain = re.sub(r"[^A-Za-z0-9_-]+", "-", "-".join(words)).strip("-_")[:80] or "query"
    return f"{plain}-{hashlib.sha256(place.encode()).hexdigest()[:8]}"


def is_of_one_start(location: str, now: float) -> bool:
    """Return whether a location looks like another one at each start: it has a random part, or the time. Pure.

    Args:
        location: as the script gives it.
        now: seconds since the epoch.
    """
    if _RANDOM.search(location):
        return True
    if any(abs(int(found) - now) < _DAY_SECONDS for found in _SINCE_1970.findall(location)):
        return True
    today = datetime.datetime.fromtimestamp(now, datetime.UTC)
    days = [today + datetime.timedelta(days=offset) for offset in (-1, 0, 1)]  # of any time zone
    return any(day.strftime(kind) in location for day in days for kind in _DATE_FORMATS)


class UnnamedQueries:
    """Says what unnamed queries of one driver process are called."""

    def __init__(self, lineage: int, connect: Callable[[], AppObjects], clock: Callable[[], float]) -> None:
        """Go by the checkpoints of ``lineage``; ``connect`` reaches the application's storage."""
        self._lineage, self._connect, self._clock = lineage, connect, clock

    def name(self, location: str, of_main: str | None) -> str:
        """Return what a query is called, noted before it starts.

        Args:
            location: its checkpointLocation, empty if it has none.
            of_main: the location of the query that this process has started as ``main``, None if there is none.

        Raises:
            UndecidedError: it is ``main`` by what is noted, and another one was started so; or the notes are damaged.
            FaultError: NEWER_FORMAT, a newer Tidegate wrote them.
            Exception: what the store's client raises.
        """
        if not location or is_of_one_start(location, self._clock()):
            return UNNAMED
        place, own_name = plain_location(location), name_of_location(location)
        objects = self._connect()
        notes = self._read(objects)
        if own_name in notes.others or self._has_checkpoint(objects, own_name):
            return own_name
        taken = of_main is not None and plain_location(of_main) != place
        if place in notes.main:
            if taken:
                raise UndecidedError(messages.main_is_of(location, str(of_main)))
        elif taken or any(self._has_checkpoint(objects, name) for name in notes.others):
            self._note(objects, notes, replace(notes, others=(*notes.others, own_name)[-MOST_KEPT:]))
            return own_name
        earlier = tuple(each for each in notes.main if each != place)
        self._note(objects, notes, replace(notes, main=(*earlier, place)[-MOST_KEPT:]))
        return UNNAMED

    def _has_checkpoint(self, objects: AppObjects, name: str) -> bool:
        root = objects.lineage_key(self._lineage, name)
        return any(next(iter(objects.store.list(root + end)), None) is not None for end in ("/", EMPTY_START))

    def _read(self, objects: AppObjects) -> Notes:
        key = objects.key(NOTES_FILE)
        found = objects.store.get(key)
        if found is None:
            return Notes()
        try:
            with naming_newer(key):
                return from_stored(Notes, found[0])
        except NewerStorageError as error:
            raise FaultError(Fault(Reason.NEWER_FORMAT, f"{error}.")) from error
        except ValueError as error:
            raise UndecidedError(messages.notes_damaged(key, error)) from error

    def _note(self, objects: AppObjects, before: Notes, notes: Notes) -> None:
        if notes != before:
            objects.store.put(objects.key(NOTES_FILE), to_json(notes).encode())
