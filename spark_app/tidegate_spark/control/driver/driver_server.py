"""The driver's HTTP server for workers and for the source of control messages, with a token of its own. Does I/O.

It starts with the first query that takes part. The position of a batch is read from Spark's offset log, once.
"""

from __future__ import annotations

import base64
import dataclasses
import hmac
import json
import logging
import secrets
import threading
from collections.abc import Callable
from typing import Any, ClassVar

from pyspark import cloudpickle

from tidegate_spark.contract.control_protocol import LONGEST_ERROR, ControlSettings
from tidegate_spark.contract.json_form import to_json
from tidegate_spark.contract.object_paths import Storage
from tidegate_spark.contract.secret_shapes import without_shapes
from tidegate_spark.control.messages.handlers import Declared
from tidegate_spark.control.service.cached_client import Reached
from tidegate_spark.control.service.message_service import MessageService
from tidegate_spark.control.worker.driver_client import APPLIED, LARGEST_QUESTION, MESSAGES, POSITION, STATE, Line
from tidegate_spark.control_log.entries import VERSION, Entry, Segment
from tidegate_spark.control_log.log_objects import LostError
from tidegate_spark.control_log.offsets import Positions
from tidegate_spark.control_log.reducer import State
from tidegate_spark.process.serving.framing import Head, Refusal
from tidegate_spark.process.serving.handler import Handler
from tidegate_spark.process.serving.limits import Limits
from tidegate_spark.process.serving.server import Server
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_spark.storage.s3_client import fault_of

LIMITS = Limits(
    connections=8192, threads=32, waiting=4096, request_seconds=30.0, answer_seconds=60.0, idle_seconds=None
)
"""Each Python worker of each executor keeps one connection, and asks at the start of each batch."""

log = logging.getLogger("tidegate")


class Answers:
    """What is answered. Thread safe."""

    def __init__(  # noqa: PLR0913 - two are by name
        self,
        service: MessageService,
        declared: Declared,
        positions: Positions,
        connect: Callable[[], SnapshotRepository],
        place: Storage,
        *,
        settings: ControlSettings,
        clean: Callable[[str], str] = without_shapes,
    ) -> None:
        """Prepare.

        Args:
            service: knows what is in force at a position.
            declared: what the program has said.
            positions: of the lineage's batches.
            connect: reaches the storage.
            place: the storage, for workers.
            settings: for workers, too.
            clean: takes secrets out of the words of an error, which are stored as well.
        """
        self._clean = clean
        self._service, self._declared, self._positions, self._reached = service, declared, positions, Reached(connect)
        self._storage, self._place, self._settings = place, to_json(place), to_json(settings)
        self._lock = threading.Lock()
        self._handlers: tuple[int, str] = (0, "")
        self._by_path: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
            STATE: self._state,
            APPLIED: self._applied,
            POSITION: self._position,
            MESSAGES: self._messages,
        }

    def answer(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        """Return the answer to a question; raises KeyError, and whatever keeps it from being answered."""
        return self._by_path[path](body)

    def is_stores(self, error: Exception) -> bool:
        """Return whether an exception is a fault of the store, and not of what is asked or what is in it."""
        return fault_of(error, self._storage, "") is not None

    def _position(self, body: dict[str, Any]) -> dict[str, Any]:
        return {"position": self._service.position()}

    def _messages(self, body: dict[str, Any]) -> dict[str, Any]:
        entries = self._service.messages(int(body["after"]), int(body["upto"]))
        return {"messages": [json.loads(to_json(entry)) for entry in entries]}

    def _state(self, body: dict[str, Any]) -> dict[str, Any]:
        query, batch, worker = str(body["query"]), int(body["batch"]), str(body["worker"])
        before, position = int(body["position"]), self._position_of(query, batch)
        self._service.workers.asks(query, batch, worker)
        state = self._service.state_at(position)
        news, earlier = self._news(state, before)
        said: dict[str, Any] = {"storage": self._place, "control": self._settings, "state": None, "handlers": None}
        said["messages"] = to_json(Segment(VERSION, news))
        said["before"] = to_json(Segment(VERSION, earlier))
        if position != before:
            said["state"] = to_json(dataclasses.replace(state, last_before={}))
        if int(body["handlers"]) != self._declared.version:
            version, content = self._carried()
            return {**said, "handlers": {"version": version, "content": content}}
        if position == before:
            # The worker has nothing to take in, so nothing can go wrong with it, and it need not say so.
            self._service.workers.applied(query, batch, worker, {})
            said["applied"] = True
        return said

    def _applied(self, body: dict[str, Any]) -> dict[str, Any]:
        query, batch, worker = str(body["query"]), int(body["batch"]), str(body["worker"])
        errors = {
            int(sequence): self._clean(str(message))[:LONGEST_ERROR] for sequence, message in body["errors"].items()
        }
        self._service.workers.applied(query, batch, worker, errors, more=bool(body.get("more")))
        return {}

    def _news(self, state: State, before: int) -> tuple[tuple[Entry, ...], tuple[Entry, ...]]:
        """Return the messages that a worker's handlers are to be called for, and those before, for where they fail.

        A worker that has seen all messages but these has what it made of those before.
        """
        kinds = set(self._declared.on_worker)
        if not kinds or state.position == before:
            return (), ()
        if before >= 0:
            try:
                found = self._service.messages(before, state.position)
                return tuple(entry for entry in found if entry.type in kinds), ()
            except LostError:
                pass
        newest = (entry for kind, entry in state.last.items() if kind in kinds)
        earlier = (entry for kind in sorted(kinds) for entry in state.last_before.get(kind, ()))
        return tuple(sorted(newest, key=lambda entry: entry.sequence)), tuple(earlier)

    def _carried(self) -> tuple[int, str]:
        with self._declared.lock:
            version, handlers = self._declared.version, dict(self._declared.on_worker)
        if self._handlers[0] != version:
            self._handlers = (version, base64.b64encode(_pickled(handlers)).decode())
        return self._handlers

    def _position_of(self, query: str, batch: int) -> int:
        with self._lock:
            running = self._positions.of_running(query, batch)
            if running is not None:
                return running
            try:
                position = self._positions.of(self._reached.repository(), query, batch)
            except Exception:
                self._reached.forget()
                raise
        if position is None:
            raise LookupError(f"batch {batch} of query {query!r} has no position in the control log")
        return position


def _pickled(handlers: dict[str, Any]) -> bytes:
    return bytes(cloudpickle.dumps(handlers))  # type: ignore[no-untyped-call] # untyped there


class PortHandler(Handler):
    """POST of a question, with the token."""

    answers: ClassVar[Answers]
    token: ClassVar[str]

    @classmethod
    def judge(cls, head: Head) -> Refusal | None:
        """Refuse whoever is no worker of this driver's."""
        offered = head.headers.get("Authorization", "").removeprefix("Bearer ")
        same = hmac.compare_digest(offered.encode(), cls.token.encode())
        return None if same else Refusal(401, "the driver's own workers ask here")

    @classmethod
    def largest_body(cls, head: Head) -> int:
        """Return how long a question may be."""
        return LARGEST_QUESTION

    def do_POST(self) -> None:  # noqa: N802 - the base class's name
        """Answer."""
        self._answer(self.rfile.read())

    def _answer(self, content: bytes) -> None:
        try:
            said = self.answers.answer(self.path, json.loads(content))
        except Exception as error:  # whatever it is: it is the answer, and whoever asks fails
            log.warning("control: %s cannot be answered: %s: %s", self.path, type(error).__name__, error)
            self.refuse(503 if self.answers.is_stores(error) else 500, f"{type(error).__name__}: {error}")
        else:
            self.answer(200, json.dumps(said))


class Port:
    """The server."""

    def __init__(self, answers: Answers, bind_address: str, address: str) -> None:
        """Listen at ``bind_address``, at a port that is free; workers reach it at ``address``."""
        token = secrets.token_urlsafe(24)
        handler = type("Port", (PortHandler,), {"answers": answers, "token": token})
        self._server = Server(bind_address, 0, handler, LIMITS)
        host = f"[{address}]" if ":" in address else address
        self.line = Line(f"{host}:{self._server.port}", token)
        self._server.start()
