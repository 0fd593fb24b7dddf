"""Files of models, fetched from object storage and kept by checksum. Does I/O."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO, cast

from tidegate_spark import storage
from tidegate_spark.control.checking import rejected
from tidegate_spark.control_log.entries import Entry, Kind
from tidegate_spark.control_log.fold import Model
from tidegate_spark.control_protocol import RELOAD_MODEL
from tidegate_spark.places import Storage
from tidegate_spark.reasons import Reason
from tidegate_spark.storage import status_of

PIECE = 1 << 20
UNUSED_SECONDS = 86400.0
"""Files that nobody asked for in so long a time are removed when a new one comes: executors run for months."""

Fetch = Callable[[str, BinaryIO], None]
"""Writes what is at an address."""


class ModelError(Exception):
    """A model cannot be had."""


def file_of(model: Model, directory: Path, fetch: Fetch) -> Path:
    """Return a file with the model; it is fetched if it is not there. Other processes may do the same meanwhile.

    Whoever keeps the path for longer than a batch opens the file, or asks again.

    Raises:
        ModelError: what is there has another checksum.
        Exception: what ``fetch`` raises.
    """
    wanted = model.sha256.lower()
    place = directory / wanted
    with contextlib.suppress(FileNotFoundError):
        os.utime(place)
        return place
    directory.mkdir(parents=True, exist_ok=True)
    handle, name = tempfile.mkstemp(dir=directory)
    try:
        with os.fdopen(handle, "wb") as file:
            fetch(model.uri, file)
        found = _sha256(Path(name))
        if found != wanted:
            raise ModelError(f"{model.uri} has the SHA-256 {found}, and {wanted} was said")
        os.replace(name, place)
    finally:
        Path(name).unlink(missing_ok=True)
    _remove_unused(directory)
    return place


def _remove_unused(directory: Path) -> None:
    """Remove models of long ago, and what a process left that was killed while it fetched one."""
    with contextlib.suppress(OSError):  # another process does the same, and disks are seldom full
        for path in directory.iterdir():
            if path.stat().st_mtime < time.time() - UNUSED_SECONDS:
                path.unlink(missing_ok=True)


def inspected(entry: Entry, fetch: Fetch) -> Entry:
    """Return a message as it is to be logged: as it is, or rejected, if it names a model that nobody can have.

    Nothing is kept. ``file://`` addresses are the workers' own, and are not looked at.

    Raises:
        Exception: what ``fetch`` raises if that may pass.
    """
    if entry.type != RELOAD_MODEL or entry.kind is not Kind.MESSAGE:
        return entry
    said = json.loads(entry.payload)
    if said["uri"].startswith("file://"):
        return entry
    sink = _Sink()
    try:
        fetch(said["uri"], cast(BinaryIO, sink))
    except Exception as error:
        if not _is_refusal(error):
            raise
        return rejected(entry, Reason.MODEL_NOT_FOUND, f"{said['uri']} cannot be had: {type(error).__name__}: {error}")
    if sink.made.hexdigest() != said["sha256"].lower():
        words = f"{said['uri']} has the SHA-256 {sink.made.hexdigest()}, and {said['sha256']} was said"
        return rejected(entry, Reason.MODEL_DAMAGED, words)
    return entry


class _Sink:
    """A file of which nothing is left but its checksum; what is written to it comes in order."""

    def __init__(self) -> None:
        self.made = hashlib.sha256()

    def write(self, content: bytes) -> int:
        """Take in more."""
        self.made.update(content)
        return len(content)


def _is_refusal(error: Exception) -> bool:
    """Return whether the same request will fail again: that is the message's fault, not the store's."""
    from botocore import exceptions as known  # noqa: PLC0415 - few programs need it

    if isinstance(error, known.ClientError):
        status = status_of(error)
        # Also where it is said to look elsewhere, in another region: tried again for ever it would hold up all others.
        return 300 <= status < 500 and status not in (408, 429)
    return isinstance(error, (ModelError, ValueError, known.ParamValidationError))


def fetcher(place: Storage, credentials: Callable[[], storage.Credentials | None] = lambda: None) -> Fetch:
    """Return what fetches ``s3://`` addresses from the store of ``place``, and ``file://`` from this machine.

    Without ``credentials`` they are those that the process has, as its JVM.
    """

    def fetch(uri: str, file: BinaryIO) -> None:
        scheme, _, rest = uri.partition("://")
        if scheme == "file":
            with open(rest, "rb") as source:
                shutil.copyfileobj(source, file, PIECE)
        elif scheme in ("s3", "s3a"):
            bucket, _, key = rest.partition("/")
            storage.connect(place, credentials()).download_fileobj(bucket, key, file)
        else:
            raise ModelError(f"{uri} is neither s3:// nor file://")

    return fetch


def _sha256(path: Path) -> str:
    made = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            made.update(piece)
    return made.hexdigest()
