"""Writes control messages into the inbox of an application's storage. Does I/O, in a thread of its own."""

from __future__ import annotations

import functools
import logging
import os
import re
import secrets
import threading
import time
import uuid
import weakref
from collections import OrderedDict
from collections.abc import Callable
from types import TracebackType
from typing import Any

from tidegate_spark.contract.object_paths import INBOX_PREFIX, Storage
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.control.channels.transports.inbox import reply_in, reply_name
from tidegate_spark.control_log.entries import WRITERS
from tidegate_spark.control_writer import messages
from tidegate_spark.control_writer.errors import BufferFullError, ControlWriterError, NoOutcomeError, NotWrittenError
from tidegate_spark.control_writer.events import Expires, event_of
from tidegate_spark.control_writer.outbox import Outbox, Pace
from tidegate_spark.control_writer.outcomes import Outcome, outcome_of
from tidegate_spark.storage.s3_client import Credentials, connect, fault_of
from tidegate_spark.storage.store import ObjectStore

SOURCE = "/control-writer"
USUAL_REGION = "us-east-1"
FLUSH_SECONDS, CLOSE_SECONDS, OUTCOME_SECONDS = 60.0, 30.0, 60.0
REQUEST_SECONDS = 10.0
"""For an answer of the store."""
FIRST_PAUSE_SECONDS, LONGEST_PAUSE_SECONDS = 0.2, 5.0
"""Between two attempts at a batch; and between two looks for a reply."""
MOST_REMEMBERED = 100_000
"""Messages whose outcome can be asked for, the newest."""
_FOR_GOOD = frozenset(
    {
        Reason.CREDENTIALS_MISSING,
        Reason.CREDENTIALS_REJECTED,
        Reason.CREDENTIALS_EXPIRED,
        Reason.BUCKET_NOT_FOUND,
        Reason.STORAGE_UNSUITABLE,
    }
)
_ADDRESS = re.compile(r"s3a?://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])/(.*[^/])/*")

log = logging.getLogger("tidegate")


class ControlWriter:
    """One writer. Thread safe; a context manager, which waits at its end until everything is written.

    A process that is forked has a writer of its own in it, without what was sent before.

    Messages of one writer are in the application's log in the order in which they were sent, each once, whatever the
    network does; between two writers no order is promised. A writer that was refused by the store is of no use any
    more: every call says so.
    """

    def __init__(  # noqa: PLR0913 - what differs between stores, all but the first by name
        self,
        address: str,
        *,
        source: str = SOURCE,
        endpoint: str = "",
        region: str = "",
        path_style_access: bool = False,
        credentials: Credentials | None = None,
        pace: Pace | None = None,
        store: ObjectStore | None = None,
    ) -> None:
        """Begin to write; nothing is asked of the store before the first message.

        Args:
            address: ``s3://bucket/prefix`` of the application: its ``spec.storage.uri``, namespace and name.
            source: who sends; with its id it makes a message one, whoever sends it again.
            endpoint: of the store; empty: ``AWS_ENDPOINT_URL``, or Amazon's.
            region: of the bucket; empty: ``AWS_REGION``, ``AWS_DEFAULT_REGION`` or us-east-1.
            path_style_access: whether the bucket is in the path, and not in the host's name.
            credentials: None: where boto3 looks for some.
            pace: how messages are put together.
            store: the bucket, where it is reached by other means than these.

        Raises:
            ValueError: the address is none, or the endpoint.
        """
        found = _ADDRESS.fullmatch(address)
        if found is None:
            raise ValueError(f"address must be s3://bucket/prefix of an application, and not {address!r:.200}")
        region = region or os.environ.get("AWS_REGION") or os.environ.get("AWS_DEFAULT_REGION") or USUAL_REGION
        self._place = Storage(f"s3://{found[1]}/{found[2]}", endpoint, region, path_style_access)
        self._connect: Callable[[], ObjectStore] = functools.partial(_reach, store, self._place, credentials)
        self._source, self._pace, self._closing = source, pace or Pace(), False
        self._reached: ObjectStore | None = self._connect()
        self._clear()
        _WRITERS.add(self)

    def _clear(self) -> None:
        """Be a writer of whom nothing is known."""
        self._writer = secrets.token_hex(8)
        self._outbox = Outbox(self._writer, self._pace)
        self._numbers: OrderedDict[str, int] = OrderedDict()
        self._changed, self._connecting = threading.Condition(), threading.Lock()
        self._pause = FIRST_PAUSE_SECONDS
        self._hurry = 0
        """Messages of a smaller number are written without waiting for others."""
        self._trouble = ""
        """Why the last attempt failed; empty if it did not."""
        self._refused: Exception | None = None
        self._thread: threading.Thread | None = None

    def __enter__(self) -> ControlWriter:
        """Return it."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Wait until everything is written; what the block raised is raised, and not what comes of this."""
        try:
            self.close()
        except ControlWriterError:
            if kind is None:
                raise

    def send(
        self,
        type: str,  # noqa: A002 - its name in the envelope
        payload: Any = None,
        *,
        id: str = "",  # noqa: A002 - likewise
        expires: Expires = None,
        wait_seconds: float = 0.0,
    ) -> str:
        """Take a message, which is written soon: :meth:`flush` waits for that.

        Args:
            type: a built-in one, or one that the program understands.
            payload: what JSON can say, at most 64 KiB of it.
            id: which message of this source it is; empty: one that nobody has used.
            expires: until when it may come into force: seconds from now, a timedelta, or a time with its zone.
            wait_seconds: for room, where too many wait to be written.

        Returns:
            Its id.

        Raises:
            InvalidMessageError: the application would reject it.
            BufferFullError: there is no room.
            ControlWriterError: the writer is closed.
            NotWrittenError: the store refuses what was sent before.
        """
        name = id or str(uuid.uuid4())
        body = event_of(self._source, name, type, payload, expires=expires, now=time.time())
        with self._changed:
            self._check_whether_open()
            if not self._changed.wait_for(lambda: self._is_over or self._outbox.has_room(len(body)), wait_seconds):
                raise BufferFullError(messages.buffer_full(len(self._outbox.ids), self._trouble))
            self._check_whether_open()
            self._numbers.setdefault(name, self._outbox.add(name, body, time.monotonic()))
            while len(self._numbers) > MOST_REMEMBERED:
                self._numbers.popitem(last=False)
            self._begin()
            self._changed.notify_all()
        return name

    def flush(self, timeout: float = FLUSH_SECONDS) -> None:
        """Wait until everything that was sent so far is in the storage, at most so many seconds.

        Raises:
            NotWrittenError: it is not, or the store refuses it.
        """
        with self._changed:
            upto = self._hurry = self._outbox.following
            self._changed.notify_all()
            done = self._changed.wait_for(lambda: self._outbox.written >= upto or self._refused is not None, timeout)
            if self._outbox.written >= upto:
                return
            if not done:
                raise NotWrittenError(messages.not_written(timeout, self._trouble), self._outbox.ids)
            self._check_whether_open()

    def close(self, timeout: float = CLOSE_SECONDS) -> None:
        """Wait until everything is written, at most so many seconds, and write nothing more after that.

        Raises:
            NotWrittenError: something is not.
        """
        try:
            self.flush(timeout)
        finally:
            with self._changed:
                self._closing = True
                self._changed.notify_all()
            if self._thread is not None:
                self._thread.join(REQUEST_SECONDS)

    def outcome(self, id: str, timeout: float = OUTCOME_SECONDS) -> Outcome:  # noqa: A002 - its name in the envelope
        """Wait for the reply to a message of this writer, at most so many seconds.

        Raises:
            NoOutcomeError: there was no reply in time.
            NotWrittenError: it could not be written.
            ControlWriterError: this writer did not send it, or so many others after it that it has forgotten it.
        """
        with self._changed:
            number = self._numbers.get(id)
        if number is None:
            raise ControlWriterError(messages.not_sent_here(id))
        end = time.monotonic() + timeout
        self.flush(timeout)
        key, pause, trouble = self._place.key(reply_name(WRITERS + self._writer, number)), FIRST_PAUSE_SECONDS, ""
        while True:
            try:
                found = self._store.get(key)
                reported = reply_in(found[0], self._source, id) if found is not None else None
                trouble = ""
            except Exception as error:  # who may not list a bucket may not know either that there is no reply yet
                reported, trouble = None, messages.at_store(error)
            if reported is not None:
                return outcome_of(reported)
            left = end - time.monotonic()
            if left <= 0:
                raise NoOutcomeError(_nothing_reported(id, self._place.uri, timeout, trouble))
            time.sleep(min(pause, left))
            pause = min(1.5 * pause, 2.0)

    # --- writing ---

    def _begin_anew(self) -> None:
        """Be another writer, in a process that was forked: what waits is its parent's to write.

        With the parent's name and numbers its messages would be taken for those of the parent, and left out.
        """
        self._reached = None  # its connections are the parent's
        self._clear()

    @property
    def _store(self) -> ObjectStore:
        with self._connecting:
            if self._reached is None:
                self._reached = self._connect()
            return self._reached

    @property
    def _is_over(self) -> bool:
        return self._closing or self._refused is not None

    def _check_whether_open(self) -> None:
        if self._refused is not None:
            raise NotWrittenError(messages.refused_for_good(self._refused), self._outbox.ids) from self._refused
        if self._closing:
            raise ControlWriterError(messages.CLOSED)

    def _begin(self) -> None:
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="control-writer", daemon=True)
            self._thread.start()

    def _run(self) -> None:
        while self._await_batch():
            self._write_some()

    def _await_batch(self) -> bool:
        """Wait until something is to be written; return False if nothing more will be."""
        with self._changed:
            if self._trouble:
                self._changed.wait_for(lambda: self._is_over, self._pause)
            while not self._is_over:
                if self._outbox.since is None:
                    self._changed.wait()
                    continue
                hurried = self._outbox.written < self._hurry
                linger = 0.0 if hurried else self._outbox.linger(time.monotonic())
                if linger <= 0:
                    return True
                self._changed.wait(linger)
            return False

    def _write_some(self) -> None:
        """Write the next batch, or take note of why it cannot be."""
        with self._changed:
            batch = self._outbox.batch(time.time())
        if batch is None:
            return
        key = self._place.key(INBOX_PREFIX, str(batch.name))
        try:
            self._put(key, batch.body)
        except Exception as error:
            self._fail(error)
            return
        with self._changed:
            self._outbox.done()
            self._trouble, self._pause = "", FIRST_PAUSE_SECONDS
            self._changed.notify_all()

    def _put(self, key: str, body: bytes) -> None:
        # Nobody else has this name: what refuses it is an earlier attempt of the same put. Such a one may be under way
        # still, which some stores answer in the same way; so it is asked again once.
        if self._store.put_if(key, body, None) is None:
            time.sleep(FIRST_PAUSE_SECONDS)
            self._store.put_if(key, body, None)

    def _fail(self, error: Exception) -> None:
        fault = fault_of(error, self._place, "")
        with self._changed:
            self._trouble = f"{type(error).__name__}: {error}"
            self._pause = min(2 * self._pause, LONGEST_PAUSE_SECONDS)
            if fault is not None and fault.reason in _FOR_GOOD:
                self._refused = error
            log.warning("control writer: %s: %s", self._place.uri, self._trouble)
            self._changed.notify_all()


_WRITERS: weakref.WeakSet[ControlWriter] = weakref.WeakSet()


def _begin_anew() -> None:
    for writer in list(_WRITERS):
        writer._begin_anew()


if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=_begin_anew)


def _reach(store: ObjectStore | None, place: Storage, credentials: Credentials | None) -> ObjectStore:
    if store is not None:
        return store
    from tidegate_spark.storage.s3 import S3Store  # noqa: PLC0415 - a store of one's own needs none of it

    return S3Store(connect(place, credentials, REQUEST_SECONDS), place.bucket)


def _nothing_reported(name: str, uri: str, timeout: float, trouble: str) -> str:
    return messages.no_reply(name, timeout, uri, trouble)
