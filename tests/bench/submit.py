"""What it costs the operator to launch many applications, and to watch over them. Starts servers on loopback.

A real API server with an audit log, kwok nodes whose pods become Running, and the operator as the chart ships it. The
yardstick in the same run is a bare create of the same pods by a plain HTTP client.
"""

import asyncio
import contextlib
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tests.bench import launch_ports
from tests.bench.agents import StandInAgents
from tests.bench.audit import Request, by_client, percentile, read_audit_log
from tests.bench.floor import PREFIX, Floor, Launch
from tests.bench.load import Load
from tests.bench.options import bench_options
from tests.bench.process_tree import PeakMemory, Usage, stopped, usage_of_tree
from tests.bench.report import print_report
from tests.bench.server import NAMESPACE, OPERATOR, Bench, bench_world
from tidegate.kube.paths import item
from tidegate.pods.records.names import access_name, driver_pod_name

APPS = f"/apis/tidegate.dev/v1alpha1/namespaces/{NAMESPACE}/streamingapps"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"
SECRETS = f"/api/v1/namespaces/{NAMESPACE}/secrets"
LAUNCH_VOLUMES = ("tidegate-agent", "tidegate-spark-auth")


@dataclass(frozen=True)
class Launches:
    """What launching all applications took."""

    operator: Usage
    bare_create_cpu_seconds: float


def main(arguments: Sequence[str]) -> int:
    """Launch N applications at once on kwok nodes; cost per launch, latency, memory, and what idling costs."""
    return _measure("submit", main.__doc__, arguments)


def fleet(arguments: Sequence[str]) -> int:
    """Do as submit does, and give each application a stand-in agent that commits a batch every few seconds."""
    return _measure("fleet", fleet.__doc__, arguments)


def _measure(bench: str, description: str | None, arguments: Sequence[str]) -> int:
    parser = bench_options(bench, description)
    parser.add_argument("--apps", type=int, default=200, help="applications applied at once")
    parser.add_argument("--idle-seconds", type=int, default=60, help="how long to watch the idle operator")
    parser.add_argument(
        "--variant",
        choices=("plain", "fleet"),
        default="fleet" if bench == "fleet" else "plain",
        help="plain: nothing answers for the drivers; fleet: each has a stand-in agent that commits batches",
    )
    if bench == "submit":
        parser.add_argument(
            "--doors",
            action="store_true",
            help="instead, launch in rounds with Spark's ports open and closed, by turns; each driver has an agent",
        )
        parser.add_argument("--pairs", type=int, default=10, help="with --doors: rounds of each way")
        parser.add_argument("--warm", type=int, default=1, help="with --doors: rounds of each way that do not count")
    options = parser.parse_args(arguments)
    if bench == "submit" and options.doors:
        return asyncio.run(launch_ports.measure(options.apps, options.pairs, options.warm))
    return asyncio.run(_run(bench, options.apps, options.idle_seconds, options.variant))


async def _run(name: str, apps: int, idle_seconds: int, variant: str) -> int:
    with bench_world(nodes=max(1, apps // 100 + 1)) as bench, contextlib.ExitStack() as stack:
        async with Load(bench.kubeconfig) as load:
            await bench.prepare(load)
            answering = None
            if variant == "fleet":
                agents = stack.enter_context(StandInAgents())
                answering = asyncio.create_task(agents.answer_for_all(load.watch(PODS)))
            memory = PeakMemory(bench.operator_pid)
            launches = await _launch(bench, load, apps, answering)
            idle_from = time.time()
            before = usage_of_tree(bench.operator_pid)
            _say(f"idle for {idle_seconds} s")
            await asyncio.sleep(idle_seconds)
            idle_cpu = usage_of_tree(bench.operator_pid).cpu_seconds - before.cpu_seconds
            idle = _idle_results(read_audit_log(bench.audit_log), idle_from, idle_from + idle_seconds)
            peak = memory.stop()
            _say("the same writes before each pod, by a client that decides nothing")
            await _find_floor(bench, load, apps)
            requests = read_audit_log(bench.audit_log)
            _say_requests(requests, apps, idle_from)
            results = {
                **_launch_results(requests, apps, launches, idle_from),
                "peak_rss_mib": peak,
                "idle_cpu_seconds": idle_cpu,
                **idle,
            }
    print_report(name, results, {"variant": variant, "apps": apps, "idle_seconds": idle_seconds})
    return 0


async def _launch(bench: Bench, load: Load, apps: int, answering: asyncio.Task[None] | None) -> Launches:
    _say(f"applying {apps} applications at once")
    before = usage_of_tree(bench.operator_pid)
    await load.create_all(APPS, (bench.app(f"app-{i:04d}") for i in range(apps)))
    pods = await _until_launched(load, apps)
    if answering:
        if answering.done():
            answering.result()  # it never ends by itself: this raises what ended it
        answering.cancel()
        await _until_phase(load, apps, "Running")
    # Status writes follow the pods' becoming Running: they belong to the launch, so wait until all is quiet.
    await bench.until_quiet()
    after = usage_of_tree(bench.operator_pid)
    used = Usage(after.cpu_seconds - before.cpu_seconds, after.rss_mib)
    _say("creating the same pods bare")
    bare = [_bare(pod) for pod in pods]
    return Launches(used, await load.create_all(PODS, bare))


async def _find_floor(bench: Bench, load: Load, apps: int) -> None:
    """Write for as many applications what has to be written before a pod is there, while the operator is stopped."""
    name = bench.app("app-0000")["metadata"]["name"]
    status = (await load.get(f"{APPS}/{name}"))["status"]
    pod = await load.get(f"{PODS}/{driver_pod_name(name)}")
    mounted = [v["secret"]["secretName"] for v in pod["spec"]["volumes"] if v["name"] in LAUNCH_VOLUMES]
    secrets = [await load.get(f"{SECRETS}/{secret}") for secret in mounted]
    account, role, binding = [
        await load.get(item(kind, NAMESPACE, access_name(name))) for kind in ("ServiceAccount", "Role", "RoleBinding")
    ]
    with stopped(bench.operator_pid):
        floor = Floor(load, NAMESPACE, Launch(account, (role, binding), secrets, status, pod))
        await floor.create_all(bench.app(f"app-{i:04d}") for i in range(apps))


async def _until_launched(load: Load, apps: int) -> list[dict[str, Any]]:
    """Wait until every driver pod runs; return them.

    While pods are being created they are only counted, by a page of one: a list of a thousand whole pods twice a second
    would cost the API server a third of a core, and so the latency that is being measured.
    """
    for _ in range(600):
        page = await load.get(f"{PODS}?limit=1")
        created = len(page["items"]) + page["metadata"].get("remainingItemCount", 0)
        if created >= apps:
            pods: list[dict[str, Any]] = (await load.get(PODS))["items"]
            if all(pod["status"].get("phase") == "Running" for pod in pods):
                return pods
            await asyncio.sleep(2)
        await asyncio.sleep(0.5)
    raise TimeoutError(f"after 300 s only {created} of {apps} driver pods run; see the operator's log")


async def _until_phase(load: Load, apps: int, phase: str) -> None:
    for _ in range(300):
        phases = [app.get("status", {}).get("phase") for app in (await load.get(APPS))["items"]]
        if phases.count(phase) >= apps:
            return
        await asyncio.sleep(1)
    raise TimeoutError(f"after 300 s only {phases.count(phase)} of {apps} applications are {phase}")


def _bare(pod: dict[str, Any]) -> dict[str, Any]:
    """Return the pod as the operator would have sent it, under another name and owned by nobody."""
    spec = {k: v for k, v in pod["spec"].items() if k != "nodeName"}
    metadata = {"name": "bare-" + pod["metadata"]["name"], "annotations": pod["metadata"].get("annotations", {})}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def _say_requests(requests: list[Request], apps: int, until: float) -> None:
    """Say what the operator asked for in its applications' namespace, and how often for each of them."""
    ours = (r for r in by_client(requests, OPERATOR) if r.namespace == NAMESPACE and r.received < until)
    counts = Counter(f"{r.verb} {'/'.join(filter(None, (r.resource, r.subresource)))} {r.code}" for r in ours)
    for kind, count in counts.most_common():
        _say(f"{count / apps:8.3f} for each application: {kind}")


def _launch_results(requests: list[Request], apps: int, launches: Launches, until: float) -> dict[str, float]:
    ours = [r for r in by_client(requests, OPERATOR) if r.namespace == NAMESPACE and r.received < until]
    applied = {r.name: r.received for r in requests if r.created("streamingapps")}
    created = {r.name.removesuffix("-driver"): r.finished for r in ours if r.created("pods")}
    latencies = [1000 * (created[name] - applied[name]) for name in created]
    floor = [1000 * (r.finished - applied[r.name]) for r in requests if r.created("pods") and r.name.startswith(PREFIX)]
    return {
        "launches_per_cpu_second": len(created) / launches.operator.cpu_seconds,
        "cpu_ms_per_launch": 1000 * launches.operator.cpu_seconds / len(created),
        "bare_create_cpu_ms": 1000 * launches.bare_create_cpu_seconds / apps,
        "cpu_ratio": launches.operator.cpu_seconds / launches.bare_create_cpu_seconds,
        "requests_per_app": len(ours) / apps,
        "p50_ms": percentile(latencies, 0.5),
        "p99_ms": percentile(latencies, 0.99),
        "floor_p50_ms": percentile(floor, 0.5),
        "floor_p99_ms": percentile(floor, 0.99),
        "p99_ratio": percentile(latencies, 0.99) / percentile(floor, 0.99),
    }


def _idle_results(requests: list[Request], start: float, end: float) -> dict[str, float]:
    idle = [r for r in by_client(requests, OPERATOR) if start < r.received < end]
    # A watch is logged when it ends, and is renewed at intervals of the API server's choosing.
    return {
        "idle_reads": float(sum(not r.writes and r.verb != "watch" for r in idle)),
        "idle_watches": float(sum(r.verb == "watch" for r in idle)),
        "idle_writes": float(sum(r.writes for r in idle)),
    }


def _say(what: str) -> None:
    print(what, file=sys.stderr, flush=True)
