"""What the index knows after which news. Pure."""

import copy
import dataclasses
from typing import Any

import msgspec
import pytest

from tidegate.api.spec_hash import has_same_store, version_of
from tidegate.api.streaming_app import StableSpec, StreamingApp, decode_app
from tidegate.cache.app_versions import Identity
from tidegate.cache.index import Index
from tidegate.cache.known_apps import KnownApp, UnreadableApp
from tidegate.cache.last_ends import MOST_ENDS, MOST_UNKNOWN
from tidegate.cache.storage_roots import roots_of
from tidegate.pods.records.record import Exit
from tidegate_spark.contract.protocol import FINALIZER
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.observations import app_with, driver_of, ended_with, executor_of, launched, running_driver
from tidegate_testing.values import body

KEY = ("shop", "orders")
APP = launched(app_with())


def raw(number: int, **metadata: Any) -> dict[str, Any]:
    resource: dict[str, Any] = copy.deepcopy(body())
    resource["metadata"] |= {"resourceVersion": str(number), **metadata}
    return resource


def identity(number: int, uid: str = "u-1") -> Identity:
    return Identity(name=KEY[1], namespace=KEY[0], uid=uid, resource_version=str(number))


def version(number: int, **metadata: Any) -> StreamingApp:
    return decode_app(raw(number, **metadata))


def known(index: Index) -> StreamingApp:
    entry = index.app(KEY)
    assert isinstance(entry, KnownApp)
    return entry.app


def elsewhere(name: str, uri: str, uid: str, created: str) -> StreamingApp:
    resource = body({"storage.uri": uri})
    resource["metadata"] |= {"name": name, "uid": uid, "creationTimestamp": created}
    return decode_app(resource)


def test_an_older_version_does_not_replace_a_newer_one() -> None:
    index = Index()
    index.put_app(version(12))
    assert index.put_app(version(9)) == set()
    assert known(index).metadata.resource_version == "12"


def test_versions_are_compared_as_numbers() -> None:
    index = Index()
    index.put_app(version(9))
    assert index.put_app(version(10)) == {KEY}


@pytest.mark.parametrize("number", [8, 11, 12, 13])
@pytest.mark.parametrize("uid", ["u-1", "u-2"])
def test_what_is_said_to_be_no_news_would_not_be_taken_in(number: int, uid: str) -> None:
    index = Index()
    assert index.is_news(identity(12))
    index.put_app(version(12))
    index.put_app(version(11, name="bills", uid="u-3"))
    news = index.is_news(identity(number, uid))
    assert news == (number > 12 or uid != known(index).metadata.uid)
    assert bool(index.put_app(raw(number, uid=uid))) <= news


def test_a_version_that_nobody_can_read_is_news_once() -> None:
    index, odd = Index(), raw(12)
    odd["spec"]["executor"] = 7
    assert index.is_news(identity(12))
    index.put_app(odd)
    assert isinstance(index.app(KEY), UnreadableApp)
    assert not index.is_news(identity(12))
    assert index.is_news(identity(13))


def test_an_application_created_anew_replaces_the_old_one_and_its_memory() -> None:
    index = Index()
    index.put_app(version(12))
    index.memories[KEY] = dataclasses.replace(index.memory(KEY), quick_relaunches=3)
    index.put_app(version(13, uid="u-2"))
    assert (known(index).metadata.uid, index.memory(KEY).quick_relaunches) == ("u-2", 0)


def test_the_answer_to_a_write_does_not_bring_a_deleted_application_back() -> None:
    index = Index()
    index.put_app(version(12))
    index.remove_app(KEY, "u-1")
    assert (index.put_app(version(13)), index.app(KEY)) == (set(), None)


def test_a_resource_that_does_not_fit_is_kept_as_such() -> None:
    index = Index()
    resource = body()
    resource["spec"]["executor"] = {"instances": "three"}
    assert index.put_app(resource) == {KEY}
    entry = index.app(KEY)
    assert isinstance(entry, UnreadableApp)
    assert "spec.executor.instances" in entry.problem


def test_a_resource_that_fits_again_is_read() -> None:
    index = Index()
    broken = body()
    broken["spec"]["executor"] = {"instances": "three"}
    index.put_app(broken)
    index.put_app(version(12))
    assert known(index).metadata.resource_version == "12"


def unreadable(number: int, **metadata: Any) -> dict[str, Any]:
    resource = body()
    resource["spec"]["executor"] = {"instances": "three"}
    resource["metadata"] |= {"resourceVersion": str(number), **metadata}
    return resource


def test_late_news_of_a_deleted_resource_that_does_not_fit_bring_nothing_back() -> None:
    index = Index()
    index.put_app(unreadable(12))
    index.remove_app(KEY, "u-1")
    assert (index.put_app(unreadable(13)), index.app(KEY)) == (set(), None)


def test_late_news_of_a_deleted_application_do_not_replace_the_one_created_anew() -> None:
    index = Index()
    index.put_app(version(13, uid="u-2"))
    assert index.put_app(version(12)) == set()
    assert known(index).metadata.uid == "u-2"


def test_the_same_path_on_the_same_endpoint_in_another_spelling_is_the_same_place() -> None:
    index = Index()
    for name, uri, endpoint, day in (
        ("orders", "s3://streams/apps", "http://minio", "01"),
        ("inner", "s3://streams/apps/shop/orders", "HTTP://MinIO:80/", "02"),
    ):
        resource = body({"storage.uri": uri, "storage.endpoint": endpoint})
        resource["metadata"] |= {"name": name, "uid": name, "creationTimestamp": f"2026-01-{day}T00:00:00Z"}
        index.put_app(resource)
    assert index.rival(decode_app(resource)) == "orders"


def test_who_waits_for_a_place_is_looked_at_when_its_owner_is_created_anew_elsewhere() -> None:
    index = Index()
    index.put_app(elsewhere("orders", "s3://streams/apps", "u-9", "2026-01-01T00:00:00Z"))
    index.put_app(elsewhere("inner", "s3://streams/apps/shop/orders", "u-1", "2026-01-02T00:00:00Z"))
    anew = body({"storage.uri": "s3://streams/other"})
    anew["metadata"] |= {"uid": "u-10", "resourceVersion": "99"}
    assert index.put_app(anew) == {KEY, ("shop", "inner")}


@pytest.mark.parametrize("resource", [version(12), unreadable(12)], ids=["readable", "unreadable"])
def test_an_application_that_a_list_does_not_hold_is_forgotten(resource: Any) -> None:
    index = Index()
    index.put_app(resource)
    index.memories[KEY] = dataclasses.replace(index.memory(KEY), quick_relaunches=3)
    assert (index.keep_apps([], "", "12"), index.app(KEY), index.memories) == ({KEY}, None, {})
    assert index.put_app(resource) == set()


def test_who_waits_for_the_place_of_an_application_that_a_list_does_not_hold_is_looked_at() -> None:
    index = Index()
    index.put_app(elsewhere("orders", "s3://streams/apps", "u-9", "2026-01-01T00:00:00Z"))
    inner = elsewhere("inner", "s3://streams/apps/shop/orders", "u-1", "2026-01-02T00:00:00Z")
    index.put_app(inner)
    assert index.keep_apps(["u-1"], "shop", "99") == {KEY, ("shop", "inner")}
    assert index.rival(inner) == ""


@pytest.mark.parametrize(
    ("uids", "namespace", "listed_at"), [(["u-1"], "", "99"), ([], "another", "99"), ([], "", "11")]
)
def test_an_application_that_a_list_holds_or_can_not_hold_stays(
    uids: list[str], namespace: str, listed_at: str
) -> None:
    index = Index()
    index.put_app(version(12))
    assert (index.keep_apps(uids, namespace, listed_at), index.keys()) == (set(), [KEY])


def test_a_pod_that_is_gone_does_not_come_back_with_a_late_answer() -> None:
    index, pod = Index(), driver_of(APP)
    index.put_pod(pod)
    index.remove_pod(pod)
    assert (index.put_pod(pod), index.pods(KEY)) == (None, [])


PLACED: dict[str, Any] = {"node": "node1", "resource_version": "11"}
PENDING = driver_of(APP, node="", resource_version="10", phase="Pending")


def test_a_pod_that_got_a_node_is_no_reason_to_look_and_the_node_is_known() -> None:
    index = Index()
    assert index.put_pod(PENDING) == KEY
    assert index.put_pod(dataclasses.replace(PENDING, **PLACED)) is None
    assert index.pods(KEY) == [dataclasses.replace(PENDING, **PLACED)]


@pytest.mark.parametrize(
    "change",
    [
        {"phase": "Running"},
        {"delete_by": 9.0},
        {"running": True},
        {"disruption": "DeletionByTaintManager"},
        {"ip": "10.0.0.5"},
    ],
)
def test_a_pod_of_which_anything_else_changed_is_looked_at(change: dict[str, Any]) -> None:
    index = Index()
    index.put_pod(PENDING)
    assert index.put_pod(dataclasses.replace(PENDING, **PLACED, **change)) == KEY


def test_a_pod_that_found_a_node_in_the_end_is_looked_at() -> None:
    index = Index()
    index.put_pod(dataclasses.replace(PENDING, unschedulable="0/3 nodes are available"))
    assert index.put_pod(dataclasses.replace(PENDING, **PLACED)) == KEY


def test_the_end_of_an_earlier_pod_of_the_same_name_leaves_the_present_one() -> None:
    index, old = Index(), driver_of(APP)
    index.put_pod(old)
    new = dataclasses.replace(old, uid="pod-2", resource_version="20")
    index.put_pod(new)
    index.remove_pod(old)
    assert index.pods(KEY) == [new]


def test_the_end_of_a_driver_is_kept_when_it_is_gone_until_there_is_another() -> None:
    index, pod = Index(), driver_of(APP)
    index.put_pod(pod)
    final = dataclasses.replace(pod, resource_version="11", ended=ended_with(Reason.STOPPED, 143))
    index.remove_pod(final)
    assert (index.pods(KEY), index.last_ends.driver(KEY)) == ([], final)
    index.put_pod(dataclasses.replace(pod, uid="pod-2", resource_version="20"))
    assert index.last_ends.driver(KEY) is None


def test_a_late_version_of_a_driver_that_is_gone_does_not_hide_its_end() -> None:
    index = Index()
    final = driver_of(APP, resource_version="11", ended=ended_with(Reason.STOPPED, 143))
    index.put_pod(final)
    index.remove_pod(dataclasses.replace(final, resource_version="9", ended=None))
    assert index.last_ends.driver(KEY) == final


STRANGER: dict[str, Any] = {"app": "", "role": "", "owner_uid": "", "app_uid": "", "resource_version": "11"}


@pytest.mark.parametrize(
    "taken_off", [{}, {"app": "payments", "role": "driver", "owner_uid": "u-9"}], ids=["no owner", "another's owner"]
)
def test_a_driver_whose_owner_is_changed_while_it_runs_stays_what_it_was(taken_off: dict[str, Any]) -> None:
    index, pod = Index(), running_driver(APP)
    index.put_pod(pod)
    later = dataclasses.replace(pod, **{**STRANGER, **taken_off}, ready=True)
    assert index.put_pod(later) == KEY
    assert index.pods(KEY) == [dataclasses.replace(pod, resource_version="11", ready=True)]
    assert (index.remove_pod(dataclasses.replace(later, resource_version="12")), index.pods(KEY)) == (KEY, [])
    assert index.pods(("shop", "payments")) == []


def test_a_stranger_is_not_taken_in_and_its_end_is_nobodys_business() -> None:
    index, stranger = Index(), dataclasses.replace(driver_of(APP), **STRANGER)
    assert (index.put_pod(stranger), index.remove_pod(stranger)) == (None, None)
    assert (index.replace_pods([stranger], "", "99"), index.pods(KEY)) == (set(), [])


def test_a_stranger_in_the_place_of_a_driver_shows_that_the_driver_is_gone() -> None:
    index, pod = Index(), driver_of(APP)
    index.put_pod(pod)
    assert index.put_pod(dataclasses.replace(pod, **STRANGER, uid="pod-2")) == KEY
    assert index.pods(KEY) == []


def test_a_pod_that_gets_back_the_label_by_which_it_is_watched_is_known_again() -> None:
    """The watch tells an end when the label goes, in the version of that very change."""
    index, pod = Index(), driver_of(APP)
    index.put_pod(pod)
    index.remove_pod(dataclasses.replace(pod, resource_version="11"))
    assert index.put_pod(dataclasses.replace(pod, resource_version="11")) is None
    back = dataclasses.replace(pod, resource_version="12")
    assert (index.put_pod(back), index.pods(KEY)) == (KEY, [back])


def test_a_pod_that_leaves_the_watch_and_was_not_to_go_stays_known_without_its_labels() -> None:
    index, pod = Index(), driver_of(APP)
    index.put_app(APP)
    index.put_pod(pod)
    assert index.miss_pod(dataclasses.replace(pod, resource_version="11")) == KEY
    assert index.pods(KEY) == [dataclasses.replace(pod, resource_version="11", labelled=False)]
    back = dataclasses.replace(pod, resource_version="12")
    assert (index.put_pod(back), index.pods(KEY)) == (KEY, [back])


def test_a_pod_that_a_list_does_not_hold_and_that_was_not_to_go_stays_known_without_its_labels() -> None:
    index, pod, going = Index(), driver_of(APP), dataclasses.replace(executor_of(APP, 1), delete_by=5.0)
    index.put_app(APP)
    index.put_pod(pod)
    index.put_pod(going)
    assert index.replace_pods([], "", "99") == {KEY}
    assert index.pods(KEY) == [dataclasses.replace(pod, labelled=False)]


@pytest.mark.parametrize(
    "changed",
    [
        {"delete_by": 5.0, "phase": "Succeeded"},
        {"delete_by": 5.0, "node": ""},
        {"delete_by": 5.0, "role": "executor"},
        {"role": "snapshot"},
    ],
)
def test_what_was_to_go_or_is_a_snapshots_is_gone_when_the_watch_says_so(changed: dict[str, Any]) -> None:
    index, pod = Index(), dataclasses.replace(running_driver(APP), **changed)
    index.put_app(APP)
    index.put_pod(pod)
    assert (index.miss_pod(dataclasses.replace(pod, resource_version="11")), index.pods(KEY)) == (KEY, [])


def test_a_driver_that_stops_stays_known_without_its_labels_until_its_end_is_seen() -> None:
    """Until its process has ended it writes; that a watch leaves it out says nothing of that."""
    index, going = Index(), running_driver(APP, delete_by=5.0)
    index.put_app(APP)
    index.put_pod(going)
    assert index.miss_pod(dataclasses.replace(going, resource_version="11")) == KEY
    assert index.pods(KEY) == [dataclasses.replace(going, resource_version="11", labelled=False)]
    ended = dataclasses.replace(going, resource_version="12", phase="Succeeded", running=False)
    assert (index.miss_pod(ended), index.pods(KEY)) == (KEY, [])


def test_a_driver_that_stops_and_is_not_in_a_list_stays_known_without_its_labels() -> None:
    index, going = Index(), running_driver(APP, delete_by=5.0)
    index.put_app(APP)
    index.put_pod(going)
    assert index.replace_pods([], "", "99") == {KEY}
    assert index.pods(KEY) == [dataclasses.replace(going, labelled=False)]


def test_nobody_restores_the_labels_of_a_driver_that_was_looked_for_and_is_gone() -> None:
    """Its end is still to be reported; an order about a pod that is not there would be given for ever."""
    index, pod = (
        Index(),
        running_driver(APP, delete_by=5.0, running=False, ended=ended_with(Reason.APPLICATION_FAILED, 1)),
    )
    index.put_app(APP)
    index.put_pod(pod)
    index.miss_pod(dataclasses.replace(pod, resource_version="11"))
    index.remove_pod(index.pods(KEY)[0])
    parted = index.last_ends.driver(KEY)
    assert parted is not None
    assert parted.labelled


def test_nobody_looks_for_a_pod_whose_application_is_gone() -> None:
    index, pod = Index(), driver_of(APP)
    index.put_pod(pod)
    assert (index.miss_pod(dataclasses.replace(pod, resource_version="11")), index.pods(KEY)) == (KEY, [])


def test_a_pod_that_a_list_did_not_hold_does_not_come_back_with_what_is_older() -> None:
    index, pod = Index(), driver_of(APP)
    index.put_pod(pod)
    index.replace_pods([], "", "99")
    assert index.put_pod(dataclasses.replace(pod, resource_version="98")) is None


def test_a_list_removes_what_it_does_not_hold() -> None:
    index, pod = Index(), driver_of(APP)
    index.put_pod(pod)
    assert (index.replace_pods([], "", "99"), index.pods(KEY)) == ({KEY}, [])


def test_what_a_list_holds_and_cannot_be_read_stays_what_it_was() -> None:
    index, pod = Index(), driver_of(APP)
    index.put_pod(pod)
    assert (index.replace_pods([], "", "99", {pod.uid}), index.pods(KEY)) == (set(), [pod])


def test_of_a_driver_whose_last_state_cannot_be_read_the_end_that_was_seen_counts() -> None:
    index = Index()
    ended = dataclasses.replace(driver_of(APP), ended=Exit(3, "Error", "{}", 5.0))
    index.put_pod(ended)
    bare = dataclasses.replace(driver_of(APP), ended=None, **STRANGER)
    assert (index.remove_pod(bare), index.pods(KEY)) == (KEY, [])
    parted = index.last_ends.driver(KEY)
    assert parted is not None
    assert parted.ended == ended.ended


def test_a_list_of_one_namespace_leaves_the_others_alone() -> None:
    index, pod = Index(), driver_of(APP)
    index.put_pod(pod)
    index.replace_pods([], "another", "99")
    assert index.pods(KEY) == [pod]


def test_a_list_from_before_a_pod_came_leaves_it() -> None:
    index, pod = Index(), dataclasses.replace(driver_of(APP), resource_version="12")
    index.put_pod(pod)
    assert (index.replace_pods([], "", "11"), index.pods(KEY)) == (set(), [pod])


def test_a_list_from_before_a_pod_was_replaced_does_not_bring_the_earlier_one_back() -> None:
    index, old = Index(), dataclasses.replace(driver_of(APP), resource_version="10")
    new = dataclasses.replace(old, uid="pod-2", resource_version="20")
    index.put_pod(new)
    assert (index.replace_pods([old], "", "11"), index.pods(KEY)) == (set(), [new])


def test_storage_inside_that_of_an_older_application_has_a_rival() -> None:
    index = Index()
    older = elsewhere("orders", "s3://streams/apps", "u-9", "2026-01-01T00:00:00Z")
    inner = elsewhere("inner", "s3://streams/apps/shop/orders", "u-1", "2026-01-02T00:00:00Z")
    index.put_app(older)
    index.put_app(inner)
    assert (index.rival(inner), index.rival(older)) == ("orders", "")


def test_a_place_that_an_upgrade_may_be_rolled_back_to_is_held_until_the_new_one_is_stable() -> None:
    index = Index()
    here = elsewhere("orders", "s3://streams/apps", "u-9", "2026-01-01T00:00:00Z")
    there = msgspec.structs.replace(here.spec.storage, endpoint="http://other:9000")
    older = msgspec.structs.replace(here, spec=msgspec.structs.replace(here.spec, storage=there))
    inner = elsewhere("inner", "s3://streams/apps/shop/orders", "u-1", "2026-01-02T00:00:00Z")
    before = StableSpec(spec_hash="1", spec=version_of(here.spec))
    moved = msgspec.structs.replace(older, status=msgspec.structs.replace(older.status, last_stable=before))
    index.put_app(moved)
    index.put_app(inner)
    assert index.rival(inner) == "orders"
    assert index.remove_app(KEY, "u-9") == {KEY, ("shop", "inner")}
    after = StableSpec(spec_hash="2", spec=version_of(older.spec))
    index.put_app(msgspec.structs.replace(older, status=msgspec.structs.replace(older.status, last_stable=after)))
    assert index.rival(inner) == ""


@pytest.mark.parametrize(
    ("spec", "same"),
    [
        ('{"storage.endpoint": "", "storage.region": "us-east-1", "storage.credentialsSecretRef.name": "x"}', True),
        ('{"storage.endpoint": "http://other:9000", "storage.region": "us-east-1"}', False),
        ("no JSON", True),
    ],
)
def test_a_version_has_the_same_store_whatever_else_of_its_storage_is_another(spec: str, same: bool) -> None:
    orders = elsewhere("orders", "s3://streams/apps", "u-9", "2026-01-01T00:00:00Z")
    assert has_same_store(orders.spec, StableSpec(spec_hash="1", spec=spec)) is same


@pytest.mark.parametrize("spec", ["", "[]", "no JSON", '{"storage.endpoint": 7}', "[" * 9000])
def test_a_stable_version_that_cannot_be_read_holds_no_place(spec: str) -> None:
    orders = elsewhere("orders", "s3://elsewhere/apps", "u-9", "2026-01-01T00:00:00Z")
    broken = StableSpec(spec_hash="1", spec=spec)
    orders = msgspec.structs.replace(orders, status=msgspec.structs.replace(orders.status, last_stable=broken))
    assert len(roots_of(orders)) == 1


def test_an_application_of_another_namespace_holds_nothing_back_by_naming_a_place() -> None:
    """Whoever may create one anywhere can name any place, and create it before its owner does."""
    index = Index()
    for namespace, name, uri in (("apps", "shop", "s3://streams"), ("evil", "x", "s3://streams/apps/shop/orders")):
        resource = body({"storage.uri": uri})
        old = {"namespace": namespace, "name": name, "uid": name, "creationTimestamp": "2020-01-01T00:00:00Z"}
        resource["metadata"] = {**resource["metadata"], **old}
        assert index.put_app(resource) == {(namespace, name)}
    orders = elsewhere("orders", "s3://streams/apps", "u-9", "2026-01-01T00:00:00Z")
    assert index.put_app(orders) == {KEY}
    assert index.rival(orders) == ""
    assert index.remove_app(("apps", "shop"), "shop") == {("apps", "shop")}


def test_storage_around_that_of_an_older_application_has_a_rival() -> None:
    index = Index()
    inner = elsewhere("inner", "s3://streams/apps/shop/orders", "u-1", "2026-01-01T00:00:00Z")
    outer = elsewhere("orders", "s3://streams/apps", "u-9", "2026-01-02T00:00:00Z")
    index.put_app(inner)
    index.put_app(outer)
    assert index.rival(outer) == "inner"


def test_the_same_path_on_another_endpoint_is_another_place() -> None:
    index = Index()
    older = elsewhere("orders", "s3://streams/apps", "u-9", "2026-01-01T00:00:00Z")
    resource = body({"storage.uri": "s3://streams/apps/shop/orders", "storage.endpoint": "http://other:9000"})
    resource["metadata"] |= {"name": "inner", "creationTimestamp": "2026-01-02T00:00:00Z"}
    index.put_app(older)
    index.put_app(resource)
    assert index.rival(decode_app(resource)) == ""


def test_who_waits_for_a_place_is_looked_at_when_it_becomes_free() -> None:
    index = Index()
    index.put_app(elsewhere("orders", "s3://streams/apps", "u-9", "2026-01-01T00:00:00Z"))
    index.put_app(elsewhere("inner", "s3://streams/apps/shop/orders", "u-1", "2026-01-02T00:00:00Z"))
    assert index.remove_app(KEY, "u-9") == {KEY, ("shop", "inner")}


def test_an_account_is_in_use_while_a_driver_runs_as_it_or_an_application_names_it() -> None:
    index, driver = Index(), dataclasses.replace(running_driver(app_with()), service_account="shared")
    index.put_pod(driver)
    index.put_app(app_with({"serviceAccountName": "own"}, name="other", uid="u-2"))
    used = {name: index.uses_account("shop", name) for name in ("shared", "own", "nobodys")}
    assert used == {"shared": True, "own": True, "nobodys": False}
    assert not index.uses_account("elsewhere", "shared")
    index.remove_pod(driver)
    assert not index.uses_account("shop", "shared")


def test_the_metadata_of_an_application_that_can_not_be_read_is_read() -> None:
    index = Index()
    index.put_app(unreadable(8, finalizers=[FINALIZER], deletionTimestamp="2026-01-01T00:00:00Z"))
    known = index.app(KEY)
    assert isinstance(known, UnreadableApp)
    assert (known.metadata.finalizers, known.metadata.resource_version) == ((FINALIZER,), "8")
    assert known.metadata.deletion_timestamp is not None


def test_how_an_executor_ended_is_known_when_its_pod_is_gone() -> None:
    """Spark removes a pod as soon as it has ended; what ended by itself looks deleted then."""
    index, first = Index(), executor_of(APP, 1, resource_version="11")
    index.put_pod(first)
    failed: dict[str, Any] = {"phase": "Failed", "running": False, "ended": Exit(1, "Error", "its last lines", 5.0)}
    index.put_pod(dataclasses.replace(first, resource_version="12", **failed))
    index.remove_pod(dataclasses.replace(first, resource_version="13", delete_by=9.0, **failed))
    index.remove_pod(executor_of(APP, 2, resource_version="14", delete_by=9.0))
    ends = index.last_ends.executors(KEY)
    assert [(pod.uid, pod.ended is not None, pod.terminating) for pod in ends] == [
        ("exec-1-1", True, False),
        ("exec-1-2", False, True),
    ]


def test_of_pods_that_end_after_their_application_only_the_latest_are_kept() -> None:
    """Whoever creates applications under new names all the time would fill the operator's memory with their ends."""
    index = Index()
    names = [f"nightly-{number}" for number in range(MOST_UNKNOWN + 100)]
    for number, name in enumerate(names):
        app = app_with(name=name, uid=f"uid-{number}")
        index.put_app(app)
        index.remove_app(("shop", name), app.metadata.uid)
        driver = driver_of(app, uid=f"driver-{number}", ended=ended_with(Reason.STOPPED, 143))
        index.remove_pod(driver)
        index.remove_pod(executor_of(app, number, resource_version="11"))
    keys = [("shop", name) for name in names]
    kept = [index.last_ends.driver(key) is not None for key in keys]
    assert kept == [False] * 100 + [True] * MOST_UNKNOWN
    assert [bool(index.last_ends.executors(key)) for key in keys] == kept


def test_an_end_that_is_seen_before_its_application_is_kept_for_it_whatever_else_ends() -> None:
    index = Index()
    final = driver_of(APP, ended=ended_with(Reason.STOPPED, 143))
    index.remove_pod(final)
    index.put_app(APP)
    for number in range(MOST_UNKNOWN + 1):
        app = app_with(name=f"nightly-{number}")
        index.remove_pod(driver_of(app, uid=f"driver-{number}", ended=ended_with(Reason.STOPPED, 143)))
    found = index.last_ends.driver(KEY)
    assert found is not None
    assert found.uid == final.uid


def test_of_executors_that_end_for_ever_the_last_ones_are_known() -> None:
    index = Index()
    for number in range(100):
        index.remove_pod(executor_of(APP, number, resource_version=str(11 + number)))
    names = [pod.name for pod in index.last_ends.executors(KEY)]
    assert (len(names), names[-1]) == (MOST_ENDS, "orders-e1-exec-99")
