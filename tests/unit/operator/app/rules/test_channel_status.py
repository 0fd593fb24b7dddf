"""An application whose broker is away is as ready as it was, and says how it is with the broker."""

from typing import Any

import pytest

from tidegate.api.status.status import ControlStatus
from tidegate.api.streaming_app import Phase
from tidegate.app.observation import Observation
from tidegate.app.rules.live.channel_status import CONTROL_CHANNEL, channel_condition, control_status
from tidegate.app.rules.verdict import Verdict
from tidegate.engine.rules.health import Health
from tidegate_spark.contract.control_protocol import ChannelReport, ControlReport
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.observations import NOW, app_with, launched, observe, report_of, running_driver

RUNNING = Verdict(Phase.RUNNING, Health.READY, Reason.RUNNING, "It runs.")
REST = Verdict(Phase.SUSPENDED, Health.READY, Reason.SUSPENDED, "It rests.")
KAFKA = {
    "control.channel.type": "Kafka",
    "control.channel.kafka.bootstrapServers": "b:1",
    "control.channel.kafka.topic": "t",
}


def seen(
    report: ChannelReport | None, *, asked: bool = True, channel: dict[str, Any] | None = None, **status: Any
) -> Observation:
    app = launched(app_with(KAFKA if channel is None else channel), **status)
    driver = running_driver(app)
    reported = report_of(driver, control=ControlReport(channel=report))
    return observe(app, driver=driver, agent=reported if asked else None)


def said(o: Observation, verdict: Verdict = RUNNING) -> tuple[str, str]:
    (condition,) = channel_condition(o, verdict, NOW)
    assert condition.type == CONTROL_CHANNEL
    return condition.status, condition.reason


def test_without_a_brokers_channel_nothing_is_said() -> None:
    o = seen(None, channel={})
    assert (channel_condition(o, RUNNING, NOW), control_status(o)) == ((), None)


@pytest.mark.parametrize(
    ("report", "expected"),
    [
        (ChannelReport("Kafka", connected=True), ("True", "Connected")),
        (ChannelReport("Kafka", connected=True, reason="ControlRepliesRefused"), ("True", "ControlRepliesRefused")),
        (ChannelReport("Kafka", reason="ChannelUnavailable", message="Gone."), ("False", "ChannelUnavailable")),
        (ChannelReport("Kafka"), ("Unknown", "Connecting")),
        (None, ("Unknown", "NoDriver")),
    ],
)
def test_the_condition_says_how_it_is_with_the_broker(report: ChannelReport | None, expected: tuple[str, str]) -> None:
    assert said(seen(report)) == expected


def test_what_was_known_stays_while_nobody_answers_and_goes_when_nobody_reads() -> None:
    before = channel_condition(seen(ChannelReport("Kafka", connected=True)), RUNNING, NOW)
    silent = seen(None, asked=False, conditions=before)
    assert channel_condition(silent, RUNNING, NOW + 60) == before
    assert said(silent, REST) == ("Unknown", "NoDriver")


def test_an_inbox_in_the_storage_has_a_condition_and_counts_as_a_broker_has() -> None:
    o = seen(ChannelReport("Storage", connected=True, received=3), channel={"control.channel.storage": {}})
    (condition,) = channel_condition(o, RUNNING, NOW)
    assert (condition.status, condition.reason) == ("True", "Connected")
    assert "the inbox in the storage of the application" in condition.message
    assert control_status(o) == ControlStatus(channel="Storage", received=3)


def test_the_time_of_the_condition_is_that_of_its_last_change() -> None:
    before = channel_condition(seen(ChannelReport("Kafka", connected=True)), RUNNING, NOW)
    same = seen(ChannelReport("Kafka", connected=True, reason="ControlRepliesRefused"), conditions=before)
    other = seen(ChannelReport("Kafka", reason="ChannelUnavailable"), conditions=before)
    times = [channel_condition(o, RUNNING, NOW + 60)[0].last_transition_time for o in (same, other)]
    assert times[0] == before[0].last_transition_time < times[1]


def test_messages_are_counted_and_the_count_stays_while_nobody_answers() -> None:
    ended = {"Done": 5, "Failed": 1, "Rejected": 2, "Expired": 3, "RolledBack": 4}
    status = control_status(seen(ChannelReport("Kafka", connected=True, received=20, ended=ended)))
    expected = ControlStatus(channel="Kafka", received=20, applied=5, failed=1, rejected=2, expired=3, rolled_back=4)
    assert status == expected
    assert control_status(seen(None, asked=False, control=expected)) == expected
