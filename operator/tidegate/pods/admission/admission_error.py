"""Translates the API server's refusal of a pod into a message about the spec. No I/O.

A field of the pod is named by its path in the spec where its value is found there. Otherwise the pod's path stays, with
the template that was merged in.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tidegate.api import foreign_text
from tidegate.api.streaming_app import StreamingApp
from tidegate.api.values.errors import SpecError
from tidegate.api.values.quantity import parse_quantity
from tidegate.pods import messages
from tidegate.pods.admission.limit_range_refusal import containers_refused, explained, field_of
from tidegate.pods.builders.pod_template import COMMON_FIELD, DRIVER_FIELD, EXECUTOR_FIELD, find_item
from tidegate_spark.contract.protocol import ROLE_EXECUTOR, ROLE_REPARTITION

_STEP = re.compile(r"\[([^\]]*)\]|([^.\[\]]+)")
_FOUND = {"string": str, "number": int | float, "bool": bool, "object": Mapping, "array": list}
_KINDS = {
    "string": "a string",
    "number": "a number",
    "bool": messages.TRUE_OR_FALSE,
    "object": "an object",
    "array": "a list",
}
_OF_QUANTITIES, _QUANTITIES = frozenset({"requests", "limits", "overhead"}), frozenset({"sizeLimit"})


@dataclass(frozen=True, slots=True)
class Complaint:
    """What is wrong, without a full stop, and the fields of the spec that it is about, as far as they are known."""

    text: str
    fields: tuple[str, ...]
    by_limit_range: bool = False


def complaint_of(message: str, app: StreamingApp, role: str, pod: Mapping[str, Any], unread: str = "") -> Complaint:
    """Return what the API server says of a pod in words about the spec.

    Args:
        message: the API server's.
        app: the application, with the version of which the pod was made.
        role: the driver's, an executor's, or the one's that repartitions the state.
        pod: its manifest, as it was sent.
        unread: why the namespace's LimitRanges could not be read; empty if they were, or nobody had to.
    """
    known = _Origin(app, role, pod)
    fields: list[str] = []

    def named(path: str, found: str = "") -> str:
        field = known.field(path, found)
        if field:
            fields.append(field)
        return field or path

    text = foreign_text.without_prefix(message)
    if foreign_text.names_quantity(text) and (wrong := known.no_quantities()):
        return Complaint("; ".join(map(str, wrong)), tuple(each.field for each in wrong))
    if foreign_text.names_limit_range(text):
        containers = containers_refused(text, pod)
        helped = dict.fromkeys(known.resources_of(name) for name in containers)
        return Complaint(
            explained(text, containers, unread), tuple(helped) or (known.resources_field,), by_limit_range=True
        )
    typed = foreign_text.wrong_type(text)
    if typed is not None:
        kind = messages.found_instead(_KINDS.get(typed.found, typed.found), _spelled_out(typed.expected))
        text = f"{typed.before}{named(typed.path, typed.found)}: {kind}{typed.after}"
    else:
        text = foreign_text.with_paths(text, named)
    if not fields and known.templates:
        merged = " and ".join(field for field, _ in known.templates)
        text = messages.merged_into_pod(text, merged, "is" if len(known.templates) == 1 else "are")
    return Complaint(text, tuple(dict.fromkeys(fields)))


def field_behind(path: str, app: StreamingApp, role: str, pod: Mapping[str, Any]) -> str:
    """Return the field of the spec behind a field of a pod, empty if it is Tidegate's own.

    Args:
        path: of the pod's field.
        app: the application, with the version of which the pod was made.
        role: whose pod it is.
        pod: its manifest.
    """
    return _Origin(app, role, pod).field(path)


def _spelled_out(go_type: str) -> str:
    """Return the API server's name for a type as people know it."""
    bare = go_type.lstrip("*")
    if bare.startswith("["):
        return "a list"
    if bare.startswith("map["):
        return "an object"
    if bare.startswith("int"):
        return "a number"
    return {"string": "a string", "bool": messages.TRUE_OR_FALSE}.get(bare, bare.rpartition(".")[2])


class _Origin:
    """Where the parts of a pod come from."""

    def __init__(self, app: StreamingApp, role: str, pod: Mapping[str, Any]) -> None:
        of_executor, repartitions = role == ROLE_EXECUTOR, role == ROLE_REPARTITION
        group = app.spec.executor if of_executor else app.spec.driver
        # What the pod that divides state takes of a template, it takes of the driver's; what wins comes first.
        own = EXECUTOR_FIELD if of_executor else DRIVER_FIELD
        given: tuple[tuple[str, Mapping[str, Any]], ...] = (
            (own, group.pod_template),
            (COMMON_FIELD, app.spec.pod_template),
        )
        self.templates = tuple((field, template) for field, template in given if template)
        self.resources_field = "spec.state.repartition.resources" if repartitions else f"spec.{role}.resources"
        self._container, self._pod, self._app = role, pod, app
        self._of_tidegate = {
            "image": "spec.application.image",
            "imagePullPolicy": "spec.application.imagePullPolicy",
            "resources": self.resources_field,
        }

    def field(self, path: str, found: str = "") -> str:
        """Return the field of the spec behind one of the pod, empty if it is not known.

        Args:
            path: of the pod's field.
            found: the kind of value that was found there, as JSON has it, if it is known.
        """
        steps = tuple(index or name for index, name in _STEP.findall(path))
        variable = self._variable(steps)
        if variable:
            return variable  # what the application sets wins over the template
        for field, template in self.templates:
            places = _places(template, self._pod, steps, "")
            whole = next((each for place, value in places for each in _with_kind(value, found, place)), "")
            if whole:
                return f"{field}{whole}"
        return self._own(steps) or self._nearest(steps)

    def resources_of(self, container: str) -> str:
        """Return the field that states the resources of a container, be it a sidecar of a template."""
        own = self.resources_field if container == self._container else field_of(container, self._pod)
        if own:
            return own
        names = [each.get("name") for each in self._pod["spec"]["containers"]]
        inner = f"spec.containers[{names.index(container)}].resources" if container in names else ""
        return (self.field(inner) if inner else "") or self.resources_field

    def no_quantities(self) -> tuple[SpecError, ...]:
        """Return what stands in the templates where there has to be a quantity, and is none."""
        return tuple(wrong for field, template in self.templates for wrong in _no_quantities(template, field))

    def _own(self, steps: tuple[str, ...]) -> str:
        """Return the field that a part of Tidegate's container, or of the pod around it, is made of."""
        if steps[:2] == ("spec", "imagePullSecrets"):
            return "spec.application.imagePullSecrets"
        if steps[:2] == ("spec", "serviceAccountName") and self._app.spec.service_account_name:
            return "spec.serviceAccountName"
        return self._of_tidegate.get(steps[3], "") if self._container_at(steps) else ""

    def _variable(self, steps: tuple[str, ...]) -> str:
        container, names = self._container_at(steps), [each.get("name") for each in self._app.spec.application.env]
        if container is None or steps[3] != "env" or not steps[4:] or not steps[4].isdecimal():
            return ""
        variable = _item(container.get("env"), steps[4]) or {}
        if variable.get("name") not in names:
            return ""
        within = "".join(f".{step}" for step in steps[5:])
        return f"spec.application.env[{names.index(variable['name'])}]{within}"

    def _container_at(self, steps: tuple[str, ...]) -> Mapping[str, Any] | None:
        """Return Tidegate's container if this is the path of something in it."""
        if steps[:2] != ("spec", "containers") or len(steps) < 4 or not steps[2].isdecimal():
            return None
        found: Mapping[str, Any] | None = _item(self._pod["spec"]["containers"], steps[2])
        return found if found is not None and found.get("name") == self._container else None

    def _nearest(self, steps: tuple[str, ...]) -> str:
        """Return the template's item of a list in which something is missing: what is missing is not found there."""
        for field, template in self.templates:
            within = next((place for place, _ in _places(template, self._pod, steps[:-1], "")), "")
            if within.count("["):
                return f"{field}{within}.{steps[-1]}"
        return ""


def _places(template: Any, pod: Any, steps: tuple[str, ...], at: str) -> Iterator[tuple[str, Any]]:
    """Yield where in a template the steps of a path in the pod lead, with what is there."""
    if not steps:
        yield at, template
        return
    step, further = steps[0], steps[1:]
    if isinstance(template, Mapping):
        if step not in template:
            return
        inner = pod.get(step) if isinstance(pod, Mapping) else None
        yield from _places_in(step, template[step], inner, further, f"{at}.{step}")


def _places_in(key: str, template: Any, pod: Any, steps: tuple[str, ...], at: str) -> Iterator[tuple[str, Any]]:
    """Yield the same for what stands under a key: the items of a list need not stand where the pod's do."""
    if not isinstance(template, list) or not steps:
        yield from _places(template, pod, steps, at)
    elif not steps[0].isdecimal():  # it is said of a type, and not of which item
        for number, item in enumerate(template):
            yield from _places(item, item, steps, f"{at}[{number}]")
    else:
        item = _item(pod, steps[0])
        found = find_item(key, template, item)
        if found is not None:
            yield from _places(template[found], item, steps[1:], f"{at}[{found}]")


def _item(items: Any, index: str) -> Any:
    return items[int(index)] if isinstance(items, list) and int(index) < len(items) else None


def _with_kind(value: Any, found: str, at: str) -> Iterator[str]:
    """Yield where a value of a kind is, here or directly in what is here: messages name only the key of a mapping."""
    if _is(value, found):
        yield at
    elif isinstance(value, Mapping):
        yield from (f"{at}[{key}]" if "." in key else f"{at}.{key}" for key in value if _is(value[key], found))
    elif isinstance(value, list):
        yield from (f"{at}[{number}]" for number, item in enumerate(value) if _is(item, found))


def _is(value: Any, found: str) -> bool:
    kind = _FOUND.get(found)
    return kind is None or (isinstance(value, kind) and (found == "bool" or not isinstance(value, bool)))


def _no_quantities(value: Any, at: str, key: str = "") -> Iterator[SpecError]:
    if isinstance(value, list):
        for number, item in enumerate(value):
            yield from _no_quantities(item, f"{at}[{number}]")
    elif isinstance(value, Mapping):
        for name, inner in value.items():
            is_one = key in _OF_QUANTITIES or name in _QUANTITIES
            yield from _no_quantities(inner, f"{at}.{name}", "quantity" if is_one else name)
    elif key == "quantity":
        try:
            parse_quantity(at, value)
        except SpecError as error:
            yield error
