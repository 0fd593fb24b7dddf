"""Which containers of a pod a LimitRange refused, and which fields of the spec help. No I/O.

The API server names the amount and not the container, so all containers with that amount count.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import Any

from tidegate.api import foreign_text
from tidegate.api.values.errors import SpecError
from tidegate.api.values.quantity import parse_quantity
from tidegate.pods import messages
from tidegate.pods.builders.helper_containers import HELPERS_FIELD
from tidegate.pods.records.names import (
    DRIVER_CONTAINER,
    EXPORT_CONTAINER,
    PURGE_CONTAINER,
    REPARTITION_CONTAINER,
    RUNTIME_CONTAINER,
    SNAPSHOT_CONTAINER,
)
from tidegate_spark.contract.protocol import LABEL_ROLE, ROLE_REHEARSAL

_FIELDS = {
    RUNTIME_CONTAINER: HELPERS_FIELD,
    PURGE_CONTAINER: HELPERS_FIELD,
    SNAPSHOT_CONTAINER: HELPERS_FIELD,
    EXPORT_CONTAINER: "spec.export.resources",
    REPARTITION_CONTAINER: "spec.state.repartition.resources",
    DRIVER_CONTAINER: "spec.driver.resources",
}


def containers_refused(complaint: str, pod: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names of the containers that have an amount which a LimitRange refuses; empty if none is known.

    Args:
        complaint: the API server's, without its prefix.
        pod: the manifest that it is about.
    """
    demands = foreign_text.limit_range_demands(complaint)
    return tuple(name for name, resources in _containers(pod) if any(_has(resources, each) for each in demands))


def field_of(container: str, pod: Mapping[str, Any]) -> str:
    """Return the field of the spec that states a container's resources, empty if it is none of Tidegate's."""
    if container == DRIVER_CONTAINER and _role(pod) == ROLE_REHEARSAL:
        return "spec.upgrade.rehearsal.resources"
    return _FIELDS.get(container, "")


def explained(complaint: str, containers: tuple[str, ...], unread: str = "") -> str:
    """Return a complaint with the containers that it is about, and whether what is demanded was looked at.

    Args:
        complaint: the API server's, without its prefix.
        containers: their names; empty if they are not known.
        unread: why the LimitRanges could not be read; empty if they were.
    """
    return messages.limit_range_refusal(complaint, containers, unread)


def refusal_of_helper(answer: str, pod: Mapping[str, Any], unread: str) -> tuple[str, str]:
    """Return what is said of a refused pod that Tidegate makes beside drivers, and the fields that help.

    Args:
        answer: the API server's.
        pod: the manifest.
        unread: why the LimitRanges could not be read; empty if they were.
    """
    complaint = foreign_text.without_prefix(answer)
    containers = containers_refused(complaint, pod)
    fields = dict.fromkeys(field_of(name, pod) for name in containers)
    named = ", ".join(field for field in fields if field)
    return explained(complaint, containers, unread), messages.or_limit_range(named)


def _containers(pod: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    spec = pod.get("spec") or {}
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        yield container["name"], container.get("resources") or {}


def _has(resources: Mapping[str, Any], demand: foreign_text.Demand) -> bool:
    if demand.found:
        kind = "requests" if demand.of_request else "limits"
        found = _parsed(demand.found)
        return found is not None and _amount(resources, kind, demand.resource) == found
    if not demand.ratio:
        return False
    request, limit = (_amount(resources, kind, demand.resource) for kind in ("requests", "limits"))
    most = _parsed(demand.bound)
    return bool(request and limit and most and limit / request > most)


def _amount(resources: Mapping[str, Any], kind: str, name: str) -> Decimal | None:
    return _parsed((resources.get(kind) or {}).get(name))


def _parsed(value: Any) -> Decimal | None:
    try:
        return None if value is None else parse_quantity("", value)
    except SpecError:
        return None


def _role(pod: Mapping[str, Any]) -> str:
    return str(((pod.get("metadata") or {}).get("labels") or {}).get(LABEL_ROLE, ""))
