"""Whose a pod is, by its controlling owner and its name. No I/O.

Labels and annotations only select what is watched: anybody who creates or edits pods can write them. The table is in
docs/design/hostile-input.md.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from tidegate.api.stream_snapshot import SNAPSHOT_KIND
from tidegate.api.streaming_app import API_VERSION, KIND
from tidegate.pods.records.names import driver_pod_name, purge_pod_name, release_pod_name
from tidegate_spark.contract.protocol import (
    ROLE_DRIVER,
    ROLE_EXECUTOR,
    ROLE_EXPORT,
    ROLE_PURGE,
    ROLE_REHEARSAL,
    ROLE_REPARTITION,
    ROLE_SNAPSHOT,
)

_GROUP = API_VERSION.partition("/")[0] + "/"
_MOST_DIGITS = 9
_DRIVER_SUFFIX = driver_pod_name("")
_NUMBERED = re.compile(rf"(rehearsal|repartition)-([0-9]{{1,{_MOST_DIGITS}}})")
_NUMBERED_ROLES = {"rehearsal": ROLE_REHEARSAL, "repartition": ROLE_REPARTITION}
_EXECUTOR = re.compile(rf"e([0-9]{{1,{_MOST_DIGITS}}})-exec-[0-9]{{1,{_MOST_DIGITS}}}")
_EXPORT = re.compile(rf".+-export-[0-9]{{1,{_MOST_DIGITS}}}")


class OwnerReference(Protocol):
    """An entry of ``metadata.ownerReferences``, as the API has it."""

    apiVersion: str  # noqa: N815 - these are the API's names
    kind: str
    name: str
    uid: str
    controller: bool


@dataclass(frozen=True, slots=True)
class Belonging:
    """Of which application a pod is, and as what; of nobody if ``role`` is empty. An import's pods have no ``app``."""

    app: str = ""
    role: str = ""
    owner_uid: str = ""
    """Of the application, of the snapshot, or of an executor's driver pod."""
    app_uid: str = ""
    """Of the application, if that is the owner."""
    epoch: int = 0
    """Of an executor, and of a pod that repartitions the state: its name says it."""


_NOBODYS = Belonging()


def belonging(pod_name: str, owners: Collection[OwnerReference], labelled_app: str) -> Belonging:
    """Return whose a pod is.

    Args:
        pod_name: its name.
        owners: its owner references.
        labelled_app: the application that its labels name. A snapshot's pod is the snapshot's, by its owner; of which
            application that is only decides who is woken.
    """
    owner = next((each for each in owners if each.controller), None)
    if owner is None:
        return _NOBODYS
    if owner.apiVersion.startswith(_GROUP) and owner.kind == KIND:
        role, epoch = _role_of(pod_name, owner.name)
        return Belonging(owner.name, role, owner.uid, owner.uid, epoch) if role else _NOBODYS
    if owner.apiVersion.startswith(_GROUP) and owner.kind == SNAPSHOT_KIND:
        role = ROLE_EXPORT if _EXPORT.fullmatch(pod_name) else ROLE_SNAPSHOT
        return Belonging(labelled_app, role, owner.uid)
    if (owner.apiVersion, owner.kind) == ("v1", "Pod") and owner.name.endswith(_DRIVER_SUFFIX):
        app = owner.name.removesuffix(_DRIVER_SUFFIX)
        named = _EXECUTOR.fullmatch(pod_name.removeprefix(f"{app}-"))
        if named is not None and pod_name.startswith(f"{app}-"):
            return Belonging(app, ROLE_EXECUTOR, owner.uid, epoch=int(named[1]))
    return _NOBODYS


def _role_of(pod_name: str, app: str) -> tuple[str, int]:
    by_name = {
        driver_pod_name(app): ROLE_DRIVER,
        purge_pod_name(app): ROLE_PURGE,
        release_pod_name(app): ROLE_SNAPSHOT,
    }
    if pod_name in by_name:
        return by_name[pod_name], 0
    numbered = _NUMBERED.fullmatch(pod_name.removeprefix(f"{app}-")) if pod_name.startswith(f"{app}-") else None
    if numbered is None:
        return "", 0
    role = _NUMBERED_ROLES[numbered[1]]
    return role, int(numbered[2]) if role == ROLE_REPARTITION else 0
