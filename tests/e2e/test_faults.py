"""Valid resources that cannot run: each says which fault it is and what to do, and runs once the cause is gone.

All of a group are started together and cured together, because most of the time is waiting.
"""

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

import pytest

from devcluster import kafka
from tidegate_testing.apps import streaming_app
from tidegate_testing.named_reasons import Noted, Said
from tidegate_testing.waiting import wait_for
from tidegate_testing.world import World

NAMESPACE = "tidegate-e2e-faults"
ABSENT_BUCKET = "tidegate-e2e-made-later"
TOPIC = "tidegate-e2e-faults"
LEAKING, PASSWORD = "leaking", "correct horse battery"


@dataclass(frozen=True)
class Fault:
    """A cause, the reason and words it must show, and the cure."""

    name: str
    reason: str
    texts: tuple[str, ...]
    build: Callable[[World], dict[str, Any]]
    cure: Callable[[World], None]


def counting(world: World, name: str, **spec: Any) -> dict[str, Any]:
    return world.app(name, NAMESPACE, main="script:counting.py", spec=spec)


def fix_spec(name: str, spec: dict[str, Any]) -> Callable[[World], None]:
    return lambda world: world.kubectl.patch("sapp", name, NAMESPACE, {"spec": spec})


def missing_image(world: World) -> dict[str, Any]:
    return counting(world, "missing-image", application={"image": "localhost/no-such-image:1"})


def cure_image(world: World) -> None:
    image = {"application": {"image": world.environment.image_spark}}
    world.kubectl.patch("sapp", "missing-image", NAMESPACE, {"spec": image})


def missing_bucket(world: World) -> dict[str, Any]:
    world.remove_bucket(ABSENT_BUCKET)
    return counting(world, "missing-bucket", storage={"uri": f"s3://{ABSENT_BUCKET}/apps"})


def wrong_credentials(world: World) -> dict[str, Any]:
    world.put_credentials(NAMESPACE, name="rejected", access_key="nobody", secret_key="wrong")
    return counting(world, "wrong-credentials", storage={"credentialsSecretRef": {"name": "rejected"}})


def absent_credentials(world: World) -> dict[str, Any]:
    return counting(world, "absent-credentials", storage={"credentialsSecretRef": {"name": "made-later"}})


def unreachable_broker(world: World) -> dict[str, Any]:
    address, host = world.environment.kafka_pods, world.environment.kafka_host
    if TOPIC not in kafka.topics(host):
        kafka.create_topic(host, TOPIC)
    if world.environment.own:
        world.stop_kafka()
    else:
        address = "127.0.0.1:1"  # nobody listens there, and another's broker is not ours to stop
    return world.app("unreachable-broker", NAMESPACE, main="script:from_kafka.py", args=[address, TOPIC])


def start_broker(world: World) -> None:
    if world.environment.own:
        world.start_kafka()
    else:
        arguments = [world.environment.kafka_pods, TOPIC]
        fix_spec("unreachable-broker", {"application": {"args": arguments}})(world)


def leaking(world: World) -> dict[str, Any]:
    """Return an application that fails, and tells its password; it may fail once, and not twice."""
    metadata = {"name": "database", "namespace": NAMESPACE}
    world.kubectl.apply(
        {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"password": PASSWORD}}
    )
    source = {"secretKeyRef": {"name": "database", "key": "password"}}
    spec = {
        "application": {"env": [{"name": "DATABASE", "valueFrom": source}]},
        "restart": {"maxFailures": 1},
    }
    return world.app(LEAKING, NAMESPACE, main="script:leaking.py", spec=spec)


def to_counting(name: str) -> Callable[[World], None]:
    return fix_spec(name, {"application": {"main": "local:///opt/scripts/counting.py"}})


ONE_OF_EACH_KIND = (
    Fault("missing-image", "ImagePullFailed", ("no-such-image",), missing_image, cure_image),
    Fault(
        LEAKING,
        "RestartBudgetExhausted",
        ("PermissionError", "the database refuses the password [redacted]"),
        leaking,
        to_counting(LEAKING),
    ),
)
"""What Kubernetes finds, and what the application."""
MORE = (
    Fault(
        "wrong-credentials",
        "CredentialsRejected",
        ("rejected", "spec.storage.credentialsSecretRef"),
        wrong_credentials,
        lambda world: world.put_credentials(NAMESPACE, name="rejected"),
    ),
    Fault(
        "missing-main",
        "MainNotFound",
        ("spec.application.main", "countin.py"),
        lambda world: world.app("missing-main", NAMESPACE, main="script:countin.py"),
        to_counting("missing-main"),
    ),
    Fault(
        "raises",
        "ApplicationFailed",
        ("ValueError", "the threshold must be a number"),
        lambda world: world.app("raises", NAMESPACE, main="script:raises.py"),
        to_counting("raises"),
    ),
    Fault(
        "missing-bucket",
        "BucketNotFound",
        (ABSENT_BUCKET, "spec.storage.uri"),
        missing_bucket,
        lambda world: world.make_bucket(ABSENT_BUCKET),
    ),
    Fault(
        "absent-credentials",
        "CredentialsMissing",
        ("made-later",),
        absent_credentials,
        lambda world: world.put_credentials(NAMESPACE, name="made-later"),
    ),
    Fault("unreachable-broker", "BrokerUnavailable", ("broker", "network"), unreachable_broker, start_broker),
)
"""Those that tests of the runtime and of the operator alone have, too: in tests/integration, test_storage.py,
test_endings.py and test_operator_lifecycle.py."""


@dataclass(frozen=True)
class Faulty:
    """A group of applications that cannot run, and the Ready condition of each that named its fault."""

    faults: tuple[Fault, ...]
    conditions: dict[str, dict[str, Any]]


@pytest.fixture(
    scope="module",
    params=[
        pytest.param(ONE_OF_EACH_KIND, id="one-of-each-kind"),
        pytest.param(MORE, id="more", marks=pytest.mark.long),
    ],
)
def faulty(world: World, request: pytest.FixtureRequest) -> Iterator[Faulty]:
    """Every application of a group was applied, and said what its fault is."""
    world.make_namespace(NAMESPACE)
    noted = Noted({fault.name: Said(fault.reason, fault.texts) for fault in request.param})
    made = Faulty(request.param, noted.conditions)
    try:
        for fault in made.faults:
            world.kubectl.apply(fault.build(world))
        wait_for("each fault to be named", partial(noted.check, world, NAMESPACE), timeout=600, interval=1)
        yield made
    finally:
        if world.environment.own:
            world.start_kafka()  # the tests that follow need it, however this ended
        world.delete_apps(NAMESPACE)


def ready_because(world: World, name: str, reason: str) -> dict[str, Any]:
    condition = world.kubectl.condition(world.get_app(name, NAMESPACE), "Ready")
    assert condition, f"{name} has no condition yet"
    assert condition["reason"] == reason, condition
    return condition


def test_a_fault_is_named_with_what_to_do(faulty: Faulty) -> None:
    for fault in faulty.faults:
        condition = faulty.conditions[fault.name]
        assert condition["status"] == "False", condition
        assert [word for word in fault.texts if word not in condition["message"]] == [], condition


def test_an_application_that_failed_too_often_is_stalled_and_was_started_again_in_place(
    faulty: Faulty, world: World
) -> None:
    for fault in (fault for fault in faulty.faults if fault.reason == "RestartBudgetExhausted"):
        app = world.get_app(fault.name, NAMESPACE)
        stalled, status = world.kubectl.condition(app, "Stalled"), app["status"]
        assert (stalled["status"], stalled["reason"]) == ("True", fault.reason)
        assert (status["phase"], status["epoch"], len(status["restarts"]["recentFailureTimes"])) == ("Failed", 1, 2)


def test_an_application_runs_once_the_cause_of_its_fault_is_gone(faulty: Faulty, world: World) -> None:
    for fault in faulty.faults:
        fault.cure(world)
    left = {fault.name for fault in faulty.faults}

    def all_ran() -> bool:
        for app in world.kubectl.list("sapp", NAMESPACE):
            name, ready = app["metadata"]["name"], world.kubectl.condition(app, "Ready")
            if name in left and ready.get("status") == "True" and app["status"]["phase"] == "Running":
                # Whatever counted against it does not any more.
                assert "recentFailureTimes" not in app["status"].get("restarts", {}), app["status"]
                left.discard(name)
                # The others start on the same few cores.
                world.kubectl.delete("sapp", name, NAMESPACE)
        assert not left, f"not yet: {left}"
        return True

    # Some are looked after by themselves only every five minutes.
    wait_for("all of them to run", all_ran, timeout=1200, interval=2)


def test_the_operator_lived_through_all_of_it(faulty: Faulty, world: World) -> None:
    assert world.operator_crashes() == []


@pytest.mark.long  # tests/integration/test_operator_lifecycle.py has it, too
def test_an_application_whose_storage_lies_inside_anothers_is_refused(world: World) -> None:
    world.make_namespace(NAMESPACE)
    first = counting(world, "owner")
    inside = f"{first['spec']['storage']['uri']}/{NAMESPACE}/owner"
    second = streaming_app(
        "intruder",
        NAMESPACE,
        image=world.environment.image_spark,
        main="script:counting.py",
        storage={**first["spec"]["storage"], "uri": inside},
    )
    world.kubectl.apply(first)
    wait_for("the first to be taken on", lambda: world.get_app("owner", NAMESPACE).get("status"), timeout=180)
    world.kubectl.apply(second)
    condition = wait_for(
        "the second to be refused", partial(ready_because, world, "intruder", "StorageConflict"), timeout=180
    )
    assert "owner" in condition["message"]
    assert world.kubectl.get("pod", "intruder-driver", NAMESPACE) is None
    world.delete_apps(NAMESPACE)


@pytest.mark.long  # tests/integration/spark_runtime/test_storage.py has it, too
def test_storage_that_an_earlier_application_left_is_not_taken_until_its_claim_is_removed(world: World) -> None:
    world.make_namespace(NAMESPACE)
    key = f"apps/{NAMESPACE}/again/app.json"
    left = json.dumps({"uid": "of-an-earlier-one", "namespace": NAMESPACE, "app": "again", "epoch": 3, "lineage": 1})
    world.s3.put_object(Bucket=world.bucket, Key=key, Body=left.encode())
    world.kubectl.apply(counting(world, "again"))
    condition = wait_for(
        "the application to be refused", partial(ready_because, world, "again", "StorageOwned"), timeout=180
    )
    assert [word for word in ("of-an-earlier-one", "spec.storage.uri") if word not in condition["message"]] == []
    assert world.read(key) == left

    world.s3.delete_object(Bucket=world.bucket, Key=key)
    uid = world.get_app("again", NAMESPACE)["metadata"]["uid"]

    def claimed() -> bool:
        assert key in world.keys("again", NAMESPACE)
        return bool(json.loads(world.read(key))["uid"] == uid)

    wait_for("the next driver to claim the storage", claimed, timeout=900, interval=1)
    world.delete_apps(NAMESPACE)
