"""What an API server's audit log says about a client. Pure, but for reading the log's file."""

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

READS = frozenset({"get", "list", "watch"})


@dataclass(frozen=True)
class Request:
    """One finished request; times in seconds since the epoch, as the API server saw them."""

    verb: str
    resource: str
    subresource: str
    namespace: str
    name: str
    user_agent: str
    code: int
    received: float
    finished: float

    @property
    def writes(self) -> bool:
        """True unless the request only reads."""
        return self.verb not in READS

    def created(self, resource: str) -> bool:
        """Return whether the request made an object of this resource."""
        return (self.verb, self.resource, self.subresource, self.code) == ("create", resource, "", 201)


class AuditLog:
    """What is added to an audit log from now on."""

    def __init__(self, path: Path) -> None:
        """Pass over what is there."""
        self._path, self._read = path, 0
        self.added()

    def added(self) -> list[Request]:
        """Return the requests that have finished since this was asked before, in the order of their arrival."""
        with self._path.open("rb") as log:
            log.seek(self._read)
            text = log.read()
        whole = text[: text.rfind(b"\n") + 1]  # the rest is being written
        self._read += len(whole)
        return sorted(_requests(json.loads(line) for line in whole.splitlines()), key=lambda r: r.received)


def read_audit_log(path: Path) -> list[Request]:
    """Return the finished requests of an audit log in JSON lines, in the order of their arrival."""
    with path.open(encoding="utf-8") as lines:
        return sorted(_requests(json.loads(line) for line in lines if line.endswith("}\n")), key=lambda r: r.received)


def _requests(events: Iterable[dict[str, Any]]) -> Iterator[Request]:
    for event in events:
        about = event.get("objectRef")
        if event.get("stage") != "ResponseComplete" or about is None:
            continue
        yield Request(
            verb=event["verb"],
            resource=about.get("resource", ""),
            subresource=about.get("subresource", ""),
            namespace=about.get("namespace", ""),
            name=about.get("name", ""),
            user_agent=event.get("userAgent", ""),
            code=event.get("responseStatus", {}).get("code", 0),
            received=_seconds(event["requestReceivedTimestamp"]),
            finished=_seconds(event["stageTimestamp"]),
        )


def _seconds(text: str) -> float:
    return datetime.fromisoformat(text.replace("Z", "+00:00")).timestamp()


def by_client(requests: Iterable[Request], user_agent: str) -> list[Request]:
    """Return the requests of the client whose user agent starts with ``user_agent``, without its leases.

    Leases are how replicas elect a leader; they are written at a fixed rate, whatever the fleet does.
    """
    return [r for r in requests if r.user_agent.startswith(user_agent) and r.resource != "leases"]


def percentile(values: Iterable[float], share: float) -> float:
    """Return the smallest value that at least ``share`` (0..1) of the values do not exceed (nearest rank).

    Raises:
        ValueError: there are no values.
    """
    ordered = sorted(values)
    if not ordered:
        raise ValueError("no values to take a percentile of")
    rank = max(0, -(-len(ordered) * share // 1) - 1)
    return ordered[int(rank)]
