"""The operator's settings, from flags or the environment. Reads nothing else.

Every flag has an environment variable, ``TIDEGATE_`` and its name in capitals; a flag wins. ``POD_NAMESPACE`` is the
usual variable for the downward API.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tidegate import messages
from tidegate.pods.records.platform import restricted_security
from tidegate.version import VERSION
from tidegate_spark.contract.protocol import is_reserved_label


@dataclass(frozen=True, slots=True)
class Settings:
    """The operator's configuration."""

    operator_image: str
    """Its own; it holds the runtime, which the init container of stock Spark images copies and purge pods run there."""
    operator_image_pull_policy: str = "IfNotPresent"
    """When nodes pull that image for them."""
    watch_namespaces: tuple[str, ...] = ()
    """Empty: every namespace."""
    metrics_port: int = 8080
    log_format: str = "json"
    log_level: str = "info"
    concurrency: int = 64
    """Applications that are worked on at the same time."""
    agent_concurrency: int = 16
    """Agents that are asked at the same time."""
    large_apps_mib: int = 64
    """Memory for all applications that need more than 128 KiB each."""
    large_apps_of_namespace_mib: int = 16
    """Of that, what those of one namespace may take."""
    leader_election: bool = True
    """Whether several of these processes agree on one that acts."""
    lease_name: str = "tidegate-operator"
    lease_namespace: str = ""
    """Empty: that of the pod, which its service account knows."""
    key_name: str = "tidegate-agent-key"
    """Of the Secret with the operator's key, in the namespace of the Lease."""
    runtime_log_format: str = "text"
    """Of the runtime's own lines in the applications' pods."""
    pod_security_context: Mapping[str, Any] = field(default_factory=restricted_security)
    """Of every pod of an application."""
    image_pull_secrets: tuple[str, ...] = ()
    """Likewise: names in each of their namespaces."""
    pod_labels: Mapping[str, str] = field(default_factory=dict)
    pod_annotations: Mapping[str, str] = field(default_factory=dict)


_LEADER_ELECTION = "TIDEGATE_LEADER_ELECTION"
_FLAGS: tuple[tuple[str, str, str], ...] = (
    ("operator-image", "", messages.OPERATOR_IMAGE),
    ("operator-image-pull-policy", "IfNotPresent", messages.PULL_POLICY),
    ("watch-namespaces", "", messages.NAMESPACES),
    ("metrics-port", "8080", messages.METRICS_PORT),
    ("log-format", "json", messages.LOG_FORMAT),
    ("log-level", "info", messages.LOG_LEVEL),
    ("runtime-log-format", "text", messages.RUNTIME_LOG_FORMAT),
    ("pod-security-context", json.dumps(restricted_security()), messages.POD_SECURITY_CONTEXT),
    ("image-pull-secrets", "", messages.IMAGE_PULL_SECRETS),
    ("pod-labels", "{}", messages.POD_LABELS),
    ("pod-annotations", "{}", messages.POD_ANNOTATIONS),
    ("concurrency", "64", messages.CONCURRENCY),
    ("agent-concurrency", "16", messages.AGENT_CONCURRENCY),
    ("large-apps-mib", "64", messages.LARGE_APPS),
    ("large-apps-of-namespace-mib", "16", messages.LARGE_APPS_OF_NAMESPACE),
    ("lease-name", "tidegate-operator", messages.LEASE_NAME),
    ("key-name", "tidegate-agent-key", messages.KEY_NAME),
)

_NUMBERS = ("metrics_port", "concurrency", "agent_concurrency", "large_apps_mib", "large_apps_of_namespace_mib")
_CHOICES = {
    "operator_image_pull_policy": ("Always", "IfNotPresent", "Never"),
    "log_format": ("json", "console"),
    "log_level": ("debug", "info", "warning", "error"),
    "runtime_log_format": ("text", "json"),
}


def read_settings(arguments: Sequence[str], environment: Mapping[str, str]) -> Settings:
    """Return the settings; on a wrong one, print what is wrong and exit with status 2.

    Args:
        arguments: the command line without the program's name.
        environment: usually ``os.environ``.
    """
    parser = _parser(environment)
    given = parser.parse_args(arguments)
    if not given.operator_image:
        parser.error(messages.NO_OPERATOR_IMAGE)
    numbers = {}
    for name in _NUMBERS:
        text = getattr(given, name)
        if not text.isdecimal() or int(text) < 1:
            parser.error(messages.no_number(_flag(name), text))
        numbers[name] = int(text)
    for name, choices in _CHOICES.items():
        if getattr(given, name) not in choices:
            parser.error(messages.no_choice(_flag(name), choices))
    if given.leader_election not in (True, False):
        parser.error(messages.no_truth_value(_LEADER_ELECTION, given.leader_election))
    return Settings(
        operator_image=given.operator_image,
        operator_image_pull_policy=given.operator_image_pull_policy,
        watch_namespaces=tuple(sorted(_names_in(given.watch_namespaces))),
        log_format=given.log_format,
        log_level=given.log_level,
        runtime_log_format=given.runtime_log_format,
        leader_election=given.leader_election,
        lease_name=given.lease_name,
        key_name=given.key_name,
        pod_security_context=_read_object(parser, given, "pod_security_context"),
        image_pull_secrets=tuple(_names_in(given.image_pull_secrets)),
        pod_labels=_read_texts(parser, given, "pod_labels"),
        pod_annotations=_read_texts(parser, given, "pod_annotations"),
        lease_namespace=environment.get("POD_NAMESPACE", ""),
        **numbers,
    )


def _names_in(text: str) -> list[str]:
    return list(dict.fromkeys(name.strip() for name in text.split(",") if name.strip()))


def _read_texts(parser: argparse.ArgumentParser, given: argparse.Namespace, name: str) -> dict[str, str]:
    found = _read_object(parser, given, name)
    for key, value in found.items():
        if not isinstance(value, str):
            parser.error(messages.no_texts(_flag(name), key))
        if is_reserved_label(key):
            parser.error(messages.reserved_name(_flag(name), key))
    return found


def _read_object(parser: argparse.ArgumentParser, given: argparse.Namespace, name: str) -> dict[str, Any]:
    text = getattr(given, name)
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        parser.error(messages.no_object(_flag(name), text))
    return found


def _flag(name: str) -> str:
    return f"--{name.replace('_', '-')}"


def _parser(environment: Mapping[str, str]) -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog=messages.PROGRAM, description=messages.DESCRIPTION)
    parser.add_argument("--version", action="version", version=VERSION)
    for name, default, explanation in _FLAGS:
        variable = "TIDEGATE_" + name.upper().replace("-", "_")
        value = environment.get(variable) or default
        parser.add_argument(f"--{name}", default=value, help=messages.option(explanation, variable, default))
    variable = environment.get(_LEADER_ELECTION) or "true"
    parser.add_argument(
        "--leader-election",
        action=argparse.BooleanOptionalAction,
        default={"true": True, "false": False}.get(variable, variable),
        help=messages.option(messages.LEADER_ELECTION, _LEADER_ELECTION, "true"),
    )
    return parser
