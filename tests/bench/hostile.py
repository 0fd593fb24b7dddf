"""How soon ten applications are reconciled beside hostile objects. Starts servers on loopback.

A real API server with an audit log, kwok nodes, stand-in agents, and the operator as the chart ships it. The same edits
are made by turns: with the ten alone, with hostile objects in another namespace, and while those are being stored.
"""

import asyncio
import random
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tests.bench.agents import StandInAgents
from tests.bench.audit import read_audit_log
from tests.bench.hostile_results import ALONE, ARRIVING, KINDS, PRESENT, Delays, Window, latencies, results
from tests.bench.load import USER_AGENT, Load
from tests.bench.options import bench_options
from tests.bench.report import print_report
from tests.bench.reporting import say
from tests.bench.server import NAMESPACE, OPERATOR, Bench, bench_world
from tests.bench.turns import turns
from tidegate_testing.hostile_routes import ROUTES, corpus
from tidegate_testing.memory import chart_limit, peak_bytes

NODES = 2
HOSTILE = "hostile"
NAMES = [f"app-{number}" for number in range(10)]
GROUP = "/apis/tidegate.dev/v1alpha1/namespaces"
APPS, PODS = f"{GROUP}/{NAMESPACE}/streamingapps", f"/api/v1/namespaces/{NAMESPACE}/pods"
PLACES = {
    "controlmessage": f"{GROUP}/{HOSTILE}/controlmessages",
    "streamsnapshot": f"{GROUP}/{HOSTILE}/streamsnapshots",
    "streamingapp": f"{GROUP}/{HOSTILE}/streamingapps",
    "pod": f"/api/v1/namespaces/{HOSTILE}/pods",
}
LIMIT_SECONDS = 300.0
POLL_SECONDS = 0.2
PAUSE_SECONDS = 1.0
"""Between an application's edits, on average."""
MIB = 2**20


def main(arguments: Sequence[str]) -> int:
    """Edit ten applications with and without hostile objects beside them; latency, memory, the event loop's delay."""
    parser = bench_options("hostile", main.__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="windows of each kind")
    parser.add_argument("--edits", type=int, default=20, help="of each application in a window")
    parser.add_argument("--objects", type=int, default=60, help="of the generator, of each kind, in a window")
    options = parser.parse_args(arguments)
    return asyncio.run(_run(options.rounds, options.edits, options.objects))


async def _run(rounds: int, edits: int, objects: int) -> int:
    with bench_world(nodes=NODES) as bench, StandInAgents() as agents:
        async with Load(bench.kubeconfig) as load, asyncio.TaskGroup() as beside:
            await bench.prepare(load)
            ten = Ten(load)
            endless = [
                beside.create_task(agents.answer_for_all(load.watch(PODS))),
                beside.create_task(ten.follow()),
            ]
            await load.create_all(APPS, (bench.app(name) for name in NAMES))
            await ten.until(lambda: all(ten.phase(name) == "Running" for name in NAMES))
            stage = Stage(bench, load, ten, edits, objects)
            windows = [await stage.window(kind, number) for number, kind in enumerate(turns(KINDS, rounds))]
            for task in endless:
                task.cancel()
        requests = read_audit_log(bench.audit_log)
    found: dict[str, list[float]] = {kind: [] for kind in KINDS}
    for window in windows:
        found[window.kind] += latencies(requests, window, USER_AGENT, OPERATOR)
    # A process that ends ends the benchmark, too: there is nobody to restart it.
    made = {**results(windows, found), "restarts": 0.0, "memory_limit_mib": chart_limit() / MIB}
    stored = {kind: [window.stored for window in windows if window.kind == kind] for kind in (PRESENT, ARRIVING)}
    print_report("hostile", made, {"rounds": rounds, "edits": edits, "objects": objects, "stored": stored})
    return 0


class Ten:
    """The ten applications as a watch brings them, and who edits them."""

    def __init__(self, load: Load) -> None:
        """Know nothing yet."""
        self._load = load
        self._seen: dict[str, Any] = {}
        self._news = asyncio.Condition()

    async def follow(self) -> None:
        """Take in what they become, for ever."""
        async for app in self._load.watch(APPS):
            async with self._news:
                self._seen[app["metadata"]["name"]] = app
                self._news.notify_all()

    async def until(self, probe: Callable[[], bool]) -> None:
        """Wait until something is true of them."""
        async with asyncio.timeout(LIMIT_SECONDS), self._news:
            await self._news.wait_for(probe)

    def phase(self, name: str) -> str:
        """Return the phase of one of them."""
        return str(self._seen.get(name, {}).get("status", {}).get("phase", ""))

    async def edit_all(self, times: int) -> None:
        """Edit each so many times at random moments, never again before the last edit was seen."""
        async with asyncio.TaskGroup() as group:
            for name in NAMES:
                group.create_task(self._edit(name, times))

    async def _edit(self, name: str, times: int) -> None:
        for _ in range(times):
            await asyncio.sleep(random.uniform(0, 2 * PAUSE_SECONDS))
            generation = self._seen[name]["metadata"]["generation"] + 1
            # Running drivers are not touched by it: what is measured is the operator alone.
            change = {"spec": {"restart": {"maxFailures": 51 + generation % 49}}}
            await self._load.merge_patch(f"{APPS}/{name}", change)
            await self.until(lambda: self._observed(name) >= generation)  # noqa: B023 - awaited before the next one

    def _observed(self, name: str) -> int:
        return int(self._seen[name].get("status", {}).get("observedGeneration", 0))


class Stage:
    """Servers, operator and the ten, with a namespace of somebody who means harm for some of the time."""

    def __init__(self, bench: Bench, load: Load, ten: Ten, edits: int, objects: int) -> None:
        """Make windows of so many edits of each application, with so many of the generator's objects of each kind."""
        self._bench, self._load, self._ten = bench, load, ten
        self._edits, self._objects = edits, objects
        self._process = Path(f"/proc/{bench.operator_pid}")

    async def window(self, kind: str, number: int) -> Window:
        """Edit the ten in one of the ways; afterwards nothing hostile is left."""
        stored = 0
        if kind != ALONE:
            await self._make_namespace()
        if kind == PRESENT:
            stored = await self._store(number, pause=0.0)
            await self._bench.until_quiet()
        before, start = Delays.of(self._bench.metrics()), time.time()
        (self._process / "clear_refs").write_text("5")  # the peak is that from now on: proc(5)
        async with asyncio.TaskGroup() as both:
            storing = both.create_task(self._store(number, self._pause())) if kind == ARRIVING else None
            both.create_task(self._ten.edit_all(self._edits))
        end, after = time.time(), Delays.of(self._bench.metrics())
        peak = peak_bytes((self._process / "status").read_text()) / MIB
        if storing is not None:
            stored = storing.result()
        if kind != ALONE:
            await self._end_namespace()
        await self._bench.until_quiet()
        say(f"{number + 1}: {kind}: {stored} hostile objects, {end - start:.0f} s, {peak:.0f} MiB")
        return Window(kind, start, end, stored, after.since(before), peak)

    def _pause(self) -> float:
        """Return the seconds between two objects that have them all stored in about the time of the edits."""
        return self._edits * PAUSE_SECONDS / len(self._texts(0))

    def _texts(self, seed: int) -> list[tuple[str, bytes]]:
        return [*ROUTES, *corpus(self._objects, seed)]

    async def _store(self, seed: int, pause: float) -> int:
        """Store the known ways in and the generator's objects; return how many the API server took."""
        taken = 0
        for kind, text in self._texts(seed):
            taken += await self._load.store(PLACES[kind], text)
            await asyncio.sleep(pause)
        return taken

    async def _make_namespace(self) -> None:
        await self._load.create("/api/v1/namespaces", {"metadata": {"name": HOSTILE}})
        await self._until(f"{HOSTILE}/serviceaccounts/default", there=True)

    async def _end_namespace(self) -> None:
        await self._load.delete(f"/api/v1/namespaces/{HOSTILE}")
        await self._until(HOSTILE, there=False)

    async def _until(self, what: str, *, there: bool) -> None:
        for _ in range(int(LIMIT_SECONDS / POLL_SECONDS)):
            if await self._load.exists(f"/api/v1/namespaces/{what}") == there:
                return
            await asyncio.sleep(POLL_SECONDS)
        raise TimeoutError(
            f"after {LIMIT_SECONDS:.0f} s namespaces/{what} is {'still not' if there else 'still'} there"
        )
