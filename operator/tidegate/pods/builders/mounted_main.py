"""Mounts a program from a ConfigMap's key into the pod that runs it. No I/O."""

from __future__ import annotations

from typing import Any

from tidegate.api.spec import Application
from tidegate_spark.contract.protocol import MAIN_DIRECTORY, MOUNTED_MAIN_DIRECTORY

_SIZE = "8Mi"
"""A ConfigMap has at most 1 MiB."""
_MOUNTED_VOLUME, _VOLUME = "tidegate-mounted-main", "tidegate-main"


def main_reference(application: Application) -> str:
    """Return what the runtime is to run: ``main``, or the file that is mounted of ``mainFrom``."""
    if application.main_from is None:
        return application.main
    return f"local://{MOUNTED_MAIN_DIRECTORY}/{application.main_from.config_map_key_ref.key}"


def mount_main(spec: dict[str, Any], application: Application) -> None:
    """Give a pod the ConfigMap's key of the program, if it is one, and a place for the text that the pod starts with.

    The kubelet writes an edit of a ConfigMap into the volumes of running pods. With subPath it would not while the
    container runs, but it would mount the newer text when the container starts again in the same pod, which is how a
    driver recovers from a failure. So the runtime copies the text into an emptyDir, which lives as long as the pod,
    and every container of the pod runs that copy.
    """
    if application.main_from is None:
        return
    reference = application.main_from.config_map_key_ref
    # As an item: the kubelet then does not start a pod whose key is missing, and says so.
    items = [{"key": reference.key, "path": reference.key}]
    spec["volumes"] += [
        {"name": _MOUNTED_VOLUME, "configMap": {"name": reference.name, "items": items, "defaultMode": 0o444}},
        {"name": _VOLUME, "emptyDir": {"sizeLimit": _SIZE}},
    ]
    spec["containers"][0]["volumeMounts"] += [
        {"name": _MOUNTED_VOLUME, "mountPath": MOUNTED_MAIN_DIRECTORY, "readOnly": True},
        {"name": _VOLUME, "mountPath": MAIN_DIRECTORY},
    ]
