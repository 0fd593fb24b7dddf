"""A model that learns in pods: dumped by a message, fixed by another one, and begun again from the dump.

The steps are those of the flights' demo; what is predicted is compared with its oracle.
"""

import hashlib
import json
from collections.abc import Iterator
from typing import Any

import pytest

from devcluster import tools
from devcluster.demo.application import FLIGHTS, FLIGHTS_FROM_DUMP, Application, build_application
from devcluster.demo.compare import TopicReader, read_topic
from devcluster.demo.flights_analysis import analyse
from devcluster.demo.flights_data import Record, records
from devcluster.demo.flights_dump import bucket, read_dump
from devcluster.demo.flights_oracle import BUILT_IN, Hindsight, Weights, expected_state
from devcluster.demo.flights_replay import FlightReplay
from devcluster.demo.flights_report import check
from devcluster.demo.kubernetes import Kubernetes
from devcluster.demo.messages import Messages
from devcluster.demo.replay import create_topics, delete_topics
from devcluster.demo.snapshot_cut import read_records
from tidegate_testing.waiting import wait_for
from tidegate_testing.world import World

NAMESPACE = "tidegate-e2e-flights"
TOPIC, OUTPUT = f"{NAMESPACE}-flights", f"{NAMESPACE}-arrivals"
DEPARTURES = 6_000
RATE = 200.0
"""Records per second: they flow while messages come into force."""
DUMP = {"format": "JSONLines", "resources": {"requests": {"cpu": "100m", "memory": "1500Mi"}}, "timeoutSeconds": 600}


class Run:
    """The sample, and what it is told."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.first = self.build(FLIGHTS)
        kubernetes = Kubernetes(world.kubectl.binary, tools.program("helm"), world.kubectl.kubeconfig)
        self.messages = Messages(kubernetes, self.first)
        self.reader = TopicReader(world.environment.kafka_host, OUTPUT)
        self.ids: set[str] = set()

    def build(self, file: Any) -> Application:
        environment = self.world.environment
        topics = {"flights": TOPIC, "arrivals": OUTPUT, "trigger": "500 milliseconds"}
        return build_application(
            image=environment.image_spark,
            endpoint=environment.s3_endpoint_pods,
            bucket=self.world.bucket,
            namespace=NAMESPACE,
            options={"brokers": environment.kafka_pods, **topics},
            file=file,
        )

    def apply(self, application: Application) -> None:
        self.world.apply_sample(application.manifest)
        ready = ("--for=condition=Ready", "--timeout=600s")
        self.world.kubectl.run("wait", f"sapp/{application.name}", "-n", NAMESPACE, *ready, timeout=610)

    def send(self, sent: list[Record]) -> None:
        FlightReplay(self.world.environment.kafka_host, TOPIC).run(sent, rate=RATE)

    def await_predictions(self, of: list[Record]) -> None:
        due = {record.flight.id for record in of if not record.is_landing}

        def probe() -> bool:
            self.ids |= {prediction["id"] for prediction in self.reader.poll(0.5)}
            return due <= self.ids

        wait_for("the last prediction", probe, timeout=600, interval=0)

    def ended(self, name: str, phase: str, seconds: float = 600) -> dict[str, Any]:
        status = dict(self.messages.await_end(name, seconds))
        assert status["phase"] == phase, status
        return status

    def reload(self, name: str, content: str) -> None:
        body = content.encode()
        self.world.s3.put_object(Bucket=self.world.bucket, Key=f"flights/{name}", Body=body)
        uri, digest = f"s3://{self.world.bucket}/flights/{name}", hashlib.sha256(body).hexdigest()
        self.messages.send(name, "reload-model", {"name": "delays", "uri": uri, "sha256": digest})


@pytest.fixture
def run(world: World) -> Iterator[Run]:
    """The sample is applied in a namespace held to the restricted pod security standard, with topics of its own."""
    brokers = world.environment.kafka_host
    world.make_namespace(NAMESPACE)
    delete_topics(brokers, [TOPIC, OUTPUT])
    create_topics(brokers, {TOPIC: 4, OUTPUT: 2})
    made = Run(world)
    made.apply(made.first)
    yield made
    made.reader.close()
    made.messages.forget()
    world.delete_apps(NAMESPACE)
    delete_topics(brokers, [TOPIC, OUTPUT])


@pytest.mark.long  # the same without a cluster is in tests/integration/samples; an export by pods in test_snapshots.py
def test_a_model_is_dumped_mended_and_begun_again_and_every_prediction_is_the_oracles(run: Run, world: World) -> None:
    flown = list(records(DEPARTURES))
    half = len(flown) // 2
    run.messages.send("look", "dump-state", DUMP)
    run.send(flown[:half])
    run.ended("look", "Applied", 600)
    # Of everything that was sent: the broker has confirmed it before the message is.
    run.await_predictions(flown[:half])
    run.messages.send("keep", "dump-state", DUMP)
    uri = run.ended("keep", "Applied", 600)["results"]["uri"]
    dump = read_dump(bucket(world.s3, uri))
    ends = dump.offsets[TOPIC]
    stored = [place[1] < ends[place[0]] for place, _ in read_records(world.environment.kafka_host, TOPIC)]
    assert stored == [True] * half
    assert dump.differences(expected_state(flown[:half])) == []

    # Its files outlive the application in a place of their own.
    prefix = f"{NAMESPACE}/exports/kept"
    root = uri.removesuffix("/manifest.json").removeprefix(f"s3://{world.bucket}/")
    listed = world.s3.list_objects_v2(Bucket=world.bucket, Prefix=f"{root}/")["Contents"]
    for key in (entry["Key"] for entry in listed):
        source = f"{world.bucket}/{key}"
        world.s3.copy_object(Bucket=world.bucket, Key=prefix + key.removeprefix(root), CopySource=source)
    run.messages.forget()
    world.kubectl.run("delete", "sapp", run.first.name, "-n", NAMESPACE, "--timeout=600s", timeout=610)
    assert world.keys(run.first.name, NAMESPACE) == []

    again = run.build(FLIGHTS_FROM_DUMP)
    again.manifest["spec"]["startFrom"]["exportedState"]["uri"] = f"s3://{world.bucket}/{prefix}/manifest.json"
    run.apply(again)
    model = analyse(dump).model("mended")
    run.reload("mended", json.dumps(model))
    run.ended("mended", "Applied")
    run.send(flown[half:])
    run.await_predictions(flown)
    comparison = check(
        Hindsight(flown), read_topic(world.environment.kafka_host, OUTPUT), [BUILT_IN, Weights.of(model)]
    )
    print(comparison.report())
    assert comparison.ok, comparison.report()
