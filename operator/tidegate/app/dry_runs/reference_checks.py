"""Checks that an edit's objects exist before anything is stopped. Asks the API server, stores nothing.

ConfigMaps and claims are read. For a Secret, the dry run of its creation answers AlreadyExists; its keys stay
unchecked, and the kubelet names one that is missing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import msgspec
import structlog

from tidegate.api.streaming_app import StreamingApp
from tidegate.app.builders.references import SECRET, Reference, references_of, secret_to_try, spared_by
from tidegate.app.dry_runs.pod_dry_run import LASTS, MISSING_LASTS
from tidegate.app.observation import CheckedReferences, Observation
from tidegate.app.rules.launch.launch import pods_to_try
from tidegate.app.rules.upgrade.record import version_held
from tidegate.engine.resource_key import Key
from tidegate.kube.client import JSON, KubeClient
from tidegate.kube.failures import FAILURES, TRANSIENT, AlreadyExists, Failure, NotFound
from tidegate.kube.paths import collection_of, item

MOST_OBJECTS = 50
"""Objects of one version that are asked for; further ones are not checked."""
_LONGEST = 4 * 2**20
"""Bytes of an answer: a ConfigMap has 1 MiB, which may be longer as JSON."""
_PATIENCE, _ATTEMPTS = 5.0, 3
"""Seconds to wait for an answer, and how often it is asked for at once."""
_METADATA = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1"
log = structlog.get_logger()


class _Found(Enum):
    THERE = "there"
    MISSING = "missing"
    UNCHECKED = "unchecked"
    """Nobody may know, or the answer says something else."""
    UNANSWERED = "unanswered"


class _Content(msgspec.Struct):
    """What of an object is read; the JSON decoder's target. Values stay as they are sent."""

    data: dict[str, msgspec.Raw] | None = None
    binaryData: dict[str, msgspec.Raw] | None = None  # noqa: N815 - the API's name

    def has(self, key: str) -> bool:
        """Return whether there is such a key."""
        return key in (self.data or {}) or key in (self.binaryData or {})


@dataclass(frozen=True, slots=True)
class _Answer:
    until: float
    found: dict[str, _Found]
    """By key; the object itself is the empty one."""


@dataclass(slots=True)
class _Version:
    """What is known of the objects of one application's version."""

    about: tuple[str, str]
    """Uid of the application, hash of the version."""
    asked_at: float
    objects: dict[tuple[str, str], _Answer] = field(default_factory=dict)
    """By kind and name."""

    def state_of(self, reference: Reference) -> _Found:
        """Return what is known of one; too many objects are not asked for."""
        answer = self.objects.get((reference.kind, reference.name))
        return answer.found[reference.key] if answer is not None else _Found.UNCHECKED


@dataclass(slots=True)
class ReferenceChecks:
    """Asks for what versions refer to that were not launched yet, not too often."""

    client: KubeClient
    clock: Callable[[], float] = time.monotonic
    _known: dict[Key, _Version] = field(default_factory=dict)

    async def check(
        self, o: Observation, pods: tuple[tuple[str, dict[str, Any]], ...] | None = None
    ) -> CheckedReferences:
        """Return what is missing of what the spec's version refers to, and what of it is not known.

        Both are empty if nothing is about to be stopped for it.

        Args:
            o: everything that is known.
            pods: what :func:`pods_to_try` returns of it, if somebody has made them already.
        """
        wanted = _references_to_check(o, pods_to_try(o) if pods is None else pods)
        if not wanted:
            return CheckedReferences()
        known = self._version(o)
        silent = False
        for kind, name in list(dict.fromkeys((each.kind, each.name) for each in wanted))[:MOST_OBJECTS]:
            before = known.objects.get((kind, name))
            keys = {each.key for each in wanted if (each.kind, each.name) == (kind, name)}
            if before is not None and self.clock() < before.until and keys <= before.found.keys():
                continue
            # Who does not answer for one would keep the application waiting for each of the others.
            found = await self._ask(o.app, kind, name, keys) if not silent else dict.fromkeys(keys, _Found.UNANSWERED)
            silent = _Found.UNANSWERED in found.values()
            known.objects[kind, name] = self._answer(found, before)
        return _checked(wanted, known)

    def _version(self, o: Observation) -> _Version:
        now = self.clock()
        key, about = (o.app.metadata.namespace, o.app.metadata.name), (o.app.metadata.uid, o.spec_hash)
        known = self._known.get(key)
        if known is None or known.about != about:
            known = _Version(about, now)
        known.asked_at = now
        self._known = {name: each for name, each in self._known.items() if now < each.asked_at + 2 * LASTS}
        self._known[key] = known
        return known

    def _answer(self, found: dict[str, _Found], before: _Answer | None) -> _Answer:
        """Return what counts from now on: what was missing stays so while nobody answers."""
        certain = all(state in (_Found.THERE, _Found.UNCHECKED) for state in found.values())
        former = before.found if before is not None else {}
        kept = {
            key: _Found.MISSING if (state, former.get(key)) == (_Found.UNANSWERED, _Found.MISSING) else state
            for key, state in found.items()
        }
        return _Answer(self.clock() + (LASTS if certain else MISSING_LASTS), kept)

    async def _ask(self, app: StreamingApp, kind: str, name: str, keys: set[str]) -> dict[str, _Found]:
        answer: _Content | Failure | None = None
        for _ in range(_ATTEMPTS):
            answer = await (self._try_secret(app, name) if kind == SECRET else self._read(app, kind, name, keys))
            if not isinstance(answer, TRANSIENT):
                break
        if isinstance(answer, FAILURES) and not isinstance(answer, NotFound | AlreadyExists):
            log.info("not known whether it exists", kind=kind, name=name, answer=str(answer))
        return {key: _state(answer, key) for key in keys}

    async def _read(self, app: StreamingApp, kind: str, name: str, keys: set[str]) -> _Content | Failure:
        path = item(kind, app.metadata.namespace, name)
        accept = JSON if any(keys) else _METADATA
        return await self.client.read_once(path, _Content, patience=_PATIENCE, longest=_LONGEST, accept=accept)

    async def _try_secret(self, app: StreamingApp, name: str) -> Failure:
        manifest = secret_to_try(app, name)
        answer = await self.client.try_out(collection_of(manifest), manifest, patience=_PATIENCE)
        return NotFound(name) if answer is None else answer


def _state(answer: _Content | Failure | None, key: str) -> _Found:
    match answer:
        case _Content():
            return _Found.THERE if not key or answer.has(key) else _Found.MISSING
        case AlreadyExists():
            return _Found.THERE
        case NotFound():
            return _Found.MISSING
        case _:
            return _Found.UNANSWERED if isinstance(answer, TRANSIENT) else _Found.UNCHECKED


def _checked(wanted: Iterable[Reference], known: _Version) -> CheckedReferences:
    states = {each: known.state_of(each) for each in wanted}
    missing = tuple(each for each, state in states.items() if state is _Found.MISSING)
    unchecked = tuple(each for each, state in states.items() if state in (_Found.UNCHECKED, _Found.UNANSWERED))
    return CheckedReferences(missing, unchecked, _Found.UNANSWERED in states.values())


def _references_to_check(o: Observation, pods: tuple[tuple[str, dict[str, Any]], ...]) -> tuple[Reference, ...]:
    """Return what has to exist for a version that was not launched yet; nothing before the first launch of all.

    What pods can do without is left out where the stable version names it as well: that runs, whether it exists or not.
    """
    if not pods or not o.app.status.epoch:
        return ()
    held = version_held(o.app.spec, o.app.status.last_stable)
    spared = spared_by(held) if held is not None else frozenset()
    return tuple(each for each in references_of(o.app, pods) if not each.is_spared or each.name not in spared)
