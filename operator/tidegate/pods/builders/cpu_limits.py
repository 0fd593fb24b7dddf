"""The CPU limits of the containers that Tidegate creates. No I/O.

Where a ResourceQuota counts ``limits.cpu``, every container needs a limit. Quotas are not read here: if the driver has
a limit, all pods of its application get one; otherwise none does, since limits throttle.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidegate.api.streaming_app import Resources, StreamingApp
from tidegate.api.values.errors import SpecError
from tidegate.api.values.quantity import parse_quantity
from tidegate.pods.records.names import DRIVER_CONTAINER, EXECUTOR_CONTAINER

_ENOUGH_FOR_FILES = "1"
"""What a pod that moves files uses at most: a quota has little room beside driver and executors."""


def driver_limit(app: StreamingApp) -> str | None:
    """Return the limit of an application's driver, None if it has none."""
    return _stated(app.spec.driver.resources, app.spec.driver.pod_template, DRIVER_CONTAINER)


def executor_limit(app: StreamingApp) -> str | None:
    """Return the limit that an application's executors state, None if they state none."""
    return _stated(app.spec.executor.resources, app.spec.executor.pod_template, EXECUTOR_CONTAINER)


def limit_for_files(app: StreamingApp) -> str | None:
    """Return the limit of a pod that moves an application's files, None if its driver has none."""
    limit = driver_limit(app)
    # An invalid limit must not keep an application from being deleted.
    return _least(limit, _ENOUGH_FOR_FILES) if limit is not None and _is_quantity(limit) else None


def limited_as_driver(app: StreamingApp, resources: Resources) -> Resources:
    """Return the resources of a pod that runs Spark beside the driver: with a limit if that one has one.

    It is the driver's, unless these say otherwise or ask for more.
    """
    limit = driver_limit(app)
    if resources.cpu_limit is not None or limit is None or not (_is_quantity(limit) and _is_quantity(resources.cpu)):
        return resources
    enough = parse_quantity("limits.cpu", limit) >= parse_quantity("cpu", resources.cpu)
    return resources.limited(limit if enough else resources.cpu)


def small_requirements(cpu: str, memory: str, most_memory: str, limit: str | int | None) -> dict[str, Any]:
    """Return requests and limits of a container that is not the user's.

    Args:
        cpu: what it asks for, unless its limit is lower.
        memory: what it asks for.
        most_memory: what it may use.
        limit: of processors, None if it has none.

    Raises:
        SpecError: that is no quantity.
    """
    if limit is None:
        return {"requests": {"cpu": cpu, "memory": memory}, "limits": {"memory": most_memory}}
    requests = {"cpu": _least(str(limit), cpu), "memory": memory}
    return {"requests": requests, "limits": {"cpu": str(limit), "memory": most_memory}}


def _stated(resources: Resources, template: Mapping[str, Any], container: str) -> str | None:
    if resources.cpu_limit is not None:
        return str(resources.cpu_limit)
    for each in _listed(_within(template, "spec").get("containers")):
        if isinstance(each, Mapping) and each.get("name") == container:
            limit = _within(_within(each, "resources"), "limits").get("cpu")
            # The API server refuses an invalid limit of a template.
            return str(limit) if limit is not None and _is_quantity(limit) else None
    return None


def _within(value: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    found = value.get(key)
    return found if isinstance(found, Mapping) else {}


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def _least(one: str, other: str) -> str:
    return one if parse_quantity("limits.cpu", one) <= parse_quantity("cpu", other) else other


def _is_quantity(value: Any) -> bool:
    try:
        parse_quantity("limits.cpu", value)
    except SpecError:
        return False
    return True
