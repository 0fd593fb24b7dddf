"""Reads a complete snapshot back and judges whether it is whole. I/O by the port.

It checks that every file exists (as a restore does), that each has the published content, and that together they are a
checkpoint from which a query continues.
"""

from __future__ import annotations

import io
import re
import zipfile
import zlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tidegate_spark.snapshots import manifest
from tidegate_spark.snapshots.catalog import DisposedError, State
from tidegate_spark.snapshots.checkpoint.compressed import CodecMissingError
from tidegate_spark.snapshots.checkpoint.reader import Layout
from tidegate_spark.snapshots.copying import Copiers, Progress, in_parallel
from tidegate_spark.snapshots.manifest import File, Manifest
from tidegate_spark.snapshots.restore import Origin, damages
from tidegate_spark.storage.store import Digest, Entry, MismatchError, SnapshotError, VanishedError

LARGEST_ARCHIVE = 64 << 20
"""Bytes of an archive that is unpacked, in memory; what is larger is only compared."""
_ARCHIVE = re.compile(r"state/\d+/.+\.zip")
"""RocksDB's snapshots of a version."""
_MD5, _PARTS = re.compile(r"[0-9a-f]{32}"), re.compile(r"[0-9a-f]{32}-\d+")


@dataclass(frozen=True)
class Verification:
    """What came of it."""

    files: int
    bytes: int
    unproven: int
    """Files that were read to their end and have nothing published to be compared with: encrypted ones, for instance,
    whose ETags are no hashes. The store itself may have compared them with checksums of its own."""
    problems: tuple[str, ...]
    """Empty: it is whole."""
    unread: tuple[str, ...] = ()
    """What was compared and could not be interpreted here, for want of a library."""


def verify(origin: Origin, layout: Layout, copiers: Copiers) -> Verification:
    """Read a snapshot back.

    Args:
        origin: the snapshot.
        layout: how its checkpoints are to be read.
        copiers: how many files are read at a time, and what is called after each.

    Raises:
        UnknownSnapshotError: there is no such snapshot.
        NotReadyError: it is not complete.
        DisposedError: it was disposed of meanwhile.
        Exception: what the store's client raises.
    """
    repository = origin.repository
    try:
        made = manifest.read(repository, origin.id, repository.read())
    except manifest.UnreadableManifestError as error:
        return _judged(origin, Verification(0, 0, 0, (str(error),)))
    files = {file.key: file for file in made.files}
    problems = damages(origin)
    unproven = 0
    if not problems:
        seen = _read_all(origin, list(files.values()), copiers)
        problems += [problem for problem, _ in seen if problem]
        unproven = sum(1 for problem, proven in seen if not problem and not proven)
    unread = list[str]()
    if not problems:
        problems += _wrong_checkpoints(origin, layout, made, copiers, unread)
    size = sum(file.size for file in files.values())
    return _judged(origin, Verification(len(files), size, unproven, tuple(problems), tuple(unread)))


def _judged(origin: Origin, found: Verification) -> Verification:
    """Return what was found; raises DisposedError if that is only because the snapshot went meanwhile."""
    if found.problems:
        known = origin.repository.read().snapshots.get(origin.id)
        if known is None or known.state is not State.READY:
            raise DisposedError(f"snapshot {origin.id} was deleted while it was read")
    return found


def _read_all(origin: Origin, files: list[File], copiers: Copiers) -> list[tuple[str, bool]]:
    """Return of each file what is wrong with it, if anything, and whether its content was compared."""
    found: list[tuple[str, bool]] = []
    of_bytes, done = sum(file.size for file in files), 0
    for number, outcome in enumerate(in_parallel(copiers, partial(_read_one, origin), files)):
        found.append(outcome)
        done += files[number].size
        copiers.report(Progress(number + 1, done, len(files), of_bytes))
    return found


def _read_one(origin: Origin, file: File) -> tuple[str, bool]:
    key = origin.repository.key(file.key)
    try:
        digest = origin.repository.store.digest(key)
    except MismatchError as error:
        return str(error), True
    if digest is None:
        return f"{key} is gone", True
    if digest.size != file.size:
        return f"{key} has {digest.size} bytes, and {file.size} were published", True
    return _compared(origin, key, file, digest)


def _compared(origin: Origin, key: str, file: File, digest: Digest) -> tuple[str, bool]:
    etag = file.etag.strip('"')
    if etag in (digest.md5, digest.parts_md5):
        return "", True
    if _PARTS.fullmatch(etag) or not _MD5.fullmatch(etag):
        return "", False
    # It looks like an MD5. Whether it is one, the store knows: of what is encrypted it is not.
    head = origin.repository.store.head(key)
    if head is not None and not head.plain:
        return "", False
    return f"{key} does not have the content that was published", True


def _wrong_checkpoints(
    origin: Origin, layout: Layout, made: Manifest, copiers: Copiers, unread: list[str]
) -> list[str]:
    """Return why a query could not go on from the files, of each for which that is so; what cannot be known: unread."""
    problems = []
    for query, at in sorted(made.queries.items()):
        listing = {
            file.path: Entry(origin.repository.key(file.key), file.size, file.etag)
            for file in made.files
            if file.query == query
        }
        try:
            read, each = _reader(origin, listing), partial(in_parallel, copiers)
            found = layout.needed_files(listing, read, at.batch, each, origin.repository.head_reader(listing))
            if found.offsets != at.offsets:
                problems.append(f"query {at.called(query)}: offsets/{at.batch} differs from the manifest")
            for path, entry in listing.items():
                _unpack(path, entry, read)
        except SnapshotError as error:
            into = unread if isinstance(error.__cause__, CodecMissingError) else problems
            into.append(f"query {at.called(query)}: {error}")
    return problems


def _reader(origin: Origin, listing: dict[str, Entry]) -> Callable[[str], bytes]:
    def read(path: str) -> bytes:
        entry = listing.get(path)
        found = origin.repository.store.get(entry.key) if entry is not None else None
        if found is None:
            raise VanishedError(f"{path} is gone")
        return found[0]

    return read


def _unpack(path: str, entry: Entry, read: Callable[[str], bytes]) -> None:
    """Look whether an archive is one, down to its last entry.

    Raises:
        MismatchError: it is not.
    """
    if not _ARCHIVE.fullmatch(path) or entry.size > LARGEST_ARCHIVE:
        return
    try:
        with zipfile.ZipFile(io.BytesIO(read(path))) as archive:
            bad = archive.testzip()
    except (zipfile.BadZipFile, zlib.error, EOFError, NotImplementedError) as error:
        raise MismatchError(f"{path} is no whole archive ({error})") from error
    if bad is not None:
        raise MismatchError(f"{path} has a damaged entry, {bad}")
