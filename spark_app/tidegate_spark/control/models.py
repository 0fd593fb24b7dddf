"""Files of models, fetched from object storage and kept by checksum. Does I/O."""

from __future__ import annotations

import hashlib
import os
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

from tidegate_spark import storage
from tidegate_spark.control.fold import Model
from tidegate_spark.places import Storage

PIECE = 1 << 20

Fetch = Callable[[str, BinaryIO], None]
"""Writes what is at an address."""


class ModelError(Exception):
    """A model cannot be had."""


def file_of(model: Model, directory: Path, fetch: Fetch) -> Path:
    """Return a file with the model; it is fetched if it is not there. Other processes may do the same meanwhile.

    Raises:
        ModelError: what is there has another checksum.
        Exception: what ``fetch`` raises.
    """
    wanted = model.sha256.lower()
    place = directory / wanted
    if place.exists():
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
    return place


def fetcher(place: Storage) -> Fetch:
    """Return what fetches ``s3://`` addresses from the store of ``place``, and ``file://`` from this machine.

    The credentials are those that the process has, as its JVM.
    """

    def fetch(uri: str, file: BinaryIO) -> None:
        scheme, _, rest = uri.partition("://")
        if scheme == "file":
            with open(rest, "rb") as source:
                shutil.copyfileobj(source, file, PIECE)
        elif scheme in ("s3", "s3a"):
            bucket, _, key = rest.partition("/")
            storage.connect(place, None).download_fileobj(bucket, key, file)
        else:
            raise ModelError(f"{uri} is neither s3:// nor file://")

    return fetch


def _sha256(path: Path) -> str:
    made = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            made.update(piece)
    return made.hexdigest()
