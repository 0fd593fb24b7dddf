"""Fetches model files from object storage and keeps them by checksum. Does I/O."""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import json
import os
import stat
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, cast

from tidegate_spark.contract.control_protocol import ModelSettings
from tidegate_spark.contract.object_paths import Storage
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.control.messages import messages
from tidegate_spark.control.messages.validation import rejected
from tidegate_spark.control.worker.model_places import PlaceError, is_within, parts_of
from tidegate_spark.control_log.entries import Entry
from tidegate_spark.control_log.reducer import Model
from tidegate_spark.process.environment import Environment
from tidegate_spark.storage import s3_client
from tidegate_spark.storage.s3_client import status_of

if TYPE_CHECKING:
    from botocore.response import StreamingBody
    from mypy_boto3_s3 import S3Client

PIECE = 1 << 20
UNUSED_SECONDS = 86400.0
"""Files that nobody asked for in so long a time are removed when a new one comes: executors run for months."""
RECENT_SECONDS = 600.0
"""A file that somebody asked for in so short a time may be about to be opened, and stays."""
MOST_KEPT = 3
"""Models of the largest size that the files of one pod may take together."""
_LOCK = ".lock"
_BETWEEN_TRIES = 0.05

Fetch = Callable[[str, BinaryIO], None]
"""Writes what is at an address."""
IsOver = Callable[[], bool]
"""Whether the time is up that something may take."""


class ModelError(Exception):
    """A model cannot be had."""


class TooLargeError(ModelError):
    """A model is larger than models may be."""


def within(seconds: float) -> IsOver:
    """Return what says whether so many seconds have passed since now."""
    end = time.monotonic() + seconds
    return lambda: time.monotonic() >= end


def file_of(model: Model, directory: Path, fetch: Fetch, size_limit: int, is_over: IsOver = lambda: False) -> Path:
    """Return a file with the model; it is fetched if it is not there, by one process of the pod at a time.

    Whoever keeps the path for longer than a batch opens the file, or asks again.

    Raises:
        ModelError: what is there has another checksum, other models take all the room, or another process takes too
            long.
        Exception: what ``fetch`` raises.
    """
    wanted = model.sha256.lower()
    place = directory / wanted
    with contextlib.suppress(FileNotFoundError):
        os.utime(place)
        return place
    directory.mkdir(parents=True, exist_ok=True)
    with _alone(directory, is_over):
        # The process before this one may have fetched the same.
        if not place.exists():
            _make_room(directory, size_limit)
            _fetch_to(place, model, fetch)
    return place


def _fetch_to(place: Path, model: Model, fetch: Fetch) -> None:
    handle, name = tempfile.mkstemp(dir=place.parent)
    try:
        with os.fdopen(handle, "wb") as file:
            fetch(model.uri, file)
        found = _sha256(Path(name))
        if found != place.name:
            raise ModelError(f"{model.uri} has the SHA-256 {found}, and {place.name} was said")
        os.replace(name, place)
    finally:
        Path(name).unlink(missing_ok=True)


@contextlib.contextmanager
def _alone(directory: Path, is_over: IsOver) -> Iterator[None]:
    """Be the one process that fetches: together, all workers of a pod would need room for as many copies."""
    with (directory / _LOCK).open("w") as lock:
        while True:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if is_over():
                    raise ModelError("another process of the pod has not fetched its model yet") from None
                time.sleep(_BETWEEN_TRIES)
        yield


def _make_room(directory: Path, size_limit: int) -> None:
    """Remove old models, and those used longest ago as far as one more needs their room.

    Only what a process left that was killed is there beside them: nobody else fetches meanwhile.

    Raises:
        ModelError: what was asked for just now takes all of it.
    """
    now = time.time()
    found = [(path, path.stat()) for path in directory.iterdir() if path.name != _LOCK]
    taken = sum(entry.st_size for _, entry in found)
    for path, entry in sorted(found, key=lambda each: each[1].st_mtime):
        unused = now - entry.st_mtime
        if unused > UNUSED_SECONDS or (unused > RECENT_SECONDS and taken + size_limit > MOST_KEPT * size_limit):
            path.unlink(missing_ok=True)
            taken -= entry.st_size
    if taken + size_limit > MOST_KEPT * size_limit:
        message = f"the models in use take {taken} bytes of {directory}"
        raise ModelError(f"{message}, and at most {MOST_KEPT} times spec.control.models.sizeLimit may be taken")


def inspected(entry: Entry, fetch: Fetch, settings: ModelSettings) -> Entry:
    """Return a reload-model as it is to be logged: as it is, or rejected, if nobody may or can have what it names.

    Nothing is kept. ``file://`` addresses are the workers' own: whether they may be named is looked at, and no more.

    Raises:
        Exception: what ``fetch`` raises if that may pass.
    """
    said = json.loads(entry.payload)
    message = _not_allowed(said["uri"], settings.allowed_prefixes or ())
    if message:
        return rejected(entry, Reason.MODEL_NOT_ALLOWED, message)
    if said["uri"].startswith("file://"):
        return entry
    reason, message = _fault_of(said["uri"], said["sha256"].lower(), fetch)
    return rejected(entry, reason, message) if reason else entry


def _fault_of(uri: str, sha256: str, fetch: Fetch) -> tuple[Reason, str]:
    """Return why a model cannot be had, no reason if it can; raises what may pass."""
    sink = _Sink()
    try:
        fetch(uri, cast(BinaryIO, sink))
    except TooLargeError as error:
        return Reason.MODEL_TOO_LARGE, str(error)
    except Exception as error:
        if not _is_refusal(error):
            raise
        return Reason.MODEL_NOT_FOUND, f"{uri} cannot be had: {type(error).__name__}: {error}"
    found = sink.made.hexdigest()
    if found != sha256:
        return Reason.MODEL_DAMAGED, f"{uri} has the SHA-256 {found}, and {sha256} was said"
    return Reason.NONE, ""


def _not_allowed(uri: str, prefixes: tuple[str, ...]) -> str:
    """Return why an address may not be named, empty if it may."""
    try:
        if is_within(uri, prefixes):
            return ""
    except PlaceError as error:
        return f"{error}."
    allowed = " or ".join(prefixes) or "any address: the list is empty"
    return messages.address_not_allowed(uri, allowed)


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


def pod_credentials() -> s3_client.Credentials | None:
    """Return the keys in the application's Secret as it is now, None if the spec names none.

    The variables of a worker have those of the executor's start, which may have expired, and those of a driver that
    waited for the Secret have none.
    """
    return s3_client.mounted_credentials(Environment.read(os.environ).credentials_directory)


def fetcher(
    place: Storage,
    credentials: Callable[[], s3_client.Credentials | None] = lambda: None,
    *,
    size_limit: int,
    is_over: IsOver = lambda: False,
) -> Fetch:
    """Return what fetches ``s3://`` addresses from the store of ``place``, and ``file://`` from this machine.

    Nothing larger is fetched, and nothing any more once the time is up.

    Args:
        place: the application's storage.
        credentials: for it; without, they are those that the process was started with.
        size_limit: bytes of one model.
        is_over: asked between two pieces.
    """

    def fetch(uri: str, file: BinaryIO) -> None:
        scheme, bucket, *segments = parts_of(uri)
        if scheme == "file":
            with _open_regular(segments) as source:
                _copy(source.read, file, uri, size_limit, is_over)
            return
        client = s3_client.connect(place, credentials())
        refuse_redirects(client)
        answer = client.get_object(Bucket=bucket, Key="/".join(segments))
        size = answer.get("ContentLength")
        with contextlib.closing(answer["Body"]) as body:
            if (size or 0) > size_limit:
                raise _too_large(uri, size_limit)
            copied = _copy(_what_is_there(body), file, uri, size_limit, is_over)
        if size is not None and copied != size:
            raise ConnectionError(f"{uri}: {copied} bytes came, and {size} were said")

    return fetch


def refuse_redirects(client: S3Client) -> None:
    """Have a client follow no answer that says to look elsewhere: where models are, the store of the spec says.

    urllib3 follows none for botocore. botocore itself asks again in another region, once for each request, and takes
    this mark for that one time.
    """

    def mark(context: dict[str, Any], **_: Any) -> None:
        context.setdefault("s3_redirect", {})["redirected"] = True

    client.meta.events.register_last("before-call.s3", mark)


def _what_is_there(body: StreamingBody) -> Callable[[int], bytes]:
    """Return what reads as much as has come, at most so much.

    To wait for a whole piece from a store that sends a byte now and then would take for ever, and nobody would ask
    meanwhile whether the time is up.
    """
    # urllib3 has it since 2.0.
    return getattr(body.__enter__(), "read1", None) or body.read


def _copy(read: Callable[[int], bytes], file: BinaryIO, uri: str, size_limit: int, is_over: IsOver) -> int:
    """Copy what is read, whatever size was said before: an object, or a file, may be replaced meanwhile.

    Returns:
        How many bytes that were.
    """
    left = size_limit
    while piece := read(PIECE):
        if is_over():
            raise TimeoutError(f"{size_limit - left} bytes of {uri} were read when the time was up")
        left -= len(piece)
        if left < 0:
            raise _too_large(uri, size_limit)
        file.write(piece)
    return size_limit - left


def _too_large(uri: str, size_limit: int) -> TooLargeError:
    return TooLargeError(messages.model_too_large(uri, size_limit))


def _open_regular(segments: list[str]) -> BinaryIO:
    """Open a regular file for reading; nothing on the way to it is a link, and nothing that waits is waited for.

    Raises:
        ModelError: it is none.
        OSError: it cannot be opened.
    """
    with contextlib.ExitStack() as opened:

        def enter(flags: int, segment: str, inside: int | None) -> int:
            handle = os.open(segment, flags | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=inside)
            opened.callback(os.close, handle)
            return handle

        where, path = enter(os.O_PATH | os.O_DIRECTORY, "/", None), ""
        for number, segment in enumerate(segments, 1):
            path = f"{path}/{segment}"
            if stat.S_ISLNK(os.lstat(segment, dir_fd=where).st_mode):
                raise ModelError(f"{path} is a symbolic link: name the place that it leads to")
            last = number == len(segments)
            where = enter(os.O_RDONLY | os.O_NONBLOCK if last else os.O_PATH | os.O_DIRECTORY, segment, where)
        if not stat.S_ISREG(os.fstat(where).st_mode):
            raise ModelError(f"{path} is no regular file")
        return os.fdopen(os.dup(where), "rb")


def _sha256(path: Path) -> str:
    made = hashlib.sha256()
    with path.open("rb") as file:
        while piece := file.read(PIECE):
            made.update(piece)
    return made.hexdigest()
