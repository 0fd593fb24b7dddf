"""Which Spark settings Tidegate owns, which are defaults, and which are the user's. No I/O."""

from __future__ import annotations

from collections.abc import Mapping

from tidegate_spark.contract.owned_settings import for_executors_alone
from tidegate_spark.contract.protocol import SPARK_SECRET_FILE, SPARK_SECRET_SETTINGS

TASK_CPUS = "spark.task.cpus"
_MOST_DIGITS = 9

DEFAULTS: dict[str, str] = {
    # Each of these three saves the driver a permission: without them Spark writes ConfigMaps, and lists and deletes
    # Services and PersistentVolumeClaims that a driver made by Tidegate never has.
    "spark.kubernetes.executor.disableConfigMap": "true",
    "spark.kubernetes.driver.service.deleteOnTermination": "false",
    "spark.kubernetes.driver.ownPersistentVolumeClaim": "false",
    "spark.kubernetes.driver.reusePersistentVolumeClaim": "false",
    # Spark's web interface asks nobody for a password, and its links end jobs and stages.
    "spark.ui.killEnabled": "false",
}
"""Settings that ``spec.sparkConf`` may change; those of Kubernetes may need other rights then."""

AUTHENTICATE = "spark.authenticate"
CLOSED_PORTS: dict[str, str] = {
    # Who reaches a port of Spark's has its JVM read serialized objects, and so run whatever there is in them.
    AUTHENTICATE: "true",
    SPARK_SECRET_SETTINGS[0]: SPARK_SECRET_FILE,
    "spark.network.crypto.enabled": "true",
    # Spark's own defaults of these two are for external shuffle services that are older: the key of the handshake is
    # not derived, and a peer could have the other one fall back to no encryption. The cipher stays Spark's, AES/CTR:
    # AES/GCM costs more for each message, and far more until Java has compiled it (docs/design/spark-ports.md).
    "spark.network.crypto.authEngineVersion": "2",
    "spark.network.crypto.saslFallback": "false",
}
"""Settings that let only the application's own pods in at Spark's ports. ``spec.sparkConf`` may change each, or switch
all of them off by ``spark.authenticate: "false"``, without which Spark refuses to encrypt."""


def spark_settings(user: Mapping[str, str], executor_container: str) -> dict[str, str]:
    """Return the settings that go to the runtime: defaults, over them the user's, over them what Tidegate owns.

    Args:
        user: ``spec.sparkConf``. What it cannot set is there, too: the CRD refuses it, but an older one may have let it
            pass, and the runtime, which leaves it out, says so.
        executor_container: name of Spark's container in the executor template.
    """
    kept = {other: value for key, value in user.items() if (other := for_executors_alone(key))}
    closed = CLOSED_PORTS if authenticates(user) else {}
    return {
        **DEFAULTS,
        **closed,
        **kept,
        **user,
        "spark.kubernetes.executor.podTemplateContainerName": executor_container,
    }


def authenticates(user: Mapping[str, str]) -> bool:
    """Return whether the application's processes have to show each other who they are; ``spec.sparkConf`` may say no.

    A value that is no truth value is none for Spark either, which refuses it in words.
    """
    return user.get(AUTHENTICATE, "true").strip().lower() != "false"


def without_secret_files(conf: Mapping[str, str]) -> dict[str, str]:
    """Return the settings for a Spark in one process, which makes a secret up for itself and may not have a file."""
    return {key: value for key, value in conf.items() if key not in SPARK_SECRET_SETTINGS}


def task_slots(cores: int, conf: Mapping[str, str]) -> int:
    """Return how many tasks an executor runs at a time; 0 of no cores.

    Args:
        cores: of the executor.
        conf: the application's own settings; ``spark.task.cpus`` says how many cores a task takes. A value that is no
            number counts as Spark's default: Spark itself refuses it, in words.
    """
    text = conf.get(TASK_CPUS, "").strip()
    # Of more digits than a number of cores has, Python would read none.
    per_task = int(text) if text.isascii() and text.isdecimal() and len(text) <= _MOST_DIGITS else 1
    return max(1, cores // max(1, per_task)) if cores > 0 else 0
