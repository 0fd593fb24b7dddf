"""Reports a resource that cannot be decoded, by an event and its conditions. Does I/O.

The CRD's schema refuses such objects; one that is stored was written under another version of the CRD.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import msgspec
import structlog

from tidegate.api.streaming_app import KIND, Metadata
from tidegate.cache import refusal_messages
from tidegate.cache.app_versions import Admits, AppVersion, read_version
from tidegate.engine.events import EventPublisher
from tidegate.engine.resource_key import Key
from tidegate.engine.rules.actions import PublishEvent
from tidegate.engine.rules.conditions import build_conditions
from tidegate.engine.rules.health import Health
from tidegate.engine.rules.pauses import hour_of, minutes_of, next_hour_in
from tidegate.engine.rules.table import earliest
from tidegate.engine.workqueue import RetryLaterError
from tidegate.kube.client import KubeClient
from tidegate.kube.failures import FAILURES, TRANSIENT, Conflict, NotFound
from tidegate.kube.lines import aside, cut
from tidegate.kube.paths import item
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.secret_shapes import without_shapes

_REMEMBERED = 4096
_LONGEST_PROBLEM = 500
"""Characters: some decoders repeat the value that they refuse, which may have a million."""
log = structlog.get_logger()


class Unreadable(Protocol):
    """A stored resource that does not fit the model, of whatever kind."""

    @property
    def key(self) -> Key:
        """Namespace and name."""

    @property
    def metadata(self) -> Metadata:
        """What of it could be read."""

    @property
    def problem(self) -> str:
        """Names the field."""

    @property
    def ready(self) -> Mapping[str, Any]:
        """Its condition Ready, as stored."""


@dataclass(frozen=True, slots=True)
class _Unreadable:
    """What conditions are made of."""

    message: str
    health: Health = Health.STALLED
    reason: Reason = Reason.INVALID_SPEC


class InvalidResourceReporter:
    """Says once of each version of a resource why nothing is done about it; once an hour if only events can say it."""

    def __init__(self, client: KubeClient, events: EventPublisher) -> None:
        """Prepare."""
        self._client = client
        self._events = events
        self._reported: OrderedDict[str, str] = OrderedDict()
        """Uids, and in which version and hour each was reported, of those that take no status: events are forgotten."""

    async def read_again(self, key: Key, admits: Admits) -> AppVersion | None:
        """Read an application for which there was no room, as a watch would; None if it is gone.

        Args:
            key: of the application.
            admits: asked whether there is room for it now.

        Raises:
            RetryLaterError: the API server cannot now.
        """
        answer = await self._client.get(item(KIND, *key), msgspec.Raw)
        if isinstance(answer, NotFound):
            return None
        if isinstance(answer, FAILURES):
            raise RetryLaterError(f"read of the application: {answer}")
        return await aside(partial(read_version, admits=admits), await cut(bytes(answer)))

    async def report_all(self, found: Iterable[Unreadable], now: float, kind: str) -> float | None:
        """Report each of these: none has to wait for another; returns as :meth:`report`.

        Raises:
            RetryLaterError: the API server cannot now, for one of them at least.
        """
        later: RetryLaterError | None = None
        again: float | None = None
        for each in found:
            try:
                again = earliest(again, await self.report(each, now, kind))
            except RetryLaterError as error:
                later = error
        if later is not None:
            raise later
        return again

    async def report(self, app: Unreadable, now: float, kind: str = KIND) -> float | None:
        """Have an event and, if the API server takes them, conditions.

        Args:
            app: what is known of the resource.
            now: seconds since the epoch.
            kind: of the resource.

        Returns:
            Seconds until it is to be reported again, None if its conditions say it.

        Raises:
            RetryLaterError: the API server cannot now.
        """
        message = without_shapes(refusal_messages.unreadable(app.problem[:_LONGEST_PROBLEM]))
        if _is_reported(app, message):
            return None
        own = now + minutes_of(app.metadata.uid)  # a thousand of them do not all come at the full hour
        version = f"{app.metadata.resource_version}/{hour_of(own)}"
        if self._reported.get(app.metadata.uid) == version:
            return next_hour_in(own)
        log.error(message, reason=Reason.INVALID_SPEC, kind=kind, resource=app.metadata.name)
        occasion = f"generation {app.metadata.generation}/{hour_of(own)}"
        event = PublishEvent(Reason.INVALID_SPEC, message, True, occasion)
        await self._events.publish(app.metadata, event, now, kind)
        conditions = msgspec.to_builtins(build_conditions((), _Unreadable(message), app.metadata.generation, now))
        # Not the uid: a change of the status is carried out whatever uid it names. The version is another one, too, if
        # an object of the same name has taken the place of the one that was read.
        change = {
            "metadata": {"resourceVersion": app.metadata.resource_version},
            "status": {"conditions": conditions, "observedGeneration": app.metadata.generation},
        }
        answer = await self._client.merge_patch(item(kind, *app.key) + "/status", change, msgspec.Raw)
        if isinstance(answer, TRANSIENT):
            raise RetryLaterError(f"conditions of an unreadable resource: {answer}")
        if isinstance(answer, Conflict | NotFound):
            return None  # there is a later version, or none: the watch brings it
        if isinstance(answer, FAILURES):
            # The event has reported it; a resource that breaks its own schema may take no status.
            log.warning("conditions not written", reason=Reason.INVALID_SPEC, why=str(answer))
            self._reported[app.metadata.uid] = version
            if len(self._reported) > _REMEMBERED:
                self._reported.popitem(last=False)
            return next_hour_in(own)
        return None


def _is_reported(app: Unreadable, message: str) -> bool:
    ready = app.ready
    return (ready.get("reason"), ready.get("message"), ready.get("observedGeneration")) == (
        Reason.INVALID_SPEC,
        message,
        app.metadata.generation,
    )
