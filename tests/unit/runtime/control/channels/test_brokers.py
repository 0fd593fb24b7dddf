"""How brokers are reached, what their faults are called, and where a topic is read from: all that needs no broker."""

import json
import struct
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pika import exceptions
from py4j.protocol import Py4JJavaError

from tidegate_spark.contract.control_protocol import (
    ChannelSettings,
    InboxSettings,
    KafkaSettings,
    RabbitSettings,
)
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.control.channels.ports import (
    ChannelError,
    Received,
    Reply,
)
from tidegate_spark.control.channels.transports import factory, kafka, rabbitmq
from tidegate_spark.control.channels.transports.credentials import ChannelSecret, read_secret
from tidegate_spark.control.channels.transports.kafka import KafkaChannel, client_settings, records_in
from tidegate_spark.control.channels.transports.rabbitmq import RabbitChannel, parameters
from tidegate_spark.process.faults.faults import KAFKA_ERRORS, Link
from tidegate_testing.channels import reply_to

TOPIC = KafkaSettings("broker:9092", "control", "replies")
QUEUE = RabbitSettings("amqp://broker/shop", "control", "replies")


def secret(folder: Path, **values: str) -> ChannelSecret:
    for key, value in values.items():
        (folder / key.replace("__", ".")).write_text(value)
    return read_secret(str(folder), "broker")


# --- the Secret ---


def test_a_channel_that_names_no_secret_has_none() -> None:
    assert read_secret("/nowhere", "") == ChannelSecret()


@pytest.mark.parametrize("there", [True, False])
def test_a_secret_that_is_not_there_yet_is_said_to_be_missing(tmp_path: Path, there: bool) -> None:
    with pytest.raises(ChannelError, match="'broker'") as raised:
        read_secret(str(tmp_path if there else tmp_path / "none"), "broker")
    assert raised.value.reason == Reason.CHANNEL_CREDENTIALS_MISSING


def test_a_secret_is_not_shown_and_what_is_no_secret_of_it_may_be(tmp_path: Path) -> None:
    found = secret(tmp_path, username="ann", password="hidden", ca__crt="PEM", tls__key="KEY")
    assert "hidden" not in repr(found)
    assert sorted(found.secrets) == ["KEY", "hidden"]


def test_what_is_no_text_in_a_secret_is_left_out_unless_it_must_be_one(tmp_path: Path) -> None:
    """As the keystores that cert-manager and others put beside a certificate."""
    (tmp_path / "tls.crt").write_text("certificate")
    (tmp_path / "keystore.jks").write_bytes(b"\xfe\xed\xfe\xed\x00")
    assert read_secret(str(tmp_path), "kafka").values == (("tls.crt", "certificate"),)
    (tmp_path / "password").write_bytes(b"\xff")
    with pytest.raises(ChannelError, match="cannot be read"):
        read_secret(str(tmp_path), "kafka")


def test_what_the_kubelet_keeps_beside_a_secret_is_none_of_it(tmp_path: Path) -> None:
    (tmp_path / "..data").mkdir()
    assert secret(tmp_path, password="x").values == (("password", "x"),)


# --- Kafka ---


def test_a_user_and_a_password_become_what_kafka_takes(tmp_path: Path) -> None:
    options = {"sasl.mechanism": "SCRAM-SHA-512", "security.protocol": "SASL_SSL"}
    reported = client_settings(
        KafkaSettings("b:1", "t", options=options), secret(tmp_path, username="ann", password='a"b\\c', ca__crt="PEM")
    )
    assert reported["sasl.jaas.config"] == (
        'org.apache.kafka.common.security.scram.ScramLoginModule required username="ann" password="a\\"b\\\\c";'
    )
    assert (reported["ssl.truststore.type"], reported["ssl.truststore.location"]) == ("PEM", str(tmp_path / "ca.crt"))
    assert reported["bootstrap.servers"] == "b:1"


def test_settings_that_are_secrets_may_be_in_the_secret_as_they_are(tmp_path: Path) -> None:
    reported = client_settings(TOPIC, secret(tmp_path, sasl__jaas__config="mine;", username="ann", password="x"))
    assert reported["sasl.jaas.config"] == "mine;"
    assert "username" not in reported


CONFIG, AUTHENTICATION = "org.apache.kafka.common.config.ConfigException", f"{KAFKA_ERRORS}AuthenticationException"


def link(name: str, message: str = "") -> Link:
    return Link((name, "java.lang.RuntimeException"), message)


@pytest.mark.parametrize(
    ("chain", "reason"),
    [
        ([link("java.lang.NoClassDefFoundError")], Reason.CHANNEL_CONNECTOR_MISSING),
        ([Link((f"{KAFKA_ERRORS}SaslAuthenticationException", AUTHENTICATION))], Reason.CHANNEL_CREDENTIALS_REJECTED),
        ([link("x"), link(f"{KAFKA_ERRORS}AuthorizationException")], Reason.CHANNEL_CREDENTIALS_REJECTED),
        ([link("x"), link(f"{KAFKA_ERRORS}UnknownTopicOrPartitionException")], Reason.CHANNEL_MISSING),
        ([link(CONFIG, "No resolvable bootstrap urls given in …")], Reason.CHANNEL_UNAVAILABLE),
        ([link(CONFIG, "Invalid value")], Reason.CHANNEL_MISCONFIGURED),
        ([link(f"{KAFKA_ERRORS}TimeoutException")], Reason.CHANNEL_UNAVAILABLE),
        ([], Reason.CHANNEL_UNAVAILABLE),
    ],
    ids=range(8),
)
def test_faults_of_kafka_have_names(chain: list[Link], reason: str) -> None:
    assert kafka.fault_in(chain)[0] == reason


def poll_of(*records: tuple[int, int, int, bytes, bytes]) -> bytes:
    content = struct.pack(">i", len(records))
    for number, offset, size, kind, value in records:
        content += struct.pack(">iqi", number, offset, size)
        content += b"".join(struct.pack(">i", len(part)) + part for part in (kind, value))
    return content


def test_a_poll_is_read_as_the_jvm_writes_it() -> None:
    content = poll_of((0, 7, 0, b"application/json", b"{}"), (1, 2**40, 200_000, b"", b""))
    assert list(records_in(content, lambda number: f"p{number}")) == [
        Received("p0", b"{}", "application/json", 7),
        Received("p1", b"", "", 2**40, 200_000),
    ]


class FakeTopic:
    """The JVM's side of a topic."""

    def __init__(self, bounds: str, polls: list[bytes] | None = None) -> None:
        self.reported, self.polls, self.assigned = bounds, polls or [], ""
        self.id, self.passed = "id", ""

    def identity(self) -> str:
        return self.id

    def bounds(self) -> str:
        return self.reported

    def assign(self, positions: str) -> None:
        self.assigned = positions

    def positions(self) -> str:
        return self.passed or self.assigned

    def poll(self, millis: int) -> bytes:
        return self.polls.pop(0) if self.polls else poll_of()


def channel_of(topic: FakeTopic, settings: KafkaSettings = TOPIC, clock: Any = lambda: 0.0) -> KafkaChannel:
    java = SimpleNamespace(util=SimpleNamespace(HashMap=lambda: SimpleNamespace(put=lambda key, value: None)))
    spark = SimpleNamespace(ControlTopic=lambda settings, name, largest: topic)
    kafka = SimpleNamespace(clients=SimpleNamespace(consumer=SimpleNamespace(KafkaConsumer=lambda: None)))
    org = SimpleNamespace(apache=SimpleNamespace(kafka=kafka))
    jvm = SimpleNamespace(java=java, org=org, dev=SimpleNamespace(tidegate=SimpleNamespace(spark=spark)))
    return KafkaChannel(settings, ChannelSecret(), jvm, clock)


PART = "kafka:control:id/0"


@pytest.mark.parametrize(
    ("consumed", "assigned", "positions", "lost"),
    [
        ({}, "0:3 1:0", {PART: 3}, ""),
        ({PART: 7}, "0:7 1:0", {}, ""),
        ({PART: 1}, "0:3 1:0", {PART: 3}, "Topic 'control' has removed 2 offsets that were not read yet."),
        ({"kafka:control:other/0": 7}, "0:3 1:0", {PART: 3}, ""),
    ],
)
def test_a_topic_is_read_on_from_where_the_log_ends(
    consumed: dict[str, int], assigned: str, positions: dict[str, int], lost: str
) -> None:
    topic = FakeTopic("0:3:9 1:0:5")
    channel = channel_of(topic)
    begun = channel.open(consumed)
    assert (topic.assigned, dict(begun.positions), begun.lost) == (assigned, positions, lost)


def test_latest_is_where_the_topic_ended_when_it_was_looked_at_first() -> None:
    topic = FakeTopic("0:3:9 1:0:0")
    channel = channel_of(topic, KafkaSettings("b:1", "control", from_latest=True))
    assert channel.open({}).positions == {PART: 9, "kafka:control:id/1": 0}
    topic.reported = "0:3:12 1:0:0"
    assert channel.open({PART: 9, "kafka:control:id/1": 0}).positions == {}
    assert (topic.assigned, channel.waiting()) == ("0:9 1:0", 3)


@pytest.mark.parametrize("from_latest", [False, True])
def test_a_topic_that_was_made_anew_is_read_from_its_first_message_though_it_has_more_than_the_one_before(
    from_latest: bool,
) -> None:
    now, settings = [0.0], KafkaSettings("broker:9092", "control", from_latest=from_latest)
    topic = FakeTopic("0:0:9")
    channel = channel_of(topic, settings, clock=lambda: now[0])
    channel.open({PART: 7})
    now[0], topic.id, topic.reported = 60.0, "other", "0:0:12"
    with pytest.raises(ChannelError, match="'control' was deleted and created again"):
        channel.receive(1.0)
    channel_of(topic, settings).open({PART: 7})
    assert topic.assigned == "0:0"


def test_the_end_of_a_transaction_is_no_message_that_waits() -> None:
    now, topic = [0.0], FakeTopic("0:0:3 1:0:4", [poll_of((0, 0, 0, b"", b"a"), (0, 1, 0, b"", b"b"))])
    channel = channel_of(topic, clock=lambda: now[0])
    channel.open({})
    assert channel.receive(1.0).positions == {PART: 2}
    assert channel.waiting() == 7
    now[0], topic.passed = 60.0, "0:3 1:0"  # the marker at offset 2 was passed by the client
    assert (channel.receive(1.0).positions, channel.waiting()) == ({}, 4)


def test_a_broker_that_does_not_say_which_topic_it_has_is_read_on_from() -> None:
    now, topic = [0.0], FakeTopic("0:0:9")
    channel = channel_of(topic, clock=lambda: now[0])
    channel.open({PART: 7})
    now[0], topic.id = 60.0, ""
    assert channel.receive(1.0).messages == ()
    assert topic.assigned == "0:7"


def test_a_topic_that_ends_before_what_was_read_is_waited_for() -> None:
    with pytest.raises(ChannelError, match="ends before offset 10") as raised:
        channel_of(FakeTopic("0:0:9")).open({PART: 10})
    assert raised.value.reason == Reason.CHANNEL_UNAVAILABLE


def test_records_come_with_the_place_to_read_on_from_and_new_parts_are_found() -> None:
    now = [0.0]
    topic = FakeTopic("0:0:9", [poll_of((0, 0, 0, b"", b"a"), (0, 1, 0, b"", b"b"))])
    channel = channel_of(topic, clock=lambda: now[0])
    channel.open({})
    delivery = channel.receive(1.0)
    assert ([message.body for message in delivery.messages], delivery.positions) == ([b"a", b"b"], {PART: 2})
    now[0], topic.reported = 60.0, "0:0:9 1:0:4"
    channel.receive(1.0)
    assert (topic.assigned, channel.waiting()) == ("0:2 1:0", 11)


def test_what_is_there_behind_a_poll_comes_with_it_up_to_a_bound() -> None:
    def polls(size: int) -> list[bytes]:
        return [poll_of(*((0, first + n, 0, b"", b"x" * size) for n in range(500))) for first in range(0, 5000, 500)]

    small, large = channel_of(FakeTopic("0:0:9", polls(1))), channel_of(FakeTopic("0:0:9", polls(4096)))
    for channel, expected in ((small, 2000), (large, 1500)):
        channel.open({})
        delivery = channel.receive(1.0)
        assert [message.offset for message in delivery.messages] == list(range(expected))
        assert delivery.positions == {PART: expected}


class Throwable:
    """An exception of the JVM, of these classes, the own one first."""

    _target_id = "o1"

    def __init__(self, *classes: str) -> None:
        self.classes = classes

    def getClass(self) -> "Throwable | None":  # noqa: N802 - Java's name
        return self if self.classes else None

    def getName(self) -> str:  # noqa: N802 - Java's name
        return self.classes[0]

    def getSuperclass(self) -> "Throwable | None":  # noqa: N802 - Java's name
        return Throwable(*self.classes[1:]).getClass()

    def getCause(self) -> None:  # noqa: N802 - Java's name
        return None

    def getMessage(self) -> str:  # noqa: N802 - Java's name
        return "The message is larger than the server will accept"


class ReplyTopic(FakeTopic):
    """A topic that takes values up to a size, and says so when it is asked whether it has them."""

    def __init__(self, most: int, error: str = "RecordTooLargeException") -> None:
        super().__init__("0:0:0")
        self.most, self.error = most, Throwable(f"{KAFKA_ERRORS}{error}", "java.lang.RuntimeException")
        self.open: list[tuple[str, bytes]] = []
        self.there: list[tuple[str, bytes]] = []

    def send(self, to: str, key: str, value: bytes) -> None:
        self.open.append((key, value))

    def flush(self) -> None:
        sent, self.open = self.open, []
        self.there += [each for each in sent if len(each[1]) <= self.most]
        if any(len(value) > self.most for _, value in sent):
            raise Py4JJavaError("", self.error)


def test_a_reply_that_is_too_large_for_its_topic_is_shortened_and_the_others_are_whole() -> None:
    topic = ReplyTopic(most=700)
    channel, replies = channel_of(topic), [reply_to("one"), reply_to("large", errors=40), reply_to("two")]
    channel.open({})
    channel.answer(replies)
    found = {key: json.loads(value) for key, value in topic.there}
    assert sorted(found) == ["large", "one", "two"]
    whole = json.loads(replies[1].body)
    assert (found["large"]["id"], found["large"]["source"]) == (whole["id"], whole["source"])
    assert found["large"]["data"] == {**whole["data"], "queries": {}, "shortened": True}
    assert [found[name] for name in ("one", "two")] == [json.loads(replies[at].body) for at in (0, 2)]


def test_a_reply_that_is_too_large_without_details_is_dropped_and_said_so(caplog: pytest.LogCaptureFixture) -> None:
    topic = ReplyTopic(most=100)
    channel = channel_of(topic)
    channel.open({})
    channel.answer([reply_to("one")])
    assert topic.there == []
    assert "no reply as large as that to message 'one'" in caplog.text


def test_replies_that_are_refused_for_another_reason_are_tried_again() -> None:
    channel = channel_of(ReplyTopic(most=100, error="NotEnoughReplicasException"))
    channel.open({})
    with pytest.raises(ChannelError, match="'replies'"):
        channel.answer([reply_to("one")])


def test_without_our_jar_it_is_said_that_it_is_missing() -> None:
    channel = channel_of(FakeTopic("0:0:0"))
    channel._jvm.dev.tidegate.spark.ControlTopic = object()
    with pytest.raises(ChannelError) as raised:
        channel.open({})
    assert raised.value.reason == Reason.CHANNEL_CONNECTOR_MISSING


# --- RabbitMQ ---


def test_an_address_says_where_and_the_secret_who(tmp_path: Path) -> None:
    reported = parameters(
        RabbitSettings("amqp://broker:5673/a%2Fb", "q"), secret(tmp_path, username="ann", password="x"), "tidegate"
    )
    assert (reported.host, reported.port, reported.virtual_host) == ("broker", 5673, "a/b")
    assert (reported.credentials.username, reported.credentials.password) == ("ann", "x")
    plain = parameters(RabbitSettings("amqp://broker", "q"), ChannelSecret(), "tidegate")
    assert (plain.port, plain.virtual_host, plain.ssl_options) == (5672, "/", None)
    assert parameters(RabbitSettings("amqps://broker", "q"), ChannelSecret(), "tidegate").port == 5671


@pytest.mark.parametrize("uri", ["http://broker", "amqp://", "amqp://broker:port", "broker"])
def test_an_address_that_is_none_is_told_of(uri: str) -> None:
    with pytest.raises(ChannelError, match=r"spec\.control\.channel\.rabbitmq\.uri") as raised:
        parameters(RabbitSettings(uri, "q"), ChannelSecret(), "tidegate")
    assert raised.value.reason == Reason.CHANNEL_MISCONFIGURED


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (exceptions.ProbableAuthenticationError("x"), Reason.CHANNEL_CREDENTIALS_REJECTED),
        (
            exceptions.ConnectionClosedByBroker(403, "ACCESS_REFUSED - Login was refused"),
            Reason.CHANNEL_CREDENTIALS_REJECTED,
        ),
        (
            exceptions.ConnectionClosedByBroker(530, "NOT_ALLOWED - vhost nope not found"),
            Reason.CHANNEL_CREDENTIALS_REJECTED,
        ),
        (exceptions.ChannelClosedByBroker(404, "NOT_FOUND - no queue 'q'"), Reason.CHANNEL_MISSING),
        (exceptions.ChannelClosedByBroker(403, "ACCESS_REFUSED - queue 'q' in exclusive use"), Reason.CHANNEL_IN_USE),
        (exceptions.UnroutableError([]), Reason.CHANNEL_MISSING),
        (exceptions.ConnectionClosedByBroker(320, "CONNECTION_FORCED"), Reason.CHANNEL_UNAVAILABLE),
        (exceptions.StreamLostError("x"), Reason.CHANNEL_UNAVAILABLE),
        (OSError("x"), Reason.CHANNEL_UNAVAILABLE),
    ],
    ids=range(9),
)
def test_faults_of_rabbitmq_have_names(error: Exception, reason: str) -> None:
    assert rabbitmq.fault_in(error)[0] == reason


class Broken:
    """A connection of pika that opens no channel."""

    def __init__(self, reached: Any) -> None:
        self.is_open = True

    def channel(self) -> Any:
        raise exceptions.AMQPConnectionError("no more channels")

    def close(self) -> None:
        self.is_open = False


def test_a_connection_for_replies_on_which_no_channel_can_be_opened_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    opened: list[Broken] = []

    def connect(reached: Any) -> Broken:
        opened.append(Broken(reached))
        return opened[-1]

    monkeypatch.setattr("pika.BlockingConnection", connect)
    channel = RabbitChannel(QUEUE, ChannelSecret())
    with pytest.raises(ChannelError, match="no more channels"):
        channel.answer([Reply("one", b"{}")])
    channel.close()
    assert [connection.is_open for connection in opened] == [False]


class Limited:
    """A connection and channel of pika that ends after so many messages."""

    def __init__(self, most: int) -> None:
        self._left, self.is_open = most, True

    def channel(self) -> "Limited":
        return self

    def confirm_delivery(self) -> None: ...

    def basic_publish(self, *message: Any, **properties: Any) -> None:
        self._left -= 1
        if self._left < 0:
            raise exceptions.StreamLostError("gone")

    def close(self) -> None:
        self.is_open = False


def test_an_error_says_whether_the_broker_has_some_of_the_replies(monkeypatch: pytest.MonkeyPatch) -> None:
    limits = [0, 2, 0]
    monkeypatch.setattr("pika.BlockingConnection", lambda reached: Limited(limits.pop(0)))
    channel, replies = RabbitChannel(QUEUE, ChannelSecret()), [Reply(key, b"{}") for key in ("one", "two", "three")]
    partial = []
    for _ in range(3):
        with pytest.raises(ChannelError, match="gone") as raised:
            channel.answer(replies)
        partial.append(raised.value.partial)
    channel.close()
    assert partial == [False, True, False]


# --- which ---


def test_each_library_is_for_its_own_channel() -> None:
    by_kind = {
        kind: factory.make_channel(settings, "/nowhere", "tidegate", None, lambda *values: None)
        for kind, settings in (("Kafka", ChannelSettings(TOPIC)), ("RabbitMQ", ChannelSettings(rabbitmq=QUEUE)))
        if factory.kind_of(settings) == kind
    }
    assert [type(channel) for channel in by_kind.values()] == [KafkaChannel, RabbitChannel]


@pytest.mark.parametrize(
    ("settings", "answers"),
    [
        (ChannelSettings(TOPIC), True),
        (ChannelSettings(KafkaSettings("b:1", "t")), False),
        (ChannelSettings(rabbitmq=QUEUE), True),
        (ChannelSettings(rabbitmq=RabbitSettings("amqp://b", "q")), False),
        (ChannelSettings(storage=InboxSettings()), True),
        (ChannelSettings(storage=InboxSettings(keep_replies_seconds=0)), False),
    ],
)
def test_it_is_told_what_came_of_messages_if_there_is_a_place_for_it(settings: ChannelSettings, answers: bool) -> None:
    assert factory.answers(settings) is answers
