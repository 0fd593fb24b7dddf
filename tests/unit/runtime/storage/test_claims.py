"""Whose storage a driver does not take, and what it says of the owner. The store is a dictionary; no I/O."""

import json
from typing import Any

import pytest
from botocore.exceptions import ClientError

from tests.scenario.object_store import ObjectStore, StoreClient
from tidegate_spark.contract.protocol import Fault, Storage
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.storage.claim import claiming
from tidegate_spark.storage.claim.claims import LONGEST_CLAIM
from tidegate_spark.storage.s3_client import FaultError
from tidegate_testing.counted_body import CountedBody
from tidegate_testing.driver_process import driver_config

PLACE = Storage("s3://streams/apps/shop/orders/shop/inner")
CONFIG = driver_config("inner", "local:///main.py", PLACE, namespace="shop", uid="u-1")
OWN = "streams/apps/shop/orders/shop/inner/app.json"


def claim_of(namespace: str, app: str = "vault", uid: str = "u-2", **fields: Any) -> bytes:
    return json.dumps({"uid": uid, "namespace": namespace, "app": app, "epoch": 1, "lineage": 1, **fields}).encode()


def claimed(objects: dict[str, bytes], client: type[StoreClient] = StoreClient) -> Fault | None:
    """Return why the place is not taken, None if it is."""
    reached: Any = client(ObjectStore(objects))
    try:
        claiming.claim(reached, CONFIG)
    except FaultError as error:
        return error.fault
    assert json.loads(objects[OWN])["uid"] == "u-1"
    return None


@pytest.mark.parametrize("around", ["streams/apps/shop/orders", "streams/apps/shop", "streams/apps"])
@pytest.mark.parametrize("more", [{}, {"version": 9}, {"epoch": "many"}])
def test_a_place_inside_what_another_namespace_has_claimed_is_not_taken_and_nobody_is_named(
    around: str, more: dict[str, Any]
) -> None:
    objects = {f"{around}/app.json": claim_of("bank", **more)}
    fault = claimed(objects)
    assert fault is not None
    assert (fault.reason, OWN in objects) == (Reason.STORAGE_OWNED, False)
    assert fault.message.endswith("is inside storage that an application of another namespace has claimed.")
    assert "bank" not in fault.message
    assert "vault" not in fault.message


@pytest.mark.parametrize(
    ("around", "content"),
    [
        ("streams/apps/shop/orders", claim_of("shop")),
        ("streams/apps/shop/orders", claim_of("bank", uid="u-1")),
        ("streams/apps", b'{"app": "a file of somebody", "name": "x"}'),
        ("streams/apps", b"[" * 5000),
        ("streams/apps/shop/orders/shop/inner-2", claim_of("bank")),
        ("streams/apps/shop/orders/shop/inner/below", claim_of("bank")),
    ],
)
def test_a_place_is_taken_whatever_else_is_around_it(around: str, content: bytes) -> None:
    assert claimed({f"{around}/app.json": content}) is None


def test_a_file_without_end_around_a_place_is_read_as_far_as_a_claim_goes() -> None:
    """Any other tenant of the bucket can put one there, and whoever starts beside it would run out of memory."""
    read: list[int] = []

    class Client(StoreClient):
        def get_object(self, **asked: Any) -> Any:
            return {**super().get_object(**asked), "Body": CountedBody(read)}

    assert claimed({"streams/apps/app.json": b"{}"}, Client) is None
    assert max(read) == LONGEST_CLAIM


def test_a_place_that_is_ones_own_already_is_not_held_back_by_a_later_claim_around_it() -> None:
    assert claimed({OWN: claim_of("shop", "inner", "u-1"), "streams/apps/app.json": claim_of("bank")}) is None


def test_credentials_for_the_place_alone_are_enough() -> None:
    class Narrow(StoreClient):
        """Reads below the place, and nothing around it."""

        def get_object(self, *, Bucket: str, Key: str, **named: str) -> dict[str, Any]:  # noqa: N803 - boto3's names
            if not Key.startswith(PLACE.prefix):
                denied = {"Error": {"Code": "AccessDenied"}, "ResponseMetadata": {"HTTPStatusCode": 403}}
                raise ClientError(denied, "GetObject")  # type: ignore[arg-type] # as much as is read
            return super().get_object(Bucket=Bucket, Key=Key)

    assert claimed({}, Narrow) is None


@pytest.mark.parametrize(("namespace", "named"), [("shop", True), ("bank", False)])
def test_the_owner_of_the_place_is_named_within_the_namespace_alone(namespace: str, named: bool) -> None:
    fault = claimed({OWN: claim_of(namespace)})
    assert fault is not None
    assert fault.reason is Reason.STORAGE_OWNED
    assert (f"{namespace}/vault with uid u-2" in fault.message) is named
    assert ("an application of another namespace" in fault.message) is not named
    assert ("vault" in fault.message) is named
