"""What Tidegate builds is accepted by the API server, in a namespace that admits restricted pods only.

Needs the API server of ``conftest.py``; runs kubectl.
"""

import json
from datetime import UTC, datetime
from typing import Any

import pytest

from tidegate.access.builders.access import build_access
from tidegate.access.builders.launch_secrets import build_agent_secret, build_spark_secret
from tidegate.api.streaming_app import StreamingApp, decode_app
from tidegate.app.builders.driver import build_driver_pod
from tidegate.app.builders.purge import build_purge_pod
from tidegate.engine.rules.event import build_event
from tidegate.pods.builders.driver_config import build_driver_config
from tidegate.pods.records.platform import Platform
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.kubectl import Kubectl

PLATFORM = Platform(operator_image="example/tidegate-operator:1")

TEMPLATE = {
    "metadata": {"labels": {"team": "a"}, "annotations": {"note": "b"}},
    "spec": {
        "nodeSelector": {"disk": "fast"},
        "tolerations": [{"key": "dedicated", "operator": "Exists"}],
        "topologySpreadConstraints": [
            {"maxSkew": 1, "topologyKey": "zone", "whenUnsatisfiable": "ScheduleAnyway", "labelSelector": {}}
        ],
        "volumes": [{"name": "work", "emptyDir": {"sizeLimit": "5Gi"}}, {"name": "m", "configMap": {"name": "m"}}],
    },
}

SPECS: dict[str, dict[str, Any]] = {
    "the smallest": {},
    "the runtime in the image": {"application": {"runtime": "Image"}},
    "credentials and templates": {
        "application": {
            "imagePullSecrets": [{"name": "registry"}],
            "env": [{"name": "A", "value": "1"}, {"name": "PYTHONPATH", "value": "/opt/app"}],
        },
        "driver": {"podTemplate": TEMPLATE},
        "executor": {"podTemplate": TEMPLATE},
        "storage": {"credentialsSecretRef": {"name": "storage"}},
    },
}


@pytest.fixture(params=list(SPECS.values()), ids=list(SPECS))
def app(request: pytest.FixtureRequest, api_kubectl: Kubectl, namespace: str) -> StreamingApp:
    spec: dict[str, Any] = {
        "application": {"image": "example/app:1", "main": "local:///opt/app/main.py"},
        "storage": {"uri": "s3://streams/apps"},
    }
    for group, fields in request.param.items():
        spec[group] = spec.get(group, {}) | fields
    manifest = {
        "apiVersion": "tidegate.dev/v1alpha1",
        "kind": "StreamingApp",
        "metadata": {"name": "a" * 40, "namespace": namespace},
        "spec": spec,
    }
    return decode_app(api_kubectl.create(manifest))


def test_a_driver_pod_is_admitted_once_and_never_a_second_time(api_kubectl: Kubectl, app: StreamingApp) -> None:
    pod = api_kubectl.create(build_driver_pod(app, 1, 1, PLATFORM))
    assert pod["spec"]["restartPolicy"] == "OnFailure"
    with pytest.raises(AssertionError, match="already exists"):
        api_kubectl.create(build_driver_pod(app, 2, 1, PLATFORM))


def test_an_executor_pod_is_admitted(api_kubectl: Kubectl, app: StreamingApp) -> None:
    settings = build_driver_config(app, 99999, 1, PLATFORM).executor
    pod = json.loads(json.dumps(settings.template))
    # What Spark adds.
    pod["metadata"] |= {"name": f"{settings.pod_name_prefix}-exec-2147483647", "namespace": app.metadata.namespace}
    pod["spec"] |= {"hostname": pod["metadata"]["name"], "restartPolicy": "Never"}
    (container,) = pod["spec"]["containers"]
    container |= {"image": settings.image, "args": ["executor"]}
    assert api_kubectl.create(pod)["spec"]["hostname"] == pod["metadata"]["name"]


def test_a_purge_pod_is_admitted(api_kubectl: Kubectl, app: StreamingApp) -> None:
    assert api_kubectl.create(build_purge_pod(app, PLATFORM))["spec"]["restartPolicy"] == "OnFailure"


def test_the_rest_of_an_apps_objects_is_accepted(api_kubectl: Kubectl, app: StreamingApp) -> None:
    event = build_event(app.metadata, reason=Reason.LAUNCHED, message="é" * 4000, now=datetime.now(UTC))
    secrets = (build_agent_secret(app, 1, PLATFORM, "secret", "2a"), build_spark_secret(app, 1, PLATFORM, "another"))
    for manifest in (*build_access(app), *secrets, event):
        stored = api_kubectl.create(manifest)
        assert stored["metadata"]["namespace"] == app.metadata.namespace


def test_kubectl_describe_tells_the_events_of_an_app(api_kubectl: Kubectl, app: StreamingApp) -> None:
    api_kubectl.create(build_event(app.metadata, reason=Reason.LAUNCHED, message="epoch 1", now=datetime.now(UTC)))
    described = api_kubectl.run("describe", "sapp", app.metadata.name, "-n", app.metadata.namespace)
    (line,) = [line.split() for line in described.splitlines() if "Launched" in line]
    assert line[:2] + line[3:] == ["Normal", "Launched", "tidegate", "epoch", "1"]
