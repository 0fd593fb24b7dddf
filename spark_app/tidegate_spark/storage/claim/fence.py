"""The fence: which one process may write the application's storage. Logic on a port; no I/O of its own.

``fence.json`` names the process that writes, which holds the ETag. It is taken by a conditional write, only from an
earlier epoch or from an earlier process of the same pod. A process that finds another ETag was replaced, and stops
before its next batch.

Standard library only: the simulation runs this code.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Protocol

from tidegate_spark.contract.json_form import DamagedFormError, NewerFormatError, from_stored

ATTEMPTS = 5
"""Each is lost to another process's write; five in a row do not happen to live applications."""


class FencePort(Protocol):
    """The object ``fence.json`` in some object store; both methods raise what the store's client raises."""

    def get(self) -> tuple[bytes, str] | None:
        """Return content and ETag, or None if there is no such object."""

    def put_if(self, body: bytes, etag: str | None) -> str | None:
        """Write the object if it still has this ETag (None: if there is none); return its new ETag, None if refused."""


@dataclass(frozen=True)
class Holder:
    """One driver process."""

    uid: str
    """Of the application."""
    epoch: int
    lineage: int
    pod_uid: str
    process: str
    """Different for each start of the process, so that no two of them write the same bytes and get the same ETag."""


@dataclass(frozen=True)
class Held:
    """The fence is ours."""

    etag: str


@dataclass(frozen=True)
class Fenced:
    """The fence is another one's; its epoch and lineage, 0 if the object is gone or says nothing."""

    epoch: int = 0
    lineage: int = 0


class FenceContendedError(Exception):
    """The fence changed hands at each attempt to take it; whether it can be had is not known."""


def take(port: FencePort, me: Holder) -> Held | Fenced:
    """Take the fence from whoever has it, unless that one is ahead of us.

    Args:
        port: the object.
        me: this process.

    Raises:
        FenceContendedError: try again later.
        NewerFormatError: a newer Tidegate wrote it; whom it keeps out is not known here.
        DamagedFormError: no Tidegate wrote it as it is; likewise.
        Exception: what the store's client raises; a write whose answer was lost is found by the next call.
    """
    body = _document(me)
    for _ in range(ATTEMPTS):
        found = port.get()
        if found is not None:
            content, etag = found
            if content == body:
                return Held(etag)  # an earlier attempt of ours was carried out, and its answer lost
            holder = from_stored(Holder, content)
            if _is_ahead(holder, me):
                return Fenced(holder.epoch, holder.lineage)
        written = port.put_if(body, found[1] if found is not None else None)
        if written is not None:
            return Held(written)
    raise FenceContendedError(f"the fence was taken {ATTEMPTS} times by others while it was asked for")


def check(port: FencePort, held: Held) -> Fenced | None:
    """Return the other holder of the fence, None if it is still ours.

    Raises:
        Exception: what the store's client raises; whose the fence is, is not known then.
    """
    found = port.get()
    if found is None:
        return Fenced()  # the storage was emptied, or handed over by a person
    content, etag = found
    if etag == held.etag:
        return None
    try:
        holder = from_stored(Holder, content)
    except (NewerFormatError, DamagedFormError):
        return Fenced()
    return Fenced(holder.epoch, holder.lineage)


def _is_ahead(holder: Holder, me: Holder) -> bool:
    if holder.uid != me.uid:
        return False  # app.json names the owner; an earlier owner's fence stops nobody
    if holder.epoch == me.epoch:
        return holder.pod_uid != me.pod_uid
    # No launch returns to an earlier lineage: one that is to run in it comes from an old status.
    return holder.epoch > me.epoch or holder.lineage > me.lineage


def _document(me: Holder) -> bytes:
    content = {
        "uid": me.uid,
        "epoch": me.epoch,
        "lineage": me.lineage,
        "pod_uid": me.pod_uid,
        "process": me.process,
    }
    return json.dumps(content, sort_keys=True).encode()
