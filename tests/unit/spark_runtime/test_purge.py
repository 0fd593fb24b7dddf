"""How a purge goes through what is stored; the store is a set of keys. No I/O."""

import bisect
import io
import itertools
import json
import threading
from collections.abc import Iterator
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tidegate_spark import purge
from tidegate_spark.protocol import DriverConfig, ExecutorSettings, Storage
from tidegate_spark.reasons import Reason
from tidegate_spark.storage import FaultError

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
        self._lock = threading.Lock()

    def get_object(self, Bucket: str, Key: str) -> dict[str, Any]:  # noqa: N803 - boto3's names
        if Key not in self.keys:
            raise ClientError({"Error": {}, "ResponseMetadata": {"HTTPStatusCode": 404}}, "GetObject")  # type: ignore[typeddict-item] # as much as is read
        content = claim_of(self.owners[Key]) if Key in self.owners else self.contents.get(Key, {})
        return {"Body": io.BytesIO(json.dumps(content).encode()), "ETag": "e"}

    def get_paginator(self, name: str) -> "Store":
        return self

    def paginate(self, Bucket: str, Prefix: str, PaginationConfig: dict[str, int]) -> Iterator[dict[str, Any]]:  # noqa: N803 - likewise
        self.listings += 1
        last = Prefix
        while True:
            with self._lock:
                below = [key for key in self.keys[bisect.bisect_left(self.keys, last) :] if key.startswith(Prefix)]
                page = [key for key in below if key > last or key == Prefix][: PaginationConfig["PageSize"]]
                self.held += len(page) if self.listings > 1 else 0  # the first one looks for claims, and keeps no other
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


def test_the_neighbour_with_a_longer_name_is_left_alone() -> None:
    store = Store(["apps/shop/orders-2/app.json", "apps/shop/orders.txt", *below("a")])
    assert purged(store) == 2
    assert store.keys == ["apps/shop/orders-2/app.json", "apps/shop/orders.txt"]


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
