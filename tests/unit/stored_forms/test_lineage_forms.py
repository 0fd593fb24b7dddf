"""What says whose a storage is, and what its lineages begin and end with. Golden copies; the stores are in memory."""

import dataclasses
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.scenario.object_store import ObjectStore, StoreClient
from tidegate_spark.contract.json_form import from_json, from_stored, to_json
from tidegate_spark.contract.object_paths import Storage
from tidegate_spark.contract.protocol import OPENS_FROM_SNAPSHOT, EarlierPin, Fault, StartFrom
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.repartition_protocol import Repartition, RepartitionedQuery
from tidegate_spark.contract.snapshot_protocol import SnapshotOrder
from tidegate_spark.driver import launch_state
from tidegate_spark.driver.starting_point import Filler, left_to_fill
from tidegate_spark.queries.sinks import output_registry
from tidegate_spark.queries.sinks.outputs import Output, Outputs
from tidegate_spark.queries.state.version_notices import Notes as VersionNotes
from tidegate_spark.queries.state.version_notices import VersionNotices
from tidegate_spark.repartition.job import Repartitioner
from tidegate_spark.snapshots import catalog
from tidegate_spark.snapshots.copying import Copiers
from tidegate_spark.snapshots.lineages import attempts, lineage_mark, upgrade_pin
from tidegate_spark.snapshots.manifest import Application, Manifest, QueryAt
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_spark.storage import location_notes
from tidegate_spark.storage import s3_client as storage
from tidegate_spark.storage.claim import claiming, fence, fencing
from tidegate_spark.storage.claim.claimed import Claim, Opening
from tidegate_spark.storage.claim.fence import Fenced, Held, Holder
from tidegate_spark.storage.location_notes import LocationNotes, Move, NamedQuery
from tidegate_spark.storage.s3_client import FaultError
from tidegate_spark.storage.store import NewerStorageError, SnapshotError
from tidegate_testing.driver_process import driver_config
from tidegate_testing.fake_checkpoint import LAYOUT
from tidegate_testing.memory_store import Buckets, MemoryStore
from tidegate_testing.snapshot_scenes import Scene
from tidegate_testing.stored_forms import (
    LATER,
    Form,
    assert_read,
    assert_written,
    each,
    each_written,
    stored,
    with_more,
)

PLACE = Storage("s3://here/apps/orders", "https://store:9000", "eu-west-3", path_style_access=True)
CLAIM = {
    "uid": "0b1c-uid",
    "namespace": "shop",
    "app": "orders",
    "epoch": 6,
    "lineage": 2,
    "sparkVersion": "4.1.0",
}
HOLDER = Holder(uid="0b1c-uid", epoch=6, lineage=2, pod_uid="pod-6-uid", process="20260101T000000Z-e6-7f3a")
BEGUN_WITH = {
    "snapshot": "nightly-1",
    "origin": "s3://here/apps/orders",
    "batches": {"main": 2, "other": 0},
    "parent": "tests/orders/nightly-1",
    "released": True,
}
DIVIDED = {
    "snapshot": "up-1",
    "origin": "s3://here/apps/orders",
    "batches": {"main": 42, "other": 7},
    "withoutOutput": {"main": 42},
    "parent": "nightly-1",
    "released": True,
}
OFFSETS = '{"orders":{"0":120,"1":17}}'
INTENT = StartFrom(
    PLACE,
    "up-2",
    "rollback-up-2",
    fork=False,
    lineage=1,
    image="shop/orders:6",
    credentials_secret="origin-keys",
    otherwise=(EarlierPin("up-1", "rollback-up-1", 3),),
)
BATCHES = {"main": 2, "other": 0}
NOTE = {"lineage": 1, "batches": BATCHES}
RECORD = Repartition(
    partitions=16,
    pin="up-1",
    of_lineage=1,
    lineage=9,
    image="shop/orders:6",
    cores=3,
    heap_mib=2048,
    spark_conf={"spark.sql.streaming.stateStore.rocksdb.formatVersion": "5"},
)
OUTPUTS = Outputs(
    "s3://here/apps/orders",
    program="9d3f",
    queries={
        "main": Output("kafka", "bills", ("kafka-0:9092", "kafka-1:9092")),
        "dedupe": Output("path", "s3a://here/out/dedupe"),
    },
)


class FenceObject:
    """``fence.json`` in memory."""

    def __init__(self, content: bytes | None = None) -> None:
        self.content = content

    def get(self) -> tuple[bytes, str] | None:
        return (self.content, "before") if self.content is not None else None

    def put_if(self, body: bytes, etag: str | None) -> str | None:
        self.content = body
        return "after"


def application() -> SnapshotRepository:
    """Return the library of an application that has nothing."""
    return SnapshotRepository(MemoryStore(Buckets(), "here"), "apps/orders", lambda seconds: None)


def with_object(name: str, body: bytes) -> SnapshotRepository:
    """Return the library of an application that has one object."""
    own = application()
    own.store.put(own.key(name), body)
    return own


def content(own: SnapshotRepository, name: str) -> bytes:
    """Return an object of an application's; it is there."""
    found = own.store.get(own.key(name))
    assert found is not None, name
    return found[0]


# --- whose it is ---


def claimed(body: bytes) -> dict[str, Any]:
    found = claiming.read_claim(client_of({"here/apps/orders/app.json": body}), PLACE)
    assert found is not None
    return found[0]


FREE_FIELDS = {("app", "sparkVersion")}
"""What a driver of before did not write."""
MISTYPED: list[object] = [None, True, 1.5, [], {}, "6", 6]


def damaged() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield each golden copy that says whose a storage is, with each field in turn missing or of another type."""
    for name in ("app", "fence"):
        whole = json.loads(stored(name))
        for field, value in whole.items():
            if (name, field) not in FREE_FIELDS:
                yield name, {each: whole[each] for each in whole if each != field}
            yield from ((name, {**whole, field: other}) for other in MISTYPED if type(other) is not type(value))


def seize(name: str, objects: dict[str, bytes], me: Holder) -> Fault:
    """Return why a driver does not get the claim, or the fence, of a storage that holds these objects."""
    config = driver_config(
        "orders", "local:///main.py", PLACE, namespace="shop", uid=me.uid, epoch=me.epoch, lineage=me.lineage
    )
    ask: dict[str, Callable[[], object]] = {
        "app": lambda: claiming.claim(client_of(objects), config),
        "fence": lambda: fencing.take(config, None, me),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(storage, "connect", lambda *of: client_of(objects))
        with pytest.raises(FaultError) as raised:
            ask[name]()
    return raised.value.fault


OTHERS = [HOLDER, Holder("0b1c-uid", 7, 3, "pod-7-uid", "next"), Holder("another application", 1, 1, "pod", "first")]


@pytest.mark.parametrize("me", OTHERS)
def test_what_does_not_say_whose_the_storage_is_any_more_is_neither_taken_nor_taken_for_nobodys(
    me: Holder,
) -> None:
    for name, document in damaged():
        objects = {f"here/apps/orders/{name}.json": json.dumps(document).encode()}
        before = dict(objects)
        fault = seize(name, objects, me)
        assert fault.reason is Reason.CLAIM_DAMAGED, document
        assert fault.message.startswith(f"{PLACE.uri}/{name}.json cannot be read: "), document
        assert objects == before, document


@pytest.mark.parametrize("name", ["app", "fence"])
def test_what_says_whose_the_storage_is_is_left_alone_if_a_newer_tidegate_wrote_it(
    name: str,
) -> None:
    later = json.dumps({**json.loads(stored(name)), "version": 2, "epoch": "of another kind"}).encode()
    objects = {f"here/apps/orders/{name}.json": later}
    fault = seize(name, objects, HOLDER)
    assert fault.reason is Reason.NEWER_FORMAT
    assert f"{PLACE.uri}/{name}.json cannot be read: its format is 2" in fault.message
    assert objects == {f"here/apps/orders/{name}.json": later}


def client_of(objects: dict[str, bytes]) -> Any:
    return StoreClient(ObjectStore(objects))


def claim(before: bytes | None = None) -> bytes:
    objects = {"here/apps/orders/app.json": before} if before is not None else {}
    config = driver_config("orders", "local:///main.py", PLACE, namespace="shop", uid="0b1c-uid", epoch=6, lineage=2)
    claiming.claim(client_of(objects), config, "4.1.0")
    return objects["here/apps/orders/app.json"]


def take_fence(me: Holder) -> bytes:
    port = FenceObject()
    assert fence.take(port, me) == Held("after")
    assert port.content is not None
    return port.content


def test_whose_the_storage_is_is_read_and_written_as_it_is_stored() -> None:
    assert_read("app", claimed(stored("app")), CLAIM)
    assert_written("app", claim())
    assert_written("app", claim(stored("app")))


def test_what_a_later_version_adds_to_the_claim_is_read_and_kept_by_whoever_claims_again() -> None:
    body = json.dumps({**CLAIM, LATER: [1]}).encode()
    assert claimed(body) == {**CLAIM, LATER: [1]}
    assert json.loads(claim(body)) == {**CLAIM, LATER: [1]}


def test_who_has_the_fence_keeps_those_out_that_it_kept_out_before() -> None:
    def who(uid: str = "0b1c-uid", epoch: int = 6, pod: str = "pod-6-uid") -> Holder:
        return Holder(uid, epoch, 2, pod, "another process")

    for body in (stored("fence"), with_more("fence", HOLDER)):
        assert fence.check(FenceObject(body), Held("mine")) == Fenced(6, 2)
        assert fence.take(FenceObject(body), who(epoch=5)) == Fenced(6, 2)
        assert fence.take(FenceObject(body), who(pod="another pod")) == Fenced(6, 2)
        for next_one in (who(), who(epoch=7, pod="pod-7-uid"), who(uid="another application", epoch=1)):
            assert fence.take(FenceObject(body), next_one) == Held("after")


def test_a_write_of_the_fence_whose_answer_was_lost_is_found_by_its_bytes() -> None:
    assert fence.take(FenceObject(stored("fence")), HOLDER) == Held("before")


# --- what a lineage starts from ---


def fill(scene: Scene, own: SnapshotRepository, start_from: StartFrom, lineage: int) -> None:
    """Do what a driver does at its start in a new lineage."""
    config = driver_config("orders", "local:///main.py", PLACE, lineage=lineage, epoch=6, start_from=start_from)
    report: Callable[[str, str], None] = lambda reason, message: None  # noqa: E731
    Filler(config, start_from, own, scene.repository(), threading.Event(), report, Copiers(1), LAYOUT, "4.1.0").fill()


def two_queries() -> Scene:
    scene = Scene()
    scene.batches(3)
    scene.batches(1, "other")
    return scene


def test_what_a_lineage_was_filled_with_is_read_and_written_as_it_is_stored() -> None:
    assert_read("lineage-mark", marked("lineage-mark"), BEGUN_WITH)
    scene = two_queries()
    scene.take("nightly-1")
    own = SnapshotRepository(MemoryStore(scene.buckets, "here"), "apps/fork", lambda seconds: None)
    fill(scene, own, StartFrom(Storage("s3://here/apps/orders"), "nightly-1", "fork-uid"), 1)
    assert_written("lineage-mark", content(own, "lineages/1.json"))
    assert lineage_mark.parent_of_first(own, 1) == BEGUN_WITH["parent"]


def test_what_a_lineage_of_other_partitions_was_made_of_is_read_and_written_as_it_is_stored() -> None:
    assert_read("lineage-mark-of-other-partitions", marked("lineage-mark-of-other-partitions"), DIVIDED)
    own = application()
    config = driver_config("orders", "local:///main.py", Storage("s3://here/apps/orders"))
    queries = {
        "main": QueryAt(41, "", {"partitions": 4, "provider": "RocksDB", "operators": [{"name": "dedupe"}]}),
        "other": QueryAt(7, "", {"stateless": True}),
    }
    made = Manifest(1, "up-1", 1.0, "nightly-1", Application("shop", "orders", "0b1c-uid", 1), queries, ())
    maker = Repartitioner(config, Repartition(8, "up-1", 1, 2), own, object, "4.2.1", lambda: None)  # type: ignore[arg-type] # no Spark
    # Its end alone: what is before it needs Spark.
    maker._say_whole(made, {"main": RepartitionedQuery(41, 9, 4), "other": RepartitionedQuery(7)})
    assert_written("lineage-mark-of-other-partitions", content(own, "lineages/2.json"))


@pytest.mark.parametrize("name", ["lineage-mark", "lineage-mark-of-other-partitions"])
def test_what_a_later_version_adds_to_the_mark_of_a_lineage_is_read_and_kept(name: str) -> None:
    own = with_object("lineages/1.json", json.dumps({**json.loads(stored(name)), LATER: [1]}).encode())
    mark = lineage_mark.read(own, 1)
    assert mark == {**json.loads(stored(name)), LATER: [1]}
    lineage_mark.put(own, 1, {**mark, "released": True})
    assert lineage_mark.read(own, 1)[LATER] == [1]


def test_the_batches_that_put_nothing_out_are_those_of_the_mark(monkeypatch: pytest.MonkeyPatch) -> None:
    own = with_object("lineages/2.json", stored("lineage-mark-of-other-partitions"))
    monkeypatch.setattr(launch_state, "reach_repository", lambda storage, credentials: own)
    config = driver_config("orders", "local:///main.py", PLACE, lineage=2)
    assert launch_state.batches_without_output(config, None) == {"main": range(42, 43)}


@pytest.mark.parametrize(
    ("mark", "reason"),
    [(b"{}", Reason.SNAPSHOT_UNUSABLE), (b'{"version": 99, "snapshot": "up-1"}', Reason.NEWER_FORMAT)],
)
def test_a_mark_that_cannot_be_read_is_no_fault_of_the_script_that_writes_files(
    mark: bytes, reason: Reason, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = with_object("lineages/2.json", mark)
    monkeypatch.setattr(launch_state, "reach_repository", lambda storage, credentials: own)
    with pytest.raises(FaultError) as raised:
        launch_state.batches_without_output(driver_config("orders", "local:///main.py", PLACE, lineage=2), None)
    assert (raised.value.fault.reason, "lineages/2.json" in raised.value.fault.message) == (reason, True)


def marked(name: str) -> dict[str, Any]:
    return lineage_mark.read(with_object("lineages/1.json", stored(name)), 1)


def intended(body: bytes) -> StartFrom | None:
    return left_to_fill(with_object("lineages/2.begin", body), 2)


def intend(start_from: StartFrom) -> bytes:
    scene = two_queries()
    for query, batch in BATCHES.items():
        scene.store().put(f"{scene.root(query)}/offsets/{batch}", b'v1\n{}\n{"orders":{"0":200,"1":30}}')
    own = scene.repository()
    # Somebody ran in the lineage that is taken back.
    lineage_mark.put(own, 1, BEGUN_WITH)
    fill(scene, own, start_from, 2)
    return content(own, "lineages/2.begin")


# --- what a lineage ended with ---


def noted(body: bytes) -> SnapshotOrder:
    return upgrade_pin.order_of(with_object("upgrades/up-1.json", body), "up-1", 1, "shop/orders:6", LAYOUT)


def test_the_batches_that_a_lineage_ended_with_are_read_and_written_as_they_are_stored() -> None:
    wanted = SnapshotOrder("up-1", exact=BATCHES, alone=True, holders=("up-1",), image="shop/orders:6")
    assert_read("upgrade-pin", noted(stored("upgrade-pin")), wanted)
    scene = two_queries()
    upgrade_pin.order_of(scene.repository(), "up-1", 1, "", LAYOUT)
    assert_written("upgrade-pin", scene.content("upgrades/up-1.json"))


def test_what_a_later_version_adds_to_the_batches_of_a_pin_changes_nothing() -> None:
    assert noted(json.dumps({**NOTE, LATER: [1]}).encode()) == noted(stored("upgrade-pin"))


LOCATIONS = {"main": "", "refunds-963ba530": "963ba53007c24c5b3ac2d7bb0bf2a5e6"}
"""Of queries without a name: one without a location, and one that is called after its own."""


def test_the_locations_of_a_version_before_an_upgrade_are_read_and_written_as_they_are_stored() -> None:
    noted = with_object("upgrades/up-1.json", stored("upgrade-pin-with-locations"))
    assert_read("upgrade-pin-with-locations", upgrade_pin.locations(noted, "up-1"), LOCATIONS)
    scene = two_queries()
    location_notes.note_queries(scene.repository(), 1, LOCATIONS)
    upgrade_pin.order_of(scene.repository(), "up-1", 1, "", LAYOUT)
    assert_written("upgrade-pin-with-locations", scene.content("upgrades/up-1.json"))


def test_a_pin_has_the_locations_of_queries_that_the_script_names() -> None:
    noted, kind = with_object("upgrades/up-1.json", stored("upgrade-pin-with-named")), upgrade_pin.NAMED
    assert_read("upgrade-pin-with-named", upgrade_pin.locations(noted, "up-1", kind), {"orders": ORDERS})
    scene = two_queries()
    location_notes.note_queries(scene.repository(), 1, LOCATIONS, {"orders": ORDERS})
    upgrade_pin.order_of(scene.repository(), "up-1", 1, "", LAYOUT)
    assert_written("upgrade-pin-with-named", scene.content("upgrades/up-1.json"))
    before = with_object("upgrades/up-1.json", stored("upgrade-pin-with-locations"))
    assert upgrade_pin.locations(before, "up-1", kind) == {}


def test_a_pin_of_before_locations_were_noted_has_none_and_a_snapshot_that_is_no_pin_goes_by_its_lineage() -> None:
    assert upgrade_pin.locations(with_object("upgrades/up-1.json", stored("upgrade-pin")), "up-1") == {}
    assert upgrade_pin.locations(application(), "nightly-1") is None


NOTES = LocationNotes(LOCATIONS, {"main": Move("cd93af3200000000cd93af3200000000", 7)})
ORDERS = "11f2b1c300000000cd93af3200000000"
MOVED = NamedQuery("by day", "33f2b1c300000000cd93af3200000000", former="22f2b1c300000000cd93af3200000000")
NOTES_WITH_NAMED = dataclasses.replace(NOTES, named=(NamedQuery("orders", ORDERS), MOVED))


def read_locations(body: bytes) -> LocationNotes:
    return location_notes.read(with_object("names/unnamed-2.json", body), 2)[0]


def note_locations(notes: LocationNotes) -> bytes:
    own = application()
    assert location_notes.write_if(own, 2, notes, None)
    return content(own, "names/unnamed-2.json")


@pytest.mark.parametrize("body", [b"[]", b"{", b'{"locations": []}', b'{"locations": {"main": 1}}'])
def test_a_pin_whose_locations_are_damaged_is_none_without_them(body: bytes) -> None:
    with pytest.raises(SnapshotError, match=r"upgrades/up-1\.json does not say"):
        upgrade_pin.locations(with_object("upgrades/up-1.json", body), "up-1")


def begin_attempt(order: Repartition) -> bytes:
    own = application()
    attempts.begin(own, order)
    return content(own, "repartitions/9.json")


def test_a_lineage_that_was_being_made_releases_its_pin_by_what_is_stored() -> None:
    scene = two_queries()
    own = scene.repository()
    scene.take("up-1")
    for body in (stored("repartition"), with_more("repartition", RECORD)):
        own.change(lambda it: catalog.hold(it, "up-1", attempts.holder_of(9)))
        own.store.put(own.key("repartitions/9.json"), body)
        assert attempts.clear(own, 9)
        assert own.read().snapshots["up-1"].holders == frozenset()


# --- where queries write ---


def note_outputs(outputs: Outputs) -> bytes:
    own = application()
    config = driver_config("orders", "local:///main.py", Storage(outputs.application), program=outputs.program)
    registry = output_registry.OutputRegistry(config, lambda: own)
    assert [registry.refusal_of(name, output) for name, output in outputs.queries.items()] == ["", ""]
    return content(own, "outputs.json")


def take_along(outputs: Outputs) -> bytes:
    origin, own = application(), application()
    origin.store.put(origin.key("outputs.json"), to_json(outputs).encode())
    output_registry.take_along(origin, own)
    return content(own, "origin.json")


def outputs_in(name: str) -> Callable[[bytes], Outputs | None]:
    return lambda body: output_registry.read_outputs(with_object(name, body), name)


NOTICES = VersionNotes("9d3f-spec", {"bb4a98a508a45fc6": 6})


def read_notices(body: bytes) -> VersionNotes:
    return from_stored(VersionNotes, body)


def give_notice(notes: VersionNotes) -> bytes:
    own = application()
    config = driver_config("orders", "local:///main.py", PLACE, epoch=6, spec_hash=notes.specHash)
    VersionNotices(config, lambda: own, lambda *words: None).publish("StateSchema", "renamed", True)
    return content(own, "notices.json")


# --- of a newer Tidegate ---

NEWER: dict[str, Callable[[SnapshotRepository], object]] = {
    "lineages/1.json": lambda own: lineage_mark.read(own, 1),
    "lineages/2.begin": lambda own: left_to_fill(own, 2),
    "upgrades/up-1.json": lambda own: upgrade_pin.order_of(own, "up-1", 1, "", LAYOUT),
    "upgrades/up-2.json": lambda own: upgrade_pin.noted(own, "up-2"),
    "upgrades/up-3.json": lambda own: upgrade_pin.locations(own, "up-3"),
    "names/unnamed-2.json": lambda own: location_notes.read(own, 2),
    "outputs.json": lambda own: output_registry.read_outputs(own, "outputs.json"),
}


@pytest.mark.parametrize("name", NEWER)
def test_what_a_newer_tidegate_wrote_of_a_lineage_is_named_as_that(name: str) -> None:
    with pytest.raises(NewerStorageError, match=r"apps/orders/.* cannot be read: its format is 2"):
        NEWER[name](with_object(name, b'{"version": 2}'))


def test_where_an_original_writes_is_not_forgotten_because_a_newer_tidegate_wrote_it_down() -> None:
    own = application()
    with pytest.raises(NewerStorageError):
        output_registry.take_along(with_object("outputs.json", b'{"version": 2}'), own)
    assert own.store.get(own.key("origin.json")) is None


def test_a_lineage_that_a_newer_tidegate_makes_is_left_alone() -> None:
    own = with_object("repartitions/9.json", b'{"version": 2}')
    own.store.put(own.key("lineages/9.json"), b"{}")
    assert not attempts.clear(own, 9)
    assert content(own, "repartitions/9.json") == b'{"version": 2}'
    assert content(own, "lineages/9.json") == b"{}"


OPENED = Claim(
    uid="0b1c-uid",
    namespace="shop",
    app="orders",
    epoch=6,
    lineage=2,
    sparkVersion="4.1.0",
    opening=Opening(
        2,
        OPENS_FROM_SNAPSHOT,
        StartFrom(
            Storage("s3://here/apps/shop/orders", "https://store:9000", "eu-west-3", path_style_access=True),
            "up-2",
            "rollback-up-2",
            fork=False,
            lineage=1,
            image="shop/orders:6",
            credentials_secret="origin-keys",
            otherwise=(EarlierPin("up-1", "rb-up-1", 3),),
        ),
    ),
    earlier=("9a7f-uid",),
)

assert OPENED.opening is not None
assert OPENED.opening.startFrom is not None
OPENED_WITH_OFFSETS = dataclasses.replace(
    OPENED,
    opening=dataclasses.replace(
        OPENED.opening, startFrom=dataclasses.replace(OPENED.opening.startFrom, offsets=OFFSETS)
    ),
)


OPENED_BESIDE_A_LATER_ONE = dataclasses.replace(OPENED_WITH_OFFSETS, passed=4)


def claim_with_opening(value: Claim) -> bytes:
    """Return the claim as drivers leave it: one opens the lineage, in a place that was taken over before.

    The next one passes over a later lineage, because a person says so.
    """
    before = {**CLAIM, "epoch": 4, "lineage": 1, "earlier": list(value.earlier)}
    objects = {"here/apps/orders/app.json": json.dumps(before).encode()}
    assert value.opening is not None
    config = driver_config(
        "orders",
        "local:///main.py",
        PLACE,
        namespace="shop",
        uid="0b1c-uid",
        epoch=5,
        lineage=2,
        opening=value.opening.what,
        start_from=value.opening.startFrom,
    )
    claiming.claim(client_of(objects), config, "4.1.0")
    objects |= dict.fromkeys(
        (f"here/apps/orders/lineages/{value.passed}{end}" for end in ("/main/commits/7", ".begin")), b""
    )
    accepts = dataclasses.replace(config, epoch=6, adopt=True, adopt_lineage=2)
    claiming.claim(client_of(objects), accepts, "4.1.0")
    return objects["here/apps/orders/app.json"]


FORMS = [
    # Who has the fence is told by its bytes, too; the name of its process is read by nobody else.
    Form("fence", HOLDER, lambda body: from_stored(Holder, body), take_fence, to_the_byte=True),
    # From before offsets could be named with which a lineage begins.
    Form("lineage-intent", INTENT, intended, None),
    Form("lineage-intent-with-offsets", dataclasses.replace(INTENT, offsets=OFFSETS), intended, intend),
    Form("app-with-opening", OPENED, lambda body: from_stored(Claim, body), None),
    # From before a later lineage could be passed over.
    Form("app-with-offsets", OPENED_WITH_OFFSETS, lambda body: from_stored(Claim, body), None),
    Form("app-with-passed", OPENED_BESIDE_A_LATER_ONE, lambda body: from_stored(Claim, body), claim_with_opening),
    Form("repartition", RECORD, lambda body: from_json(Repartition, body), begin_attempt),
    Form("outputs", OUTPUTS, outputs_in("outputs.json"), note_outputs),
    Form("origin", OUTPUTS, outputs_in("origin.json"), take_along),
    # From before queries that the script names were noted.
    Form("location-notes", NOTES, read_locations, None),
    Form("location-notes-with-named", NOTES_WITH_NAMED, read_locations, note_locations),
    Form("notices", NOTICES, read_notices, give_notice),
]


@each(FORMS)
def test_what_is_stored_is_read(form: Form) -> None:
    form.assert_read()


@each_written(FORMS)
def test_what_is_stored_is_what_is_written(form: Form) -> None:
    form.assert_written()


@each(FORMS)
def test_a_field_of_a_later_version_changes_nothing(form: Form) -> None:
    form.assert_read_with_more()


@each_written(FORMS)
def test_what_is_stored_tells_of_every_field(form: Form) -> None:
    form.assert_reported()
