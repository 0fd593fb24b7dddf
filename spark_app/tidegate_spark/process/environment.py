"""Paths, ports and addresses of the runtime in its pod. Pure: reads a mapping of variables, no files.

Defaults are the contract's (:mod:`tidegate_spark.contract.protocol`). Environment variables can change each, as tests
do outside a pod; the operator sets ``TIDEGATE_MASTER``, for rehearsals.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tidegate_spark.contract import protocol
from tidegate_spark.contract.control_protocol import CHANNEL_CREDENTIALS_DIRECTORY, LINE_FILE, LINE_VARIABLE
from tidegate_spark.contract.protocol import DriverConfig
from tidegate_spark.contract.rehearsal_protocol import MASTER_VARIABLE

SERVICE_ACCOUNT_DIRECTORY = "/var/run/secrets/kubernetes.io/serviceaccount"
WORKERS_PYTHON = "PYSPARK_PYTHON"
"""PySpark's variable: the program that runs Python workers."""


@dataclass(frozen=True)
class Environment:
    """The surroundings of one driver process."""

    pod_ip: str
    master: str
    """Spark's master URL: the API server of this cluster unless ``TIDEGATE_MASTER`` says otherwise."""
    on_kubernetes: bool
    """False if ``TIDEGATE_MASTER`` took Kubernetes' place; there are then no executor pods to configure."""
    bind_address: str
    status_port: int
    command_port: int
    credentials_directory: str
    origin_credentials_directory: str
    channel_credentials_directory: str
    token_file: str
    termination_log: str
    pod_uid: str
    work_directory: str
    jars_directory: str

    @classmethod
    def read(cls, variables: Mapping[str, str]) -> Environment:
        """Return the surroundings that ``variables`` (normally ``os.environ``) describe."""
        host = variables.get("KUBERNETES_SERVICE_HOST", "kubernetes.default.svc")
        port = variables.get("KUBERNETES_SERVICE_PORT", "443")
        if ":" in host:
            host = f"[{host}]"
        override = variables.get(MASTER_VARIABLE, "")
        pod_ip = variables.get(protocol.POD_IP_VARIABLE, "127.0.0.1")
        return cls(
            pod_ip=pod_ip,
            master=override or f"k8s://https://{host}:{port}",
            on_kubernetes=not override,
            # The kubelet's probes and the operator come by the pod's address, `kubectl port-forward` by loopback.
            bind_address=variables.get("TIDEGATE_BIND_ADDRESS", "::" if ":" in pod_ip else "0.0.0.0"),  # noqa: S104
            status_port=int(variables.get("TIDEGATE_STATUS_PORT", protocol.STATUS_PORT)),
            command_port=int(variables.get("TIDEGATE_COMMAND_PORT", protocol.COMMAND_PORT)),
            credentials_directory=variables.get("TIDEGATE_CREDENTIALS_DIRECTORY", protocol.CREDENTIALS_DIRECTORY),
            origin_credentials_directory=variables.get(
                "TIDEGATE_ORIGIN_CREDENTIALS_DIRECTORY", protocol.ORIGIN_CREDENTIALS_DIRECTORY
            ),
            channel_credentials_directory=variables.get(
                "TIDEGATE_CHANNEL_CREDENTIALS_DIRECTORY", CHANNEL_CREDENTIALS_DIRECTORY
            ),
            token_file=variables.get("TIDEGATE_AGENT_TOKEN_FILE", protocol.AGENT_TOKEN_FILE),
            termination_log=variables.get("TIDEGATE_TERMINATION_LOG", protocol.TERMINATION_LOG),
            pod_uid=variables.get(protocol.POD_UID_VARIABLE, ""),
            work_directory=variables.get("TIDEGATE_WORK_DIRECTORY", protocol.WORK_DIRECTORY),
            jars_directory=variables.get("TIDEGATE_JARS_DIRECTORY", f"{protocol.RUNTIME_DIRECTORY}/jars"),
        )


_REFERENCE = re.compile(r"\$(?:(?P<dollar>\$)|\((?P<name>[^)]*)(?:\)|(?P<unfinished>\Z)))")
"""Of one without an end the rest of the text is a part: to look for it again at each ``$(`` takes minutes."""


def expanded(arguments: Sequence[str], variables: Mapping[str, str]) -> tuple[str, ...]:
    """Return arguments with ``$(NAME)`` replaced as the kubelet does in any container's, which never sees these.

    What is no variable stays as it is, and ``$$`` is a dollar sign, so that ``$$(NAME)`` is ``$(NAME)``.
    """

    def value(found: re.Match[str]) -> str:
        if found["dollar"]:
            return "$"
        if found["unfinished"] is not None:
            return found[0].replace("$$", "$")
        return variables.get(found["name"], found[0])

    return tuple(_REFERENCE.sub(value, argument) for argument in arguments)


def inherited_variables(config: DriverConfig, variables: Mapping[str, str], python: str) -> dict[str, str]:
    """Return what the driver adds to ``variables``, its own, for the JVM, the script and their processes.

    Args:
        config: of the driver.
        variables: of the driver's process.
        python: the program that runs it. Driver and executors share the image; without the setting, the workers'
            ``python3`` could be another one than ours.
    """
    added = {name: variables.get(name, python) for name in (WORKERS_PYTHON, "PYSPARK_DRIVER_PYTHON")}
    # Spark reads this setting where it starts the script, as spark-submit does, and passes it on so.
    added[WORKERS_PYTHON] = config.spark_conf.get("spark.pyspark.python") or added[WORKERS_PYTHON]
    # A lock taken in the JVM belongs to a thread there, which must stay the same for one thread here (stopping.py).
    added |= {"PYSPARK_PIN_THREAD": "true", protocol.LINEAGE_VARIABLE: str(config.lineage)}
    # The JVM passes it on to the process that plans for the source of control messages. A JVM that is started ahead of
    # the driver has to have all of this already: with other variables it would not be taken.
    work_directory = variables.get("TIDEGATE_WORK_DIRECTORY", protocol.WORK_DIRECTORY)
    added[LINE_VARIABLE] = f"{work_directory}/{LINE_FILE}"
    if config.export:
        added[protocol.EXPORT_VARIABLE] = config.export
    return added
