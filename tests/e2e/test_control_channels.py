"""Messages from a topic, a queue or the storage's inbox, while driver, executor and operator are being killed: each one
once, in order.

What was in force is told by every task of every batch, also of those that were run again; what came of a message, by
its reply.
"""

import contextlib
import random
import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from devcluster import rabbitmq
from devcluster.cluster import Cluster
from tidegate_spark.control_writer import Credentials
from tidegate_spark.places import Storage, application_uri
from tidegate_testing import own_cluster
from tidegate_testing.channels import event
from tidegate_testing.inbox_scene import InboxScene
from tidegate_testing.kafka_scene import KafkaScene
from tidegate_testing.listening import (
    QUERIES,
    SCRIPT,
    Output,
    Told,
    assert_each_was_in_force_once_in_order_and_in_one_batch,
    have_begun,
)
from tidegate_testing.operator_pods import SELECTOR
from tidegate_testing.rabbitmq_scene import RabbitScene
from tidegate_testing.waiting import wait_for
from tidegate_testing.world import OPERATOR_NAMESPACE, World

NAMESPACE, KILLS = "tidegate-e2e-channels", 4
SENT = [f"m{number:03}" for number in range(40)]
SECONDS_BETWEEN = 2.0
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
    told = {"username": keys.access_key, "password": keys.secret_key}
    metadata = {"name": "broker", "namespace": NAMESPACE}
    world.kubectl.apply({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": told})
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
        return {"type": "Storage", "storage": {"keepReplies": "7d"}}
    secret = {"credentialsSecret": {"name": "broker"}}
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
    return next((str(each["status"]) for each in conditions if each["type"] == "ControlChannel"), "")


def resources_of(world: World, plural: str, app: str) -> list[dict[str, Any]]:
    """Return the resources that were made of messages from the application's channel."""
    found = world.kubectl.list(plural, NAMESPACE, f"tidegate.dev/app={app}")
    return [each for each in found if each["metadata"]["name"].startswith(f"{app}-")]


def kill_somebody(world: World, app: str, choice: random.Random) -> None:
    """Delete a driver or an executor at once, or an operator's pod."""
    victims = (
        ("-n", NAMESPACE, "-l", f"tidegate.dev/app={app},tidegate.dev/role=driver"),
        ("-n", NAMESPACE, "-l", f"tidegate.dev/app={app},tidegate.dev/role=executor"),
        ("-n", OPERATOR_NAMESPACE, "-l", SELECTOR),
    )
    world.kubectl.run("delete", "pod", *choice.choice(victims), "--grace-period=0", "--force", "--wait=false")


def test_each_message_is_in_force_once_in_order_and_in_one_batch_whoever_is_killed(world: World, scene: Scene) -> None:
    cluster = world.environment.cluster
    assert cluster is not None
    app = name_of(scene)
    # Whoever runs this once more on the same cluster finds nothing of this run.
    output = Output(world, f"output/{NAMESPACE}/{app}-{time.time():.0f}")
    control = {"channel": channel_of(scene, cluster)}
    spec = {"control": control, "state": {"partitions": 2}, "storage": {"onDelete": "Delete"}}
    world.kubectl.apply(world.app(app, NAMESPACE, main=SCRIPT, args=[output.target], spec=spec))
    wait_for("the channel", lambda: condition(world, app) == "True", GENEROUS, 2)
    wait_for("both queries to commit", lambda: have_begun(world, app, NAMESPACE), GENEROUS, 1)
    send_while_somebody_is_killed(world, scene, app)

    def found() -> dict[str, dict[str, Any]]:
        return {reply["data"]["id"]: reply["data"] for reply in scene.replies()}

    wait_for("replies", lambda: len(found()) == len(SENT) + 1, GENEROUS, 5)
    told = found()
    assert told.pop("")["state"] == "Rejected"
    assert {name: data["state"] for name, data in told.items()} == dict.fromkeys(SENT, "Done")
    batches = {name: {query: told[name]["queries"][query]["batch"] for query in QUERIES} for name in SENT}
    each = {name: Told(told[name]["sequence"], batches[name]) for name in SENT}
    assert_each_was_in_force_once_in_order_and_in_one_batch(output, each)

    def counted() -> bool:
        status = world.get_app(app, NAMESPACE)["status"].get("control", {})
        counts = (status.get("received"), status.get("applied"), status.get("rejected"))
        return counts == (len(SENT) + 1, len(SENT), 1)

    wait_for("the status", counted, GENEROUS, 5)


def send_while_somebody_is_killed(world: World, scene: Scene, app: str) -> None:
    """Send settings, each of which is there for good, and after them what is no event."""
    choice = random.Random(7)
    producer = threading.Thread(target=produce, args=(scene,))
    producer.start()
    for _ in range(KILLS):
        time.sleep(len(SENT) * SECONDS_BETWEEN / (KILLS + 1))
        kill_somebody(world, app, choice)
    producer.join()
    scene.send(b"nothing that anybody understands")


def produce(scene: Scene) -> None:
    """Send all settings, into an inbox by the library's writer."""
    with scene.writer() if isinstance(scene, InboxScene) else contextlib.nullcontext() as writer:
        for name in SENT:
            data = {"sent": {name: 1}}
            if writer is not None:
                writer.send("reload-config", data, id=name)
            else:
                scene.send(event(name, data=data))
            time.sleep(SECONDS_BETWEEN)


@pytest.mark.parametrize("scene", ["kafka"], indirect=True)
def test_a_snapshot_and_a_dump_that_a_broker_asked_for_are_made_once(world: World, scene: Scene) -> None:
    """Driver and operator are killed when the messages are under way."""
    cluster = world.environment.cluster
    assert cluster is not None
    app = "asking"
    channel = {**channel_of(scene, cluster), "types": ["snapshot", "dump-state"]}
    spec = {"control": {"channel": channel}, "storage": {"onDelete": "Delete"}}
    world.kubectl.apply(world.app(app, NAMESPACE, main="script:counting_controlled.py", spec=spec))
    wait_for("the channel", lambda: condition(world, app) == "True", GENEROUS, 2)
    scene.send(event("a snapshot", "snapshot"))
    scene.send(event("a dump", "dump-state", {"format": "Csv"}))
    scene.send(event("a pause", "pause"))
    wait_for("their resources", lambda: len(resources_of(world, "ctl", app)) == 2, GENEROUS, 1)
    world.kubectl.run(
        *("delete", "pod", "-n", OPERATOR_NAMESPACE, "-l", SELECTOR, "--grace-period=0", "--force", "--wait=false")
    )
    driver = f"tidegate.dev/app={app},tidegate.dev/role=driver"
    world.kubectl.run("delete", "pod", "-n", NAMESPACE, "-l", driver, "--grace-period=0", "--force", "--wait=false")

    def found() -> dict[str, dict[str, Any]]:
        return {reply["data"]["id"]: reply["data"] for reply in scene.replies()}

    wait_for("replies", lambda: len(found()) == 3, GENEROUS, 5)
    told = found()
    assert (told["a pause"]["state"], told["a pause"]["reason"]) == ("Rejected", "TypeNotAllowed")
    assert {told[name]["state"] for name in ("a snapshot", "a dump")} == {"Done"}
    assert told["a dump"]["results"]["uri"].startswith("s3")
    made = {told[name]["results"]["streamSnapshot"] for name in ("a snapshot", "a dump")}
    assert {each["metadata"]["name"] for each in resources_of(world, "snap", app)} == made
    messages = {each["metadata"]["name"]: each["status"] for each in resources_of(world, "ctl", app)}
    assert messages.keys() == made
    assert {status["phase"] for status in messages.values()} == {"Applied"}
    assert {status["origin"]["channel"] for status in messages.values()} == {"kafka"}
    # What comes again is known, and nothing more is made of it.
    scene.send(event("a dump", "dump-state", {"format": "Csv"}))
    scene.send(event("another snapshot", "snapshot"))
    wait_for("another reply", lambda: "another snapshot" in found(), GENEROUS, 5)
    assert len(resources_of(world, "ctl", app)) == 3
