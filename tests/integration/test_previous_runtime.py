"""Today's operator and the runtime of the last landing, an agent in a process of its own: each understands the other.

An image that brings its own runtime is upgraded after the operator. So whatever a runtime of one release before says is
read, word for word, and whatever it is ordered it either does, whole, or refuses with what it does not know.
"""

import json
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from devcluster.control import free_port
from tidegate.agent import client as agent_client
from tidegate.agent.client import AgentClient, Unanswered
from tidegate.agent.session import launch_of
from tidegate.api.control_message import ControlMessage
from tidegate.app.builders.driver import build_driver_pod
from tidegate.control.builders.message_snapshot import build_message_snapshot
from tidegate.pods.builders.spark_auth import spark_auth_mounts
from tidegate.pods.records.faults import has_unknown_termination, read_termination
from tidegate.pods.records.pod_owner import Belonging, belonging
from tidegate.pods.records.record import Exit
from tidegate.pods.spark.settings import CLOSED_PORTS
from tidegate.snapshots.rules import pods
from tidegate_spark.contract.control_protocol import ControlOrder, ControlOrders, MessageState
from tidegate_spark.contract.json_form import from_order, to_json
from tidegate_spark.contract.protocol import CONFIG_VARIABLE, PROTOCOL, ROLE_EXECUTOR, ExecutorTarget
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.snapshot_protocol import EXPORT_FORMATS, SnapshotOrder, SnapshotOrders, SnapshotReports
from tidegate_testing import previous_runtime
from tidegate_testing.control_observations import APP, message, observe_running, offered, report, said
from tidegate_testing.observations import KEYS, PLATFORM, app_with, launched, running_driver
from tidegate_testing.previous_runtime import PreviousRuntime
from tidegate_testing.rehearsals import config_of
from tidegate_testing.stored_forms import FOLDER, stored

KEY = ("shop", "orders")
LAUNCHED = build_driver_pod(launched(app_with()), 1, 1, PLATFORM)
DRIVER = running_driver(launched(app_with()), ip="127.0.0.1")


def newest_config() -> bytes:
    """Return the golden copy with all fields that a configuration has by now: the runtime before has no other ones."""
    apart = ("driver-config-rest", "driver-config-in-two")
    names = [path.stem for path in FOLDER.glob("driver-config*.json") if not path.stem.startswith(apart)]
    return max((stored(name) for name in names), key=lambda text: len(json.loads(text)))


class Owner(msgspec.Struct):
    """Of a pod, as the API has it."""

    apiVersion: str  # noqa: N815 - the API's name
    kind: str
    name: str
    uid: str
    controller: bool


def client() -> AgentClient:
    return AgentClient(KEYS, 4)


@pytest.fixture(scope="module")
def previous(tmp_path_factory: pytest.TempPathFactory) -> Iterator[PreviousRuntime]:
    """The runtime of the last landing, with the configuration that today's operator writes."""
    folder = tmp_path_factory.mktemp("previous")
    package = previous_runtime.unpack(folder)
    (folder / "token").write_text(KEYS.inspection_token(launch_of(DRIVER)))
    port = free_port()
    variables = {
        CONFIG_VARIABLE: newest_config().decode(),
        "TIDEGATE_BIND_ADDRESS": "127.0.0.1",
        "TIDEGATE_COMMAND_PORT": str(port),
        "TIDEGATE_STATUS_PORT": str(free_port()),
        "TIDEGATE_AGENT_TOKEN_FILE": str(folder / "token"),
        previous_runtime.FORMATS: " ".join(EXPORT_FORMATS),
        previous_runtime.LAUNCH: to_json(config_of(LAUNCHED)),
    }
    with pytest.MonkeyPatch.context() as patch, previous_runtime.running(package, variables) as running:
        patch.setattr(agent_client, "COMMAND_PORT", port)
        yield running


def assert_says(document: Any, found: Any, where: str = "") -> None:
    """Assert that all that an earlier document says is found, with the same words or with today's for them."""
    if isinstance(document, dict):
        assert set(document) <= set(found), where
        for name, value in document.items():
            assert_says(value, found[name], f"{where}.{name}")
    elif isinstance(document, list):
        assert len(document) == len(found), where
        for index, pair in enumerate(zip(document, found, strict=True)):
            assert_says(*pair, f"{where}[{index}]")
    elif document != found:
        assert Reason(document) is not Reason.UNKNOWN, (where, document)
        assert Reason(document).value == found, where


def as_document(value: Any) -> Any:
    return json.loads(to_json(value))


async def test_whatever_its_agent_reports_is_read_word_for_word(previous: PreviousRuntime) -> None:
    async with client() as operator:
        for document in previous.reported["reports"]:
            report = await operator.read_progress(KEY, DRIVER)
            assert not isinstance(report, Unanswered), report
            assert_says(document, as_document(report))


def test_whatever_it_leaves_at_its_end_is_read_word_for_word(previous: PreviousRuntime) -> None:
    reported = previous.reported["terminations"] + previous.reported["ends"]
    for text in reported:
        ended = Exit(1, "Error", text, 0.0)
        assert not has_unknown_termination(ended), text
        left = json.loads(text)
        # Each word of its list is among them; no process ends for the empty one, and no condition takes it.
        expected = {**left, "reason": left["reason"] or Reason.UNKNOWN.value}
        assert_says(expected, as_document(read_termination(ended)))
    assert len(reported) > 20


def test_whatever_its_snapshot_pods_leave_is_read_word_for_word(previous: PreviousRuntime) -> None:
    for text in previous.reported["snapshots"]:
        reports = pods._parse(text)
        assert isinstance(reports, SnapshotReports)
        assert_says(json.loads(text), as_document(reports))


def test_the_configuration_that_the_operator_writes_says_the_same_to_it(previous: PreviousRuntime) -> None:
    assert_says(previous.reported["config"], json.loads(newest_config()))


def test_it_starts_for_this_operator_or_says_which_of_the_two_is_to_be_upgraded(previous: PreviousRuntime) -> None:
    config = config_of(LAUNCHED)
    assert (config.protocol, previous.reported["refusals"][str(PROTOCOL)]) == (PROTOCOL, "")
    refusals = [previous.reported["refusals"][str(number)] for number in (-1, PROTOCOL + 2)]
    assert all("is too old for" in refusal for refusal in refusals), refusals


def test_its_spark_lets_in_nobody_without_the_applications_secret(previous: PreviousRuntime) -> None:
    assert CLOSED_PORTS.items() <= previous.reported["launch"]["settings"].items()
    # Whose file the operator's template mounts, as it stands.
    (container,) = previous.reported["launch"]["template"]["spec"]["containers"]
    assert spark_auth_mounts(launched(app_with()))[0] in container["volumeMounts"]


def test_its_executors_count_as_the_applications_own(previous: PreviousRuntime) -> None:
    settings, template = previous.reported["launch"]["settings"], previous.reported["launch"]["template"]
    owners = msgspec.convert(template["metadata"]["ownerReferences"], list[Owner])
    found = belonging(f"{settings['spark.kubernetes.executor.podNamePrefix']}-exec-1", owners, "another")
    assert found == Belonging("orders", ROLE_EXECUTOR, "uid-of-the-pod", epoch=1)


ORDERS: list[tuple[str, type[Any], Callable[[AgentClient, Any], Any]]] = [
    ("snapshot-orders", SnapshotOrders, lambda operator, order: operator.order_snapshots(KEY, DRIVER, order)),
    ("control-orders", ControlOrders, lambda operator, order: operator.order_control(KEY, DRIVER, order)),
    ("executor-target", ExecutorTarget, lambda operator, order: operator.set_executors(KEY, DRIVER, order.instances)),
]


@pytest.mark.parametrize(("name", "kind", "give"), ORDERS)
async def test_what_it_is_ordered_it_takes_whole_or_refuses_with_what_it_does_not_know(
    previous: PreviousRuntime, name: str, kind: type[Any], give: Callable[[AgentClient, Any], Any]
) -> None:
    order = from_order(kind, stored(name))
    async with client() as operator:
        answer = await give(operator, order)
    if answer is None:
        assert_says(json.loads(stored(name)), taken_by(previous))
    else:
        assert answer.refused
        assert "not a known" in answer.reason
        assert answer.reason.endswith("upgrade the runtime")


def taken_by(previous: PreviousRuntime) -> Any:
    """Return the order that its agent has just passed on, with all fields that it knows."""
    taken = previous.next_line()["given"]
    return {"instances": taken} if isinstance(taken, int) else taken


BARE: dict[str, Any] = {
    "snapshot-orders": SnapshotOrders(take=(SnapshotOrder("now-1"),), dispose=("now-0",)),
    "control-orders": ControlOrders(messages=(ControlOrder("uid-1", "ping"),)),
    "executor-target": ExecutorTarget(2),
}
"""Orders that leave out what they may."""


@pytest.mark.parametrize(("name", "give"), [(name, give) for name, _, give in ORDERS])
async def test_what_an_order_leaves_out_means_the_same_to_it(
    previous: PreviousRuntime, name: str, give: Callable[[AgentClient, Any], Any]
) -> None:
    async with client() as operator:
        assert await give(operator, BARE[name]) is None
    assert_says(taken_by(previous), as_document(BARE[name]))


def dump(word: str) -> ControlMessage:
    return message(status=offered(), kind="dump-state", payload={"format": word})


@pytest.mark.parametrize("word", EXPORT_FORMATS)
def test_a_format_of_a_dump_it_takes_or_the_message_says_that_the_runtime_is_to_be_upgraded(
    previous: PreviousRuntime, word: str
) -> None:
    rejection = previous.reported["rejections"][word]
    if rejection:
        fields: dict[str, Any] = {"reason": rejection[0], "message": rejection[1]}
        reported = report(dump(word), MessageState.REJECTED, 1, **fields)
        assert "upgrade the runtime" in said(observe_running(dump(word), reports=(reported,)))[3]


def test_a_dump_in_each_format_that_it_takes_is_one_that_the_operator_has_written(previous: PreviousRuntime) -> None:
    taken = [word for word in previous.reported["formats"] if not previous.reported["rejections"][word]]
    asked = {build_message_snapshot(dump(word), APP)["spec"]["export"]["format"] for word in taken}
    assert asked == set(EXPORT_FORMATS)


def test_the_commit_of_the_last_landing_is_one_that_this_checkout_comes_from() -> None:
    assert len(previous_runtime.commit()) == 40
    is_ancestor = previous_runtime.git("merge-base", "--is-ancestor", previous_runtime.commit(), "HEAD")
    assert is_ancestor.returncode == 0 or not previous_runtime.has_history()
