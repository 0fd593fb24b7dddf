"""Names, access, the agent's Secret and Events, whole."""

from datetime import UTC, datetime, timedelta

import pytest

from tidegate.access.builders.access import build_access
from tidegate.access.builders.launch_secrets import build_agent_secret, build_spark_secret
from tidegate.engine.rules.event import MESSAGE_LIMIT, build_event
from tidegate.pods.records import names
from tidegate.pods.records.metadata import executor_selector, labels
from tidegate.pods.records.platform import Platform
from tidegate_spark.contract.reasons import ForeignReason, Reason
from tidegate_testing.golden import assert_golden
from tidegate_testing.values import app

PLATFORM = Platform("operator:1", key_id="key")
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
OWNED = {"app.kubernetes.io/managed-by": "tidegate"}
METADATA = {"name": "tidegate-driver", "namespace": "shop", "labels": OWNED}


def test_names_follow_from_the_apps_name() -> None:
    assert names.driver_pod_name("orders") == "orders-driver"
    assert names.executor_prefix("orders", 3) == "orders-e3"
    assert names.agent_secret_name("orders", "u-1", 3, "key") == "orders-agent-3-65fa21fb56"
    assert names.spark_secret_name("orders", "u-1", 3, "key") == "orders-spark-3-65fa21fb56"
    assert names.purge_pod_name("orders") == "orders-purge"
    assert names.access_name("orders") == "tidegate-driver-orders"


def test_the_longest_name_leaves_spark_room_for_its_longest_executor_id() -> None:
    pod = f"{names.executor_prefix('a' * 40, 99_999)}-exec-{2**31 - 1}"
    assert len(pod) <= 63


def test_the_selector_finds_executors_of_every_epoch_and_nothing_else() -> None:
    pairs = dict(pair.split("=") for pair in executor_selector("orders").split(","))
    assert pairs.items() <= labels("orders", "executor", 3).items()
    assert not pairs.items() <= labels("orders", "driver", 3).items()
    assert not pairs.items() <= labels("other", "executor", 3).items()


def test_the_longest_name_of_an_applications_access_is_a_name_of_a_label() -> None:
    assert len(names.access_name("a" * 40)) <= 63


def test_a_driver_may_work_with_pods_and_nothing_else_and_its_access_goes_with_its_app() -> None:
    assert_golden(__file__, "access", build_access(app()))


def test_the_secrets_of_a_launch_go_with_its_app() -> None:
    secrets = [build_agent_secret(app(), 3, PLATFORM, "t0ken", "2a"), build_spark_secret(app(), 3, PLATFORM, "s3cret")]
    assert_golden(__file__, "agent_secret", secrets)


def test_the_longest_name_of_a_secret_is_a_name_of_a_label() -> None:
    assert len(names.agent_secret_name("a" * 40, "uid", 99_999, "key")) <= 63


def test_an_event_says_what_happened_to_whom() -> None:
    event = build_event(app().metadata, reason=Reason.LAUNCHED, message="epoch 3", now=NOON, key="3")
    name = event["metadata"]["name"]
    assert name.startswith("orders.")
    assert_golden(__file__, "event", event)


def event_name(reason: str = "Launched", message: str = "m", key: str = "", later: int = 0) -> str:
    event = build_event(
        app().metadata, reason=ForeignReason(reason), message=message, now=NOON + timedelta(seconds=later), key=key
    )
    return str(event["metadata"]["name"])


def test_what_is_told_twice_has_one_name_whenever_it_is_told() -> None:
    assert event_name(later=60) == event_name()


def test_what_differs_has_another_name() -> None:
    assert len({event_name(), event_name(reason="Stopped"), event_name(message="n"), event_name(key="2")}) == 4


@pytest.mark.parametrize(("length", "kept"), [(MESSAGE_LIMIT, MESSAGE_LIMIT), (MESSAGE_LIMIT + 1, MESSAGE_LIMIT)])
def test_a_long_message_is_cut_to_what_the_api_server_takes(length: int, kept: int) -> None:
    event = build_event(app().metadata, reason=ForeignReason("Failed"), message="é" * length, now=NOON, warning=True)
    assert (len(event["message"]), event["type"]) == (kept, "Warning")
    assert event["message"].endswith("…") == (length > kept)
