"""Resources of the containers that Tidegate adds and that have none of their own in the spec. No I/O.

The defaults are enough for their work; the spec and LimitRanges can raise them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tidegate.api.spec import Resources
from tidegate.api.streaming_app import StreamingApp
from tidegate.pods.builders.cpu_limits import limit_for_files, small_requirements
from tidegate.pods.records.floors import Bounds, Floors, greater, lowered, raised

HELPERS_FIELD = "spec.helpers.resources"
_BOUNDED = ("cpu", "memory")


@dataclass(frozen=True, slots=True)
class _Fixed:
    """What such a container has wherever nothing else is said."""

    cpu: str
    memory: str
    most_memory: str


_COPIES_RUNTIME = _Fixed("50m", "64Mi", "256Mi")
_MOVES_FILES = _Fixed("100m", "256Mi", "512Mi")


def runtime_requirements(app: StreamingApp, floors: Floors, cpu_limit: str | int | None) -> dict[str, Any]:
    """Return requests and limits of the init container that copies the runtime.

    Args:
        app: the application.
        floors: what is demanded in its namespace.
        cpu_limit: that of the container that comes after it, None if it has none.

    Raises:
        SpecError: a value is no quantity.
    """
    return _requirements(_COPIES_RUNTIME, app.spec.helpers.resources, cpu_limit, of_container(floors))


def files_requirements(app: StreamingApp, floors: Floors) -> dict[str, Any]:
    """Return requests and limits of the only container of a pod that moves an application's files.

    Raises:
        SpecError: a value is no quantity.
    """
    return _requirements(_MOVES_FILES, app.spec.helpers.resources, limit_for_files(app), of_pod(floors))


def raised_resources(resources: Resources, bounds: Mapping[str, Bounds]) -> Resources:
    """Return what a container gets that has its own in the spec and is not the user's, as high as is demanded.

    Raises:
        SpecError: a value is no quantity.
    """
    whole = resources.complete
    requests = {name: str(value) for name, value in whole.requests.items()}
    limits = {name: str(value) for name, value in whole.limits.items()}
    more = raised(requests, limits, bounds)
    return resources if more == (requests, limits) else Resources(requests={**more[0]}, limits={**more[1]})


def of_container(floors: Floors) -> dict[str, Bounds]:
    """Return what is demanded of each resource of a container beside others."""
    return {name: floors.of_container(name) for name in _BOUNDED}


def of_pod(floors: Floors) -> dict[str, Bounds]:
    """Return what is demanded of each resource of the only container of a pod."""
    return {name: floors.of_pod(name) for name in _BOUNDED}


def _requirements(
    fixed: _Fixed, wanted: Resources, cpu_limit: str | int | None, bounds: Mapping[str, Bounds]
) -> dict[str, Any]:
    own = small_requirements(fixed.cpu, fixed.memory, fixed.most_memory, cpu_limit)
    requests = _greater(own["requests"], wanted.requests, "requests")
    # A limit that somebody asks for is theirs to correct.
    limits = _greater(lowered(own["requests"], own["limits"], bounds), wanted.limits, "limits")
    for name in limits.keys() & requests.keys():
        limits[name] = greater(name, limits[name], requests[name])
    requests, limits = raised(requests, limits, bounds)
    return {"requests": requests, "limits": limits}


def _greater(own: Mapping[str, str], wanted: Mapping[str, str | int], kind: str) -> dict[str, str]:
    found = dict(own)
    for name, value in wanted.items():
        found[name] = greater(f"{HELPERS_FIELD}.{kind}.{name}", own.get(name, value), value)
    return found
