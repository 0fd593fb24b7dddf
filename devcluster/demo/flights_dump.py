"""What a dump of the flights' model holds, by its files, beside what it must hold. Reads by what it is given.

A dump is an export: ``manifest.json`` says which files there are, and each has a line of JSON for each key.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

MANIFEST = "manifest.json"
Fetch = Callable[[str], bytes]
"""Returns the content of a file of the dump, by its path."""


class DumpError(ValueError):
    """It is no dump of this application's, or not a whole one."""


class Tally(NamedTuple):
    """Flights of a group that landed: how many, the minutes that they lost, the squares of these."""

    flights: int
    minutes: int
    squares: int

    @property
    def mean(self) -> float:
        """Minutes that one of them lost."""
        return self.minutes / self.flights

    @property
    def scatter(self) -> float:
        """Sum of the squared distances from their mean."""
        return self.squares - self.minutes**2 / self.flights


@dataclass(frozen=True)
class Dump:
    """All that the application had learned at one batch. Groups start with the carrier."""

    total: Mapping[tuple[str], Tally]
    routes: Mapping[tuple[str, str, str], Tally]
    """By carrier, origin and destination."""
    days: Mapping[tuple[str, str], Tally]
    """By carrier and day: the newest days."""
    offsets: Mapping[str, Mapping[int, int]]
    """By topic and partition, the record at which an application goes on that starts with it."""

    def differences(self, expected: Mapping[str, Mapping[tuple[str, ...], tuple[int, int, int]]]) -> list[str]:
        """Return, in words, where it is not what was expected, to the last digit."""
        found: dict[str, Mapping[Any, Tally]] = {"total": self.total, "routes": self.routes, "days": self.days}
        return [
            f"{name} {'/'.join(group)}: {tuple(found[name].get(group, ()))}, and {of.get(group, ())} is due"
            for name, of in expected.items()
            for group in sorted({*of, *found[name]})
            if tuple(found[name].get(group, ())) != tuple(of.get(group, ()))
        ]


def read_dump(fetch: Fetch) -> Dump:
    """Return what a dump in JSON lines holds.

    Raises:
        DumpError: a file is not what the manifest says, or holds something else.
    """
    manifest = json.loads(fetch(MANIFEST))
    if manifest["format"] != "JSONLines":
        raise DumpError(f"the dump is in {manifest['format']}; JSONLines are read here")
    tables = {table["name"]: list(_rows(table, fetch)) for table in manifest["tables"]}
    missing = {"total", "routes", "days"} - tables.keys()
    if missing:
        raise DumpError(f"the dump has no {', '.join(sorted(missing))}")
    try:
        return Dump(
            total={(row["key"]["carrier"],): _tally(row["value"]) for row in tables["total"]},
            routes={
                (row["key"]["carrier"], row["user_map_key"]["origin"], row["user_map_key"]["dest"]): _tally(
                    row["user_map_value"]
                )
                for row in tables["routes"]
            },
            days={
                (row["key"]["carrier"], row["user_map_key"]["day"]): _tally(row["user_map_value"])
                for row in tables["days"]
            },
            offsets=_offsets(manifest["queries"].values()),
        )
    except (KeyError, TypeError) as error:
        raise DumpError(f"a row of the dump is none of the flights' model: {error!r}") from error


def folder(place: Path) -> Fetch:
    """Return what reads the files of a dump in a folder."""
    return lambda path: (place / path).read_bytes()


def bucket(client: Any, uri: str) -> Fetch:
    """Return what reads the files of a dump in an object store, given the address of it or of its manifest."""
    name, _, prefix = uri.removesuffix("/" + MANIFEST).rstrip("/").removeprefix("s3://").partition("/")
    return lambda path: bytes(client.get_object(Bucket=name, Key=f"{prefix}/{path}")["Body"].read())


def save(fetch: Fetch, place: Path) -> list[str]:
    """Write the files of a dump into a folder; return their paths in it, the manifest's last."""
    paths = [table["file"] for table in json.loads(fetch(MANIFEST))["tables"]] + [MANIFEST]
    for path in paths:
        (place / path).parent.mkdir(parents=True, exist_ok=True)
        (place / path).write_bytes(fetch(path))
    return paths


def _rows(table: Mapping[str, Any], fetch: Fetch) -> Iterator[dict[str, Any]]:
    content = fetch(table["file"])
    if hashlib.sha256(content).hexdigest() != table["sha256"]:
        raise DumpError(f"{table['file']} is not what the manifest says")
    return map(json.loads, content.splitlines())


def _tally(value: Mapping[str, int]) -> Tally:
    return Tally(value["flights"], value["minutes"], value["squares"])


def _offsets(queries: Iterable[Mapping[str, Any]]) -> dict[str, dict[int, int]]:
    found: dict[str, dict[int, int]] = {}
    for logged in (json.loads(text) for query in queries for text in query["offsets"].values() if text.startswith("{")):
        for topic, of in logged.items():
            if isinstance(of, dict):  # the control messages' source has one number
                found[topic] = {int(partition): int(at) for partition, at in of.items()}
    return found
