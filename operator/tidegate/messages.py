"""Messages of the process: its settings, and what is wrong with its Lease. No I/O."""

from __future__ import annotations

from collections.abc import Sequence

PROGRAM, DESCRIPTION = "python3 -m tidegate.main", "The Tidegate operator."
LEADER_ELECTION = (
    "whether several operators agree on one that acts, by a Lease in POD_NAMESPACE or in the pod's namespace; without "
    "it, run only one"
)
NOT_BEGUN = "there are no CRDs, or no right to read"
NO_OPERATOR_IMAGE = "no operator image: give --operator-image or TIDEGATE_OPERATOR_IMAGE"

OPERATOR_IMAGE = "the operator's own image: it brings the runtime into the applications' pods (required)"
PULL_POLICY = "when nodes pull it: Always, IfNotPresent or Never"
NAMESPACES = "comma-separated namespaces to serve; empty: all"
METRICS_PORT = "port of /metrics, /healthz and /readyz"
LOG_FORMAT = "json or console"
LOG_LEVEL = "debug, info, warning or error"
RUNTIME_LOG_FORMAT = "form of the runtime's own log lines in the applications' pods: text or json"
POD_SECURITY_CONTEXT = (
    "security context of the applications' pods, as a JSON object; without runAsUser and fsGroup where the cluster "
    "assigns them (OpenShift)"
)
IMAGE_PULL_SECRETS = (
    "comma-separated names of Secrets in the applications' namespaces, with credentials for the registry of that image"
)
POD_LABELS = "labels of the applications' pods, as a JSON object of texts; those of their templates win"
POD_ANNOTATIONS = "annotations of the applications' pods, likewise"
CONCURRENCY = "applications that are worked on at the same time"
AGENT_CONCURRENCY = "agents that are asked at the same time"
LARGE_APPS = (
    "MiB of memory for the specs of large applications (more than 128 KiB each); raise it with the memory limit, of "
    "which it should be a quarter"
)
LARGE_APPS_OF_NAMESPACE = "MiB of that for the large applications of one namespace"
LEASE_NAME = "name of the Lease by which several operators agree on one that acts"
KEY_NAME = "name of the Secret with the key of the agents; made if it is not there"


def lease_unusable(problem: str) -> str:
    return f"the lease cannot be used: {problem}"


def option(explanation: str, variable: str, default: str) -> str:
    return f"{explanation} [{variable}; default {default or 'none'}]"


def no_number(flag: str, found: str) -> str:
    return f"{flag}: expected a number from 1, got {found!r}"


def no_choice(flag: str, choices: Sequence[str]) -> str:
    return f"{flag}: expected one of {', '.join(choices)}"


def no_object(flag: str, found: str) -> str:
    return f"{flag}: expected a JSON object, got {found!r}"


def no_texts(flag: str, name: str) -> str:
    return f"{flag}: expected a text as value of {name!r}"


def reserved_name(flag: str, name: str) -> str:
    return f"{flag}: {name!r} is one by which Tidegate or Spark knows the pods, and cannot be set"


def no_truth_value(variable: str, found: str) -> str:
    return f"{variable}: expected true or false, got {found!r}"
