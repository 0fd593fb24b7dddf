"""The other side of the supervisor: start it, ask it, end it with everything below it. Does I/O."""

import contextlib
import json
import os
import random
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from devcluster import paths, private
from devcluster.locking import locked
from devcluster.processes import ProcessIdentity, descendants


class ComponentError(RuntimeError):
    """A component ended or did not become ready; the text names it and shows the end of its log."""


@dataclass(frozen=True)
class Forward:
    """A listening socket of this process, and where its connections go as seen by the supervisor."""

    listener: socket.socket
    host: str
    port: int


NAMESPACES = (
    "unshare",
    "--net",
    "--pid",
    "--mount",
    "--propagation",
    "private",
    "--fork",
    "--mount-proc",
    "--kill-child",
)


PATIENCE = 180.0
"""Seconds for a component to come up: far more than it needs on a busy machine; one that ends is noticed at once."""
ENDS_WITHIN = 60.0
"""Seconds for a process that was killed to be gone."""

_PORTS = range(20_000, 32_000)
"""Below those that the kernel gives to connections: such a one may be taken again before its server listens."""


def free_listener() -> socket.socket:
    """Listen on a free port of 127.0.0.1."""
    return socket.create_server(("127.0.0.1", 0), backlog=128)


_given: list[int] = []
"""The file of a mark for each port that this process was given; the kernel takes them away with the process."""


def free_port() -> int:
    """Return a port of 127.0.0.1 that was free a moment ago, and that nobody else is given while this process lives.

    Raises:
        ComponentError: none is free.
    """
    for port in random.sample(_PORTS, 200):
        mark = socket.socket(socket.AF_UNIX)
        try:
            # A name without a file, which the machine has once: between our look and our server's start another process
            # of ours may look, too.
            mark.bind(f"\0tidegate-port-{port}")
            with socket.create_server(("127.0.0.1", port)):
                _given.append(mark.detach())
                return port
        except OSError:
            mark.close()
    raise ComponentError(f"none of 200 ports of 127.0.0.1 between {_PORTS.start} and {_PORTS.stop} is free")


def log_tail(log: Path, lines: int = 15) -> str:
    """Return the last lines of a log, shortened to what helps; empty if there is none."""
    if not log.exists():
        return ""
    return "\n".join(line[:400] for line in log.read_text(errors="replace").splitlines()[-lines:])


def _identities(pids: Sequence[int]) -> list[ProcessIdentity]:
    """Return the identities of those that still run."""
    found = []
    for pid in pids:
        with contextlib.suppress(ProcessLookupError):
            found.append(ProcessIdentity.of(pid))
    return found


def sweep() -> None:
    """Remove what was bound to processes that are gone; their supervisors have ended, only files are left."""
    with locked(paths.cache() / "sweep.lock"):  # two that remove the same files fail on each other's
        for name in paths.states():
            owner = paths.owner_of(name)
            if owner is not None and not Path(f"/proc/{owner}").exists():
                Control(paths.state(name)).wipe()


def _environment() -> dict[str, str]:
    """Return the supervisor's environment: this checkout's modules, their bytecode in the cache and not beside them."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": str(paths.ROOT), "PYTHONPYCACHEPREFIX": str(paths.bytecode())}


class Control:
    """Asks the supervisor of one state folder."""

    def __init__(self, folder: Path) -> None:
        """Take the state folder; nothing need run yet."""
        self.folder = folder
        self._owner: int | None = None
        self._child: subprocess.Popen[bytes] | None = None
        self._record = folder / "supervisor.json"

    # --- the supervisor itself ---

    def launch(self, forwards: Sequence[Forward] = (), *, namespaces: bool = False, bound: bool = False) -> None:
        """Start the supervisor and wait until it answers.

        Args:
            forwards: listening sockets to hand over.
            namespaces: give it network, process and mount namespaces of its own (needs root).
            bound: end it when this process ends, however that happens; else it stays until ``end``.

        Raises:
            ComponentError: it did not answer in time.
        """
        private.make_folder(self.folder)
        (self.folder / "logs").mkdir(exist_ok=True)
        owner_end: int | None = None
        if bound:
            owner_end, self._owner = os.pipe()
        settings = {
            "socket": str(self.folder / "supervisor.sock"),
            "owner": owner_end,
            "forwards": [(f.listener.fileno(), f.host, f.port) for f in forwards],
        }
        inherited = [f.listener.fileno() for f in forwards] + ([owner_end] if owner_end is not None else [])
        log = self.folder / "logs" / "supervisor.log"
        with log.open("ab") as output:
            child = subprocess.Popen(
                [
                    *(NAMESPACES if namespaces else ()),
                    sys.executable,
                    "-m",
                    "devcluster.supervisor",
                    json.dumps(settings),
                ],
                env=_environment(),
                cwd=paths.ROOT,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                pass_fds=inherited,
                start_new_session=True,
            )
        self._child = child
        self._record.write_text(json.dumps(vars(ProcessIdentity.of(child.pid))))
        if owner_end is not None:
            os.close(owner_end)
        self.until("supervisor", self.answers, timeout=PATIENCE, log=log)

    def identity(self) -> ProcessIdentity | None:
        """Return the recorded supervisor (or the unshare above it), None if none was recorded."""
        try:
            return ProcessIdentity(**json.loads(self._record.read_text()))
        except (FileNotFoundError, ValueError, TypeError):
            return None

    def running(self) -> bool:
        """Say whether the recorded supervisor lives."""
        identity = self.identity()
        return identity is not None and identity.alive()

    def answers(self) -> bool:
        """Say whether the supervisor lives and answers."""
        try:
            self.components()
        except (OSError, ComponentError):
            return False
        return True

    def first_process(self) -> int:
        """Return the process id, as the host sees it, of the supervisor inside its namespaces."""
        identity = self.identity()
        if identity is None or not identity.alive():
            raise ComponentError(f"no supervisor runs in {self.folder}")
        children = descendants(identity.pid)
        return children[0] if children else identity.pid

    def end(self) -> None:
        """End the supervisor and every process below it; nothing to end is fine."""
        identity = self.identity()
        if identity is not None and identity.alive():
            # From below, so that the parent collects its dead: nothing stays for the machine's first process to reap.
            below = _identities(descendants(identity.pid))
            for process in below:
                process.kill()
            end = time.monotonic() + 2
            while any(Path(f"/proc/{p.pid}").exists() for p in below) and time.monotonic() < end:
                time.sleep(0.01)
            identity.kill()
        if self._child is not None:
            self._child.wait(timeout=ENDS_WITHIN)
        if self._owner is not None:
            os.close(self._owner)
            self._owner = None

    def wipe(self) -> None:
        """End everything and remove the state folder."""
        self.end()
        if self.folder.exists():
            shutil.rmtree(self.folder)

    # --- its components ---

    def log(self, name: str) -> Path:
        """Return the log of a component."""
        return self.folder / "logs" / f"{name}.log"

    def start(self, name: str, argv: Sequence[str | Path], env: Mapping[str, str] | None = None) -> int:
        """Start a component; its output goes to its log. Return its process id as the supervisor sees it."""
        return int(
            self._ask(
                do="start",
                name=name,
                argv=[str(a) for a in argv],
                env=dict(env or {}),
                log=str(self.log(name)),
                cwd=str(self.folder),
            )
        )

    def start_again(self, name: str) -> int:
        """Start a component that has ended with the arguments of its last start; return its process id."""
        return int(self._ask(do="start-again", name=name))

    def stop(self, name: str, grace: float = 5) -> None:
        """End a component, asking politely for ``grace`` seconds; 0 kills it at once."""
        self._ask(do="stop", name=name, grace=grace)

    def components(self) -> dict[str, dict[str, Any]]:
        """Return each component's process id and exit code (None while it runs)."""
        found: dict[str, dict[str, Any]] = self._ask(do="list")
        return found

    def alive(self, name: str) -> bool:
        """Say whether a component runs."""
        return self.answers() and self.components().get(name, {"code": 0})["code"] is None

    def until(
        self, name: str, probe: Callable[[], object], *, timeout: float, what: str = "ready", log: Path | None = None
    ) -> None:
        """Wait until ``probe`` returns something true.

        Args:
            name: the component that makes it true; if it ends first, waiting ends too.
            probe: observes; OSError counts as not yet.
            timeout: seconds.
            what: the awaited state, for the message.
            log: where to look for the reason; default the component's log.

        Raises:
            ComponentError: it ended or time ran out; the text shows the end of its log.
        """
        end = time.monotonic() + timeout
        while True:
            with contextlib.suppress(OSError):
                if probe():
                    return
            problem = self._problem(name, what, timeout, end)
            if problem:
                raise ComponentError(f"{problem}; the end of its log:\n{log_tail(log or self.log(name))}")
            time.sleep(0.03)

    def finished(self, name: str, *, timeout: float) -> None:
        """Wait until a component ended well.

        Raises:
            ComponentError: it ended with another code than 0, or not within ``timeout`` seconds.
        """
        end = time.monotonic() + timeout
        while (code := self.components()[name]["code"]) is None and time.monotonic() < end:
            time.sleep(0.02)
        if code != 0:
            how = "did not end" if code is None else f"ended with code {code}"
            raise ComponentError(f"{name} {how}; the end of its log:\n{log_tail(self.log(name))}")

    def _problem(self, name: str, what: str, timeout: float, end: float) -> str | None:
        launched = self._child if name == "supervisor" else None
        code = launched.poll() if launched else self.components().get(name, {}).get("code")
        if code is not None:
            return f"{name} ended with code {code}"
        return f"{name} was not {what} within {timeout:.0f} s" if time.monotonic() > end else None

    def _ask(self, **request: object) -> Any:
        with socket.socket(socket.AF_UNIX) as connection:
            connection.settimeout(60)
            connection.connect(str(self.folder / "supervisor.sock"))
            connection.sendall(json.dumps(request).encode() + b"\n")
            with connection.makefile() as lines:
                line = lines.readline()
        if not line:
            raise ComponentError("the supervisor ended while it was asked")
        reply = json.loads(line)
        if "error" in reply:
            raise ComponentError(reply["error"])
        return reply["ok"]
