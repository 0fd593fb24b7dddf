"""What is known of StreamSnapshots: what is newer, what is gone, and to which applications each matters."""

import datetime
from types import SimpleNamespace
from typing import Any

import msgspec

from tidegate.api.streaming_app import Phase, StartedFrom, StreamingApp
from tidegate.app.observe import observe
from tidegate.cache.index import Index
from tidegate.cache.kinds.resource_cache import UnreadableResource
from tidegate.cache.process_state import TimedReport
from tidegate.engine.resource_key import Key
from tidegate.snapshots.controller import SnapshotController
from tidegate.snapshots.index import SnapshotIndex
from tidegate.snapshots.observe import observe_snapshot
from tidegate_testing.observations import NOW, PLATFORM, app_with, deleted, launched, running_driver
from tidegate_testing.snapshot_observations import APP, ID, TIME, agent, begun, pod, ready_snapshot, snapshot

KEY, ORDERS = ("shop", "nightly"), ("shop", "orders")


def fork(name: str = "variant", *, started: str = "", begun_: bool = False) -> StreamingApp:
    app = app_with({"startFrom": {"snapshotRef": {"name": "nightly"}}}, name=name, uid=f"u-{name}")
    if not started:
        return app
    record = StartedFrom(snapshot_name="nightly", id=started, app_uid="u-1", lineage=1, uri="s3://x", started=begun_)
    return launched(app, start_from=record)


def test_only_what_is_newer_is_news() -> None:
    index = SnapshotIndex()
    assert index.put(snapshot(resource_version="5"))
    assert not index.put(snapshot(resource_version="5"))
    assert not index.put(snapshot(resource_version="4"))
    assert index.put(snapshot(begun(), resource_version="6"))


def test_what_is_gone_does_not_come_back_and_one_of_its_name_is_another_one() -> None:
    index = SnapshotIndex()
    index.put(snapshot(resource_version="5"))
    assert index.remove(KEY, snapshot().metadata.uid)
    assert not index.put(snapshot(resource_version="6"))
    assert index.get(KEY) is None
    assert index.put(snapshot(resource_version="7", uid="another"))
    assert not index.remove(KEY, snapshot().metadata.uid)


def test_a_list_tells_what_went_and_leaves_what_came_after_it() -> None:
    index = SnapshotIndex(("shop",))
    index.put(snapshot(resource_version="5"))
    index.put(snapshot(resource_version="50", name="later", uid="u-later"))
    changed = index.replace([snapshot(resource_version="6", name="new", uid="u-new")], "shop", "9")
    assert sorted(found.metadata.name for found in changed) == ["new", "nightly"]
    assert sorted(index.keys()) == [("shop", "later"), ("shop", "new")]
    assert index.complete.is_set()


def test_one_that_can_not_be_read_is_known_and_is_no_snapshot_until_it_can() -> None:
    index = SnapshotIndex(("shop",))
    index.put(snapshot(resource_version="5"))
    odd = UnreadableResource(snapshot(resource_version="6").metadata, "spec.appRef: missing")
    assert [found.key for found in index.replace([odd], "shop", "9")] == [KEY]
    assert (index.get(KEY), index.unreadable(KEY), index.waiting_for(ORDERS)) == (None, odd, set())
    assert index.put(snapshot(resource_version="7"))
    assert (index.get(KEY) is not None, index.unreadable(KEY), index.waiting_for(ORDERS)) == (True, None, {KEY})
    assert index.put(UnreadableResource(snapshot(resource_version="8").metadata, "spec.appRef: missing"))
    assert index.remove(KEY, snapshot().metadata.uid)
    assert (index.get(KEY), index.unreadable(KEY)) == (None, None)


def test_nothing_is_complete_before_each_namespace_was_listed() -> None:
    index = SnapshotIndex(("a", "b"))
    index.replace([], "a", "9")
    assert not index.complete.is_set()


def test_an_application_matters_to_what_is_not_final_and_to_what_it_starts_from() -> None:
    index = Index()
    index.of(SnapshotIndex).put(snapshot(begun()))
    index.put_app(fork())
    assert index.of(SnapshotIndex).waiting_for(ORDERS) == {KEY}
    assert index.of(SnapshotIndex).waiting_for(("shop", "variant")) == {KEY}
    done = msgspec.structs.replace(ready_snapshot(), metadata=snapshot(resource_version="21").metadata)
    index.of(SnapshotIndex).put(done)
    assert index.of(SnapshotIndex).waiting_for(ORDERS) == set()
    assert index.of(SnapshotIndex).forks(KEY) == [("shop", "variant")]
    index.remove_app(("shop", "variant"), "u-variant")
    assert index.of(SnapshotIndex).forks(KEY) == []


def test_the_newest_is_that_of_this_very_application() -> None:
    index = SnapshotIndex()
    old, new = ready_snapshot(), ready_snapshot()
    later = msgspec.structs.replace(new.status, snapshot_id="weekly-1", ready_time=TIME + datetime.timedelta(hours=1))
    new = msgspec.structs.replace(new, metadata=snapshot(name="weekly", uid="w").metadata, status=later)
    for found in (old, new, snapshot(begun(), name="half", uid="h")):
        index.put(found)
    assert index.newest_ready(APP) == new
    assert index.newest_ready(launched(app_with(uid="u-2"))) is None


def test_an_observation_holds_what_is_around_the_snapshot() -> None:
    index = Index()
    app = launched(app_with(resourceVersion="8"), phase=Phase.RUNNING)
    driver = running_driver(app)
    index.put_app(app)
    index.put_pod(driver)
    index.put_pod(pod(app))
    index.reports[ORDERS] = TimedReport(agent(), NOW, driver.uid, driver.restarts)
    index.of(SnapshotIndex).put(snapshot(begun()))
    o = observe_snapshot(index, KEY, PLATFORM, NOW)
    assert o is not None
    assert (o.app, o.driver, o.agent) == (app, driver, agent())
    assert (o.taking.name if o.taking else "", o.disposing) == (f"{ID}-take", None)
    stale = observe_snapshot(index, KEY, PLATFORM, NOW + 3600)
    assert stale is not None
    assert stale.agent is None
    assert observe_snapshot(index, ("shop", "none"), PLATFORM, NOW) is None


def test_the_pod_of_a_snapshot_is_nothing_to_the_application_itself() -> None:
    index = Index()
    index.put_app(app_with())
    index.put_pod(pod())
    o = observe(index, ORDERS, PLATFORM, NOW)
    assert o is not None
    assert (o.driver, o.executors, o.purge) == (None, (), None)


def test_forks_wait_for_it_until_they_have_begun() -> None:
    index = Index()
    index.of(SnapshotIndex).put(ready_snapshot())
    for app in (
        fork("new"),
        fork("filling", started=ID),
        fork("running", started=ID, begun_=True),
        # It has long started, and its status was lost: the storage said where it is.
        launched(fork("asked")),
        fork("of-another", started="nightly-00000000"),
        deleted(fork("going")),
    ):
        index.put_app(app)
    o = observe_snapshot(index, KEY, PLATFORM, NOW)
    assert o is not None
    assert o.forks == ("filling", "new")


def test_what_a_fork_releases_is_looked_at_once_when_the_fork_was() -> None:
    index, woken = Index(), list[Key]()
    unused: Any = None
    queue: Any = SimpleNamespace(wake=woken.append)
    part = SnapshotController(unused, unused, index, queue, unused, lambda key: None)
    index.of(SnapshotIndex).put(ready_snapshot())
    index.put_app(fork("edited"))
    index.put_app(fork("deleted"))
    part.wake_for(("shop", "edited"))
    assert woken == []
    index.put_app(app_with(name="edited", uid="u-edited", resourceVersion="900"))
    part.wake_for(("shop", "edited"))
    part.wake_for(("shop", "edited"))
    assert woken == [KEY]
    index.remove_app(("shop", "deleted"), "u-deleted")
    part.wake_for(("shop", "deleted"))
    assert woken == [KEY, KEY]
