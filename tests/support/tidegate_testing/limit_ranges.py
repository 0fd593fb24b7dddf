"""An API server that is a dictionary, in a namespace whose LimitRange demands a minimum of memory. No I/O."""

from __future__ import annotations

from typing import Any

from tidegate.api.values.quantity import parse_quantity
from tidegate.kube.failures import Failure, Forbidden, failure_from_response
from tidegate_testing.dictionary_server import ApiServer

RANGES = "/api/v1/namespaces/shop/limitranges"
NOT_GRANTED = Forbidden('limitranges is forbidden: User "tidegate" cannot list resource "limitranges"')


class Floored(ApiServer):
    """Refuses pods of which a container requests less; each list of LimitRanges is counted."""

    def __init__(self, least: str = "1Gi", *, readable: bool = True) -> None:
        super().__init__()
        self.least, self.readable, self.reads, self.refused = least, readable, 0, list[str]()

    async def get(self, path: str, kind: type[Any]) -> Any:
        if path != RANGES:
            return await super().get(path, kind)
        self.reads += 1
        if not self.readable:
            return NOT_GRANTED
        limits = [{"type": "Container", "min": {"memory": self.least}}]
        self.objects[RANGES] = {"items": [{"spec": {"limits": limits}}]}
        found = await super().get(path, kind)
        del self.objects[RANGES]
        return found

    async def create(self, path: str, manifest: dict[str, Any], kind: type[Any], *, strict: bool = False) -> Any:
        refusal = self._by_range(manifest)
        return refusal or await super().create(path, manifest, kind, strict=strict)

    async def try_out(self, path: str, manifest: dict[str, Any], *, patience: float) -> Failure | None:
        return self._by_range(manifest) or await super().try_out(path, manifest, patience=patience)

    def _by_range(self, manifest: dict[str, Any]) -> Failure | None:
        if manifest.get("kind") != "Pod":
            return None
        name = manifest["metadata"]["name"]
        for container in (*manifest["spec"]["containers"], *manifest["spec"].get("initContainers", ())):
            request = container["resources"]["requests"]["memory"]
            if parse_quantity("memory", request) < parse_quantity("memory", self.least):
                self.refused.append(name)
                return failure_from_response(403, _refusal(name, self.least, request), {})
        return None


def _refusal(name: str, least: str, request: str) -> bytes:
    message = f"minimum memory usage per Container is {least}, but request is {request}"
    return f'{{"message": "pods \\"{name}\\" is forbidden: {message}", "reason": "Forbidden"}}'.encode()
