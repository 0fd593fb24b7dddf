"""StreamingApps that tests need, as manifests. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

CREDENTIALS = "storage-credentials"
SCRIPTS = "scripts"
SCRIPTS_PATH = "/opt/scripts"
QUICK_JAVA = (
    "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC -Xshare:auto"
    " -Dspark.ui.enabled=false -Dspark.sql.extensions.test.loadFromCp=false"
)
"""Options of JVMs that live for a minute or less.

The optimizing compiler would cost more than it saves. No test opens Spark's own pages; and a tenth of what the start
of a session costs is the registration of MLlib's two functions (SparkSession.loadExtensions), which no test calls.
"""


def with_quick_java(manifest: dict[str, Any]) -> dict[str, Any]:
    """Return a StreamingApp whose JVMs compile little; one that states variables of its own stays as it is."""
    spec = manifest["spec"]
    application = {"env": [{"name": "JAVA_TOOL_OPTIONS", "value": QUICK_JAVA}], **spec["application"]}
    return {**manifest, "spec": {**spec, "application": application}}


def streaming_app(
    name: str,
    namespace: str,
    *,
    image: str,
    storage: Mapping[str, Any],
    main: str,
    args: Sequence[str] = (),
    spec: Mapping[str, Any] | None = None,
) -> dict[str, Any]:
    """Return a small StreamingApp that fits on a small node; ``spec`` is merged over it, group by group.

    ``main`` may be ``script:NAME``: a file of the ConfigMap ``scripts``, mounted through the driver's pod template; or
    ``key:NAME``: the same by ``mainFrom``.
    """
    small = {"resources": {"requests": {"cpu": "50m", "memory": "1200Mi"}}}
    driver = {**small, **({"podTemplate": with_scripts("driver")} if main.startswith("script:") else {})}
    base: dict[str, Any] = {
        "application": {
            "image": image,
            "runtime": "Image",
            **_program(main),
            "args": list(args),
        },
        "driver": driver,
        "executor": {"instances": 1, **small},
        "storage": dict(storage),
    }
    for group, fields in (spec or {}).items():
        base[group] = {**base.get(group, {}), **fields} if isinstance(fields, Mapping) else fields
    return {
        "apiVersion": "tidegate.dev/v1alpha1",
        "kind": "StreamingApp",
        "metadata": {"name": name, "namespace": namespace},
        "spec": base,
    }


def _program(main: str) -> dict[str, Any]:
    kind, _, name = main.partition(":")
    if kind == "key":
        return {"mainFrom": {"configMapKeyRef": {"name": SCRIPTS, "key": name}}}
    return {"main": f"local://{SCRIPTS_PATH}/{name}" if kind == "script" else main}


def with_scripts(container: str) -> dict[str, Any]:
    """Return the pod template with which a container has the scripts of its namespace."""
    mount = {"name": "scripts", "mountPath": SCRIPTS_PATH, "readOnly": True}
    volumes = [{"name": "scripts", "configMap": {"name": SCRIPTS}}]
    return {"spec": {"volumes": volumes, "containers": [{"name": container, "volumeMounts": [mount]}]}}


def scripts(namespace: str, files: Mapping[str, str]) -> dict[str, Any]:
    """Return the ConfigMap that holds the scripts of a namespace's tests."""
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": SCRIPTS, "namespace": namespace},
        "data": dict(files),
    }


def credentials(namespace: str, access_key: str, secret_key: str, name: str = CREDENTIALS) -> dict[str, Any]:
    """Return the Secret with which an application reaches its storage."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "stringData": {"AWS_ACCESS_KEY_ID": access_key, "AWS_SECRET_ACCESS_KEY": secret_key},
    }
