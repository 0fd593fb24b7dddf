"""The kinds of objects that an API server serves, and the names that kubectl takes for them. Pure."""

from __future__ import annotations

import urllib.parse
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Resource:
    """One kind of objects, as the API server serves it."""

    group: str
    version: str
    plural: str
    kind: str
    namespaced: bool
    names: frozenset[str]

    @property
    def api_version(self) -> str:
        """Return what manifests name."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def path(self, namespace: str, name: str = "") -> str:
        """Return the path of the collection, or of one object in it."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        within = f"/namespaces/{namespace}" if self.namespaced else ""
        return f"{root}{within}/{self.plural}" + (f"/{urllib.parse.quote(name)}" if name else "")


def read_resource(group: str, version: str, entry: Mapping[str, Any]) -> Resource:
    """Return what the server says of one kind when it is asked what it serves."""
    names = {entry["resource"], entry.get("singularResource", ""), *entry.get("shortNames", [])} - {""}
    kind = entry.get("responseKind", {}).get("kind", "")
    namespaced = entry["scope"] == "Namespaced"
    return Resource(group, version, entry["resource"], kind, namespaced, frozenset(names))


def first_named(known: Sequence[Resource], name: str) -> Resource | None:
    """Return the first kind that kubectl would mean by a name, None if there is none."""
    plain, _, where = name.partition(".")
    for each in known:
        # As manifests name it: Kind, version and group.
        if (each.kind, f"{each.version}.{each.group}") == (plain, where):
            return each
        if plain.lower() in each.names and where in ("", each.group, f"{each.version}.{each.group}"):
            return each
    return None


def full_name(manifest: Mapping[str, Any]) -> str:
    """Return a manifest's kind by its only exact name: Kind, version and group."""
    group, _, version = str(manifest["apiVersion"]).rpartition("/")
    return f"{manifest['kind']}.{version}.{group}"
