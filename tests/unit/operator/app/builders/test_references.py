"""What a version's pods refer to and do not start without, each with the field of the spec that names it."""

from collections.abc import Mapping
from typing import Any

import pytest

from tidegate.api.streaming_app import StreamingApp
from tidegate.app.builders.driver import build_driver_pod
from tidegate.app.builders.references import references_of, spared_by
from tidegate.pods.builders.driver_config import app_storage
from tidegate.pods.builders.executor import build_executor_to_try
from tidegate_spark.contract.protocol import ROLE_DRIVER, ROLE_EXECUTOR
from tidegate_testing.observations import PLATFORM, app_with

DRIVER, EXECUTOR = "spec.driver.podTemplate", "spec.executor.podTemplate"


def pods_of(app: StreamingApp) -> tuple[tuple[str, Mapping[str, Any]], ...]:
    executor = build_executor_to_try(app, 2, app_storage(app), PLATFORM)
    return (ROLE_DRIVER, build_driver_pod(app, 2, 1, PLATFORM)), (ROLE_EXECUTOR, executor)


def found_in(change: dict[str, Any]) -> dict[str, str]:
    """Return what an application refers to, in words, and the field of each."""
    app = app_with(change)
    return {each.what: each.field for each in references_of(app, pods_of(app))}


def volume_of(source: dict[str, Any], *, mounted: bool = True) -> dict[str, Any]:
    """Return a driver's template with a volume of its own."""
    mounts = [{"name": "its", "mountPath": "/its"}] if mounted else []
    containers = [{"name": "driver", "volumeMounts": mounts}]
    return {"driver.podTemplate": {"spec": {"volumes": [{"name": "its", **source}], "containers": containers}}}


VOLUME = f"{DRIVER}.spec.volumes[0]"
KEYS = {"items": [{"key": "a.json", "path": "a"}, {"key": "b.json", "path": "b"}]}


@pytest.mark.parametrize(
    ("source", "found"),
    [
        ({"configMap": {"name": "rules"}}, {"ConfigMap rules": f"{VOLUME}.configMap.name"}),
        (
            {"configMap": {"name": "rules", **KEYS}},
            {
                "key a.json of ConfigMap rules": f"{VOLUME}.configMap.items[0].key",
                "key b.json of ConfigMap rules": f"{VOLUME}.configMap.items[1].key",
            },
        ),
        ({"secret": {"secretName": "tls"}}, {"Secret tls": f"{VOLUME}.secret.secretName"}),
        (
            {"projected": {"sources": [{"secret": {"name": "tls"}}, {"configMap": {"name": "rules"}}]}},
            {
                "Secret tls": f"{VOLUME}.projected.sources[0].secret.name",
                "ConfigMap rules": f"{VOLUME}.projected.sources[1].configMap.name",
            },
        ),
        (
            {"persistentVolumeClaim": {"claimName": "data"}},
            {"PersistentVolumeClaim data": f"{VOLUME}.persistentVolumeClaim.claimName"},
        ),
        (
            {"csi": {"driver": "vault", "nodePublishSecretRef": {"name": "vault"}}},
            {"Secret vault": f"{VOLUME}.csi.nodePublishSecretRef.name"},
        ),
        ({"configMap": {"name": "rules", "optional": True}}, {}),
        ({"projected": {"sources": [{"configMap": {"name": "rules", "optional": True}}]}}, {}),
        ({"emptyDir": {}}, {}),
        ({"ephemeral": {"volumeClaimTemplate": {"spec": {}}}}, {}),
        ({"configMap": "rules"}, {}),
    ],
    ids=[
        "whole",
        "keys",
        "secret",
        "projected",
        "claim",
        "csi",
        "optional",
        "optional part",
        "own",
        "made",
        "no object",
    ],
)
def test_a_volume_refers_to_what_it_is_filled_from(source: dict[str, Any], found: dict[str, str]) -> None:
    assert found_in(volume_of(source)) == found


def test_the_kubelet_fills_no_volume_that_no_container_mounts_but_the_scheduler_wants_each_claim() -> None:
    assert found_in(volume_of({"configMap": {"name": "rules"}}, mounted=False)) == {}
    claim = volume_of({"persistentVolumeClaim": {"claimName": "data"}}, mounted=False)
    assert list(found_in(claim)) == ["PersistentVolumeClaim data"]


def test_variables_refer_to_keys_and_whole_objects_in_each_container() -> None:
    of_key = {"name": "LIMIT", "valueFrom": {"configMapKeyRef": {"name": "limits", "key": "eu"}}}
    optional = {"name": "EXTRA", "valueFrom": {"secretKeyRef": {"name": "extra", "key": "x", "optional": True}}}
    plain = {"name": "PLAIN", "value": "text"}
    sidecar = {"name": "proxy", "image": "proxy:1", "envFrom": [{"secretRef": {"name": "proxy"}}]}
    init = {"name": "wait", "image": "wait:1", "envFrom": [{"configMapRef": {"name": "where"}}]}
    containers = [{"name": "executor", "env": [plain, of_key, optional]}, sidecar]
    template = {"spec": {"containers": containers, "initContainers": [init]}}
    assert found_in({"executor.podTemplate": template}) == {
        "ConfigMap where": f"{EXECUTOR}.spec.initContainers[0].envFrom[0].configMapRef.name",
        "key eu of ConfigMap limits": f"{EXECUTOR}.spec.containers[0].env[1].valueFrom.configMapKeyRef",
        "Secret proxy": f"{EXECUTOR}.spec.containers[1].envFrom[0].secretRef.name",
    }


def test_what_driver_and_executors_share_is_there_once() -> None:
    password = {"name": "PASSWORD", "valueFrom": {"secretKeyRef": {"name": "db", "key": "password"}}}
    assert found_in({"application.env": [password]}) == {
        "key password of Secret db": "spec.application.env[0].valueFrom.secretKeyRef"
    }


def test_fields_that_name_an_object_refer_to_it_although_pods_start_without() -> None:
    assert found_in(
        {
            "storage.credentialsSecretRef": {"name": "s3"},
            "control.channel": {"type": "Storage", "credentialsSecretRef": {"name": "broker"}},
            "application.main": "",
            "application.mainFrom": {"configMapKeyRef": {"name": "scripts", "key": "main.py"}},
        }
    ) == {
        "key main.py of ConfigMap scripts": "spec.application.mainFrom.configMapKeyRef",
        "Secret s3": "spec.storage.credentialsSecretRef.name",
        "Secret broker": "spec.control.channel.credentialsSecretRef.name",
    }


def test_what_tidegate_makes_with_the_launch_is_none_of_it() -> None:
    assert found_in({}) == {}
    assert found_in({"application.args": ["x" * 120_000]}) == {}


def test_a_pod_starts_without_pull_secrets_and_a_channels_credentials() -> None:
    app = app_with(
        {
            "application.imagePullSecrets": [{"name": "registry"}],
            "podTemplate": {"spec": {"imagePullSecrets": [{"name": "mirror"}]}},
            "control.channel": {"type": "Storage", "credentialsSecretRef": {"name": "broker"}},
            "storage.credentialsSecretRef": {"name": "s3"},
        }
    )
    spared = {each.name for each in references_of(app, pods_of(app)) if each.is_spared}
    assert spared == spared_by(app.spec) == {"registry", "mirror", "broker"}


def test_secrets_that_come_with_the_pod_are_not_looked_for() -> None:
    """The driver of such a volume makes them when a container mounts it: before, there is nothing to be found."""
    volumes = [{"name": "vault", "csi": {"driver": "secrets-store.csi.k8s.io", "readOnly": True}}]
    variable = {"name": "TOKEN", "valueFrom": {"secretKeyRef": {"name": "synced", "key": "token"}}}
    rules = {"name": "RULES", "valueFrom": {"configMapKeyRef": {"name": "rules", "key": "a"}}}
    mounts = [{"name": "vault", "mountPath": "/vault"}]
    containers = [{"name": "driver", "volumeMounts": mounts, "env": [variable, rules]}]

    def referred_to(volumes: list[dict[str, Any]]) -> set[str]:
        return set(found_in({"driver.podTemplate": {"spec": {"volumes": volumes, "containers": containers}}}))

    assert referred_to(volumes) == {"key a of ConfigMap rules"}
    others = [{"name": "vault", "csi": {"driver": "another.example"}}]
    assert referred_to(others) == {"key a of ConfigMap rules", "key token of Secret synced"}
