"""Versions of applications as a watch brings them, cut to what is kept of them. No I/O.

Anybody may store an application of a megabyte; what decoders make of one can be thirty times as long. So of each
version is kept what the operator reads, as JSON, and of one that is not to be kept whole only names and conditions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import msgspec

from tidegate.api.streaming_app import own_annotations
from tidegate.api.values.bounded_json import MOST_VALUES, TOO_LARGE, TOO_MANY, decoded_size, has_too_many_values
from tidegate.engine.resource_key import Key

_MOST_FINALIZERS = 64
_MOST_CONDITIONS, _LONGEST_CONDITION = 16, 4096


class Who(msgspec.Struct, omit_defaults=True, rename="camel", kw_only=True):
    """What says which version of which object it is; the API server keeps that in order."""

    name: str
    namespace: str
    uid: str
    resource_version: str

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return self.namespace, self.name


class Names(Who, omit_defaults=True, rename="camel", kw_only=True):
    """What of an object's metadata is read of applications."""

    generation: int = 0
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    finalizers: tuple[str, ...] = ()
    annotations: dict[str, str] = {}


class _Conditions(msgspec.Struct):
    conditions: list[msgspec.Raw] = []


Admits = Callable[[Names, int], bool]
"""Told of each version of an object and of the bytes that it needs in memory; says whether it is to be kept whole."""


@dataclass(frozen=True, slots=True)
class AppVersion:
    """One version of an application, not decoded yet."""

    who: Who
    kept: bytes
    """What is kept of it, as JSON; nothing of one that is gone."""


_parts = msgspec.json.Decoder(dict[str, msgspec.Raw])
_who, _names, _conditions = msgspec.json.Decoder(Who), msgspec.json.Decoder(Names), msgspec.json.Decoder(_Conditions)


def read_version(body: msgspec.Raw | bytes, admits: Admits) -> AppVersion:
    """Return what is kept of a version: all that is read, or only its names and conditions, and why.

    Args:
        body: the object, as JSON that decoders survive.
        admits: asked whether it may be kept whole; from another thread, if it is long.

    Raises:
        msgspec.MsgspecError: nothing says which object it is.
        KeyError: likewise.
    """
    parts = _parts.decode(body)
    try:
        names = _names.decode(parts["metadata"])
    except msgspec.MsgspecError:  # its own decoder names the field
        who, stored = _who.decode(parts["metadata"]), bytes(body)
        return AppVersion(who, stored if len(stored) <= MOST_VALUES else _encoded({}, who, TOO_MANY))
    names.annotations = own_annotations(names.annotations)
    names.finalizers = names.finalizers[:_MOST_FINALIZERS]
    if has_too_many_values(bytes(body)):
        admits(names, 0)
        return AppVersion(names, _encoded(parts, names, TOO_MANY))
    kept = msgspec.json.encode(parts | {"metadata": msgspec.Raw(msgspec.json.encode(names))})
    whole = admits(names, decoded_size(kept))
    return AppVersion(names, kept if whole else _encoded(parts, names, TOO_LARGE))


def read_gone(body: msgspec.Raw | bytes) -> AppVersion:
    """Return which object is gone.

    Raises:
        msgspec.MsgspecError: nothing says which object it is.
        KeyError: likewise.
    """
    return AppVersion(_who.decode(_parts.decode(body)["metadata"]), b"")


def _encoded(parts: dict[str, msgspec.Raw], who: Who, why: str) -> bytes:
    """Return names and conditions alone, with the reason in place of the spec."""
    try:
        conditions = _conditions.decode(parts.get("status", b"{}")).conditions
    except msgspec.MsgspecError:
        conditions = []
    short = [condition for condition in conditions if len(bytes(condition)) <= _LONGEST_CONDITION][:_MOST_CONDITIONS]
    about = {name: parts[name] for name in ("apiVersion", "kind") if name in parts}
    return msgspec.json.encode({**about, "metadata": who, "status": {"conditions": short}, "spec": why})
