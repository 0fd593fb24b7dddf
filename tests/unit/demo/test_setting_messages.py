"""The demo's settings as control messages: what is sent, when a reading may follow, and what is made of the end."""

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pytest

from devcluster.demo.application import BY_MESSAGES, build_application
from devcluster.demo.kubernetes import Kubernetes
from devcluster.demo.messages import Messages
from devcluster.demo.replay import Replay
from devcluster.demo.scenario import Reading, Record, Scenario, Setting, encode
from devcluster.demo.setting_messages import SettingMessages, build_payload, complaints
from tidegate_spark.contract.control_protocol import LARGEST_PAYLOAD

APPLICATION = build_application(image="i", endpoint="http://e", options={}, file=BY_MESSAGES)
SCENARIO = Scenario(readings=4_800)
SETTINGS = [record for record in SCENARIO.records() if isinstance(record, Setting)]


@dataclass(frozen=True)
class Cluster(Kubernetes):
    """One in which a message is in a phase at the second look; it writes down what it is told."""

    phase: str = "Published"
    reported: list[dict[str, Any]] = field(default_factory=list)
    checks: list[str] = field(default_factory=list)

    def ctl(self, *arguments: str, stdin: str | None = None, timeout: float = 60.0) -> str:
        self.reported.extend(json.loads(stdin or "")["items"])
        return ""

    def get(self, kind: str, name: str, namespace: str) -> dict[str, Any]:
        assert (kind, namespace) == ("ctl", "demo")
        self.checks.append(name)
        if len(self.checks) % 2:
            return {"status": {"phase": "Pending"}}
        return {"status": {"phase": self.phase, "sequence": len(self.reported)}}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Cluster:
    monkeypatch.setattr("devcluster.demo.messages.SECONDS_BETWEEN_POLLS", 0.0)
    return Cluster(Path("kubectl"), Path("helm"), Path("kubeconfig"))


def sender(cluster: Cluster, said: list[str] | None = None) -> SettingMessages:
    return SettingMessages(Messages(cluster, APPLICATION), 30, (said if said is not None else []).append)


def test_what_is_held_goes_as_one_message_and_is_told_of_when_the_log_has_it(cluster: Cluster) -> None:
    said: list[str] = []
    messages = sender(cluster, said)
    for setting in SETTINGS[:3]:
        messages.hold(setting)
    assert (messages.publish(), len(cluster.checks)) == (3, 2)
    (sent,) = cluster.reported
    assert sent["spec"]["appRef"] == {"name": "temperature-by-messages"}
    assert (sent["metadata"]["name"], sent["spec"]["type"]) == ("settings-000", "settings")
    assert sent["spec"]["payload"]["settings"] == [json.loads(encode(setting)) for setting in SETTINGS[:3]]
    assert said == ["ControlMessage settings-000: 3 settings, number 1 in the log"]


def test_where_nothing_is_held_nothing_is_sent(cluster: Cluster) -> None:
    assert sender(cluster).publish() == 0
    assert cluster.reported == []


@pytest.mark.parametrize("phase", ["Failed", "Expired"])
def test_readings_do_not_follow_a_message_that_is_never_in_force(cluster: Cluster, phase: str) -> None:
    messages = sender(replace(cluster, phase=phase))
    messages.hold(SETTINGS[0])
    with pytest.raises(RuntimeError, match=f"message settings-000 is not in force: {phase}"):
        messages.publish()


class Producer:
    """A broker's client that confirms everything at once."""

    def __init__(self) -> None:
        self.produced: list[str] = []

    def produce(self, topic: str, value: bytes, key: str, on_delivery: Any) -> None:
        self.produced.append(json.loads(value)["time"])
        on_delivery(None, None)

    def flush(self, timeout: float) -> int:
        return 0

    def poll(self, timeout: float) -> int:
        return 0


def test_a_reading_goes_out_when_the_log_has_every_setting_before_it_and_no_setting_goes_to_a_topic(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    producer = Producer()
    monkeypatch.setattr("devcluster.demo.replay.Producer", lambda _settings: producer)
    sent_before: list[tuple[int, int]] = []

    class Watched(SettingMessages):
        def publish(self) -> int:
            count = super().publish()
            if count:
                sent_before.append((len(cluster.reported), len(producer.produced)))
            return count

    messages = Watched(Messages(cluster, APPLICATION), 30, lambda _: None)
    records: list[Record] = list(SCENARIO.records())
    sent = Replay("k:1", "readings", messages).run(records)
    readings = [record for record in records if isinstance(record, Reading)]
    assert (sent.readings, sent.settings) == (len(readings), len(SETTINGS))
    assert len(producer.produced) == len(readings)
    assert [setting for each in messages.sent.values() for setting in each] == SETTINGS
    # The number of readings that go out before the n-th message is that of readings before its first setting.
    firsts = [records.index(settings[0]) for settings in messages.sent.values()]
    due = [sum(isinstance(record, Reading) for record in records[:first]) for first in firsts]
    assert sent_before == [(number + 1, before) for number, before in enumerate(due)]


def test_the_largest_message_of_the_demo_is_one_that_may_be_sent() -> None:
    assert len(json.dumps(build_payload(SETTINGS[:240]))) < LARGEST_PAYLOAD


def applied(sequence: int, batch: int) -> dict[str, Any]:
    return {"phase": "Applied", "sequence": sequence, "batch": batch}


def test_of_messages_that_were_in_force_in_order_there_is_nothing_to_complain() -> None:
    assert complaints({"a": applied(1, 4), "b": applied(2, 4), "c": applied(5, 9)}) == []


@pytest.mark.parametrize(
    ("second", "said"),
    [
        ({"phase": "Published", "sequence": 2}, "b: Published"),
        ({"phase": "Applied", "sequence": 2}, "b: Applied"),
        (applied(1, 5), "b has number 1, and a has 1"),
        (applied(2, 3), "b is in force from batch 3 on, and a from 4"),
    ],
    ids=["not in force", "in force nobody knows from when on", "logged twice", "in an earlier batch"],
)
def test_what_is_wrong_with_a_message_is_said(second: dict[str, Any], said: str) -> None:
    assert complaints({"a": applied(1, 4), "b": second}) == [said]
