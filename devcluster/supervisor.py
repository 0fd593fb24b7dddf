"""The one process above all processes of a cluster: starts and ends components, reaps orphans, forwards TCP.

Started by ``devcluster.control``, either plainly or as the first process of namespaces of its own; in the latter case
the kernel ends everything in the cluster when this process ends. Standard library only: it stays small (10 MB) and
starts in 50 ms. Talks one JSON line per request and reply over a Unix socket.
"""

import asyncio
import contextlib
import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from devcluster.forwarder import forward

_PR_SET_PDEATHSIG = 1
_LIBC = ctypes.CDLL(None, use_errno=True)


def _end_with_parent() -> None:
    """Make the kernel kill this child when the supervisor dies, even by SIGKILL. Runs between fork and exec."""
    _LIBC.prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


@dataclass
class Component:
    """One supervised process. ``code`` is None while it runs, else its exit code (negative: minus the signal)."""

    name: str
    pid: int
    code: int | None = None
    how: dict[str, Any] = field(default_factory=dict)
    """The arguments of the start, to start it again."""


class Supervisor:
    """Owns the components. All methods run on one event loop, so none needs a lock."""

    def __init__(self) -> None:
        """Start with nothing running."""
        self.components: dict[str, Component] = {}
        self.finished = asyncio.Event()
        self._changed = asyncio.Event()

    def start(self, name: str, argv: list[str], env: dict[str, str], log: str, cwd: str) -> int:
        """Start a component in a session of its own; return its process id (as seen from here)."""
        running = self.components.get(name)
        if running and running.code is None:
            raise ValueError(f"{name} runs already")
        with Path(log).open("ab") as output:
            child = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env={**os.environ, **env},
                cwd=cwd,
                start_new_session=True,
                # The usual danger of this argument is other threads; the supervisor has none.
                preexec_fn=_end_with_parent,  # noqa: PLW1509
            )
        # reap() collects every child, so the Popen object must never wait for this one itself.
        child.returncode = 0
        how = {"argv": argv, "env": env, "log": log, "cwd": cwd}
        self.components[name] = Component(name, child.pid, how=how)
        return child.pid

    def start_again(self, name: str) -> int:
        """Start a component that has ended as it was started the last time; return its process id."""
        if name not in self.components:
            raise ValueError(f"{name} was never started")
        return self.start(name, **self.components[name].how)

    async def stop(self, name: str, grace: float) -> int | None:
        """End a component: SIGTERM to its session, SIGKILL after ``grace`` seconds. Return its exit code."""
        component = self.components.get(name)
        if component is None:
            return None
        for sign, patience in ((signal.SIGTERM, grace), (signal.SIGKILL, 10.0)):
            if component.code is None and patience > 0:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(component.pid, sign)
                await self._ended(component, patience)
        return component.code

    async def _ended(self, component: Component, patience: float) -> None:
        end = time.monotonic() + patience
        while component.code is None and time.monotonic() < end:
            self._changed.clear()
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._changed.wait(), end - time.monotonic())

    def reap(self) -> None:
        """Collect every ended child: components, and orphans that a first process of a namespace inherits."""
        with contextlib.suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    break
                for component in self.components.values():
                    if component.pid == pid:
                        component.code = os.waitstatus_to_exitcode(status)
        self._changed.set()

    async def answer(self, request: dict[str, Any]) -> Any:
        """Carry out one request; the reply is anything JSON can hold."""
        match request:
            case {"do": "start", "name": name, "argv": argv, "env": env, "log": log, "cwd": cwd}:
                return self.start(name, argv, env, log, cwd)
            case {"do": "start-again", "name": name}:
                return self.start_again(name)
            case {"do": "stop", "name": name, "grace": grace}:
                return await self.stop(name, grace)
            case {"do": "list"}:
                return {c.name: {"pid": c.pid, "code": c.code} for c in self.components.values()}
            case {"do": "finish"}:
                self.finished.set()
                return None
            case _:
                raise ValueError(f"unknown request {request}")

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer requests of one connection until the other side closes it."""
        while line := await reader.readline():
            try:
                reply = {"ok": await self.answer(json.loads(line))}
            except (ValueError, OSError) as refused:
                reply = {"error": str(refused)}
            writer.write(json.dumps(reply).encode() + b"\n")
            with contextlib.suppress(ConnectionError):
                await writer.drain()
        writer.close()

    def kill_all(self) -> None:
        """End every component at once and collect them."""
        for component in self.components.values():
            if component.code is None:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(component.pid, signal.SIGKILL)
        for component in self.components.values():
            while component.code is None:
                self.reap()
                time.sleep(0.005)


def _watch_owner(loop: asyncio.AbstractEventLoop, descriptor: int, finish: Callable[[], None]) -> None:
    """Finish when the process that holds the other end of a pipe is gone, however it went."""
    loop.add_reader(descriptor, lambda: finish() if not os.read(descriptor, 1) else None)


async def run(path: str, owner: int | None, forwards: list[tuple[int, str, int]]) -> None:
    """Serve requests on the Unix socket ``path`` until asked to finish, or until the owner's pipe closes."""
    loop = asyncio.get_running_loop()
    supervisor = Supervisor()
    loop.add_signal_handler(signal.SIGCHLD, supervisor.reap)
    for sign in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(sign, supervisor.finished.set)
    if owner is not None:
        _watch_owner(loop, owner, supervisor.finished.set)
    servers = [await forward(socket.socket(fileno=fd), host, port) for fd, host, port in forwards]
    server = await asyncio.start_unix_server(supervisor.serve, path)
    await supervisor.finished.wait()
    supervisor.kill_all()
    for each in (server, *servers):
        each.close()


if __name__ == "__main__":
    settings = json.loads(sys.argv[1])
    asyncio.run(run(settings["socket"], settings["owner"], [tuple(f) for f in settings["forwards"]]))
