"""Redacts a process's output, keeps its last lines, and archives them. Does I/O on file descriptors 1 and 2."""

from __future__ import annotations

import os
import re
import select
import threading
import time
from collections import deque
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tidegate_spark.contract.protocol import LOG_PREFIX, Storage
from tidegate_spark.process.redaction import Secrets, Stream

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

KEPT_LINES = 5000
KEPT_BYTES = 512 * 1024
LONGEST_LINE = 64 * 1024
KEPT_PROCESSES = 20
"""Driver processes whose logs are kept, executors' included."""
PAGE = 1000
"""What S3 lists, and deletes, in one request."""


class Tail:
    """The last lines of a stream of bytes; thread safe."""

    def __init__(self, lines: int = KEPT_LINES, size: int = KEPT_BYTES) -> None:
        """Keep at most ``lines`` lines and ``size`` bytes."""
        self._lock = threading.Lock()
        self._limit = size
        self._lines: deque[bytes] = deque()
        self._most = lines
        self._size = 0

    def add(self, line: bytes) -> None:
        """Append one line, with its line end if it has one."""
        with self._lock:
            self._lines.append(line)
            self._size += len(line)
            while len(self._lines) > self._most or self._size > self._limit:
                self._size -= len(self._lines.popleft())

    def content(self) -> bytes:
        """Return what is kept."""
        with self._lock:
            return b"".join(self._lines)


class Tee:
    """Copies what is written to a pipe to a file descriptor and, line by line, to a tail, both without secrets."""

    def __init__(self, target: int, tail: Tail, secrets: Secrets) -> None:
        """Create the pipe; ``start`` begins to copy."""
        self._target, self._tail, self._stream = target, tail, Stream(secrets)
        self._read_end, self.write_end = os.pipe()
        self._rest = b""
        self._lock = threading.Lock()
        self._thread = threading.Thread(target=self._copy, name=f"tee-{target}", daemon=True)

    def start(self) -> None:
        """Begin to copy, in a thread."""
        self._thread.start()

    def drain(self, seconds: float) -> None:
        """Wait until all that was written is passed on, at most ``seconds``: writers may still hold the pipe open."""
        deadline = time.monotonic() + seconds
        # Whoever copies holds the lock until it is written, which is for ever if nobody reads our output any more.
        while self._lock.acquire(timeout=max(0.0, deadline - time.monotonic())):
            try:
                if time.monotonic() >= deadline or not _ready(self._read_end):
                    self._flush()
                    return
            finally:
                self._lock.release()
            time.sleep(0.01)

    def _flush(self) -> None:
        rest = self._stream.flush()
        self._keep(rest, last=True)
        if rest and select.select([], [self._target], [], 0)[1]:
            _write_all(self._target, rest)

    def _copy(self) -> None:
        while True:
            select.select([self._read_end], [], [])
            # Taken and passed on under one lock: what is in neither place would be missed by ``drain``, and lost.
            with self._lock:
                data = os.read(self._read_end, 65536)
                if not data:
                    return
                shown = self._stream.feed(data)
                self._keep(shown)
                _write_all(self._target, shown)

    def _keep(self, data: bytes, last: bool = False) -> None:
        *lines, self._rest = (self._rest + data).split(b"\n")
        for line in lines:
            self._tail.add(line + b"\n")
        if self._rest and (last or len(self._rest) > LONGEST_LINE):
            self._tail.add(self._rest)
            self._rest = b""


def _ready(descriptor: int) -> bool:
    return bool(select.select([descriptor], [], [], 0)[0])


def _write_all(target: int, data: bytes) -> None:
    try:
        while data:
            data = data[os.write(target, data) :]
    except OSError:
        pass  # the reader of our output is gone; the tail is still needed


class OutputTail:
    """Standard output and standard error of this process and its children."""

    def __init__(self, secrets: Secrets) -> None:
        """Put pipes in the place of file descriptors 1 and 2, so that the JVM's output passes too.

        Args:
            secrets: left out of everything that passes; may come to know more.
        """
        self.tail = Tail()
        self.secrets = secrets
        self._tees = []
        for descriptor in (1, 2):
            tee = Tee(os.dup(descriptor), self.tail, secrets)
            os.dup2(tee.write_end, descriptor)
            tee.start()
            self._tees.append(tee)

    def content(self, seconds: float = 1.0) -> bytes:
        """Return the last lines, after what is still in the pipes."""
        for tee in self._tees:
            tee.drain(seconds)
        return self.tail.content()


def process_name(now: float, epoch: int, *, rehearsal: bool = False) -> str:
    """Return the name of the driver process that begins at ``now`` (seconds since 1970); names sort by time.

    An epoch has one driver process at a time, so that nothing need be looked up to keep names apart.
    """
    seconds, milliseconds = divmod(int(now * 1000), 1000)
    what = f"e{epoch}-rehearsal" if rehearsal else f"e{epoch}"
    return f"{time.strftime('%Y%m%dT%H%M%S', time.gmtime(seconds))}.{milliseconds:03}Z-{what}"


def old_processes(names: Iterable[str], kept: int = KEPT_PROCESSES) -> set[str]:
    """Return those of ``names`` that are not among the ``kept`` newest processes; other names are not ours to judge."""
    processes = sorted(name for name in names if re.fullmatch(r"\d{8}T\d{6}\.\d{3}Z-e\d+", name))
    return set(processes[:-kept])


def put_driver_log(client: S3Client, storage: Storage, process: str, content: bytes) -> str:
    """Write ``logs/<process>/driver.log``; return its key."""
    return _put(client, storage, process, "driver.log", content)


def put_executor_log(client: S3Client, storage: Storage, process: str, executor: str, content: bytes) -> str:
    """Write ``logs/<process>/executor-<id>.log``; return its key."""
    return _put(client, storage, process, f"executor-{executor}.log", content)


def _put(client: S3Client, storage: Storage, process: str, name: str, content: bytes) -> str:
    key = storage.key(LOG_PREFIX, process, name)
    client.put_object(Bucket=storage.bucket, Key=key, Body=content)
    return key


def prune_logs(client: S3Client, storage: Storage) -> int:
    """Delete the logs of old processes, with three requests at the most; return how many logs were deleted.

    Keys are listed in order and so by time: what is more than a page is deleted by the next calls.
    """
    prefix = storage.key(LOG_PREFIX) + "/"
    found = client.list_objects_v2(Bucket=storage.bucket, Prefix=prefix, Delimiter="/", MaxKeys=PAGE)
    names = [each["Prefix"].removeprefix(prefix).rstrip("/") for each in found.get("CommonPrefixes", [])]
    old = old_processes(names)
    if not old:
        return 0
    listed = client.list_objects_v2(Bucket=storage.bucket, Prefix=prefix, MaxKeys=PAGE)
    keys = [item["Key"] for item in listed.get("Contents", [])]
    doomed = [key for key in keys if key.removeprefix(prefix).partition("/")[0] in old]
    if doomed:
        client.delete_objects(
            Bucket=storage.bucket, Delete={"Objects": [{"Key": key} for key in doomed], "Quiet": True}
        )
    return len(doomed)


def within(seconds: float, action: object) -> bool:
    """Run ``action()`` in a thread, abandoned after ``seconds``; return True if it ended in time and without error."""
    assert callable(action)
    succeeded = threading.Event()

    def run() -> None:
        action()
        succeeded.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    thread.join(seconds)
    return succeeded.is_set()
