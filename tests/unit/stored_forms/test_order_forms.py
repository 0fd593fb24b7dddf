"""What the operator orders from a driver's agent. Golden copies; the agent is the product's own, on 127.0.0.1.

Of a report each side reads what it knows. Of an order nothing may be left out: it is refused, whole, and it is said
what is not known and which side is too old.
"""

import asyncio
import dataclasses
import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tidegate.agent import client as agent_client
from tidegate.agent.client import AgentClient, Unanswered
from tidegate.agent.session import launch_of
from tidegate.pods.records.faults import read_termination
from tidegate.pods.records.record import Exit, PodRecord
from tidegate.snapshots.rules import pods
from tidegate_spark.contract.control_protocol import ControlOrder, ControlOrders, MessageEnd, MessageState
from tidegate_spark.contract.json_form import NewerOrderError, from_json, from_order, to_json, to_order
from tidegate_spark.contract.object_paths import Storage
from tidegate_spark.contract.protocol import CONFIG_VARIABLE, EXIT_APPLICATION, ExecutorTarget
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.repartition_protocol import REPARTITION_VARIABLE, RepartitionEnd
from tidegate_spark.contract.snapshot_protocol import (
    ORDERS_VARIABLE,
    AdoptOrder,
    ExportOrder,
    ReleaseOrder,
    SnapshotOrder,
    SnapshotOrders,
    SnapshotState,
    StateChoice,
    VerifyOrder,
)
from tidegate_spark.process.progress import Progress
from tidegate_testing.agent_commands import commands
from tidegate_testing.driver_process import driver_config
from tidegate_testing.observations import KEYS, app_with, launched, running_driver
from tidegate_testing.signing_agent import signing_agent
from tidegate_testing.stored_forms import LATER, Form, each, stored

KEY = ("shop", "orders")
DRIVER = running_driver(launched(app_with()), ip="127.0.0.1", signs=True)
NOW = 1767225600.25
SNAPSHOTS = SnapshotOrders(
    take=(
        SnapshotOrder(
            "nightly-1",
            manual=True,
            exact={"main": 41},
            alone=True,
            holders=("up-1",),
            image="shop/orders:7",
            spec_hash="5d1a0e",
            spec='{"application.image":"shop/orders:7"}',
        ),
    ),
    dispose=("nightly-0",),
    release=(ReleaseOrder("nightly-0", "fork-uid"),),
    adopt=(AdoptOrder("import-1", "nightly-9", "import-uid"),),
    verify=(VerifyOrder("nightly-1-verify", "nightly-1"),),
    export=(
        ExportOrder(
            "e-1",
            "nightly-1",
            "e-1",
            "Parquet",
            (StateChoice("main", 1, "total"),),
            cores=2,
            heap_mib=2048,
            spark_conf={"spark.sql.shuffle.partitions": "8"},
        ),
    ),
)
MESSAGES = ControlOrders(
    messages=(ControlOrder("uid-1", "reload-config", '{"Straße":30}', NOW - 60, NOW, "shop/limits"),),
    forget=("uid-0",),
    ended=(MessageEnd("0" * 32, MessageState.DONE, "SnapshotTaken", "It is taken.", {"streamSnapshot": "a"}),),
)
EXECUTORS = ExecutorTarget(5)


def read_as(kind: type[Any]) -> Callable[[bytes], Any]:
    return lambda body: from_order(kind, body)


def written(order: Any) -> bytes:
    return to_order(order).encode()


FORMS = [
    Form("snapshot-orders", SNAPSHOTS, read_as(SnapshotOrders), written),
    Form("control-orders", MESSAGES, read_as(ControlOrders), written),
    Form("executor-target", EXECUTORS, read_as(ExecutorTarget), written),
]


@each(FORMS)
def test_an_order_is_read_and_written_as_it_is_sent(form: Form) -> None:
    form.assert_read()
    form.assert_written()
    form.assert_reported()


def parts_of(document: Any) -> Iterator[Any]:
    """Yield each object of an order that is one of ours, which a map by name is not; changing it changes the order."""
    for name, value in document.items():
        for part in value if isinstance(value, list) else ():
            if isinstance(part, dict):
                yield from parts_of(part)
        assert not isinstance(value, dict) or name in {"exact", "spark_conf", "results"}
    yield document


def with_field_of_a_later_version(name: str) -> Iterator[bytes]:
    """Yield a golden copy with a field that is not known here, in each of its objects in turn."""
    for index in range(len(list(parts_of(json.loads(stored(name)))))):
        document = json.loads(stored(name))
        list(parts_of(document))[index][LATER] = 1
        yield json.dumps(document).encode()


@each(FORMS)
def test_an_order_with_a_field_that_is_not_known_is_refused_and_the_field_is_named(form: Form) -> None:
    for body in with_field_of_a_later_version(form.name):
        with pytest.raises(NewerOrderError, match=rf"{type(form.value).__name__}.*\.{LATER}: not a known field"):
            form.read(body)


def test_an_order_with_a_word_that_is_not_known_is_refused_likewise() -> None:
    with pytest.raises(
        NewerOrderError, match=r"ControlOrders\.ended\[0\]\.state: 'Merged' is not a known MessageState"
    ):
        from_order(ControlOrders, stored("control-orders").replace(b'"Done"', b'"Merged"'))


@each(FORMS)
def test_an_order_says_nothing_of_what_it_does_not_ask_for(form: Form) -> None:
    # A runtime that is older, and refuses what it does not know, is so asked only for what it can do.
    for field in dataclasses.fields(form.value):
        default = field.default
        if default is not dataclasses.MISSING:
            less = dataclasses.replace(form.value, **{field.name: default})
            assert field.name not in json.loads(to_order(less))
            assert from_order(type(less), to_order(less)) == from_json(type(less), to_json(less)) == less
    assert to_order(SnapshotOrders(take=(SnapshotOrder("a"),))) == '{"take":[{"id":"a"}]}'


# --- operator and agent ---


@pytest.fixture
def asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Any]]:
    """A running agent that the operator's client asks; the list gets what the agent has its driver do."""
    done: list[Any] = []
    given = commands(order_snapshots=done.append, give_messages=done.append, set_executors=done.append)
    config = driver_config("orders", "main.py", Storage("s3://bucket/tests/app"))
    with signing_agent(tmp_path, launch_of(DRIVER), Progress(config), given) as port:
        monkeypatch.setattr(agent_client, "COMMAND_PORT", port)
        yield done


def give(order: Callable[[AgentClient, PodRecord], Awaitable[Unanswered | None]]) -> Unanswered | None:
    async def ask() -> Unanswered | None:
        async with AgentClient(KEYS, 4) as client:
            return await order(client, DRIVER)

    return asyncio.run(ask())


ORDERS: list[tuple[str, Any, Callable[[AgentClient, PodRecord], Awaitable[Unanswered | None]]]] = [
    ("snapshot-orders", SNAPSHOTS, lambda client, pod: client.order_snapshots(KEY, pod, SNAPSHOTS)),
    ("control-orders", MESSAGES, lambda client, pod: client.order_control(KEY, pod, MESSAGES)),
    ("executor-target", EXECUTORS.instances, lambda client, pod: client.set_executors(KEY, pod, EXECUTORS.instances)),
]


@pytest.mark.parametrize(("name", "meant", "order"), ORDERS)
def test_what_the_operator_orders_arrives(name: str, meant: Any, order: Callable[..., Any], asked: list[Any]) -> None:
    assert give(order) is None
    assert asked == [meant]


@pytest.mark.parametrize(("name", "meant", "order"), ORDERS)
def test_a_newer_operator_is_told_which_field_the_runtime_does_not_know_and_nothing_is_done(
    name: str, meant: Any, order: Callable[..., Any], asked: list[Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    for body in with_field_of_a_later_version(name):
        monkeypatch.setattr(agent_client, "to_order", lambda value, body=body: body.decode())
        answer = give(order)
        assert isinstance(answer, Unanswered)
        assert answer.refused
        assert (
            f"{LATER}: not a known field; this runtime (protocol 1) is older than who gave the order" in answer.reason
        )
        assert answer.reason.endswith("upgrade the runtime")
    assert asked == []


def test_a_number_of_executors_that_cannot_be_meant_is_refused(asked: list[Any]) -> None:
    answer = give(lambda client, pod: client.set_executors(KEY, pod, 0))
    assert answer == Unanswered("HTTP 400: instances: expected 1 to 10000, got 0", refused=True)
    assert asked == []


@pytest.mark.parametrize(
    ("body", "shown"),
    [
        (b"", "HTTP 422"),
        (b"<html>", "HTTP 422"),
        (b'{"error": 1}', "HTTP 422"),
        (b"[" * 100_000, "HTTP 422"),
        (b'{"error": "a\\nb\\u0000c"}', "HTTP 422: a b c"),
        (b'{"error": "' + b"x" * 5000 + b'"}', f"HTTP 422: {'x' * 300}"),
    ],
)
def test_what_a_hostile_agent_refuses_with_fits_into_a_status(body: bytes, shown: str) -> None:
    assert agent_client._why_refused(422, body) == shown


# --- operator and pods ---


def left_by(module: str, variables: dict[str, str], folder: Path) -> tuple[int, str]:
    """Return exit code and termination message of a pod's process with these orders."""
    config = driver_config("orders", "local:///main.py", Storage("s3://streams/apps/shop/orders", "http://127.0.0.1:9"))
    given = {CONFIG_VARIABLE: to_json(config), "TIDEGATE_TERMINATION_LOG": str(folder / "termination"), **variables}
    command = [sys.executable, "-m", f"tidegate_spark.{module}"]
    ended = subprocess.run(command, env={**os.environ, **given}, check=False, timeout=60)
    return ended.returncode, (folder / "termination").read_text()


def test_a_snapshot_pod_refuses_orders_with_a_field_that_it_does_not_know_each_by_its_id(tmp_path: Path) -> None:
    text = stored("snapshot-orders").decode().replace('"manual":true', f'"manual":true,"{LATER}":1')
    code, word = left_by("snapshot_pod", {ORDERS_VARIABLE: text}, tmp_path)
    reported = pods._parse(word)
    assert code == 0
    assert reported is not None
    assert {report.id for report in reported.snapshots} >= {
        "nightly-1",
        "nightly-0",
        "import-1",
        "nightly-1-verify",
        "e-1",
    }
    for report in reported.snapshots:
        assert (report.state, report.reason) == (SnapshotState.FAILED, Reason.ORDER_REFUSED)
        assert report.message.startswith(f"SnapshotOrders.take[0].{LATER}: not a known field; this runtime")


def test_a_pod_that_repartitions_refuses_an_order_with_a_field_that_it_does_not_know(tmp_path: Path) -> None:
    text = json.dumps({**json.loads(stored("repartition")), LATER: 1})
    code, word = left_by("repartition_pod", {REPARTITION_VARIABLE: text}, tmp_path)
    termination = read_termination(Exit(code, "Error", word, NOW))
    assert code == EXIT_APPLICATION
    assert termination is not None
    assert termination.repartition == RepartitionEnd(Reason.START_FAILED)
    assert termination.message.startswith(f"Repartition.{LATER}: not a known field; this runtime")
    assert termination.message.endswith("upgrade the runtime.")
