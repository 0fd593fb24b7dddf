"""Versions of applications as a watch brings them, cut to what is kept of them. No I/O.

Anybody may store an application of a megabyte, which can take thirty times as much memory once it is decoded. So a
version is kept as JSON, with those fields alone that the operator reads. Where there is no room for one, only its names
and conditions are kept.
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


class Identity(msgspec.Struct, omit_defaults=True, rename="camel", kw_only=True):
    """Which version of which object it is; the API server keeps that in order."""

    name: str
    namespace: str
    uid: str
    resource_version: str

    @property
    def key(self) -> Key:
        """Namespace and name."""
        return self.namespace, self.name


class HeldMetadata(Identity, omit_defaults=True, rename="camel", kw_only=True):
    """What of an object's metadata is read of applications."""

    generation: int = 0
    creation_timestamp: str = ""
    deletion_timestamp: str = ""
    finalizers: tuple[str, ...] = ()
    annotations: dict[str, str] = {}


class _Conditions(msgspec.Struct):
    conditions: list[msgspec.Raw] = []


Admits = Callable[[HeldMetadata, int], bool]
"""Called with each version of an object and the bytes that it needs in memory; returns whether to keep it whole."""


@dataclass(frozen=True, slots=True)
class AppVersion:
    """One version of an application, not decoded yet."""

    identity: Identity
    body: bytes
    """What is kept of it, as JSON; nothing of one that is gone."""
    left_out: bool = False
    """Only its names and conditions are kept, because there was no room for the rest when it was read."""


_fields = msgspec.json.Decoder(dict[str, msgspec.Raw])
_identity, _metadata, _conditions = (
    msgspec.json.Decoder(Identity),
    msgspec.json.Decoder(HeldMetadata),
    msgspec.json.Decoder(_Conditions),
)


def read_version(body: msgspec.Raw | bytes, admits: Admits) -> AppVersion:
    """Return what is kept of a version: all that is read, or only its names and conditions, and why.

    Args:
        body: the object, as JSON that decoders survive.
        admits: asked whether it may be kept whole; from another thread, if it is long.

    Raises:
        msgspec.MsgspecError: nothing says which object it is.
        KeyError: likewise.
    """
    fields = _fields.decode(body)
    try:
        metadata = _metadata.decode(fields["metadata"])
    except msgspec.MsgspecError:  # its own decoder names the field
        identity, stored = _identity.decode(fields["metadata"]), bytes(body)
        return AppVersion(identity, stored if len(stored) <= MOST_VALUES else _encoded({}, identity, TOO_MANY))
    metadata.annotations = own_annotations(metadata.annotations)
    metadata.finalizers = metadata.finalizers[:_MOST_FINALIZERS]
    if has_too_many_values(bytes(body)):
        admits(metadata, 0)
        return AppVersion(metadata, _encoded(fields, metadata, TOO_MANY))
    kept = msgspec.json.encode(fields | {"metadata": msgspec.Raw(msgspec.json.encode(metadata))})
    if admits(metadata, decoded_size(kept)):
        return AppVersion(metadata, kept)
    return AppVersion(metadata, _encoded(fields, metadata, TOO_LARGE), left_out=True)


def read_gone(body: msgspec.Raw | bytes) -> AppVersion:
    """Return which object is gone.

    Raises:
        msgspec.MsgspecError: nothing says which object it is.
        KeyError: likewise.
    """
    return AppVersion(_identity.decode(_fields.decode(body)["metadata"]), b"")


def _encoded(fields: dict[str, msgspec.Raw], identity: Identity, why: str) -> bytes:
    """Return names and conditions alone, with the reason in place of the spec."""
    try:
        conditions = _conditions.decode(fields.get("status", b"{}")).conditions
    except msgspec.MsgspecError:
        conditions = []
    short = [condition for condition in conditions if len(bytes(condition)) <= _LONGEST_CONDITION][:_MOST_CONDITIONS]
    about = {name: fields[name] for name in ("apiVersion", "kind") if name in fields}
    return msgspec.json.encode({**about, "metadata": identity, "status": {"conditions": short}, "spec": why})
