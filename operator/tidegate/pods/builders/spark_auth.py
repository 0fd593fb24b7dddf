"""The secret for Spark's ports: a file that driver and executors mount. No I/O.

It is created once for each launch and never replaced, because executors need the driver's. Spark's own generated secret
would be in an environment variable, which anybody can read who may list pods.
"""

from __future__ import annotations

from typing import Any

from tidegate.api.streaming_app import StreamingApp
from tidegate.pods.records.names import spark_secret_name
from tidegate.pods.records.platform import Platform
from tidegate.pods.spark.settings import authenticates
from tidegate_spark.contract.protocol import SPARK_SECRET_FILE

_DIRECTORY, _, SPARK_SECRET_KEY = SPARK_SECRET_FILE.rpartition("/")
_VOLUME = "tidegate-spark-auth"
_JAVA_OPTION = "SPARK_JAVA_OPT_9000"
"""A variable as Spark hands executors their JVM's options in; its own are numbered from 0."""


def spark_auth_volumes(app: StreamingApp, epoch: int, platform: Platform) -> list[dict[str, Any]]:
    """Return the volume with the file of a launch; none if ``spec.sparkConf`` switches authentication off.

    Not optional: a pod without the file would wait for nobody, and be let in by nobody.
    """
    if not authenticates(app.spec.spark_conf):
        return []
    name = spark_secret_name(app.metadata.name, app.metadata.uid, epoch, platform.key_id)
    return [{"name": _VOLUME, "secret": {"secretName": name, "defaultMode": 0o440}}]


def spark_auth_mounts(app: StreamingApp) -> list[dict[str, Any]]:
    """Return where :func:`spark_auth_volumes` appear in the container that Spark runs in."""
    if not authenticates(app.spec.spark_conf):
        return []
    return [{"name": _VOLUME, "mountPath": _DIRECTORY, "readOnly": True}]


def spark_auth_env(app: StreamingApp) -> list[dict[str, Any]]:
    """Return the variables by which an executor reads the file before it knows the application's settings.

    Until the driver has let it in, it has only those that Spark gives to its JVM, ``spark.master`` not among them, and
    without one that names Kubernetes it does not look into a file. Which cluster, it hears from the driver.
    """
    return [{"name": _JAVA_OPTION, "value": "-Dspark.master=k8s://"}] if authenticates(app.spec.spark_conf) else []
