"""Which of several applications of a namespace has a place: who was launched there, and only then who is older."""

import datetime

import msgspec

from tests.unit.operator.cache.test_index import elsewhere
from tidegate.api.spec_hash import spec_hash, version_of
from tidegate.api.streaming_app import Condition, StableSpec, StreamingApp
from tidegate.cache.index import Index
from tidegate_spark.contract.protocol import FINALIZER, store_identity
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.observations import driver_of

AWS, OTHER = store_identity("", ""), "other:9000"
OUTER, INNER = ("shop", "orders"), ("shop", "inner")
OLDER = elsewhere("orders", "s3://streams/apps", "u-9", "2026-01-01T00:00:00Z")
YOUNGER = elsewhere("inner", "s3://streams/apps/shop/orders", "u-1", "2026-01-02T00:00:00Z")


def after(app: StreamingApp, endpoint: str | None = None, **status: object) -> StreamingApp:
    """Return a later version of an application, with another endpoint and other fields of the status where given."""
    storage = app.spec.storage if endpoint is None else msgspec.structs.replace(app.spec.storage, endpoint=endpoint)
    version = str(int(app.metadata.resource_version) + 1)
    return msgspec.structs.replace(
        app,
        metadata=msgspec.structs.replace(app.metadata, resource_version=version),
        spec=msgspec.structs.replace(app.spec, storage=storage),
        status=msgspec.structs.replace(app.status, **status),
    )


def rivals(*apps: StreamingApp) -> tuple[str, ...]:
    """Return which application each of some has as its rival."""
    index = Index()
    for app in apps:
        index.put_app(app)
    return tuple(index.rival(app) for app in apps)


def test_an_older_application_that_is_moved_to_where_a_younger_one_was_launched_is_refused() -> None:
    runs = after(YOUNGER, epoch=1, store=AWS)
    back = after(OLDER, epoch=8, store=OTHER)
    assert rivals(back, runs) == ("inner", "")


def test_an_application_that_was_launched_in_its_place_keeps_it_while_it_is_suspended() -> None:
    suspended = after(YOUNGER, epoch=1, store=AWS)
    suspended = msgspec.structs.replace(suspended, spec=msgspec.structs.replace(suspended.spec, suspend=True))
    assert rivals(OLDER, suspended) == ("inner", "")


def test_where_an_application_was_launched_it_is_in_the_way_until_it_is_launched_elsewhere() -> None:
    moving = after(OLDER, "http://other:9000", epoch=3, store=AWS)
    assert rivals(moving, YOUNGER) == ("", "orders")
    assert rivals(after(moving, store=OTHER), YOUNGER) == ("", "")


def test_a_store_that_an_earlier_operator_did_not_write_down_is_that_of_the_spec() -> None:
    assert rivals(OLDER, after(YOUNGER, epoch=1, lineage=1)) == ("inner", "")


def test_an_application_whose_status_is_lost_has_its_place_while_its_driver_is_there() -> None:
    index = Index()
    index.put_app(OLDER)
    index.put_app(YOUNGER)
    index.put_pod(driver_of(YOUNGER))
    assert (index.rival(OLDER), index.rival(YOUNGER)) == ("inner", "")


def finalized(app: StreamingApp) -> StreamingApp:
    """Return an application that was to be launched, and of which no status says so any more."""
    return msgspec.structs.replace(app, metadata=msgspec.structs.replace(app.metadata, finalizers=(FINALIZER,)))


def test_an_application_whose_status_is_lost_has_its_place_also_while_its_driver_is_gone() -> None:
    assert rivals(OLDER, finalized(YOUNGER)) == ("inner", "")


def test_a_finalizer_says_nothing_of_a_place_where_no_pod_could_be_made_of_the_application() -> None:
    since = datetime.datetime(2026, 1, 3, tzinfo=datetime.UTC)
    refused = [
        Condition(type=kind, status="False", reason=Reason.INVALID_SPEC, last_transition_time=since)
        for kind in ("Ready", "Available")
    ]
    assert rivals(OLDER, after(finalized(YOUNGER), conditions=tuple(refused))) == ("", "orders")


def test_a_finalizer_says_something_of_a_place_where_only_an_unreadable_resource_was_reported() -> None:
    since = datetime.datetime(2026, 1, 3, tzinfo=datetime.UTC)
    reported = Condition(type="Ready", status="False", reason=Reason.INVALID_SPEC, last_transition_time=since)
    assert rivals(OLDER, after(finalized(YOUNGER), conditions=(reported,))) == ("inner", "")


def test_what_a_finalizer_says_of_a_place_is_less_than_a_launch_and_no_more_than_another_finalizer_says() -> None:
    assert rivals(finalized(OLDER), after(YOUNGER, epoch=1, store=AWS)) == ("inner", "")
    assert rivals(finalized(OLDER), finalized(YOUNGER)) == ("", "orders")


def test_an_epoch_without_a_launch_says_of_a_place_what_the_finalizer_says() -> None:
    assert rivals(after(finalized(OLDER), epoch=1), after(YOUNGER, epoch=1, store=AWS)) == ("inner", "")
    assert rivals(OLDER, after(finalized(YOUNGER), epoch=1)) == ("inner", "")


def test_an_application_whose_launch_is_being_recorded_has_its_place() -> None:
    index = Index()
    index.put_app(OLDER)
    index.put_app(YOUNGER)
    index.launching.add(INNER)
    assert (index.rival(OLDER), index.rival(YOUNGER)) == ("inner", "")


def test_who_waits_for_a_place_is_looked_at_when_its_owner_is_launched_elsewhere() -> None:
    index = Index()
    moving = after(OLDER, "http://other:9000", epoch=3, store=AWS)
    index.put_app(moving)
    index.put_app(YOUNGER)
    assert index.put_app(after(moving, epoch=4, store=OTHER)) == {OUTER, INNER}


def test_who_waits_for_a_place_is_looked_at_when_its_owner_is_stable_elsewhere() -> None:
    index = Index()
    before = StableSpec(spec_hash="1", spec=version_of(OLDER.spec))
    moved = after(OLDER, "http://other:9000", epoch=3, store=OTHER, last_stable=before)
    index.put_app(moved)
    index.put_app(YOUNGER)
    assert index.rival(YOUNGER) == "orders"
    stable = after(moved, last_stable=StableSpec(spec_hash="2", spec=version_of(moved.spec)))
    assert (index.put_app(stable), index.rival(YOUNGER)) == ({OUTER, INNER}, "")


def test_an_edit_that_leaves_the_place_where_it_is_wakes_nobody_else() -> None:
    index = Index()
    index.put_app(OLDER)
    index.put_app(YOUNGER)
    assert index.put_app(after(OLDER, epoch=1, store=AWS)) == {OUTER}


def test_one_launched_by_an_earlier_operator_and_edited_since_has_the_place_of_its_stable_version() -> None:
    ran = after(OLDER, "http://other:9000", epoch=8)
    stable = StableSpec(spec_hash=spec_hash(ran), spec=version_of(ran.spec))
    edited = after(ran, "", last_stable=stable, applied_spec_hash=stable.spec_hash)
    assert rivals(edited, after(YOUNGER, epoch=1, store=AWS)) == ("inner", "")
