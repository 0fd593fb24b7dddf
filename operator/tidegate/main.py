"""The operator's entry point: builds the parts, runs them, and ends them in order. Does I/O."""

from __future__ import annotations

import os
import signal
import sys

if __name__ == "__main__":
    # Before seconds of importing. The first process of a container does not notice a signal that it has no handler for,
    # so that one which was asked to go meanwhile went on for its grace period, and led if nobody else did.
    # Nothing is there yet that has to be ended in order; and an exception in a handler is lost where Python has just
    # called a callback of its own, as it does for each module, so that sys.exit would now and then be ignored.
    signal.signal(signal.SIGTERM, lambda _number, _frame: os._exit(0))

import asyncio
import gc
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from functools import partial

import kopf
import msgspec
import structlog

from tidegate import messages
from tidegate.access.key_secret import find_keys
from tidegate.agent.client import AgentClient
from tidegate.api.control_message import CONTROL_PLURAL
from tidegate.api.stream_snapshot import SNAPSHOT_PLURAL
from tidegate.api.streaming_app import PLURAL
from tidegate.kube.client import KubeClient, always
from tidegate.kube.connection import NoConfigurationError, connect
from tidegate.kube.failures import FAILURES
from tidegate.kube.leadership import Candidate
from tidegate.kube.lease import Leadership, boot_clock, find_namespace, make_candidate
from tidegate.kube.paths import GROUP_PATH
from tidegate.settings import Settings, read_settings
from tidegate.wiring.assembly import build_operator
from tidegate.wiring.kopf_frame import build_registry, build_settings
from tidegate.wiring.logs import configure_logging
from tidegate.wiring.metrics import OperatorMetrics
from tidegate.wiring.metrics_server import serve_metrics
from tidegate.wiring.running_operator import Operator, drain, start_parts
from tidegate.wiring.served_namespaces import find_served

DEFAULT_NAMESPACE = "default"
"""Where the agents' key is if nobody says which namespace is the operator's own: it runs outside of a pod then."""
_CRD_PAUSE = 2.0
_GARBAGE = (10_000, 20, 10)
"""When the collector looks (gc.set_threshold): by Python's 700, requests under way are looked at again and again."""
log = structlog.get_logger()


async def run(settings: Settings) -> int:
    """Run the operator until it is asked to end; returns the process's exit status."""
    _end_when_asked()
    try:
        connection = await connect()
    except NoConfigurationError as error:
        log.error("no way to the API server", problem=str(error))
        return 2
    place = (settings.lease_namespace or find_namespace(), settings.lease_name)
    if settings.leader_election and not place[0]:
        log.error("no namespace for the lease; set POD_NAMESPACE, or give --no-leader-election to the only operator")
        return 2
    candidate = make_candidate() if settings.leader_election else None
    async with AsyncExitStack() as stack:
        metrics = OperatorMetrics()
        guard = always if candidate is None else partial(_holds, candidate)
        client = await stack.enter_async_context(KubeClient(connection, metrics, 2 * settings.concurrency, guard))
        keys = await find_keys(client, place[0] or DEFAULT_NAMESPACE, settings.key_name)
        agents = await stack.enter_async_context(AgentClient(keys, settings.agent_concurrency, guard))
        begun: list[Operator] = []
        try:
            server = await serve_metrics(metrics, settings.metrics_port, lambda: _missing(begun))
        except OSError as error:
            log.error("metrics cannot be served; choose another --metrics-port", problem=str(error))
            return 2
        stack.push_async_callback(server.cleanup)
        await _wait_for_crd(client)
        served = await find_served(client, settings.watch_namespaces)
        left_out = [namespace for namespace in settings.watch_namespaces if namespace not in served]
        settings = replace(settings, watch_namespaces=served)
        operator = build_operator(settings, connection, client, agents, keys, metrics)
        begun.append(operator)
        workers = _begin(operator, candidate, place, left_out)
        log.info("operator started", server=connection.server, namespaces=served or "all", lease="/".join(place))
        try:
            await _run_kopf(operator)
        finally:
            await drain(operator, workers)
    log.info("operator ended", failed=operator.failed)
    return 1 if operator.failed else 0


def _missing(begun: Sequence[Operator]) -> str:
    return begun[0].missing() if begun else messages.NOT_BEGUN


def _begin(
    operator: Operator, candidate: Candidate | None, place: tuple[str, str], left_out: Sequence[str]
) -> list[asyncio.Task[None]]:
    if candidate is None:
        operator.note_leading(True)
    else:
        operator.leadership = Leadership(operator.client, candidate, place, operator.note_leading)
    workers = start_parts(operator)
    operator.metrics.left_out.set(len(left_out))
    if left_out:
        workers.append(operator.supervise(partial(operator.begin_anew, left_out), "namespaces"))
    _spare_collector()
    return workers


def _spare_collector() -> None:
    """Leave out of garbage collections what was built so far: it lives as long as the process."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_GARBAGE)


def _end_when_asked() -> None:
    """Have SIGTERM end what is under way now. Until kopf runs, which brings a handler of its own.

    Without a handler the first process of a container does not even notice the signal.
    """
    task = asyncio.current_task()
    if task is not None:
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, task.cancel)


def _holds(candidate: Candidate) -> bool:
    return candidate.holds(boot_clock())


async def _run_kopf(operator: Operator) -> None:
    """Run kopf until a signal ends it, or the failure of one of our own parts does."""
    namespaces = operator.settings.watch_namespaces
    running = kopf.operator(
        registry=build_registry(operator.connection, operator.metrics),
        settings=build_settings(),
        standalone=True,
        clusterwide=not namespaces,
        namespaces=namespaces,
    )
    operator.kopf = asyncio.create_task(running, name="kopf")
    if operator.failed:
        operator.kopf.cancel()
    try:
        await operator.kopf
    except asyncio.CancelledError:
        if not operator.failed:
            raise


class _Resource(msgspec.Struct):
    name: str


class _Resources(msgspec.Struct):
    resources: list[_Resource] = []


async def _wait_for_crd(client: KubeClient) -> None:
    """Wait until the API server knows our resources, and say that they are missing: watches would only fail."""
    while True:
        answer = await client.get(GROUP_PATH, _Resources)
        missing = {PLURAL, SNAPSHOT_PLURAL, CONTROL_PLURAL}
        if not isinstance(answer, FAILURES):
            missing -= {resource.name for resource in answer.resources}
            if not missing:
                return
        problem = str(answer) if isinstance(answer, FAILURES) else ""
        log.warning("CRDs are not there yet; install them with the chart", missing=sorted(missing), answer=problem)
        await asyncio.sleep(_CRD_PAUSE)


def main() -> None:
    """Entry point of the operator's image."""
    settings = read_settings(sys.argv[1:], os.environ)
    configure_logging(settings.log_format, settings.log_level)
    try:
        status = asyncio.run(run(settings))
    except (KeyboardInterrupt, asyncio.CancelledError):
        status = 0
    sys.exit(status)


if __name__ == "__main__":
    main()
