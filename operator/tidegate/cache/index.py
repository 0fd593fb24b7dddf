"""The index: what watches, agents and our own writes reported, by application. In memory; no I/O.

Own writes are entered at once, so that the next reconcile does not wait for the watch. The newer resource version wins:
they are comparable within a resource since Kubernetes 1.35, and were in fact before.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any, TypeVar, cast

from tidegate.api.lost_status import has_launched, may_have_launched
from tidegate.api.streaming_app import Metadata, StreamingApp
from tidegate.cache.app_versions import AppVersion, Identity
from tidegate.cache.initial_sync import InitialSync
from tidegate.cache.kinds.feature_index import FeatureIndex
from tidegate.cache.kinds.versions import Departed
from tidegate.cache.known_apps import (
    CheckedAccess,
    KnownApp,
    UnreadableApp,
    age_of,
    hash_of,
    is_newer,
    read_app,
    too_large,
)
from tidegate.cache.large_apps import LargeApps
from tidegate.cache.last_ends import LastEnds
from tidegate.cache.pod_news import as_first_seen, is_kept, is_only_placed
from tidegate.cache.process_state import ProcessState, TimedReport
from tidegate.cache.storage_roots import StorageRoots, held_by, holds_back
from tidegate.engine.resource_key import Key
from tidegate.kube.history import version_number
from tidegate.pods.records.floors import NO_FLOORS, Floors
from tidegate.pods.records.platform import Platform
from tidegate.pods.records.record import PodRecord
from tidegate_spark.contract.protocol import ROLE_DRIVER

F = TypeVar("F", bound=FeatureIndex)
_NOTHING = ProcessState()


class Index:
    """The operator's picture of the cluster."""

    def __init__(self, namespaces: Collection[str] = ("",), large: LargeApps | None = None) -> None:
        """Start empty; ``namespaces`` are those whose lists will come, an empty name stands for all.

        ``large`` knows how much memory large applications may take; without it, as much as by default.
        """
        self.initial_sync = InitialSync(namespaces)
        self._apps: dict[Key, KnownApp | UnreadableApp] = {}
        self._pods: dict[Key, dict[str, PodRecord]] = {}
        self._homes: dict[Key, Key] = {}
        """Namespace and name of each pod that is known, and its application."""
        self._roots = StorageRoots()
        self.large = large if large is not None else LargeApps()
        self._gone = Departed()
        self._namespaces = tuple(namespaces)
        self._features: dict[type[FeatureIndex], FeatureIndex] = {}
        self.last_ends = LastEnds(self._apps)
        self.memories: dict[Key, ProcessState] = {}
        self.reports: dict[Key, TimedReport] = {}
        self.silences: dict[Key, str] = {}
        """Why agents do not answer that the kubelet finds ready."""
        self.checked_access = CheckedAccess()
        self.floors: dict[str, Floors] = {}
        """By the namespace, what its LimitRanges demand, where one of them has refused a pod."""
        self.launching: set[Key] = set()
        """Applications whose launch is being recorded just now."""
        self.deciding_since = 0.0
        """When this process began to decide, in seconds since the epoch; before that it only looked."""

    def of(self, feature: type[F]) -> F:
        """Return what a feature knows, by the class of its index.

        It is made when it is asked for first, and gets the applications then that are known.
        """
        known = self._features.get(feature)
        if known is None:
            known = self._features[feature] = feature(self._namespaces)
            for key, app in self._apps.items():
                known.note_name(key)
                if isinstance(app, KnownApp):
                    known.note_app(app.app)
        return cast(F, known)

    def floors_of(self, namespace: str) -> Floors:
        """Return what is known to be demanded of pods in a namespace."""
        return self.floors.get(namespace, NO_FLOORS)

    def platform_of(self, namespace: str, platform: Platform) -> Platform:
        """Return what the installation decides about pods, with what is demanded of those of a namespace."""
        floors = self.floors.get(namespace)
        return platform if floors is None else dataclasses.replace(platform, floors=floors)

    # --- applications ---

    def app(self, key: Key) -> KnownApp | UnreadableApp | None:
        """Return what is known of an application."""
        return self._apps.get(key)

    def keys(self) -> list[Key]:
        """Return all applications."""
        return list(self._apps)

    def put_version(self, version: AppVersion) -> set[Key]:
        """Take in a version that a watch brings, as :meth:`put_app`; what is known already is not decoded."""
        if self.is_news(version.identity) or self.large.has_changes:
            return self._settle(self._take_in(version.body, left_out=version.left_out))
        return set()

    def put_app(self, body: Mapping[str, Any] | bytes | StreamingApp) -> set[Key]:
        """Take in a version of an application.

        Nothing is taken in if a version that is as new is known, or the end of this very application. One of the same
        name that was deleted and created again replaces the earlier one and all that was remembered of it.

        Returns:
            The applications to reconcile: itself, those that the storage of a replaced one, or one that it has left,
            stood in the way of, and those for which it leaves no room, or gives it; empty if nothing was taken in.
        """
        return self._settle(self._take_in(body))

    def _settle(self, taken_in: set[Key]) -> set[Key]:
        return taken_in | self.large.make_way(self._apps, taken_in)

    def _take_in(self, body: Mapping[str, Any] | bytes | StreamingApp, *, left_out: bool = False) -> set[Key]:
        app = body if isinstance(body, StreamingApp) else read_app(body)
        if isinstance(app, UnreadableApp):
            return self._put_unreadable(dataclasses.replace(app, left_out=left_out))
        key = (app.metadata.namespace, app.metadata.name)
        known = self._apps.get(key)
        if isinstance(body, StreamingApp) and not self.large.has_room_for(app, known):
            return self._put_unreadable(too_large(app))
        keys = self._make_room(app.metadata)
        if not keys:
            return keys
        self._note(key, KnownApp(app, hash_of(app, known)))
        for feature in self._features.values():
            feature.note_app(app)
        return keys | self._roots.put(app)

    def is_news(self, identity: Identity) -> bool:
        """Return whether :meth:`put_app` could take a version in: most that a watch brings are our own writes."""
        known = self._apps.get(identity.key)
        if known is None or known.metadata.uid != identity.uid:
            return True
        return version_number(identity.resource_version) > version_number(known.metadata.resource_version)

    def remove_app(self, key: Key, uid: str) -> set[Key]:
        """Forget a deleted application, and take in no late news of it.

        Returns:
            The applications to look at: itself if it was known, and those that its storage stood in the way of, or its
            size.
        """
        known = self._apps.get(key)
        self._gone.note(uid)
        self.large.forget(uid)
        if known is None or known.metadata.uid != uid:
            return self.large.make_way(self._apps)
        waiting = self._roots.waiting_for(key)
        self._forget(key)
        return waiting | {key} | self.large.make_way(self._apps)

    def keep_apps(self, uids: Collection[str], namespace: str, version: str) -> set[Key]:
        """Forget the applications that a whole list does not hold; returns the applications to look at.

        Args:
            uids: of all applications there are.
            namespace: where; empty for all namespaces.
            version: the list's resource version: what is known in a later version came after it, and stays.
        """
        listed = frozenset(uids)
        gone = [
            (key, known.metadata.uid)
            for key, known in self._apps.items()
            if known.metadata.uid not in listed
            and namespace in ("", key[0])
            and version_number(known.metadata.resource_version) <= version_number(version)
        ]
        self.initial_sync.note_apps(namespace)
        return {woken for key, uid in gone for woken in self.remove_app(key, uid)}

    def rival(self, app: StreamingApp) -> str:
        """Return the other application of the namespace that has storage which overlaps this one's, empty if none has.

        That is one that was launched there, whichever is older; then one of which only the finalizer says so, because
        its status is lost. Among the others it is the oldest.
        """
        me = (app.metadata.namespace, app.metadata.name)
        others = [self._apps[key] for key in self._roots.overlapping(me)]
        if not others:
            return ""
        mine = self._order(app, app)
        before = [k.app for k in others if isinstance(k, KnownApp) and self._order(k.app, app) < mine]
        return min(before, key=lambda other: self._order(other, app)).metadata.name if before else ""

    def _order(self, app: StreamingApp, wanted: StreamingApp) -> tuple[object, ...]:
        """Return which of several applications has the place that one of them is to use: the least."""
        key = (app.metadata.namespace, app.metadata.name)
        lost = not app.status.store and not has_launched(app.status)
        launched = key in self.launching or (lost and self._has_driver(key))
        held, by_finalizer = held_by(app, launched=launched), lost and may_have_launched(app)
        # If the status is lost and there is no driver, only the finalizer shows an earlier launch.
        may_hold = held_by(app, launched=True) if by_finalizer else held
        return (not holds_back(wanted, held), not holds_back(wanted, may_hold), *age_of(app))

    def _has_driver(self, key: Key) -> bool:
        return any(pod.role == ROLE_DRIVER for pod in self._pods.get(key, {}).values())

    def waiting_for(self, key: Key) -> set[Key]:
        """Return the applications that this one may hold back."""
        return self._roots.waiting_for(key)

    def replace_app(self, app: StreamingApp) -> None:
        """Put a known application in again, with what a write did to it that its answer did not show."""
        key = (app.metadata.namespace, app.metadata.name)
        known = self._apps.get(key)
        if isinstance(known, KnownApp) and known.app.metadata.uid == app.metadata.uid:
            self._apps[key] = KnownApp(app, known.spec_hash)

    def uses_account(self, namespace: str, name: str) -> bool:
        """Return whether a driver of a namespace runs as this ServiceAccount, or an application names it."""
        apps = (k.app for key, k in self._apps.items() if key[0] == namespace and isinstance(k, KnownApp))
        pods = (pod for key, known in self._pods.items() if key[0] == namespace for pod in known.values())
        return any(app.spec.service_account_name == name for app in apps) or any(
            pod.role == ROLE_DRIVER and pod.service_account == name for pod in pods
        )

    # --- pods ---

    def pods(self, key: Key) -> list[PodRecord]:
        """Return the pods of an application, sorted by name."""
        return [pod for _, pod in sorted(self._pods.get(key, {}).items())]

    def put_pod(self, pod: PodRecord) -> Key | None:
        """Take in a pod; returns its application, or None if nothing is new that a decision could depend on.

        So it is of a version as new as the known one, of a pod that is gone or none of ours, and of a pod that has got
        a node and nothing else: which node it is, is only named where something else is said of it.
        """
        known = self._known_pod(pod)
        if self._gone.is_late(pod.uid, version_number(pod.resource_version)):
            return None
        # Also for two pods of one name: the later one has later versions.
        if known is not None and version_number(known.resource_version) >= version_number(pod.resource_version):
            return None
        pod = as_first_seen(pod, known)
        if not pod.role:  # nobody's; pods of an imported snapshot have no application
            return self.remove_pod(known) if known is not None else None
        key = (pod.namespace, pod.app)
        if known is not None and known.app != pod.app:
            self._take_out_pod(known)
        self._pods.setdefault(key, {})[pod.name] = pod
        self._homes[pod.namespace, pod.name] = key
        if pod.role == ROLE_DRIVER:
            self.last_ends.forget_driver(key)
        if pod.finished:
            self.last_ends.note_executor(key, pod)
        return None if known is not None and is_only_placed(known, pod) else key

    def remove_pod(self, pod: PodRecord) -> Key | None:
        """Forget a pod that is gone, given as it was seen last; the end of a driver is kept until there is another.

        Returns:
            Its application, None if it was none of ours.
        """
        known = self._known_pod(pod)
        self._gone.note(pod.uid, version_number(pod.resource_version))
        if known is not None and known.uid != pod.uid:
            return known.namespace, known.app
        last = as_first_seen(pod, known)
        if not last.role:
            return None
        key = (last.namespace, last.app)
        if known is not None and version_number(known.resource_version) >= version_number(last.resource_version):
            last = known
        if known is not None and last.ended is None:  # the end of an unreadable one was seen before
            last = dataclasses.replace(last, ended=known.ended, running=known.running)
        self.last_ends.note_driver(key, dataclasses.replace(last, labelled=True))  # what is gone gets none back
        self.last_ends.note_executor(key, last)
        if known is not None:
            self._take_out_pod(known)
        return key

    def miss_pod(self, pod: PodRecord) -> Key | None:
        """Take in that the watch leaves a pod out from now on, given as it was seen last.

        Whoever takes its labels off does the same as its end does. One whose deletion nobody had asked for, and a
        driver that may not have ended, stay known until they are looked for by their names: an application whose driver
        runs unseen would be said to be suspended, or be given another one.

        Returns:
            Its application, None if it was none of ours.
        """
        known = self._known_pod(pod)
        key = (known.namespace, known.app) if known is not None else ("", "")
        if known is None or known.uid != pod.uid or key not in self._apps or not is_kept(pod, known):
            return self.remove_pod(pod)
        version = max(known.resource_version, pod.resource_version, key=version_number)
        self._pods[key][known.name] = dataclasses.replace(known, resource_version=version, labelled=False)
        return key

    def _known_pod(self, pod: PodRecord) -> PodRecord | None:
        """Return what is known of the pod that has this one's name."""
        home = self._homes.get((pod.namespace, pod.name))
        return self._pods[home].get(pod.name) if home is not None else None

    def _take_out_pod(self, known: PodRecord) -> None:
        home = self._homes.pop((known.namespace, known.name))
        pods = self._pods[home]
        del pods[known.name]
        if not pods:
            del self._pods[home]

    def replace_pods(
        self, pods: list[PodRecord], namespace: str, version: str, unread: Collection[str] = ()
    ) -> set[Key]:
        """Take in a whole list; returns the applications to look at.

        Args:
            pods: all there are.
            namespace: where; empty for all namespaces.
            version: the list's resource version: a pod that is known in a later version came after it, and stays.
            unread: the uids of those that are there too, and cannot be read: they stay what they were.
        """
        listed = {pod.uid for pod in pods}.union(unread)
        gone = [
            pod
            for known in self._pods.values()
            for pod in known.values()
            if pod.uid not in listed
            and namespace in ("", pod.namespace)
            and version_number(pod.resource_version) <= version_number(version)
        ]
        reported = [*map(self.miss_pod, gone), *map(self.put_pod, pods)]
        for pod in gone:
            if self._known_pod(pod) is None:
                self._gone.note(pod.uid, version_number(version))
        self.initial_sync.note_pods(namespace)
        return {key for key in reported if key is not None}

    # --- what this process remembers ---

    def memory(self, key: Key) -> ProcessState:
        """Return what is remembered of an application."""
        return self.memories.get(key, _NOTHING)

    def _put_unreadable(self, app: UnreadableApp) -> set[Key]:
        keys = self._make_room(app.metadata)
        if keys:
            self._note(app.key, app)
        return keys

    def _make_room(self, metadata: Metadata) -> set[Key]:
        """Return the applications to look at once this version is in; empty if it is not to be taken in."""
        key = (metadata.namespace, metadata.name)
        known = self._apps.get(key)
        if metadata.uid in self._gone:
            self.large.forget(metadata.uid)
            return set()
        if known is not None and not is_newer(metadata, known.metadata):
            return set()
        if known is not None and known.metadata.uid != metadata.uid:
            return {key} | self.remove_app(key, known.metadata.uid)
        return {key}

    def _note(self, key: Key, known: KnownApp | UnreadableApp) -> None:
        self._apps[key] = known
        for feature in self._features.values():
            feature.note_name(key)

    def _forget(self, key: Key) -> None:
        self._apps.pop(key, None)
        for feature in self._features.values():
            feature.forget_app(key)
        self.last_ends.forget(key)
        self._roots.remove(key)
        self.memories.pop(key, None)
        self.reports.pop(key, None)
        self.silences.pop(key, None)
        self.checked_access.discard(key)
