"""What it costs a launch that Spark's ports are closed: applications with ports open and closed, in turns.

One operator process launches them all. A fresh one for each round would have its imports, its connections and its first
use of everything in the round, and another layout of memory; rounds would differ by more than a Secret costs. In one
process they differ by the applications alone: in the value of one setting, of which the closed ones state the default,
and in the Secret that the bench's operator does not make for open ports (scripts/unlocked_operator.py). Nothing of a
round is left when the next one begins; rounds of both ways are neighbours, and each way is the first of every other
pair, so that what grows or slows down with time falls on both alike.

A round ends when its last application is Running. Each has a stand-in agent: without, the operator reports silent
agents in the same seconds, now more and now fewer of them, and each report is two requests.
"""

import asyncio
import contextlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tests.bench.agents import StandInAgents
from tests.bench.audit import AuditLog, Request, by_client
from tests.bench.intervals import median
from tests.bench.load import Load
from tests.bench.process_tree import usage_of_tree
from tests.bench.report import print_report
from tests.bench.reporting import say
from tests.bench.server import NAMESPACE, OPERATOR, Bench, bench_world
from tests.bench.turns import turns
from tidegate.kube.paths import collection
from tidegate.pods.spark.settings import AUTHENTICATE
from tidegate_spark.contract.protocol import LABEL_MANAGED_BY, MANAGED_BY

OPERATOR_SCRIPT = Path(__file__).parent / "scripts" / "unlocked_operator.py"
WAYS = OPEN, CLOSED = "open", "closed"
AUTHENTICATES = {OPEN: "false", CLOSED: "true"}
SECRETS = {OPEN: 1, CLOSED: 2}
"""How many the operator makes for a launch."""
APPS = f"/apis/tidegate.dev/v1alpha1/namespaces/{NAMESPACE}/streamingapps"
PODS = collection("Pod", NAMESPACE)
LEFT = [APPS, PODS] + [
    f"{collection(kind, NAMESPACE)}?labelSelector={LABEL_MANAGED_BY}%3D{MANAGED_BY}"
    for kind in ("Secret", "RoleBinding", "Role", "ServiceAccount")
]
"""Where there is something of a round until all of it is removed."""
LIMIT_SECONDS = 300.0
POLL_SECONDS = 0.5


@dataclass(frozen=True)
class Round:
    """Applications that were launched at once.

    Attributes:
        way: open or closed.
        launches: driver pods that the operator created.
        cpu_seconds: of the operator's process tree, from the first create until the last application was Running.
        requests: of the operator in the applications' namespace, until it wrote nothing more.
    """

    way: str
    launches: int
    cpu_seconds: float
    requests: int

    @property
    def launches_per_cpu_second(self) -> float:
        """Return how many launches a second of the operator's CPU time is enough for."""
        return self.launches / self.cpu_seconds


async def measure(apps: int, pairs: int, warm: int) -> int:
    """Launch so many applications in each round of so many pairs, after ``warm`` pairs that do not count."""
    with bench_world(nodes=max(1, apps // 100 + 1), operator=[str(OPERATOR_SCRIPT)]) as bench:
        async with Load(bench.kubeconfig) as load:
            await bench.prepare(load)
            rounds: list[Round] = []
            for number, way in enumerate(turns(WAYS, warm + pairs)):
                made = await _round(bench, load, way, number, apps)
                counts = number >= warm * len(WAYS)
                rounds += [made] if counts else []
                rate, asked = made.launches_per_cpu_second, made.requests / made.launches
                mark = "" if counts else " (warming up)"
                say(f"{way}: {rate:.1f} launches per CPU-second, {asked:.2f} requests for each{mark}")
                await _remove_all(bench, load)
    samples = [{**asdict(each), "cpu_seconds": round(each.cpu_seconds, 2)} for each in rounds]
    print_report("submit", results(rounds), {"apps": apps, "pairs": pairs, "warm": warm, "samples": samples})
    return 0


async def _round(bench: Bench, load: Load, way: str, number: int, apps: int) -> Round:
    log = AuditLog(bench.audit_log)
    manifests = [bench.app(name, spec=spec_of(way)) for name in (f"round-{number:03d}-{i:04d}" for i in range(apps))]
    with StandInAgents() as agents:
        async with asyncio.TaskGroup() as beside:
            answering = beside.create_task(agents.answer_for_all(load.watch(PODS)))
            before = usage_of_tree(bench.operator_pid)
            await load.create_all(APPS, manifests)
            await _until_running(load, apps)
            after = usage_of_tree(bench.operator_pid)
            answering.cancel()
        await bench.until_quiet()
    return round_of(way, apps, after.cpu_seconds - before.cpu_seconds, log.added())


async def _until_running(load: Load, apps: int) -> None:
    """Wait until so many applications are Running; by a watch, as lists would take the API server's time."""
    running: set[str] = set()
    try:
        async with asyncio.timeout(LIMIT_SECONDS), contextlib.aclosing(load.watch(APPS)) as seen:
            async for app in seen:
                if app.get("status", {}).get("phase") == "Running":
                    running.add(app["metadata"]["name"])
                if len(running) == apps:
                    return
    except TimeoutError:
        raise TimeoutError(f"after {LIMIT_SECONDS:.0f} s only {len(running)} of {apps} applications run") from None


async def _remove_all(bench: Bench, load: Load) -> None:
    """Remove all applications; return when nothing of them is left and the operator is at rest."""
    await load.delete(APPS)
    for place in LEFT:
        await _until_empty(load, place)
    await bench.until_quiet()


async def _until_empty(load: Load, place: str) -> None:
    for _ in range(int(LIMIT_SECONDS / POLL_SECONDS)):
        if not (await load.get(f"{place}{'&' if '?' in place else '?'}limit=1"))["items"]:
            return
        await asyncio.sleep(POLL_SECONDS)
    raise TimeoutError(f"after {LIMIT_SECONDS:.0f} s there is still something in {place}")


def spec_of(way: str) -> dict[str, Any]:
    """Return what an application of a way states of its ports; pure."""
    return {"sparkConf": {AUTHENTICATE: AUTHENTICATES[way]}}


def round_of(way: str, apps: int, cpu_seconds: float, requests: Sequence[Request]) -> Round:
    """Return what a round was, by the API server's audit log of it; pure.

    Raises:
        RuntimeError: the operator did not make what a launch of this way takes, so that the round shows nothing.
    """
    ours = [r for r in by_client(requests, OPERATOR) if r.namespace == NAMESPACE]
    pods, secrets = (sum(r.created(kind) for r in ours) for kind in ("pods", "secrets"))
    if (pods, secrets) != (apps, apps * SECRETS[way]):
        raise RuntimeError(f"{way}: {apps} launches made {pods} pods and {secrets} Secrets, {SECRETS[way]} for each")
    return Round(way, pods, cpu_seconds, len(ours))


def results(rounds: Sequence[Round]) -> Mapping[str, float]:
    """Return the ratio of rounds that were neighbours, with how sure it is, and medians of the ways; pure."""
    by_way = {way: [each for each in rounds if each.way == way] for way in WAYS}
    rates = {way: [each.launches_per_cpu_second for each in by_way[way]] for way in WAYS}
    found = median([closed / open_ for closed, open_ in zip(rates[CLOSED], rates[OPEN], strict=True)])
    return {
        "doors_ratio_launches": found.value,
        "doors_ratio_launches_low": found.low,
        "doors_ratio_launches_high": found.high,
        **{f"launches_per_cpu_second_{way}": median(rates[way]).value for way in WAYS},
        **{f"requests_per_app_{way}": median([r.requests / r.launches for r in by_way[way]]).value for way in WAYS},
    }
