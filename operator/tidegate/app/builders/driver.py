"""Builds the driver pod: Spark in client mode, started by the runtime's entry point. No I/O."""

from __future__ import annotations

import dataclasses
from typing import Any

from tidegate.api.streaming_app import RestartPolicy, StreamingApp
from tidegate.app.builders.configuration import ConfiguredPod, configuration_of
from tidegate.app.builders.starting_offsets import OF_SNAPSHOT, refuse_unreadable_offsets
from tidegate.app.builders.version_limit import refuse_large_version
from tidegate.pods.builders import pod_parts
from tidegate.pods.builders.control_channel import mount_credentials
from tidegate.pods.builders.cpu_limits import driver_limit
from tidegate.pods.builders.driver_config import build_driver_config
from tidegate.pods.builders.mounted_main import mount_main
from tidegate.pods.builders.pod_template import DRIVER_FIELD, lay_over
from tidegate.pods.builders.spark_auth import spark_auth_mounts, spark_auth_volumes
from tidegate.pods.records.metadata import labels, owner_reference
from tidegate.pods.records.names import DRIVER_CONTAINER, agent_secret_name, driver_pod_name
from tidegate.pods.records.platform import Platform
from tidegate.pods.reserved.accounts import refuse_others_account, service_account
from tidegate.pods.reserved.addresses import refuse_detours
from tidegate_spark.contract.protocol import (
    AGENT_TOKEN_FILE,
    ANNOTATION_APP_UID,
    ANNOTATION_SPEC_HASH,
    COMMAND_PORT,
    CONFIG_VARIABLE,
    ORIGIN_CREDENTIALS_DIRECTORY,
    POD_IP_VARIABLE,
    POD_UID_VARIABLE,
    ROLE_DRIVER,
    STATUS_PORT,
    TERMINATION_LOG,
    DriverConfig,
)

# Environment variables for each Service of the namespace: slow to start with, and in nobody's interest.
_DEFAULTS = {"enableServiceLinks": False}
_AGENT_VOLUME, _ORIGIN_VOLUME = "tidegate-agent", "tidegate-origin-credentials"


def build_driver_pod(
    app: StreamingApp, epoch: int, lineage: int, platform: Platform, failures: tuple[float, ...] = ()
) -> dict[str, Any]:
    """Return the whole driver pod of one launch; as :func:`build_driver`, without what is not in the pod."""
    return build_driver(app, epoch, lineage, platform, failures).manifest


def build_driver(
    app: StreamingApp, epoch: int, lineage: int, platform: Platform, failures: tuple[float, ...] = ()
) -> ConfiguredPod:
    """Return the whole driver pod of one launch, and the Secret of its configuration if that is too long for it.

    Args:
        app: the application.
        epoch: number of the launch; already in the application's status.
        lineage: which history of the state to continue.
        platform: what the installation decides.
        failures: when the application failed before, in pods that were lost; seconds since the epoch.

    Raises:
        SpecError: the spec is well-formed, but memory does not fit, a template cannot be merged, an address leads
            elsewhere, or the ServiceAccount is another application's.
        TooLongError: it is longer than what can be handed to a process, or recorded.
    """
    refuse_others_account(app)
    if app.spec.start_from is not None:
        refuse_detours(app.spec.start_from.export_uri, "spec.startFrom.exportedState.uri")
        refuse_unreadable_offsets(app.spec.start_from.starting_offsets, OF_SNAPSHOT)
    defaults = pod_parts.default_pod(platform, _DEFAULTS)
    pod, user_env = pod_parts.build_users_pod(
        app, DRIVER_CONTAINER, defaults, app.spec.driver.pod_template, DRIVER_FIELD
    )
    agents = agent_secret_name(app.metadata.name, app.metadata.uid, epoch, platform.key_id)
    config = dataclasses.replace(build_driver_config(app, epoch, lineage, platform, failures), agent_secret=agents)
    configuration = configuration_of(config)
    env = [*pod_parts.owned_env(app, user_env, platform), *_launch_env(configuration.text)]
    spec = _owned_spec(app, platform, env, config)
    if config.start_from is not None and config.start_from.credentials_secret:
        _mount_origins_credentials(spec, config.start_from.credentials_secret)
    mount_credentials(spec, app)
    mount_main(spec, app.spec.application)
    configuration.mount(spec)
    refuse_large_version(app)
    owned = {"metadata": _metadata(app, config), "spec": spec}
    manifest = {"apiVersion": "v1", "kind": "Pod", **lay_over(pod, owned, DRIVER_FIELD, owned=True)}
    return ConfiguredPod(manifest, configuration.secret(app))


def _metadata(app: StreamingApp, config: DriverConfig) -> dict[str, Any]:
    return {
        "name": driver_pod_name(app.metadata.name),
        "namespace": app.metadata.namespace,
        "labels": labels(app.metadata.name, ROLE_DRIVER, config.epoch),
        "annotations": {ANNOTATION_SPEC_HASH: config.spec_hash, ANNOTATION_APP_UID: app.metadata.uid},
        "ownerReferences": [owner_reference(app)],
    }


def _launch_env(text: str) -> list[dict[str, Any]]:
    return [
        {"name": POD_IP_VARIABLE, "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}},
        {"name": POD_UID_VARIABLE, "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
        {"name": CONFIG_VARIABLE, "value": text},
    ]


def _owned_spec(
    app: StreamingApp, platform: Platform, env: list[dict[str, Any]], config: DriverConfig
) -> dict[str, Any]:
    application = app.spec.application
    token = {"secretName": config.agent_secret, "defaultMode": 0o440}
    token_mount = {"name": _AGENT_VOLUME, "mountPath": AGENT_TOKEN_FILE.rpartition("/")[0], "readOnly": True}
    container = {
        "name": DRIVER_CONTAINER,
        "image": application.image,
        "imagePullPolicy": application.image_pull_policy,
        "command": ["python3", "-m", "tidegate_spark"],
        "env": env,
        "ports": [
            {"name": "status", "containerPort": STATUS_PORT},
            {"name": "command", "containerPort": COMMAND_PORT},
        ],
        "resources": pod_parts.resource_requirements("driver", app.spec.driver.resources),
        "terminationMessagePath": TERMINATION_LOG,
        "terminationMessagePolicy": "File",
        "volumeMounts": [*pod_parts.owned_mounts(app), token_mount, *spark_auth_mounts(app)],
        **_probes(),
    }
    spark = spark_auth_volumes(app, config.epoch, platform)
    volumes = [*pod_parts.owned_volumes(app), {"name": _AGENT_VOLUME, "secret": token}, *spark]
    spec: dict[str, Any] = {
        "restartPolicy": _restart_policy(app),
        "serviceAccountName": service_account(app),
        "terminationGracePeriodSeconds": app.spec.driver.stop_grace_period_seconds,
        "containers": [container],
        "volumes": volumes,
    }
    if pod_parts.is_injected(app):
        spec["initContainers"] = pod_parts.runtime_init_containers(app, platform, driver_limit(app))
    if application.image_pull_secrets:
        spec["imagePullSecrets"] = [{"name": secret.name} for secret in application.image_pull_secrets]
    return spec


def _mount_origins_credentials(spec: dict[str, Any], secret: str) -> None:
    """Give the driver what reaches the imported snapshot that it starts from; optional, as its own credentials are."""
    pod_parts.mount_optional_secret(spec, secret, _ORIGIN_VOLUME, ORIGIN_CREDENTIALS_DIRECTORY)


def _restart_policy(app: StreamingApp) -> str:
    # Never the pods' Always: a driver that ended with 0 was refused, fenced or has finished, and the operator decides.
    return "Never" if app.spec.restart.policy is RestartPolicy.NEVER else "OnFailure"


def _probes() -> dict[str, Any]:
    # The agent answers /healthz before the JVM is up and while the driver waits for storage or a broker; so liveness
    # finds a process that hangs, and nothing else. Ten minutes for the first answer: an image's first Python import on
    # a busy node is slow, and killing it makes it slower.
    return {
        "startupProbe": _probe("/healthz", period=2, failures=300, timeout=3),
        "livenessProbe": _probe("/healthz", period=10, failures=6, timeout=5),
        "readinessProbe": _probe("/readyz", period=5, failures=2, timeout=3),
    }


def _probe(path: str, *, period: int, failures: int, timeout: int) -> dict[str, Any]:
    return {
        "httpGet": {"path": path, "port": "status"},
        "periodSeconds": period,
        "failureThreshold": failures,
        "timeoutSeconds": timeout,
    }
