"""Secrets stay where they are: in Secrets, and in the processes that need them."""

import base64
import json
from collections.abc import Iterator
from functools import partial

import pytest

from tidegate_testing.kubectl import KubectlError
from tidegate_testing.operator_pods import SELECTOR
from tidegate_testing.waiting import wait_for
from tidegate_testing.world import OPERATOR_NAMESPACE, World

NAMESPACE, NAME = "tidegate-e2e-secrets", "leaking"
PASSWORD = "correct horse battery"
LOOKED_AT = "streamingapps,pods,events,configmaps,serviceaccounts,roles,rolebindings"


@pytest.fixture
def planted(world: World) -> Iterator[dict[str, str]]:
    """An application that fails and tells its password; returns every secret there is, by whose it is."""
    world.make_namespace(NAMESPACE)
    metadata = {"name": "database", "namespace": NAMESPACE}
    world.kubectl.apply(
        {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": {"password": PASSWORD}}
    )
    source = {"secretKeyRef": {"name": "database", "key": "password"}}
    application = {"env": [{"name": "DATABASE", "valueFrom": source}]}
    world.kubectl.apply(world.app(NAME, NAMESPACE, main="script:leaking.py", spec={"application": application}))
    wait_for("the application to fail", lambda: last_exception(world) == "PermissionError", timeout=600, interval=2)
    driver = world.kubectl.get("pod", f"{NAME}-driver", NAMESPACE)
    assert driver is not None
    (mounted,) = [v["secret"]["secretName"] for v in driver["spec"]["volumes"] if v["name"] == "tidegate-agent"]
    secret = world.kubectl.get("secret", mounted, NAMESPACE)
    assert secret is not None
    token = base64.b64decode(secret["data"]["token"]).decode()
    yield {"application": PASSWORD, "storage": world.environment.s3_secret_key, "agent": token}
    world.delete_apps(NAMESPACE)


def last_exception(world: World) -> str:
    status = world.get_app(NAME, NAMESPACE).get("status", {})
    return str(status.get("lastExit", {}).get("exception", ""))


def seen_by_people(world: World) -> dict[str, str]:
    """Return what somebody may read who may not read Secrets."""
    kubectl = world.kubectl
    reported = {"objects": json.dumps(kubectl.list(LOOKED_AT, NAMESPACE))}
    reported["operator's objects"] = json.dumps(kubectl.list("pods,events,configmaps", OPERATOR_NAMESPACE))
    reported["operator's log"] = kubectl.run("logs", "-n", OPERATOR_NAMESPACE, "-l", SELECTOR, "--tail=-1")
    for name, more in (("driver's log", []), ("driver's log before", ["--previous"])):
        try:
            reported[name] = kubectl.run("logs", f"{NAME}-driver", "-n", NAMESPACE, *more)
        except KubectlError:
            reported[name] = ""  # at this moment there is no such process
    keys = [key for key in world.keys(NAME, NAMESPACE) if "/logs/" in key]
    return reported | {key: world.read(key) for key in keys}


def seen_with_the_drivers_message(world: World) -> dict[str, str]:
    """Return the same, once what the driver printed is in it: between two processes there may be no log of either."""
    reported = seen_by_people(world)
    assert (
        "connecting with [redacted] and storage key [redacted]"
        in reported["driver's log"] + reported["driver's log before"]
    )
    return reported


@pytest.mark.long  # tests/integration/spark_runtime/test_secrets.py has it without a cluster
def test_no_secret_is_in_logs_events_status_or_config_maps(world: World, planted: dict[str, str]) -> None:
    reported = wait_for(
        "the driver's own words", partial(seen_with_the_drivers_message, world), timeout=300, interval=1
    )
    assert [
        (whose, place) for whose, secret in planted.items() for place, text in reported.items() if secret in text
    ] == []
    message = world.get_app(NAME, NAMESPACE)["status"]["lastExit"]["message"]
    assert "the database refuses the password [redacted]" in message
