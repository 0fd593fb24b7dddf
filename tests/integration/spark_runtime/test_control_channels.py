"""Messages that producers write to a broker, or into the storage, to an application that is killed meanwhile; real
brokers, real S3, real Spark.
"""

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from devcluster import kafka, rabbitmq
from devcluster.site import LocalSite
from tidegate_spark.contract.control_protocol import ChannelReport, ChannelSettings, InboxSettings
from tidegate_spark.contract.protocol import Storage
from tidegate_spark.control_writer import Credentials, Pace
from tidegate_spark.control_writer.__main__ import UNAPPLIED, WRITTEN
from tidegate_testing.channels import event
from tidegate_testing.driver_process import SOURCES, DriverProcess, ObjectStore
from tidegate_testing.inbox_scene import InboxScene
from tidegate_testing.kafka_scene import KafkaScene
from tidegate_testing.rabbitmq_scene import RabbitScene
from tidegate_testing.waiting import wait_for

from .conftest import StartDriver

SENT = 30
PATIENCE = 600
Scene = KafkaScene | RabbitScene


@pytest.fixture(scope="module")
def site() -> Iterator[LocalSite]:
    with LocalSite() as running:
        yield running


@pytest.fixture(params=["kafka", "rabbitmq"])
def scene(request: pytest.FixtureRequest, site: LocalSite) -> Scene:
    if request.param == "kafka":
        kafka.up(site)
        return KafkaScene(site, None)
    rabbitmq.up(site)
    return RabbitScene(site)


def channel(driver: DriverProcess) -> ChannelReport:
    found = driver.report()
    assert found is not None
    assert found.control.channel is not None
    return found.control.channel


def is_connected(driver: DriverProcess) -> bool:
    driver.must_run()
    return driver.report() is not None and channel(driver).connected


def reported(scene: Scene) -> dict[str, dict[str, Any]]:
    """Return what was told, by the id that the sender gave; the same if it was told twice."""
    found: dict[str, dict[str, Any]] = {}
    for reply in scene.replies():
        data = reply["data"]
        assert found.setdefault(data["id"], data)["sequence"] == data["sequence"]
    return found


Listen = Callable[[int], DriverProcess]


@pytest.fixture
def listen(scene: Scene, start_driver: StartDriver, tmp_path: Path) -> Listen:
    """Start the driver of an epoch, which reaches the broker with its credentials."""
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "username").write_text(scene.site.s3_keys.access_key)
    (secret / "password").write_text(scene.site.s3_keys.secret_key)
    variables = {"TIDEGATE_CHANNEL_CREDENTIALS_DIRECTORY": str(secret)}

    def start(epoch: int) -> DriverProcess:
        return start_driver("app", "channelled.py", epoch=epoch, channel=scene.channel_settings(), variables=variables)

    return start


def test_each_message_is_in_force_once_and_in_order_though_the_driver_is_killed(scene: Scene, listen: Listen) -> None:
    driver = listen(1)
    wait_for("the channel", lambda: is_connected(driver), PATIENCE, 0.2)
    scene.send(b"nothing that anybody understands")

    def produce() -> None:
        for number in range(SENT):
            scene.send(event(str(number), data={"n": number, f"n{number}": True}))

    producer = threading.Thread(target=produce)
    producer.start()
    wait_for("half of the messages", lambda: channel(driver).received >= SENT // 2, PATIENCE, 0.05)
    driver.kill()
    again = listen(2)
    producer.join()
    wait_for("replies", lambda: len(reported(scene)) == SENT + 1, PATIENCE, 1)
    found = reported(scene)
    assert found[""]["state"] == "Rejected"
    ordered = sorted((data["sequence"], name) for name, data in found.items() if name)
    assert [name for _, name in ordered] == [str(number) for number in range(SENT)]
    assert {data["state"] for name, data in found.items() if name} == {"Done"}
    batches = [found[str(number)]["queries"]["main"]["batch"] for number in range(SENT)]
    assert batches == sorted(batches)
    report = channel(again)
    assert (report.received, report.ended) == (SENT + 1, {"Done": SENT, "Rejected": 1})
    # The last line may still be on its way.
    whole = again.output.rpartition("\n")[0].splitlines()
    (_, _, config) = json.loads([line for line in whole if line.startswith("main ")][-1].removeprefix("main "))
    assert config == {"n": SENT - 1, **{f"n{number}": True for number in range(SENT)}}


@pytest.mark.long  # without an application, tests of the channels have it
def test_batches_go_on_while_the_broker_is_away_and_messages_come_when_it_is_back(scene: Scene, listen: Listen) -> None:
    driver = listen(1)
    wait_for("the channel", lambda: is_connected(driver), PATIENCE, 0.2)
    scene.stop()
    wait_for("word of the broker", lambda: not channel(driver).connected, PATIENCE, 0.2)
    batch = driver.batch()
    driver.await_batch(batch + 3)
    scene.start()
    scene.send(event("after", data={"n": -1}))
    wait_for("the reply", lambda: reported(scene).get("after", {}).get("state") == "Done", PATIENCE, 1)
    assert channel(driver).connected


def send_from_shell(inbox: InboxScene, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Send a message as a person does, with the credentials in the environment."""
    keys = {"AWS_ACCESS_KEY_ID": inbox.credentials.access_key, "AWS_SECRET_ACCESS_KEY": inbox.credentials.secret_key}
    command = [sys.executable, "-m", "tidegate_spark.control_writer", inbox.place.uri, *arguments]
    command += ["--endpoint", inbox.place.endpoint, "--path-style"]
    environment = {**os.environ, **keys, "PYTHONPATH": str(SOURCES)}
    return subprocess.run(command, env=environment, check=False, capture_output=True, text=True, timeout=PATIENCE)


def test_who_may_write_to_the_storage_needs_nothing_else_to_be_heard(
    start_driver: StartDriver, place: Storage, object_store: ObjectStore
) -> None:
    inbox = InboxScene(place, Credentials(object_store.access_key, object_store.secret_key))

    def start(epoch: int) -> DriverProcess:
        return start_driver("app", "channelled.py", epoch=epoch, channel=ChannelSettings(storage=InboxSettings()))

    driver = start(1)
    wait_for("the channel", lambda: is_connected(driver), PATIENCE, 0.2)
    inbox.send(b"nothing that anybody understands")
    with inbox.writer(pace=Pace(most_in_batch=4)) as writer:
        names: list[str] = []

        def produce() -> None:
            for number in range(SENT):
                names.append(writer.send("reload-config", {"n": number, f"n{number}": True}))
                time.sleep(0.1)

        producer = threading.Thread(target=produce)
        producer.start()
        wait_for("half of the messages", lambda: channel(driver).received >= SENT // 2, PATIENCE, 0.05)
        driver.kill()
        again = start(2)
        producer.join()
        outcomes = [writer.outcome(name, PATIENCE) for name in names]
    assert [outcome.state for outcome in outcomes] == ["Done"] * SENT
    sequences, batches = zip(*((it.sequence, it.queries["main"]["batch"]) for it in outcomes), strict=True)
    assert list(sequences) == sorted(sequences)
    assert list(batches) == sorted(batches)
    asked = send_from_shell(inbox, "reload-config", '{"n": -1}', "--wait", str(PATIENCE))
    assert asked.returncode == WRITTEN, asked
    assert json.loads(asked.stdout)["queries"]["main"]["batch"] > batches[-1]
    unknown = send_from_shell(inbox, "of-nobody", "--wait", str(PATIENCE))
    assert (unknown.returncode, json.loads(unknown.stdout)["reason"]) == (UNAPPLIED, "UnknownType")

    def counted() -> bool:
        report = channel(again)
        return (report.received, report.ended) == (SENT + 3, {"Done": SENT + 1, "Rejected": 2})

    wait_for("the counts", counted, PATIENCE, 0.5)
    assert inbox.unread() == []
    whole = again.output.rpartition("\n")[0].splitlines()
    (_, _, config) = json.loads([line for line in whole if line.startswith("main ")][-1].removeprefix("main "))
    assert config == {"n": -1, **{f"n{number}": True for number in range(SENT)}}
