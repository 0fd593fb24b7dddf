"""How a driver's process may end, each way on a real kubelet, with what the application says of it then."""

import json
from collections.abc import Iterator
from typing import Any

import pytest

from tidegate_spark.contract.protocol import PROTOCOL, RUNTIME_DIRECTORY
from tidegate_testing.named_reasons import Said, await_reasons
from tidegate_testing.waiting import wait_for
from tidegate_testing.world import PREFIX, World

pytestmark = (
    pytest.mark.long
)  # tests/integration/spark_runtime has most of them in a process, test_faults.py has others

NAMESPACE = f"{PREFIX}-ends"
GENEROUS = 900.0


def with_volume(path: str, **source: Any) -> dict[str, Any]:
    """Return a driver's spec with the scripts and one volume more, which is mounted there."""
    more = path.rpartition("/")[2]
    scripts = {"name": "scripts", "configMap": {"name": "scripts"}}
    mounts = [{"name": "scripts", "mountPath": "/opt/scripts", "readOnly": True}, {"name": more, "mountPath": path}]
    container = {"name": "driver", "volumeMounts": mounts}
    template = {"spec": {"volumes": [scripts, {"name": more, **source}], "containers": [container]}}
    return {"podTemplate": template, "resources": {"requests": {"cpu": "50m", "memory": "1200Mi"}}}


FULL = {"driver": with_volume("/full", emptyDir={"medium": "Memory", "sizeLimit": "1Mi"})}
BARE = {"application": {"runtime": "Injected"}, "driver": with_volume(f"{RUNTIME_DIRECTORY}/jars", emptyDir={})}
"""On Spark's own image: without the jars that come with the runtime."""
WAYS: dict[str, tuple[dict[str, Any], Said]] = {
    "killed": ({}, Said("DriverCrashed", ("killed-driver", "SIGKILL"))),
    "memory": ({}, Said("OutOfMemory", ("memory-driver", "spec.driver.resources.requests.memory"))),
    "disk": (FULL, Said("DiskFull", ("No space left on device",))),
    "connect": ({}, Said("ScriptUnsupported", ("Spark Connect",))),
    "unnamed": ({}, Said("QueryRefused", (".queryName(",))),
    "stuck": ({"restart": {"stallTimeoutSeconds": 30}}, Said("Stalled", ("'stuck'",))),
}
"""By the script's argument, which is the application's name, too."""
BARE_SAID = Said("ConnectorMissing", ("S3AFileSystem", f"{RUNTIME_DIRECTORY}/jars"))
NEVER = Said("RestartPolicyNever", ("ValueError", "the threshold must be a number", "spec.restart.policy"))
NEWER_RUNTIMES = {
    "newer-form": ({"told": "of a later form"}, Said("UnknownTermination", ("newer-form-driver",))),
    "newer-reason": (
        {"reason": "TideTooHigh", "message": "the moon is full", "epoch": 1},
        Said("Unknown", ("TideTooHigh",)),
    ),
}
"""What the process of an image with a newer runtime may leave as its last words."""


@pytest.fixture
def namespace(world: World) -> Iterator[str]:
    world.make_namespace(NAMESPACE)
    yield NAMESPACE
    world.delete_apps(NAMESPACE)


def test_each_way_to_end_is_named_with_what_to_do(world: World, namespace: str) -> None:
    for way, (spec, _) in WAYS.items():
        world.kubectl.apply(world.app(way, namespace, main="script:ending.py", args=[way], spec=spec))
    never = {"restart": {"policy": "Never"}}
    world.kubectl.apply(world.app("never", namespace, main="script:raises.py", spec=never))
    bare = world.app("bare", namespace, main="script:counting.py", spec=BARE)
    bare["spec"]["application"]["image"] = world.environment.image_stock
    world.kubectl.apply(bare)
    said = {way: said for way, (_, said) in WAYS.items()}
    await_reasons(world, namespace, {**said, "never": NEVER, "bare": BARE_SAID}, GENEROUS)
    assert world.operator_crashes() == []


def test_words_of_a_newer_runtime_are_said_to_be_that(world: World, namespace: str) -> None:
    for name, (words, _) in NEWER_RUNTIMES.items():
        program = f"import os; open('/dev/termination-log', 'w').write({json.dumps(words)!r}); os._exit(0)"
        metadata = {"name": f"{name}-runtime", "namespace": namespace}
        files = {"__init__.py": "", "__main__.py": program}
        world.kubectl.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": files})
        world.kubectl.apply(world.app(name, namespace, main="script:counting.py", spec=with_runtime(name)))
    await_reasons(world, namespace, {name: said for name, (_, said) in NEWER_RUNTIMES.items()}, GENEROUS)
    assert world.operator_crashes() == []


def test_a_runtime_that_is_too_new_for_the_operator_touches_nothing_and_says_which_to_replace(
    world: World, namespace: str
) -> None:
    """The image's runtime, but for its number: two more than the operator's, as after an image of next year."""
    package = "/opt/venv/lib/python3.11/site-packages/tidegate_spark"
    changed = "from tidegate_spark.contract import protocol; protocol.PROTOCOL += 2"
    files = {"__init__.py": f"__path__ = [{package!r}]\n{changed}"}
    metadata = {"name": "later-runtime", "namespace": namespace}
    world.kubectl.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": files})
    world.kubectl.apply(world.app("later", namespace, main="script:counting.py", spec=with_runtime("later")))
    said = Said("ProtocolMismatch", (f"(protocol {PROTOCOL + 2})", "too old for the runtime in the image"))
    await_reasons(world, namespace, {"later": said}, GENEROUS)
    assert world.keys("later", namespace) == []


def with_runtime(name: str) -> dict[str, Any]:
    """Return a spec whose driver has another program under the runtime's name, as an image could."""
    template = {
        "spec": {
            "volumes": [{"name": "runtime", "configMap": {"name": f"{name}-runtime"}}],
            "containers": [
                {
                    "name": "driver",
                    "workingDir": "/other",
                    "volumeMounts": [{"name": "runtime", "mountPath": "/other/tidegate_spark"}],
                }
            ],
        }
    }
    return {"driver": {"podTemplate": template, "resources": {"requests": {"cpu": "50m", "memory": "1200Mi"}}}}


def test_a_configuration_that_somebody_replaced_is_not_started_with(world: World, namespace: str) -> None:
    """The pod waits at a gate of the scheduler until its Secret is another one."""
    gated = {"podTemplate": {"spec": {"schedulingGates": [{"name": "example.com/audit"}]}}}
    app = world.app("gated", namespace, main="script:talkative.py", args=["x" * 4000] * 40, spec=gated)
    world.kubectl.apply(app)

    def secret_is_there() -> dict[str, Any]:
        found = [s for s in world.kubectl.list("secrets", namespace) if "-config-" in s["metadata"]["name"]]
        assert found, "no Secret with the configuration yet"
        return found[0]

    secret = wait_for("the Secret of the configuration", secret_is_there, timeout=180, interval=0.5)
    world.kubectl.run("delete", "secret", secret["metadata"]["name"], "-n", namespace)
    metadata = {key: secret["metadata"][key] for key in ("name", "namespace", "labels") if key in secret["metadata"]}
    other = dict.fromkeys(secret["data"], "e30=")
    world.kubectl.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": other})
    world.kubectl.patch("pod", "gated-driver", namespace, {"spec": {"schedulingGates": None}})
    words = (secret["metadata"]["name"], "is not the configuration that this pod was launched with")
    await_reasons(world, namespace, {"gated": Said("ConfigurationChanged", words)}, GENEROUS)
