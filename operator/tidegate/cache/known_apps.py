"""An application as the index knows it, readable or not, and which of two versions is later. In memory; no I/O."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from tidegate.api.lost_status import has_launched
from tidegate.api.spec_hash import spec_hash
from tidegate.api.streaming_app import Metadata, StreamingApp, UnreadableAppError, decode_app
from tidegate.api.values.bounded_json import TOO_LARGE, is_cut, why_cut
from tidegate.cache.app_versions import read_gone
from tidegate.cache.kinds.raw_resource import metadata_of, ready_condition
from tidegate.engine.resource_key import Key
from tidegate.kube.history import version_number

_LONGEST_PROBLEM = 500


@dataclass(frozen=True, slots=True)
class KnownApp:
    """A readable application with what is computed once from each of its versions."""

    app: StreamingApp
    spec_hash: str

    @property
    def metadata(self) -> Metadata:
        """The application's metadata."""
        return self.app.metadata


@dataclass(frozen=True, slots=True)
class UnreadableApp:
    """A stored resource that does not fit the model; everything else goes on without it."""

    key: Key
    metadata: Metadata
    """What of it could be read; the API server keeps metadata in order whatever the rest is like."""
    problem: str
    """Names the field."""
    ready: Mapping[str, Any] = field(default_factory=dict)
    """Its condition Ready, as stored."""
    left_out: bool = False
    """Nothing is wrong with it: there was no room for it beside other large ones."""
    again: bool = False
    """It was left out, and there is room now: it is to be read again."""


class CheckedAccess:
    """When a driver's access was last found to be as it should be, by application; monotonic seconds."""

    def __init__(self) -> None:
        """Start with nothing known."""
        self._at: dict[Key, float] = {}

    def note(self, key: Key, now: float) -> None:
        """Note that it was looked at, or made, just now."""
        self._at[key] = now

    def discard(self, key: Key) -> None:
        """Rely on nothing that was known of an application's access."""
        self._at.pop(key, None)

    def age(self, key: Key, now: float) -> float:
        """Return how many seconds ago it was noted; infinity if nothing is known."""
        return now - self._at.get(key, float("-inf"))


def hash_of(app: StreamingApp, known: KnownApp | UnreadableApp | None) -> str:
    """Return the hash of an application's version, without counting it again if the spec is known."""
    if isinstance(known, KnownApp) and is_same_spec(app.metadata, known.metadata):
        return known.spec_hash
    return spec_hash(app)


def is_same_spec(metadata: Metadata, known: Metadata) -> bool:
    """Return whether two versions of a resource have the same spec."""
    # The generation changes with every change of the spec.
    return (known.uid, known.generation) == (metadata.uid, metadata.generation)


def too_large(app: StreamingApp) -> UnreadableApp:
    """Return an application of which no room is left for the whole."""
    found = app.status.condition("Ready")
    ready = msgspec.to_builtins(found) if found else {}
    key = (app.metadata.namespace, app.metadata.name)
    return UnreadableApp(key, app.metadata, why_cut({"spec": TOO_LARGE}), ready, left_out=True)


def read_app(body: Mapping[str, Any] | bytes) -> StreamingApp | UnreadableApp:
    """Return an application that is stored; one that does not fit the model is unreadable, in which field it says.

    Args:
        body: what is kept of it, as JSON that decoders survive, or what a client made of that.
    """
    if isinstance(body, bytes) and is_cut(body):  # what was cut is looked for in what is decoded
        return read_app(_decoded(body))
    try:
        return decode_app(body)
    except UnreadableAppError as error:
        problem = str(error)
    except Exception as error:  # whatever it is, it keeps none of the others out
        problem = f"{type(error).__name__}: {error}"[:_LONGEST_PROBLEM]
    found = _decoded(body) if isinstance(body, bytes) else body
    metadata = metadata_of(found)
    return UnreadableApp((metadata.namespace, metadata.name), metadata, problem, ready_condition(found))


def _decoded(body: bytes) -> Mapping[str, Any]:
    """Return what JSON says, or only which object it is if no decoder takes the rest, a number beyond all doubles."""
    try:
        found: Mapping[str, Any] = msgspec.json.decode(body)
    except msgspec.DecodeError:
        found = {"metadata": msgspec.to_builtins(read_gone(body).identity)}
    return found


def is_newer(metadata: Metadata, known: Metadata) -> bool:
    """Return whether one version of a resource is later than another."""
    return version_number(metadata.resource_version) > version_number(known.resource_version)


def age_of(app: StreamingApp) -> tuple[str, bool, str]:
    """Return by what applications are ordered: the oldest first."""
    created = app.metadata.creation_timestamp
    # Times are whole seconds: of two in one second, the one that was launched counts as older, whatever its uid.
    return (created.isoformat() if created else "", not has_launched(app.status), app.metadata.uid)
