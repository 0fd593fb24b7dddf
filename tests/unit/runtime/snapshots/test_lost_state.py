"""Whether a query that finds no state had committed some: a lost file, or a version with a new operator."""

from typing import Any

import pytest

from tests.scenario.object_store import ObjectStore, StoreClient
from tidegate_spark.contract.protocol import Storage
from tidegate_spark.snapshots.checkpoint.lost_state import first_lost

PLACE = Storage("s3://streams/apps/shop/orders")
ROOT = "streams/apps/shop/orders/lineages"
STATEFUL = b'v2\n{"nextBatchWatermarkMs":0,"stateUniqueIds":{"0":[["a"],["b"]],"1":[["c"],["d"]]}}'
STATELESS = b'v2\n{"nextBatchWatermarkMs":0,"stateUniqueIds":{}}'
FORMAT_1 = b'v1\n{"nextBatchWatermarkMs":0}'


def lost(objects: dict[str, bytes], lineage: int = 1) -> str:
    client: Any = StoreClient(ObjectStore({f"{ROOT}/{key}": body for key, body in objects.items()}))
    return first_lost(client, PLACE, lineage)


def state_of(*operators: int) -> dict[str, bytes]:
    return {f"1/counts/state/{operator}/0/7_ab.changelog": b"" for operator in operators}


def test_state_that_the_newest_commit_names_and_that_is_gone_is_lost() -> None:
    logs = {"1/counts/commits/9": STATELESS, "1/counts/commits/10": STATEFUL, "1/counts/offsets/11": b"v1"}
    assert lost(logs) == "lineages/1/counts/state/0/"
    assert lost({**logs, **state_of(0)}) == "lineages/1/counts/state/1/"
    assert lost({**logs, **state_of(0, 1)}) == ""


@pytest.mark.parametrize("commit", [STATELESS, FORMAT_1, b"v9\n{}", b"", b"v2\n[]"])
def test_a_query_that_had_committed_no_state_or_of_which_that_is_not_known_has_lost_none(commit: bytes) -> None:
    assert lost({"1/counts/commits/10": commit}) == ""


def test_another_lineage_and_a_query_without_a_commit_say_nothing() -> None:
    assert lost({"2/counts/commits/3": STATEFUL, "11/counts/commits/3": STATEFUL, "1/counts/offsets/0": b"v1"}) == ""
    assert lost({}) == ""


def test_each_query_of_the_lineage_is_looked_at() -> None:
    whole = {"1/counts/commits/10": STATEFUL, **state_of(0, 1)}
    assert lost({**whole, "1/sums/commits/2": STATEFUL}) == "lineages/1/sums/state/0/"
