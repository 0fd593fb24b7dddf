"""A checkpoint that is simple enough to be known by heart: written as Spark does, read as ``layout`` does.

``offsets/N``, ``commits/N`` and ``state/N.zip`` per batch; the latter names shared files below ``SSTs/``.
"""

import itertools
import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from tidegate_spark.storage.store import Entry, ObjectStore, SnapshotError, VanishedError


@dataclass(frozen=True)
class NeededFile:
    """One file."""

    path: str
    shared: bool = False


@dataclass(frozen=True)
class CheckpointAt:
    """One batch."""

    batch: int
    files: tuple[NeededFile, ...]
    offsets: str
    facts: Mapping[str, Any] = field(default_factory=lambda: {"provider": "fake"})


class UnreadableError(SnapshotError):
    """A file says nothing."""


class FakeLayout:
    """Reads such a checkpoint."""

    def newest_committed(self, listing: Mapping[str, Entry]) -> int | None:
        return max((int(path.partition("/")[2]) for path in listing if path.startswith("commits/")), default=None)

    def needed_files(
        self,
        listing: Mapping[str, Entry],
        read: Callable[[str], bytes],
        batch: int,
        each: Callable[[Callable[[Any], Any], Iterable[Any]], Iterable[Any]] = map,
        read_head: Callable[[str, int], bytes] | None = None,
    ) -> CheckpointAt:
        own = ["metadata", f"offsets/{batch}", f"commits/{batch}", f"state/{batch}.zip"]
        offsets, state = each(read, [f"offsets/{batch}", f"state/{batch}.zip"])
        if not state.startswith(b"{"):
            raise UnreadableError(f"state/{batch}.zip says nothing")
        files = [NeededFile(path) for path in own]
        files += [NeededFile(f"SSTs/{name}", shared=True) for name in json.loads(state)["ssts"]]
        for file in files:
            if file.path not in listing:
                raise VanishedError(f"{file.path} is not there")
        return CheckpointAt(batch, tuple(files), offsets.decode())


LAYOUT = FakeLayout()
_unique = itertools.count(1)


def write_batch(
    store: ObjectStore, root: str, live: int = 3, note: Callable[[int, dict[str, bytes]], None] = lambda *batch: None
) -> int:
    """Write the next batch of the query at ``root``; at most ``live`` shared files are in use afterwards.

    ``note`` is told the batch and all that it consists of, path -> content, before it is committed. Return the batch.
    """
    listing = {entry.key[len(root) + 1 :]: entry for entry in store.list(root + "/")}
    before = LAYOUT.newest_committed(listing)
    content = {"metadata": json.dumps({"id": root}).encode()}
    batch, ssts = 0, []
    if before is None:
        store.put(f"{root}/metadata", content["metadata"])
    else:
        batch, ssts = before + 1, json.loads(_read(store, f"{root}/state/{before}.zip"))["ssts"]
        content = {path: _read(store, f"{root}/{path}") for path in ("metadata", *(f"SSTs/{name}" for name in ssts))}
    number = next(_unique)
    name = f"{batch:06d}-{number:08d}.sst"
    ssts = [*ssts, name][-live:]
    new = {
        f"offsets/{batch}": f"offsets {batch}".encode(),
        f"SSTs/{name}": b"rows " * (number % 7) + name.encode(),
        f"state/{batch}.zip": json.dumps({"ssts": ssts, "attempt": number}).encode(),
        f"commits/{batch}": b"{}",
    }
    for path, body in list(new.items())[:-1]:
        store.put(f"{root}/{path}", body)
    needed = {"metadata", *new, *(f"SSTs/{each}" for each in ssts)}
    note(batch, {path: body for path, body in {**content, **new}.items() if path in needed})
    store.put(f"{root}/commits/{batch}", new[f"commits/{batch}"])
    return batch


def _read(store: ObjectStore, key: str) -> bytes:
    found = store.get(key)
    assert found is not None, key
    return found[0]


def content_of(store: ObjectStore, root: str, batch: int) -> dict[str, bytes]:
    """Return what a batch consists of, path -> content."""
    listing = {entry.key[len(root) + 1 :]: entry for entry in store.list(root + "/")}
    needed = LAYOUT.needed_files(listing, lambda path: _read(store, f"{root}/{path}"), batch)
    return {file.path: _read(store, f"{root}/{file.path}") for file in needed.files}


def rewrite_state(store: ObjectStore, root: str) -> tuple[int, bytes] | None:
    """Write the newest state file again with other bytes that mean the same, as a repeated task does."""
    listing = {entry.key[len(root) + 1 :]: entry for entry in store.list(root + "/")}
    batch = LAYOUT.newest_committed(listing)
    found = store.get(f"{root}/state/{batch}.zip")
    if batch is None or found is None:
        return None
    body = json.dumps({**json.loads(found[0]), "attempt": f"{next(_unique):08d}"}).encode()
    store.put(f"{root}/state/{batch}.zip", body)
    return batch, body


def clean(store: ObjectStore, root: str, keep: int) -> None:
    """Remove all but the newest ``keep`` batches and the shared files that none of these needs."""
    listing = {entry.key[len(root) + 1 :]: entry for entry in store.list(root + "/")}
    newest = LAYOUT.newest_committed(listing)
    if newest is None:
        return
    needed = set()
    for batch in range(max(0, newest - keep + 1), newest + 1):
        found = store.get(f"{root}/state/{batch}.zip")
        if found is not None:
            names = json.loads(found[0])["ssts"]
            needed |= {
                f"offsets/{batch}",
                f"commits/{batch}",
                f"state/{batch}.zip",
                *(f"SSTs/{name}" for name in names),
            }
    # What is younger than the batch that was looked at is not touched.
    young = {path for path in listing if path.startswith("SSTs/") and int(path[5:11]) > newest}
    young |= {path for path in listing if path[0] in "oc" and int(path.partition("/")[2]) > newest}
    young |= {path for path in listing if path.startswith("state/") and int(path[6:-4]) > newest}
    store.delete(sorted(f"{root}/{path}" for path in listing.keys() - needed - young - {"metadata"}))
