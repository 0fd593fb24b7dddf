"""References of a spec to objects of the same namespace. No I/O."""

from __future__ import annotations

from msgspec import Struct


class LocalReference(Struct, frozen=True, kw_only=True, rename="camel"):
    """An object in the application's namespace, by name."""

    name: str


class KeyReference(Struct, frozen=True, kw_only=True, rename="camel"):
    """A key of an object in the application's namespace."""

    name: str = ""
    key: str = ""
