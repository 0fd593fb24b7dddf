"""Messages from a topic, a queue or the storage's inbox, while driver, executor and operator are being killed: each one
once, in order.

What was in force is told by every task of every batch, also of those that were run again; what came of a message, by
its reply.
"""

import contextlib
import random
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest

from devcluster import rabbitmq
from devcluster.cluster import Cluster
from tidegate_spark.contract.object_paths import Storage, application_uri
from tidegate_spark.control_writer import Credentials
from tidegate_testing import own_cluster
from tidegate_testing.channels import event
from tidegate_testing.inbox_scene import InboxScene
from tidegate_testing.kafka_scene import KafkaScene
from tidegate_testing.kills import kill_driver, kill_operators, kill_pods, selects
from tidegate_testing.listening import (
    QUERIES,
    SCRIPT,
    Output,
    Reported,
    assert_each_was_in_force_once_in_order_and_in_one_batch,
    have_begun,
)
from tidegate_testing.rabbitmq_scene import RabbitScene
from tidegate_testing.waiting import wait_for
from tidegate_testing.world import World

NAMESPACE, KILLS = "tidegate-e2e-channels", 4
NAMES = [f"m{number:03}" for number in range(40)]
SECONDS_BETWEEN = 2.0
SOON = 0.5
GENEROUS = 600.0
Scene = KafkaScene | RabbitScene | InboxScene


def name_of(scene: Scene) -> str:
    """Return the application's name: each channel has one of its own."""
    kinds = {KafkaScene: "kafka", RabbitScene: "rabbitmq", InboxScene: "storage"}
    return f"listening-{kinds[type(scene)]}"


@pytest.fixture(params=["kafka", "rabbitmq", "storage"])
def scene(request: pytest.FixtureRequest, world: World) -> Iterator[Scene]:
    cluster = world.environment.cluster
    if cluster is None:
        own_cluster.leave_out("brokers beside a foreign cluster are not ours to start")
    world.make_namespace(NAMESPACE)
    keys = cluster.s3_keys
    reported = {"username": keys.access_key, "password": keys.secret_key}
    metadata = {"name": "broker", "namespace": NAMESPACE}
    world.kubectl.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": reported})
    if request.param == "rabbitmq":
        rabbitmq.up(cluster)
        yield RabbitScene(cluster)
        rabbitmq.down(cluster)
    elif request.param == "storage":
        uri = application_uri(world.storage["uri"], NAMESPACE, "listening-storage")
        place = Storage(uri, world.environment.s3_endpoint_host, path_style_access=True)
        yield InboxScene(place, Credentials(keys.access_key, keys.secret_key))
    else:
        yield KafkaScene(cluster, None)
    world.delete_apps(NAMESPACE)


def channel_of(scene: Scene, cluster: Cluster) -> dict[str, Any]:
    """Return the spec's channel, as pods reach it."""
    if isinstance(scene, InboxScene):
        return {"type": "Storage", "storage": {"replyRetentionSeconds": 604800}}
    secret = {"credentialsSecretRef": {"name": "broker"}}
    if isinstance(scene, KafkaScene):
        kafka = {
            "bootstrapServers": f"{cluster.listeners.host}:{cluster.listeners.kafka_sasl}",
            "topic": scene.topic,
            "replyTopic": scene.reply_topic,
            "options": {"security.protocol": "SASL_PLAINTEXT", "sasl.mechanism": "PLAIN"},
        }
        return {"type": "Kafka", "kafka": kafka, **secret}
    uri = f"amqp://{cluster.rabbitmq_pods}"
    return {
        "type": "RabbitMQ",
        "rabbitmq": {"uri": uri, "queue": scene.queue, "replyQueue": scene.reply_queue},
        **secret,
    }


def condition(world: World, app: str) -> str:
    conditions = world.get_app(app, NAMESPACE).get("status", {}).get("conditions", [])
    return next((str(each["status"]) for each in conditions if each["type"] == "ControlChannelConnected"), "")


def resources_of(world: World, plural: str, app: str) -> list[dict[str, Any]]:
    """Return the resources that were made of messages from the application's channel."""
    found = world.kubectl.list(plural, NAMESPACE, f"tidegate.dev/app={app}")
    return [each for each in found if each["metadata"]["name"].startswith(f"{app}-")]


def kill_somebody(world: World, app: str, choice: random.Random) -> None:
    """Take a driver or executors away at once, or the operator's pods."""
    kill = choice.choice(("driver", "executor", "operator"))
    if kill == "operator":
        kill_operators(world)
    else:
        kill_pods(world, NAMESPACE, selects(app, kill))


def answers(world: World, scene: Scene, app: str) -> dict[str, dict[str, Any]]:
    """Return what was told of each message, by the id that its sender gave."""
    world.status(app, NAMESPACE)
    return {reply["data"]["id"]: reply["data"] for reply in scene.replies()}


def begin(world: World, scene: Scene, app: str, types: tuple[str, ...] = ()) -> Output:
    """Have an application listen; return where it writes what it hears."""
    cluster = world.environment.cluster
    assert cluster is not None
    # Whoever runs this once more on the same cluster finds nothing of this run.
    output = Output(world, f"output/{NAMESPACE}/{app}-{time.time():.0f}")
    channel = {**channel_of(scene, cluster), **({"allowedTypes": list(types)} if types else {})}
    spec = {"control": {"channel": channel}, "storage": {"deletionPolicy": "Delete"}}
    world.kubectl.apply(world.app(app, NAMESPACE, main=SCRIPT, args=[output.target], spec=spec))
    wait_for("both queries to commit", lambda: have_begun(world, app, NAMESPACE), GENEROUS, 1)
    wait_for("the channel", lambda: condition(world, app) == "True", GENEROUS, 1)
    return output


def assert_each_came(output: Output, reported: Mapping[str, dict[str, Any]], names: Sequence[str]) -> None:
    """Assert that each message was in force once, in order, and in one batch of each query."""
    assert {name: reported[name]["state"] for name in names} == dict.fromkeys(names, "Done")
    batches = {name: {query: reported[name]["queries"][query]["batch"] for query in QUERIES} for name in names}
    each = {name: Reported(reported[name]["sequence"], batches[name]) for name in names}
    assert_each_was_in_force_once_in_order_and_in_one_batch(output, each)


@pytest.mark.long  # tests/integration/spark_runtime/test_control_channels.py has it, too
@pytest.mark.parametrize("scene", ["kafka"], indirect=True)
def test_what_a_broker_asked_for_is_done_once_and_in_order_though_driver_and_operator_are_killed(
    world: World, scene: Scene
) -> None:
    """Settings come before the kill, beside it and after it; a snapshot and a dump are under way."""
    app, names = "asking", NAMES[:12]
    output = begin(world, scene, app, ("reload-config", "snapshot", "dump-state"))
    produce(scene, names[:4], SOON)
    scene.send(event("a snapshot", "snapshot"))
    scene.send(event("a dump", "dump-state", {"format": "CSV"}))
    scene.send(event("a pause", "pause"))
    producer = threading.Thread(target=produce, args=(scene, names[4:], SOON))
    producer.start()
    wait_for("their resources", lambda: len(resources_of(world, "ctl", app)) == 2, GENEROUS, 0.5)
    assert kill_operators(world)
    assert kill_driver(world, NAMESPACE, app)
    producer.join()
    wait_for("replies", lambda: len(answers(world, scene, app)) == len(names) + 3, GENEROUS, 2)
    reported = answers(world, scene, app)
    assert (reported["a pause"]["state"], reported["a pause"]["reason"]) == ("Rejected", "TypeNotAllowed")
    assert {reported[name]["state"] for name in ("a snapshot", "a dump")} == {"Done"}
    assert reported["a dump"]["results"]["uri"].startswith("s3")
    made = {reported[name]["results"]["streamSnapshot"] for name in ("a snapshot", "a dump")}
    assert {each["metadata"]["name"] for each in resources_of(world, "snap", app)} == made

    def are_applied() -> bool:
        statuses = {each["metadata"]["name"]: each.get("status", {}) for each in resources_of(world, "ctl", app)}
        assert statuses.keys() == made
        assert {status.get("phase") for status in statuses.values()} == {"Applied"}, statuses
        assert {status["origin"]["channel"] for status in statuses.values()} == {"Kafka"}
        return True

    # The driver replies, and the operator writes what the driver reports.
    wait_for("the status of what was asked", are_applied, GENEROUS, 1)
    assert_each_came(output, reported, names)
    # What comes again is known, and nothing more is made of it.
    scene.send(event("a dump", "dump-state", {"format": "CSV"}))
    scene.send(event("another snapshot", "snapshot"))
    wait_for("another reply", lambda: "another snapshot" in answers(world, scene, app), GENEROUS, 2)
    assert len(resources_of(world, "ctl", app)) == 3


@pytest.mark.long
def test_each_message_is_in_force_once_in_order_and_in_one_batch_whoever_is_killed(world: World, scene: Scene) -> None:
    app = name_of(scene)
    output = begin(world, scene, app)
    send_while_somebody_is_killed(world, scene, app)
    wait_for("replies", lambda: len(answers(world, scene, app)) == len(NAMES) + 1, GENEROUS, 5)
    reported = answers(world, scene, app)
    assert reported.pop("")["state"] == "Rejected"
    assert reported.keys() == set(NAMES)
    assert_each_came(output, reported, NAMES)

    def counted() -> bool:
        status = world.status(app, NAMESPACE).get("control", {})
        counts = (status.get("received"), status.get("applied"), status.get("rejected"))
        return counts == (len(NAMES) + 1, len(NAMES), 1)

    wait_for("the status", counted, GENEROUS, 5)


def send_while_somebody_is_killed(world: World, scene: Scene, app: str) -> None:
    """Send settings, each of which is there for good, and after them what is no event."""
    choice = random.Random(7)
    producer = threading.Thread(target=produce, args=(scene, NAMES, SECONDS_BETWEEN))
    producer.start()
    for _ in range(KILLS):
        time.sleep(len(NAMES) * SECONDS_BETWEEN / (KILLS + 1))
        kill_somebody(world, app, choice)
    producer.join()
    scene.send(b"nothing that anybody understands")


def produce(scene: Scene, names: Sequence[str], between: float) -> None:
    """Send settings, into an inbox by the library's writer."""
    with scene.writer() if isinstance(scene, InboxScene) else contextlib.nullcontext() as writer:
        for name in names:
            data = {"sent": {name: 1}}
            if writer is not None:
                writer.send("reload-config", data, id=name)
            else:
                scene.send(event(name, data=data))
            time.sleep(between)
