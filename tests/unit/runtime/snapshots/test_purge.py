"""How a purge goes through what is stored; the store is a set of keys. No I/O."""

import bisect
import io
import itertools
import json
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tidegate_spark.contract.protocol import DriverConfig, ExecutorSettings, Storage
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.snapshots import catalog
from tidegate_spark.snapshots.catalog import Catalog, Snapshot, State
from tidegate_spark.snapshots.catalog_json import decode, encode
from tidegate_spark.snapshots.purge import purge
from tidegate_spark.storage.claim.claims import LONGEST_CLAIM
from tidegate_spark.storage.s3_client import FaultError
from tidegate_testing.counted_body import CountedBody

CONFIG = DriverConfig(
    app="orders",
    namespace="shop",
    uid="u-1",
    epoch=1,
    lineage=1,
    pod_name="orders-driver",
    main="local:///m.py",
    storage=Storage("s3://streams/apps/shop/orders"),
    executor=ExecutorSettings(1, "i", "IfNotPresent", "sa", "orders-e1"),
)
CLAIM = "apps/shop/orders/app.json"


def claim_of(uid: str) -> dict[str, object]:
    return {"uid": uid, "namespace": "shop", "app": "orders", "epoch": 1, "lineage": 1}


class Store:
    """Lists in order and by page; deletes all but ``stuck``, and, like a disk, no directory that is not empty."""

    def __init__(self, keys: list[str], owner: str = "u-1", stuck: str = "") -> None:
        self.keys, self.owners, self.stuck = sorted([*keys, CLAIM]), {CLAIM: owner}, stuck
        self.contents: dict[str, object] = {}
        self.order: list[str] = []
        self.held = self.most_held = 0
        self.listings = 0
        self.written: list[bytes] = []
        self.refusing: Callable[[], None] | None = None
        self._lock = threading.Lock()

    def get_object(self, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803 - boto3's names
        if Key not in self.keys:
            missing = {"Error": {"Code": "NoSuchKey"}, "ResponseMetadata": {"HTTPStatusCode": 404}}
            raise ClientError(missing, "GetObject")  # type: ignore[arg-type] # as much as is read
        content = claim_of(self.owners[Key]) if Key in self.owners else self.contents.get(Key, {})
        return {"Body": io.BytesIO(json.dumps(content).encode()), "ETag": "e"}

    def put_object(self, Bucket: str, Key: str, Body: bytes, IfMatch: str) -> dict[str, Any]:  # noqa: N803 - likewise
        changing, self.refusing = self.refusing, None
        if changing is not None:
            changing()
            refused = {"Error": {"Code": "PreconditionFailed"}, "ResponseMetadata": {"HTTPStatusCode": 412}}
            raise ClientError(refused, "PutObject")  # type: ignore[arg-type] # as much as is read
        self.written.append(Body)
        self.contents[Key] = json.loads(Body)
        return {"ETag": "e"}

    def get_paginator(self, name: str) -> "Store":
        return self

    def paginate(self, Bucket: str, Prefix: str, PaginationConfig: dict[str, int]) -> Iterator[dict[str, Any]]:  # noqa: N803 - likewise
        self.listings += 1
        last = ""
        while True:
            with self._lock:
                after = self.keys[bisect.bisect_left(self.keys, max(last, Prefix)) :]
                page = [key for key in after if key.startswith(Prefix) and key > last][: PaginationConfig["PageSize"]]
                self.held += len(page) if self.listings > 2 else 0  # the first two look for snapshots and claims
                self.most_held = max(self.most_held, self.held)
            yield {"Contents": [{"Key": key} for key in page]}
            if not page:
                return
            last = page[-1]

    def delete_objects(self, Bucket: str, Delete: dict[str, Any]) -> dict[str, Any]:  # noqa: N803 - likewise
        errors = []
        with self._lock:
            for key in (item["Key"] for item in Delete["Objects"]):
                if key == self.stuck or (key.endswith("/") and any(k != key and k.startswith(key) for k in self.keys)):
                    errors.append({"Key": key, "Code": "Refused"})
                else:
                    self.keys.remove(key)
                    self.order.append(key)
            self.held -= len(Delete["Objects"])
        return {"Errors": errors}


def purged(store: Store) -> int:
    client: Any = store
    return purge.purge(client, CONFIG).objects


def below(*names: str) -> list[str]:
    return [f"apps/shop/orders/{name}" for name in names]


def test_the_keys_in_memory_do_not_grow_with_what_is_stored(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(purge, "PAGE", 10)
    store = Store(below(*(f"lineages/1/main/{n}" for n in range(2000))))
    assert purged(store) == 2001
    assert store.keys == []
    assert store.most_held <= 10 * (purge.PARALLEL + 2)


def test_the_claim_goes_last_and_directories_after_what_is_in_them(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(purge, "PAGE", 2)
    deep = [f"{'d/' * depth}" for depth in range(1, 12)]
    store = Store(below("a", *deep, "d/x", "d/d/x", "z"))
    assert purged(store) == 16
    assert store.keys == []
    assert store.order[-1] == CLAIM


def test_one_that_is_asked_to_stop_ends_after_a_request_and_the_next_one_deletes_the_rest(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(purge, "PAGE", 2)
    store, count = Store(below(*(f"lineages/1/main/{n}" for n in range(100)))), purge._Count()
    client: Any = store
    count.stopping.set()
    with pytest.raises(purge.StoppedError):
        purge.purge(client, CONFIG, count)
    deleted = len(store.order)
    assert 0 < deleted < 100
    assert CLAIM in store.keys
    assert (deleted + purged(store), store.keys) == (101, [])


def test_the_neighbour_with_a_longer_name_is_left_alone() -> None:
    store = Store(["apps/shop/orders-2/app.json", "apps/shop/orders.txt", "apps/shop/orders2/a", *below("a")])
    assert purged(store) == 2
    assert store.keys == ["apps/shop/orders-2/app.json", "apps/shop/orders.txt", "apps/shop/orders2/a"]


def test_what_the_store_does_not_delete_is_named() -> None:
    (stuck,) = below("locked")
    with pytest.raises(FaultError, match=stuck) as caught:
        purged(Store(below("a", "locked"), stuck=stuck))
    assert caught.value.fault.reason is Reason.STORAGE_UNAVAILABLE


def test_whoever_goes_on_writing_messages_does_not_keep_a_purge_from_its_end() -> None:
    numbers = itertools.count()

    class Written(Store):
        """Somebody puts a message into the inbox at each listing."""

        def paginate(self, *arguments: Any, **named: Any) -> Iterator[dict[str, Any]]:
            self.keys = sorted([*self.keys, *below(f"control/inbox/{next(numbers)}.json")])
            return super().paginate(*arguments, **named)

    store = Written(below("a", "control/segments/000000000001.json"))
    purged(store)
    assert [key for key in store.keys if "/control/inbox/" not in key] == []


def test_another_applications_storage_is_not_touched() -> None:
    store = Store(below("a"), owner="u-2")
    with pytest.raises(FaultError) as caught:
        purged(store)
    assert (caught.value.fault.reason, store.order) == (Reason.STORAGE_OWNED, [])


@pytest.mark.parametrize(("namespace", "named"), [("shop", True), ("bank", False)])
def test_the_owner_of_a_storage_is_named_within_the_namespace_alone(namespace: str, named: bool) -> None:
    store = Store(below("a"))
    del store.owners[CLAIM]
    store.contents[CLAIM] = {**claim_of("u-2"), "namespace": namespace, "app": "payments"}
    with pytest.raises(FaultError) as caught:
        purged(store)
    message = caught.value.fault.message
    assert (store.order, "payments" in message, namespace in message.removeprefix(CONFIG.storage.uri)) == (
        [],
        named,
        named,
    )


CATALOG = "apps/shop/orders/snapshots/catalog.json"
KEPT_BY_OWN = {"a": {"a"}, "b": {"fork-u-1", "rollback-b"}}


def with_snapshots(holders: dict[str, set[str]]) -> Store:
    """Return a store with these snapshots, and who holds each."""
    ready = {name: Snapshot(State.READY, 1.0, holders=frozenset(of), digest="sha256:1") for name, of in holders.items()}
    store = Store([*below(*(f"snapshots/{name}/manifest.json" for name in holders), "lineages/1/x"), CATALOG])
    store.contents[CATALOG] = json.loads(encode(Catalog(7, ready)))
    return store


def test_while_others_need_a_snapshot_nothing_is_deleted_and_they_are_named() -> None:
    store = with_snapshots({"a": {"a", "import-u-9"}, "b": {"fork-u-2"}, "c": set()})
    before = list(store.keys)
    with pytest.raises(FaultError) as caught:
        purged(store)
    assert caught.value.fault.reason is Reason.HELD
    assert "snapshot a by import-u-9; snapshot b by fork-u-2." in caught.value.fault.message
    assert store.keys == before


def test_what_holds_its_own_snapshots_goes_with_it_and_nobody_can_hold_one_from_then_on() -> None:
    store = with_snapshots(KEPT_BY_OWN)
    assert purged(store) == 5
    assert store.keys == []
    (written,) = store.written
    assert {it.state for it in decode(written).snapshots.values()} == {State.DELETING}
    assert store.order.index(CATALOG) > max(store.order.index(f"{each}") for each in below("lineages/1/x"))
    assert store.order.index(CATALOG) > max(
        store.order.index(key) for key in store.order if key.endswith("manifest.json")
    )


def test_nobody_can_hold_one_that_lies_there_although_a_catalog_that_was_put_back_lacks_it() -> None:
    store = with_snapshots({"a": {"resource-1"}})
    store.keys = sorted([*store.keys, "apps/shop/orders/snapshots/later/manifest.json"])
    purged(store)
    known = decode(store.written[-1])
    assert known.gone.keys() == {"later"}
    assert not catalog.may_be_entered(known, "later")


def test_whoever_begins_to_hold_one_meanwhile_is_seen() -> None:
    store = with_snapshots({"a": set()})

    def held() -> None:
        store.contents[CATALOG] = json.loads(
            encode(Catalog(8, {"a": Snapshot(State.READY, 1.0, holders=frozenset({"import-u-9"}), digest="sha256:1")}))
        )

    store.refusing = held
    with pytest.raises(FaultError) as caught:
        purged(store)
    assert (caught.value.fault.reason, store.order) == (Reason.HELD, [])


@pytest.mark.parametrize("body", [None, {"version": 1, "objects": 3}], ids=["missing", "damaged"])
def test_without_a_catalog_that_says_who_needs_them_no_snapshot_is_deleted(body: object) -> None:
    store = with_snapshots({"a": set()})
    store.contents[CATALOG] = body
    if body is None:
        store.keys.remove(CATALOG)
    with pytest.raises(FaultError) as caught:
        purged(store)
    assert (caught.value.fault.reason, store.order) == (Reason.CATALOG_LOST, [])


def without_claim(*keys: str) -> Store:
    store = Store(list(keys))
    store.keys.remove(CLAIM)
    return store


@pytest.mark.parametrize("keys", [below("a"), below("lineages/1/main/offsets/0", "fence.json"), below("sub/app.json")])
def test_nothing_is_deleted_without_a_claim(keys: list[str]) -> None:
    store = without_claim(*keys)
    with pytest.raises(FaultError, match=r"app\.json is missing, .* nothing is deleted") as caught:
        purged(store)
    assert (caught.value.fault.reason, store.keys) == (Reason.CLAIM_DAMAGED, sorted(keys))


@pytest.mark.parametrize("keys", [[], below(""), below("control/inbox/1.json")])
def test_a_purge_that_was_interrupted_after_the_claim_went_has_nothing_left_to_do(keys: list[str]) -> None:
    store = without_claim(*keys, "apps/shop/orders2/a", "apps/shop/orders2/app.json")
    assert purged(store) == 0
    assert store.order == []


def test_nothing_is_deleted_if_a_newer_tidegate_wrote_the_claim() -> None:
    store = Store(below("a"))
    del store.owners[CLAIM]
    store.contents[CLAIM] = {**claim_of("u-1"), "version": 2}
    with pytest.raises(FaultError) as caught:
        purged(store)
    assert (caught.value.fault.reason, store.order) == (Reason.NEWER_FORMAT, [])


def test_a_claim_that_is_another_ones_by_the_end_of_a_purge_stays() -> None:
    class HandedOver(Store):
        """People hand the place over while it is purged."""

        def delete_objects(self, Bucket: str, Delete: dict[str, Any]) -> dict[str, Any]:  # noqa: N803 - boto3's names
            self.owners[CLAIM] = "u-2"
            return super().delete_objects(Bucket, Delete)

    store = HandedOver(below("a", "b"))
    with pytest.raises(FaultError) as caught:
        purged(store)
    assert (caught.value.fault.reason, store.keys) == (Reason.STORAGE_OWNED, [CLAIM])


def test_places_of_other_namespaces_are_retained_and_not_named() -> None:
    own, foreign = below("shop/inner/app.json"), below("bank/vault/app.json", "bank/vault/a")
    newer = below("later/one/app.json", "later/one/a")
    store = Store([*own, *foreign, *newer, *below("a")])
    store.contents |= {
        own[0]: {**claim_of("u-0")},
        foreign[0]: {**claim_of("u-3"), "namespace": "bank"},
        newer[0]: {"version": 9, "of": "another kind"},
    }
    client: Any = store
    reported = purge.purge(client, CONFIG).message
    assert store.keys == sorted([*own, *foreign, *newer])
    assert reported.endswith("claimed them: apps/shop/orders/shop/inner/, 2 of other namespaces.")


def test_what_another_application_kept_further_below_stays() -> None:
    inner = below("shop/inner/", "shop/inner/app.json", "shop/inner/lineages/1/main/offsets/0")
    store = Store([*inner, *below("a", "shop/", "shop/inner-2", "rehearsals/1/app.json", "data/app.json")])
    store.owners |= {inner[1]: "u-0", below("rehearsals/1/app.json")[0]: "u-1"}
    assert purged(store) == 5
    assert store.keys == [below("shop/")[0], *inner]


@pytest.mark.parametrize("content", [{}, {"uid": "u-1"}, {**claim_of("u-1"), "epoch": "1"}])
def test_a_storage_that_does_not_say_whose_it_is_is_not_touched(content: dict[str, object]) -> None:
    store = Store(below("a"))
    del store.owners[CLAIM]
    store.contents[CLAIM] = content
    with pytest.raises(FaultError) as caught:
        purged(store)
    assert (caught.value.fault.reason, store.order) == (Reason.CLAIM_DAMAGED, [])


def test_a_damaged_claim_further_below_keeps_its_place_and_a_file_of_the_same_name_does_not() -> None:
    inner = below("shop/inner/app.json", "shop/inner/lineages/1/main/offsets/0")
    store = Store([*inner, *below("data/app.json", "more/app.json")])
    store.contents[inner[0]] = {**claim_of("u-0"), "uid": None}
    store.contents |= {below("data/app.json")[0]: {"version": "1.0", "app": "shop"}, below("more/app.json")[0]: [1]}
    purged(store)
    assert store.keys == inner


def test_a_file_without_end_that_is_called_as_a_claim_is_read_as_far_as_a_claim_goes() -> None:
    """Whoever may write there could have the purge run out of memory for ever."""
    read: list[int] = []

    class Large(Store):
        def get_object(self, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803 - boto3's names
            found = super().get_object(Bucket, Key)
            return {**found, "Body": CountedBody(read)} if Key.endswith("/data/app.json") else found

    store = Large(below("data/app.json", "a"))
    assert purged(store) == 3
    assert max(read) == LONGEST_CLAIM
    assert store.keys == []
