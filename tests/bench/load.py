"""The load: many creates at once, through plain HTTP. Does I/O."""

import asyncio
import time
from collections.abc import AsyncGenerator, Iterable, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import msgspec

from tidegate.kube.connection import Connection, connect

USER_AGENT = "tidegate-bench"
AT_ONCE = 16


class Load:
    """Creates and reads objects as a client of its own; an asynchronous context manager."""

    def __init__(self, kubeconfig: Path) -> None:
        """Talk to the API server that ``kubeconfig`` names."""
        self._kubeconfig = kubeconfig
        self._connection: Connection
        self._session: aiohttp.ClientSession

    async def __aenter__(self) -> "Load":
        """Connect."""
        self._connection = await connect(self._kubeconfig)
        self._session = self._connection.session(AT_ONCE)
        self._session.headers["User-Agent"] = USER_AGENT
        return self

    async def __aexit__(self, *_: object) -> None:
        """Close the connections."""
        await self._session.close()

    async def create(self, path: str, manifest: Mapping[str, Any]) -> None:
        """Create one object; raise RuntimeError with the server's words if it is refused."""
        body = msgspec.json.encode(manifest)
        headers = {"Content-Type": "application/json"}
        async with self._session.post(self._connection.server + path, data=body, headers=headers) as answer:
            text = await answer.text()
            if answer.status >= 300:
                raise RuntimeError(f"POST {path}: {answer.status} {text[:400]}")

    async def store(self, path: str, text: bytes) -> bool:
        """Create an object from what need not be readable JSON; say whether the server took it."""
        headers = {"Content-Type": "application/json"}
        # Otherwise the server warns of each field that it does not know: of more than an answer's headers may be here.
        url = f"{self._connection.server}{path}?fieldValidation=Ignore"
        async with self._session.post(url, data=text, headers=headers) as answer:
            return answer.status < 300

    async def create_all(self, path: str, manifests: Iterable[Mapping[str, Any]]) -> float:
        """Create objects, ``AT_ONCE`` at a time; return the CPU seconds this process spent on it."""
        gate = asyncio.Semaphore(AT_ONCE)

        async def one(manifest: Mapping[str, Any]) -> None:
            async with gate:
                await self.create(path, manifest)

        before = time.process_time()
        await asyncio.gather(*(one(manifest) for manifest in manifests))
        return time.process_time() - before

    async def get(self, path: str) -> Any:
        """Return an object or a list."""
        async with self._session.get(self._connection.server + path) as answer:
            answer.raise_for_status()
            return msgspec.json.decode(await answer.read())

    async def exists(self, path: str) -> bool:
        """Say whether there is such an object."""
        async with self._session.get(self._connection.server + path) as answer:
            if answer.status != 404:
                answer.raise_for_status()
            return answer.status != 404

    async def delete(self, path: str) -> None:
        """Ask for an object's deletion."""
        async with self._session.delete(self._connection.server + path) as answer:
            answer.raise_for_status()

    async def watch(self, path: str) -> AsyncGenerator[Any, None]:
        """Yield each object of a collection as it is created or changes, for ever."""
        timeout = aiohttp.ClientTimeout(total=None)
        url = f"{self._connection.server}{path}?watch=1"
        async with self._session.get(url, timeout=timeout) as answer:
            answer.raise_for_status()
            async for line in answer.content:
                yield msgspec.json.decode(line)["object"]

    async def merge_patch(self, path: str, change: Mapping[str, Any]) -> None:
        """Merge ``change`` into an object, or into a part of it that has a path of its own."""
        headers = {"Content-Type": "application/merge-patch+json"}
        url = self._connection.server + path
        async with self._session.patch(url, data=msgspec.json.encode(change), headers=headers) as answer:
            answer.raise_for_status()
