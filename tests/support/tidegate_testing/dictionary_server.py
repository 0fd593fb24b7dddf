"""A client of the API server that is a dictionary of objects by path. No I/O."""

import json
from typing import Any

import msgspec

from tidegate.kube.failures import AlreadyExists, Conflict, Failure, Invalid, NotFound


def _merged(target: Any, patch: Any) -> Any:
    if not isinstance(patch, dict):
        return patch
    merged = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            merged.pop(key, None)
        else:
            merged[key] = _merged(merged.get(key), value)
    return merged


class ApiServer:
    """Objects by path; each created one gets a uid. Paths in ``refusing`` answer with a failure to every create."""

    def __init__(self) -> None:
        self.objects: dict[str, dict[str, Any]] = {}
        self.refusing: dict[str, Failure] = {}
        """By the path of a collection, or of an object that is to be in it."""
        self.unchangeable: dict[str, Failure] = {}
        """Answers to every change, by the path of an object."""
        self.undeletable: dict[str, Failure] = {}
        """Answers to every deletion, by the path of an object."""
        self.strictly: list[str] = []
        """Paths of objects that were created so that every field of theirs is known."""
        self.unreadable: dict[str, Failure] = {}
        """Answers to every reading, by the path of an object."""
        self.read: list[tuple[str, str]] = []
        """What was read once, by its path, and in which form."""
        self.tried: list[dict[str, Any]] = []
        """Manifests that were only tried out."""

    def put(self, path: str, manifest: dict[str, Any]) -> None:
        uid = f"uid-{len(self.objects) + 1}"
        self.objects[path] = {**manifest, "metadata": {"resourceVersion": "1", **manifest["metadata"], "uid": uid}}

    async def get(self, path: str, kind: type[Any]) -> Any:
        return _decoded(self.objects[path], kind) if path in self.objects else NotFound(path)

    async def read_once(self, path: str, kind: type[Any], *, patience: float, longest: int, accept: str = "") -> Any:
        self.read.append((path, accept))
        return self.unreadable.get(path) or await self.get(path, kind)

    async def create(self, path: str, manifest: dict[str, Any], kind: type[Any], *, strict: bool = False) -> Any:
        place = f"{path}/{manifest['metadata']['name']}"
        answer = self._refusal(path, place)
        if answer is not None:
            return answer
        self.strictly += [place] if strict else []
        self.put(place, manifest)
        return msgspec.Raw(b"{}") if kind is msgspec.Raw else _decoded(self.objects[place], kind)

    async def try_out(self, path: str, manifest: dict[str, Any], *, patience: float) -> Failure | None:
        self.tried.append(manifest)
        return self._refusal(path, f"{path}/{manifest['metadata']['name']}")

    def _refusal(self, path: str, place: str) -> Failure | None:
        refusal = self.refusing.get(path) or self.refusing.get(place)
        return refusal or (AlreadyExists(place) if place in self.objects else None)

    def keep(self, path: str, resource: msgspec.Struct) -> None:
        """Have a resource of ours, as it is."""
        self.objects[path] = msgspec.json.decode(msgspec.json.encode(resource))

    async def merge_patch(self, path: str, change: dict[str, Any], kind: type[Any]) -> Any:
        """Change a resource, if it is of the version and the uid that the change names."""
        place, plain = path.removesuffix("/status"), json.loads(msgspec.json.encode(change))
        if place not in self.objects:
            return NotFound(path)
        found = self.objects[place]
        if place in self.unchangeable:
            return self.unchangeable[place]
        if plain["metadata"].pop("resourceVersion", None) not in (None, found["metadata"]["resourceVersion"]):
            return Conflict(path)
        if plain["metadata"].get("uid") not in (None, found["metadata"]["uid"]):
            return Invalid("metadata.uid: field is immutable")
        merged = _merged(found, plain)
        merged["metadata"]["resourceVersion"] = str(int(found["metadata"]["resourceVersion"]) + 1)
        self.objects[place] = merged
        return msgspec.Raw(b"{}") if kind is msgspec.Raw else _decoded(merged, kind)

    async def delete(self, path: str, uid: str = "", resource_version: str = "") -> bytes | Failure:
        if path not in self.objects:
            return NotFound(path)
        if path in self.undeletable:
            return self.undeletable[path]
        if uid and uid != self.objects[path]["metadata"]["uid"]:
            return Conflict(path)
        del self.objects[path]
        return b"{}"


def _decoded(stored: dict[str, Any], kind: type[Any]) -> Any:
    # Through JSON, as with the real server: what is read raw is raw.
    return msgspec.json.decode(msgspec.json.encode(stored), type=kind)
