"""Which Tidegate a cluster has already, so that nobody's installation is overwritten or joined by a second operator.

What is asked is asked through a function that runs kubectl; the rest is pure.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

CRD = "streamingapps.tidegate.dev"
INSTALLED_BY = "tidegate.dev/installed-by"
"""Annotation of an operator's pods, by which whoever installed it knows it again."""

_WATCHED = "TIDEGATE_WATCH_NAMESPACES"


@dataclass(frozen=True)
class Release:
    """A Helm release."""

    name: str
    namespace: str

    def __str__(self) -> str:
        """Return it as a person says it."""
        return f"release {self.name} in namespace {self.namespace}"


@dataclass(frozen=True)
class Operator:
    """A Deployment of Tidegate's operator.

    Attributes:
        name: the Deployment's name.
        namespace: its namespace.
        release: the Helm release it belongs to, None if Helm did not make it.
        watched: the namespaces it serves; none means all.
        image: what it runs.
        installed_by: the annotation of that name, or nothing.
    """

    name: str
    namespace: str
    release: Release | None
    watched: tuple[str, ...]
    image: str
    installed_by: str

    def serves(self, namespace: str) -> bool:
        """Say whether it runs the applications of a namespace."""
        return not self.watched or namespace in self.watched

    def __str__(self) -> str:
        """Return where it is and what it serves, as a person says it."""
        where = str(self.release) if self.release else f"deployment {self.name} in namespace {self.namespace}"
        serves = f"namespaces {', '.join(self.watched)}" if self.watched else "all namespaces"
        return f"{where}, which serves {serves}"


@dataclass(frozen=True)
class Installed:
    """What a cluster has of Tidegate.

    Attributes:
        operators: every operator.
        has_crd: whether there is the CRD.
        crd_release: the Helm release that it belongs to, None if there is no CRD or Helm did not make it.
    """

    operators: tuple[Operator, ...] = ()
    has_crd: bool = False
    crd_release: Release | None = None


class UnservedError(RuntimeError):
    """The operators of a cluster serve other namespaces than the one that is needed; the text names them."""


def check(kubectl: Callable[..., str]) -> Installed:
    """Return what the cluster has; ``kubectl`` takes arguments, returns what was printed, and raises if it fails."""
    crd = kubectl("get", "crd", CRD, "-o", "json", "--ignore-not-found")
    operators = kubectl("get", "deployments", "-A", "-l", "app.kubernetes.io/part-of=tidegate", "-o", "json")
    return read(json.loads(crd) if crd.strip() else None, json.loads(operators)["items"])


def read(crd: Mapping[str, Any] | None, deployments: list[dict[str, Any]]) -> Installed:
    """Return what a CRD and Deployments say. Pure."""
    return Installed(tuple(map(_operator, deployments)), crd is not None, _release(crd) if crd else None)


def others(installed: Installed, ours: Release) -> list[str]:
    """Return, for a person, everything that belongs to another installation than the release ``ours``. Pure."""
    found = [f"Tidegate runs there already: {operator}" for operator in installed.operators if operator.release != ours]
    if installed.has_crd and installed.crd_release != ours:
        owner = f"belongs to {installed.crd_release}" if installed.crd_release else "was not made by Helm"
        found.append(f"the CustomResourceDefinition {CRD} is there already and {owner}")
    return found


def to_use(installed: Installed, namespace: str, installed_by: str) -> Operator | None:
    """Return somebody else's operator that serves ``namespace``; None if one may be installed. Pure.

    Raises:
        UnservedError: there are operators of others, and none serves it. One that serves all, beside them, would run
            their applications a second time.
    """
    foreign = [operator for operator in installed.operators if operator.installed_by != installed_by]
    if not foreign:
        return None
    for operator in foreign:
        if operator.serves(namespace):
            return operator
    raise UnservedError("\n".join(f"Tidegate runs there already: {operator}" for operator in foreign))


def _operator(deployment: Mapping[str, Any]) -> Operator:
    metadata, template = deployment["metadata"], deployment["spec"]["template"]
    container = template["spec"]["containers"][0]
    variables = {v["name"]: v.get("value", "") for v in container.get("env", [])}
    return Operator(
        name=metadata["name"],
        namespace=metadata["namespace"],
        release=_release(deployment),
        watched=tuple(name for name in variables.get(_WATCHED, "").split(",") if name),
        image=container["image"],
        installed_by=template["metadata"].get("annotations", {}).get(INSTALLED_BY, ""),
    )


def _release(item: Mapping[str, Any]) -> Release | None:
    annotations = item["metadata"].get("annotations", {})
    name, namespace = (annotations.get(f"meta.helm.sh/release-{part}") for part in ("name", "namespace"))
    return Release(name, namespace) if name and namespace else None
