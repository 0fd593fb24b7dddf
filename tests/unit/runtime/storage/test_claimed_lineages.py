"""Which launches the storage lets run, whatever the operator told them. The store is a dictionary; no I/O."""

import dataclasses
import json
from typing import Any

import pytest

from tests.scenario.object_store import ObjectStore, StoreClient
from tidegate_spark.contract.object_paths import checkpoint_directory, start_directory
from tidegate_spark.contract.protocol import (
    EXPECTS_BEGINNING,
    EXPECTS_STATE,
    OPENS_EMPTY,
    OPENS_FROM_SNAPSHOT,
    OPENS_NOTHING,
    OPENS_REPARTITIONED,
    DriverConfig,
    EarlierPin,
    Fault,
    StartFrom,
    Storage,
    to_json,
)
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.driver.starting_point import left_to_fill
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_spark.storage.claim import claiming, fence
from tidegate_spark.storage.claim.claimed import Known
from tidegate_spark.storage.claim.claiming import BehindError
from tidegate_spark.storage.claim.fence import Fenced, Held, Holder
from tidegate_spark.storage.s3_client import FaultError
from tidegate_testing.driver_process import driver_config
from tidegate_testing.memory_store import Buckets, MemoryStore

PLACE = Storage("s3://streams/apps/shop/orders")
ROOT = "streams/apps/shop/orders"
OWN = f"{ROOT}/app.json"
PIN, OTHER = StartFrom(PLACE, "up-2", "rollback-up-2", lineage=1), StartFrom(PLACE, "up-3", "rollback-up-3", lineage=1)


def launch(epoch: int, lineage: int, opening: str = OPENS_NOTHING, **fields: Any) -> DriverConfig:
    named = {"namespace": "shop", "uid": "u-1", "epoch": epoch, "lineage": lineage, "opening": opening, **fields}
    return driver_config("orders", "local:///main.py", PLACE, **named)


def claim_of(epoch: int, lineage: int, **fields: Any) -> dict[str, bytes]:
    content = {"uid": "u-1", "namespace": "shop", "app": "orders", "epoch": epoch, "lineage": lineage, **fields}
    return {OWN: json.dumps(content).encode()}


def fence_of(epoch: int, lineage: int) -> bytes:
    holder = {"uid": "u-1", "epoch": epoch, "lineage": lineage, "pod_uid": "p-1", "process": "1"}
    return json.dumps(holder).encode()


def opened(lineage: int, what: str, start_from: StartFrom | None = None) -> dict[str, Any]:
    began = {"startFrom": json.loads(to_json(start_from))} if start_from is not None else {}
    return {"opening": {"lineage": lineage, "what": what, **began}}


def known(objects: dict[str, bytes], config: DriverConfig) -> Known | None:
    """Return what keeps a launch from running, None if it claims the place."""
    client: Any = StoreClient(ObjectStore(objects))
    try:
        claiming.claim(client, config)
    except BehindError as error:
        return error.known
    content = json.loads(objects[OWN])
    assert (content["uid"], content["epoch"], content["lineage"]) == (config.uid, config.epoch, config.lineage)
    return None


def fault(objects: dict[str, bytes], config: DriverConfig) -> Fault:
    before = dict(objects)
    client: Any = StoreClient(ObjectStore(objects))
    with pytest.raises(FaultError) as raised:
        claiming.claim(client, config)
    assert objects == before
    return raised.value.fault


@pytest.mark.parametrize(
    ("asked", "found"),
    [
        # A status that was lost, with the pod's epoch or without it; one that is older.
        (launch(10, 1), Known(9, 2)),
        (launch(1, 1), Known(9, 2)),
        (launch(9, 1), Known(9, 2)),
        (launch(9, 3, OPENS_FROM_SNAPSHOT, start_from=PIN), Known(9, 2)),
        # An operator from before there were openings.
        (launch(10, 1, ""), Known(9, 2)),
        # Numbers in the status that somebody has raised.
        (launch(10, 3), Known(9, 2)),
    ],
)
def test_a_launch_that_is_behind_in_epoch_or_lineage_does_not_run_and_changes_nothing(
    asked: DriverConfig, found: Known
) -> None:
    objects = claim_of(9, 2)
    before = dict(objects)
    assert known(objects, asked) == found
    assert objects == before


@pytest.mark.parametrize(
    "asked",
    [
        launch(10, 2),
        launch(9, 2),
        launch(10, 2, ""),
        launch(10, 3, ""),
        launch(10, 3, OPENS_FROM_SNAPSHOT, start_from=PIN),
        launch(10, 3, OPENS_EMPTY),
        # What it was opened with is not known: an older runtime did it.
        launch(10, 2, OPENS_FROM_SNAPSHOT, start_from=PIN),
    ],
)
def test_a_launch_runs_where_the_application_is_or_in_a_later_lineage_that_it_has_a_reason_to_open(
    asked: DriverConfig,
) -> None:
    assert known(claim_of(9, 2), asked) is None


def test_a_launch_runs_in_the_lineage_that_a_repartition_has_made() -> None:
    made = {f"{ROOT}/lineages/3.json": b"{}", f"{ROOT}/lineages/3/main/commits/5": b""}
    assert known({**claim_of(9, 2), **made}, launch(10, 3, OPENS_REPARTITIONED)) is None
    assert known({**claim_of(10, 3), **made}, launch(11, 3, OPENS_REPARTITIONED)) is None


def test_a_lineage_that_there_is_is_gone_on_with_although_the_claim_is_older() -> None:
    objects = {**claim_of(9, 2), f"{ROOT}/lineages/3/main/commits/4": b""}
    assert known(objects, launch(10, 3)) is None


@pytest.mark.parametrize("mark", [{}, {f"{ROOT}/lineages/3.json": b"{}"}])
def test_a_lineage_that_a_repartition_makes_is_opened_only_by_a_launch_that_says_so(mark: dict[str, bytes]) -> None:
    made = {f"{ROOT}/repartitions/3.json": b"{}", f"{ROOT}/lineages/3/main/commits/4": b"", **mark}
    # Somebody has set the number in the status to that of an attempt, which may fail after that.
    assert known({**claim_of(9, 2), **made}, launch(10, 3)) == Known(9, 2)
    # One that says so knows that it was whole.
    launched = launch(10, 3, OPENS_REPARTITIONED)
    if mark:
        assert known({**claim_of(9, 2), **made}, launched) is None
    else:
        assert fault({**claim_of(9, 2), **made}, launched).reason is Reason.STORAGE_OLDER


@pytest.mark.parametrize(
    ("opening", "asked"),
    [
        (opened(2, OPENS_FROM_SNAPSHOT, PIN), launch(10, 2, OPENS_FROM_SNAPSHOT, start_from=OTHER)),
        (opened(2, OPENS_REPARTITIONED), launch(10, 2, OPENS_FROM_SNAPSHOT, start_from=PIN)),
        (opened(2, OPENS_FROM_SNAPSHOT, PIN), launch(10, 2, OPENS_EMPTY)),
        (opened(2, OPENS_EMPTY), launch(10, 2, OPENS_REPARTITIONED)),
    ],
)
def test_a_lineage_that_started_from_something_else_is_not_taken_for_the_one_that_was_asked_for(
    opening: dict[str, Any], asked: DriverConfig
) -> None:
    assert known(claim_of(9, 2, **opening), asked) == Known(9, 2, otherwise=True)


@pytest.mark.parametrize(
    "opening", [opened(2, OPENS_FROM_SNAPSHOT, PIN), opened(1, OPENS_REPARTITIONED), opened(2, "of a later version")]
)
def test_a_driver_that_is_started_again_goes_on_in_the_lineage_that_it_opened(opening: dict[str, Any]) -> None:
    assert known(claim_of(9, 2, **opening), launch(9, 2, OPENS_NOTHING)) is None
    if opening["opening"]["what"] != "of a later version":
        assert known(claim_of(9, 2, **opening), launch(9, 2, OPENS_FROM_SNAPSHOT, start_from=PIN)) is None


def test_the_claim_says_with_what_a_lineage_begins_before_anything_is_in_it() -> None:
    objects = claim_of(9, 2)
    assert known(objects, launch(10, 3, OPENS_FROM_SNAPSHOT, start_from=PIN)) is None
    own = SnapshotRepository(MemoryStore(Buckets(), "streams"), "apps/shop/orders", lambda seconds: None)
    own.store.put(own.key("app.json"), objects[OWN])
    # Whoever comes next was told nothing of it: the status was lost, and the process killed before it wrote more.
    assert left_to_fill(own, 3) == PIN
    assert left_to_fill(own, 2) is None
    own.store.put(own.key("lineages", "3.json"), b'{"snapshot": "up-2"}')
    assert left_to_fill(own, 3) is None


def test_the_fence_keeps_out_who_is_to_run_in_an_earlier_lineage() -> None:
    client: Any = StoreClient(ObjectStore({}))

    class Port:
        def get(self) -> tuple[bytes, str] | None:
            found = client._store.objects.get("fence")
            return (found, found.decode()) if found is not None else None

        def put_if(self, body: bytes, etag: str | None) -> str | None:
            client._store.objects["fence"] = body
            return body.decode()

    assert isinstance(fence.take(Port(), Holder("u-1", 9, 2, "pod-9", "a")), Held)
    assert fence.take(Port(), Holder("u-1", 10, 1, "pod-10", "b")) == Fenced(9, 2)
    assert isinstance(fence.take(Port(), Holder("u-1", 10, 2, "pod-10", "b")), Held)
    assert isinstance(fence.take(Port(), Holder("u-2", 1, 1, "pod-1", "c")), Held)


def test_an_empty_place_is_begun_in_the_first_lineage_whatever_number_a_status_has() -> None:
    objects: dict[str, bytes] = {}
    assert known(objects, launch(4, 3)) == Known(4, 1, found=False)
    assert objects == {}


# --- what a launch expects to find ---

MARK = {f"{ROOT}/lineages/1.json": b'{"snapshot": "nightly"}'}
PART = {f"{ROOT}/lineages/1/main/commits/4": b""}
ORIGIN = StartFrom(Storage("s3://streams/apps/shop/nightly"), "nightly", "fork-u-1")
FILLING = opened(1, OPENS_FROM_SNAPSHOT, ORIGIN)
ASKS = launch(1, 0, expects=EXPECTS_BEGINNING)
RUNS_ON = launch(10, 1, expects=EXPECTS_BEGINNING)


@pytest.mark.parametrize(
    "asked",
    [
        launch(10, 1, expects=EXPECTS_STATE),
        launch(10, 2, expects=EXPECTS_BEGINNING),
        # It started from a snapshot, which is still there: to do so again is to go back.
        launch(10, 1, OPENS_FROM_SNAPSHOT, start_from=ORIGIN, expects=EXPECTS_STATE),
        ASKS,
        RUNS_ON,
    ],
)
@pytest.mark.parametrize("others", [{}, {"streams/apps/shop/orders-2/app.json": b"{}"}])
def test_an_application_that_has_run_or_started_from_a_snapshot_does_not_begin_in_an_empty_place(
    asked: DriverConfig, others: dict[str, bytes]
) -> None:
    found = fault(dict(others), asked)
    assert found.reason is Reason.STORAGE_EMPTY
    assert "spec.storage.endpoint" in found.message


def test_what_ran_in_a_lineage_does_not_begin_in_it_again_where_its_files_are_gone() -> None:
    asked = launch(10, 1, OPENS_FROM_SNAPSHOT, start_from=ORIGIN, expects=EXPECTS_STATE)
    assert fault({**claim_of(9, 1, **FILLING), **MARK}, asked).reason is Reason.STORAGE_EMPTY
    assert known({**claim_of(9, 1, **FILLING), **MARK, **PART}, asked) is None
    # It has run in a lineage that this store has never had, whatever it has of the one before.
    later = launch(10, 2, OPENS_EMPTY, expects=EXPECTS_STATE)
    assert fault({**claim_of(9, 1, **FILLING), **MARK, **PART}, later).reason is Reason.STORAGE_EMPTY
    # Where the storage has another lineage, that is said, whatever is in this one.
    assert known(claim_of(9, 2), asked) == Known(9, 2)


@pytest.mark.parametrize(
    "there",
    [
        {**claim_of(9, 1), **MARK},
        claim_of(9, 1, **FILLING),
        {**claim_of(9, 2), f"{ROOT}/lineages/2/main/commits/4": b""},
    ],
)
def test_who_asks_is_told_where_the_application_is_and_claims_nothing(there: dict[str, bytes]) -> None:
    lineage = json.loads(there[OWN])["lineage"]
    before = dict(there)
    for epoch in (1, 9, 10):
        reported = known(there, launch(epoch, 0, expects=EXPECTS_BEGINNING))
        assert reported == Known(9, lineage)
        assert reported.found
    assert there == before


def test_a_lineage_of_which_nothing_says_what_it_was_filled_with_is_not_gone_on_with() -> None:
    # A runtime of before, which wrote no opening, was killed while it filled it.
    partly = {**claim_of(9, 1), **PART}
    assert fault(partly, ASKS).reason is Reason.STORAGE_EMPTY
    assert fault(partly, RUNS_ON).reason is Reason.STORAGE_EMPTY
    assert known({**partly, **MARK}, RUNS_ON) is None
    assert known({**claim_of(9, 1, **FILLING), **PART}, RUNS_ON) is None


@pytest.mark.parametrize("there", [{f"{ROOT}/lineages/2/main/commits/4": b""}, {f"{ROOT}/lineages/2.json": b"{}"}])
def test_a_later_lineage_is_gone_on_with_where_there_is_anything_of_it(there: dict[str, bytes]) -> None:
    assert known({**claim_of(9, 2), **there}, launch(10, 2, expects=EXPECTS_BEGINNING)) is None
    assert fault(claim_of(9, 2), launch(10, 2, expects=EXPECTS_BEGINNING)).reason is Reason.STORAGE_EMPTY
    assert known(claim_of(9, 2, **opened(2, OPENS_EMPTY)), launch(10, 2, expects=EXPECTS_BEGINNING)) is None


@pytest.mark.parametrize("opening", [OPENS_REPARTITIONED, OPENS_FROM_SNAPSHOT])
def test_a_later_lineage_is_opened_where_there_is_anything_of_the_one_before(opening: str) -> None:
    asked = launch(10, 2, opening, start_from=PIN, expects=EXPECTS_BEGINNING)
    made = {f"{ROOT}/lineages/2.json": b"{}"} if opening == OPENS_REPARTITIONED else {}
    assert known({**claim_of(9, 1), **PART, **made}, asked) is None
    assert fault({**claim_of(9, 1), **made}, asked).reason is Reason.STORAGE_EMPTY


# --- an older copy ---

STATE = {f"{ROOT}/lineages/1/main/state/0/4.zip": b""}
RAN = {**claim_of(9, 1), **PART, **STATE}
"""Storage that ends with batch 4."""


def expecting(main: int, lineage: int = 1, **fields: Any) -> DriverConfig:
    batches = {"main": main, **fields.pop("batches", {})}
    return launch(10, lineage, expects=EXPECTS_STATE, expects_batches=batches, **fields)


def test_an_older_copy_than_what_was_committed_is_not_gone_on_with() -> None:
    found = fault(dict(RAN), expecting(5))
    assert found.reason is Reason.STORAGE_OLDER
    assert "query 'main' ends with batch 4 in lineage 1, but the application has committed batch 5." in found.message
    assert fault({**claim_of(9, 1), **STATE}, expecting(0)).reason is Reason.STORAGE_OLDER


@pytest.mark.parametrize("newest", [5, 6, 9, 10, 50, 51, 100])
def test_a_storage_that_has_the_batch_or_a_later_one_is_gone_on_with(newest: int) -> None:
    later = {**claim_of(9, 1), **STATE, f"{ROOT}/lineages/1/main/commits/{newest}": b""}
    assert known(later, expecting(5)) is None


def checkpoint(directory: str, batch: int, state: str = "state/0/1.zip") -> dict[str, bytes]:
    """Return a query's, which ends with a batch."""
    return {f"{ROOT}/lineages/1/{directory}/{name}": b"" for name in (f"commits/{batch}", state)}


def test_each_query_is_compared_with_its_own_batch() -> None:
    name = "größe"
    both = {**RAN, **checkpoint(checkpoint_directory(name), 70)}
    assert known(dict(both), expecting(4, batches={name: 70})) is None
    for older in (expecting(4, batches={name: 71}), expecting(5, batches={name: 70})):
        assert fault(dict(both), older).reason is Reason.STORAGE_OLDER
    assert "query 'größe' ends with batch 70" in fault(dict(both), expecting(4, batches={name: 71})).message
    # Another lineage's count for nothing.
    elsewhere = {f"{ROOT}/lineages/12/main/commits/71": b""}
    assert fault({**both, **elsewhere}, expecting(71, batches={name: 70})).reason is Reason.STORAGE_OLDER


def test_a_query_that_was_renamed_or_removed_vouches_for_no_other() -> None:
    former = checkpoint("former", 1_000_000)
    assert known({**RAN, **former}, expecting(4)) is None
    assert fault({**RAN, **former}, expecting(5)).reason is Reason.STORAGE_OLDER
    assert "query 'new' has no batch in lineage 1" in fault({**RAN, **former}, expecting(4, batches={"new": 1})).message


def test_a_query_without_state_whose_log_may_be_behind_what_spark_reported_is_left_out_alone() -> None:
    stateless = {**RAN, **checkpoint("other", 4, state="offsets/4")}
    assert known(dict(stateless), expecting(4, batches={"other": 9})) is None
    assert fault(dict(stateless), expecting(5, batches={"other": 9})).reason is Reason.STORAGE_OLDER
    # A copy from before its first batch is older, whatever the query is.
    begun = {**RAN, f"{ROOT}/lineages/1/other/metadata": b""}
    assert fault(dict(begun), expecting(4, batches={"other": 9})).reason is Reason.STORAGE_OLDER
    # But the first batch, too, may be reported before it is in the log.
    assert known(begun, expecting(4, batches={"other": 0})) is None


def test_a_query_that_starts_empty_each_time_is_left_out_alone() -> None:
    again = {**RAN, **checkpoint(start_directory("newest", 7), 0)}
    assert known(dict(again), expecting(4, batches={"newest": 200})) is None
    assert fault(dict(again), expecting(5, batches={"newest": 200})).reason is Reason.STORAGE_OLDER
    assert fault(dict(again), expecting(4, batches={"new": 200})).reason is Reason.STORAGE_OLDER


def test_where_no_batch_is_known_none_is_expected() -> None:
    assert known(dict(RAN), launch(10, 1, expects=EXPECTS_STATE)) is None


def test_an_older_copy_that_has_not_even_the_lineage_is_not_gone_back_to() -> None:
    older = {**RAN, **MARK}
    found = fault(dict(older), expecting(12, lineage=2))
    assert (found.reason, "is an older copy: it ends in lineage 1, but" in found.message) == (
        Reason.STORAGE_OLDER,
        True,
    )
    # What the launch only takes for granted is the status's word alone, and the storage is right.
    assert known(dict(older), launch(10, 2, expects=EXPECTS_BEGINNING)) == Known(9, 1)


def test_a_lineage_that_is_opened_and_one_that_started_again_expect_no_batch() -> None:
    assert known({**RAN, **MARK}, launch(10, 2, OPENS_FROM_SNAPSHOT, start_from=PIN, expects=EXPECTS_BEGINNING)) is None
    assert known(dict(RAN), launch(10, 2, OPENS_EMPTY)) is None


@pytest.mark.parametrize("expects", [EXPECTS_BEGINNING, EXPECTS_STATE])
@pytest.mark.parametrize("claim", [claim_of(9, 1), claim_of(9, 2, **opened(2, OPENS_REPARTITIONED))])
def test_a_copy_from_before_a_repartition_is_not_begun_in_with_nothing(claim: dict[str, bytes], expects: str) -> None:
    """Its lineage is not there: the copy was put back after the pod that made it had said that it is whole."""
    asked = launch(10, 2, OPENS_REPARTITIONED, expects=expects)
    before = {**RAN, **claim}
    found = fault(dict(before), asked)
    assert found.reason is Reason.STORAGE_OLDER
    assert "the state was repartitioned into lineage 2, which is not there." in found.message
    whole = {f"{ROOT}/lineages/2.json": b"{}", f"{ROOT}/lineages/2/main/commits/5": b""}
    assert known({**before, **whole}, asked) is None


def test_a_person_accepts_a_copy_from_before_a_repartition_and_the_application_goes_on_in_its_lineage() -> None:
    asked = launch(10, 2, OPENS_REPARTITIONED, expects=EXPECTS_BEGINNING, adopt=True, adopt_lineage=1)
    assert known(dict(RAN), asked) == Known(9, 1)
    assert fault(dict(RAN), dataclasses.replace(asked, adopt_lineage=0)).reason is Reason.STORAGE_OLDER


REPARTITIONED = claim_of(9, 2, **opened(2, OPENS_REPARTITIONED))
DIVIDED = launch(10, 2, OPENS_REPARTITIONED, expects=EXPECTS_STATE, expects_batches={"main": 7})
WITHOUT_MARK = {f"{ROOT}/lineages/2/main/{name}": b"" for name in ("commits/7", "state/0/8.zip")}


@pytest.mark.parametrize("claim", [REPARTITIONED, claim_of(9, 2)])
def test_a_repartitioned_lineage_in_which_the_application_ran_is_continued_without_its_mark(
    claim: dict[str, bytes],
) -> None:
    """A runtime of before began there after a copy was put back, or a life-cycle rule deleted the mark."""
    ran = {**RAN, **claim, **WITHOUT_MARK}
    assert known(dict(ran), DIVIDED) is None
    own = SnapshotRepository(MemoryStore(Buckets(), "streams"), "apps/shop/orders", lambda seconds: None)
    for key, body in ran.items():
        own.store.put(key.removeprefix("streams/"), body)
    assert left_to_fill(own, 2) is None
    older = fault(dict(ran), dataclasses.replace(DIVIDED, expects_batches={"main": 8}))
    assert "query 'main' ends with batch 7 in lineage 2" in older.message


def test_a_repartitioned_lineage_without_its_mark_is_not_continued_while_it_is_made() -> None:
    made = {**RAN, **REPARTITIONED, **WITHOUT_MARK, f"{ROOT}/repartitions/2.json": b"{}"}
    assert "it ends in lineage 1, but the state was repartitioned" in fault(made, DIVIDED).message


def test_a_person_accepts_a_copy_from_before_a_repartition_beside_a_newer_claim_and_fence() -> None:
    objects = {**RAN, **REPARTITIONED, f"{ROOT}/fence.json": fence_of(9, 2)}
    assert "it ends in lineage 1, but" in fault(dict(objects), DIVIDED).message
    accepted = dataclasses.replace(DIVIDED, adopt=True, adopt_lineage=1)
    assert fault(dict(objects), dataclasses.replace(accepted, adopt_lineage=2)).reason is Reason.STORAGE_OLDER
    assert known(objects, accepted) == Known(9, 1)
    # The next launch, in the lineage that the status has then, is kept out by neither of both.
    assert known(objects, launch(11, 1, adopt=True, adopt_lineage=1)) is None
    assert f"{ROOT}/fence.json" not in objects


@pytest.mark.parametrize("holder", [(9, 1), (12, 2)])
def test_a_fence_that_keeps_out_nobody_who_was_accepted_stays(holder: tuple[int, int]) -> None:
    objects = {**RAN, f"{ROOT}/fence.json": fence_of(*holder)}
    assert known(objects, dataclasses.replace(DIVIDED, adopt=True, adopt_lineage=1)) == Known(9, 1)
    assert objects[f"{ROOT}/fence.json"] == fence_of(*holder)


def test_a_person_chooses_between_a_repartitioned_lineage_without_its_mark_and_the_one_before() -> None:
    objects = {**RAN, **WITHOUT_MARK}
    assert "spec.startFrom.adoptLineage 2 continues with those, 1 with" in fault(dict(objects), DIVIDED).message
    newer = dataclasses.replace(DIVIDED, adopt=True, adopt_lineage=2, expects_batches={"main": 8})
    assert known(dict(objects), newer) is None
    assert known(dict(objects), dataclasses.replace(newer, adopt_lineage=1)) == Known(9, 1)


def test_a_claim_of_a_repartitioned_lineage_beside_nothing_has_no_state() -> None:
    assert fault(dict(REPARTITIONED), DIVIDED).reason is Reason.STORAGE_EMPTY


ROLLED_BACK = launch(
    10, 2, OPENS_FROM_SNAPSHOT, start_from=PIN, expects=EXPECTS_BEGINNING, expects_left={"main": 5, "new": 0}
)
NEWEST = {**claim_of(9, 1), **STATE, f"{ROOT}/lineages/1/main/commits/5": b"", f"{ROOT}/lineages/1/new/commits/0": b""}


def test_nothing_is_rolled_back_to_the_end_of_an_older_copy() -> None:
    assert known(dict(NEWEST), ROLLED_BACK) is None
    found = fault(dict(RAN), ROLLED_BACK)
    assert found.reason is Reason.STORAGE_OLDER
    assert "query 'main' ends with batch 4 in lineage 1, but the application has committed batch 5." in found.message
    # An attempt before this one claimed the lineage, in the storage that was replaced by its copy.
    assert known({**RAN, **claim_of(9, 2, **opened(2, OPENS_FROM_SNAPSHOT, PIN))}, ROLLED_BACK) is None


@pytest.mark.parametrize(
    ("follows", "found"), [(0, None), (9, None), (10, None), (8, Known(9, 1))], ids=["unsaid", "the last", "later", "8"]
)
def test_nothing_is_rolled_back_that_an_older_status_has_not_heard_the_end_of(
    follows: int, found: Known | None
) -> None:
    """The version that it has under test may be stable since: another launch has followed."""
    assert known(dict(NEWEST), dataclasses.replace(ROLLED_BACK, epoch=11, follows_epoch=follows)) == found
    claimed = {**NEWEST, **claim_of(10, 2, **opened(2, OPENS_FROM_SNAPSHOT, PIN))}
    assert known(claimed, dataclasses.replace(ROLLED_BACK, epoch=11, follows_epoch=8)) is None


@pytest.mark.parametrize("settled", ["upgrades/up-2.json", "snapshots/up-2/manifest.json"])
def test_a_rollback_whose_batches_are_settled_starts_from_those_also_on_an_older_copy(settled: str) -> None:
    assert known({**RAN, f"{ROOT}/{settled}": b"{}"}, ROLLED_BACK) is None
    assert (
        fault({**RAN, f"{ROOT}/{settled.replace('up-2', 'up-3')}": b"{}"}, ROLLED_BACK).reason is Reason.STORAGE_OLDER
    )


ONCE_MORE = launch(
    12,
    3,
    OPENS_FROM_SNAPSHOT,
    start_from=StartFrom(
        PLACE, "up-3", "rollback-up-3", lineage=2, otherwise=(EarlierPin("up-2", "rollback-up-2", 1),)
    ),
    expects=EXPECTS_BEGINNING,
    expects_otherwise=(ROLLED_BACK.expects_left,),
)
"""Rolls back a version that was launched in a rollback's lineage, of which nobody knows whether it was filled."""
FILLED = {f"{ROOT}/lineages/2.json": b'{"snapshot": "up-2"}', f"{ROOT}/lineages/2/main/commits/4": b""}


def test_a_rollback_of_what_never_ran_does_not_start_from_the_end_of_an_older_copy_of_what_ran_before_it() -> None:
    assert known(dict(NEWEST), ONCE_MORE) is None
    found = fault(dict(RAN), ONCE_MORE)
    assert found.reason is Reason.STORAGE_OLDER
    assert "query 'main' ends with batch 4 in lineage 1, but the application has committed batch 5." in found.message
    # Half-filled is not filled.
    half = {key: body for key, body in FILLED.items() if not key.endswith(".json")}
    assert fault({**RAN, **half}, ONCE_MORE).reason is Reason.STORAGE_OLDER
    assert known(dict(RAN), dataclasses.replace(ONCE_MORE, adopt=True, adopt_lineage=1)) is None


@pytest.mark.parametrize("settled", ["upgrades/up-2.json", "snapshots/up-2/manifest.json"])
def test_it_starts_from_what_is_settled_and_from_the_lineage_between_if_that_was_filled(settled: str) -> None:
    assert known({**RAN, f"{ROOT}/{settled}": b"{}"}, ONCE_MORE) is None
    assert fault({**RAN, f"{ROOT}/{settled.replace('up-2', 'up-3')}": b"{}"}, ONCE_MORE).reason is Reason.STORAGE_OLDER
    assert known({**RAN, **FILLED}, ONCE_MORE) is None


def test_of_several_rollbacks_that_nobody_ran_the_one_is_compared_that_is_started_from() -> None:
    earlier = (EarlierPin("up-3", "rollback-up-3", 2), EarlierPin("up-2", "rollback-up-2", 1))
    start = StartFrom(PLACE, "up-4", "rollback-up-4", lineage=3, otherwise=earlier)
    again = dataclasses.replace(
        ONCE_MORE, lineage=4, start_from=start, expects_otherwise=({}, *ONCE_MORE.expects_otherwise)
    )
    assert known(dict(NEWEST), again) is None
    assert fault(dict(RAN), again).reason is Reason.STORAGE_OLDER
    assert known({**RAN, **FILLED}, again) is None
    # An operator of before names no batches of them.
    assert known(dict(RAN), dataclasses.replace(again, expects_otherwise=())) is None


def test_a_person_accepts_that_an_older_copy_is_rolled_back_to() -> None:
    accepted = dataclasses.replace(ROLLED_BACK, adopt=True, adopt_lineage=1)
    assert known(dict(RAN), accepted) is None


def test_a_person_accepts_an_older_copy_by_naming_its_lineage() -> None:
    assert fault(dict(RAN), expecting(5, adopt=True)).reason is Reason.STORAGE_OLDER
    assert fault(dict(RAN), expecting(5, adopt=True, adopt_lineage=2)).reason is Reason.STORAGE_OLDER
    assert known(dict(RAN), expecting(5, adopt=True, adopt_lineage=1)) is None
    assert known({**RAN, **MARK}, expecting(12, lineage=2, adopt=True, adopt_lineage=1)) == Known(9, 1)


def copied_during_a_rollback() -> dict[str, bytes]:
    """Return a storage that was copied key by key: the rollback to lineage 2 came after app.json and fence.json."""
    ran = {**checkpoint("main", 40), f"{ROOT}/lineages/2/main/commits/900": b"", f"{ROOT}/lineages/2.json": b"{}"}
    return {**claim_of(3, 1), f"{ROOT}/fence.json": fence_of(3, 1), **ran}


@pytest.mark.parametrize("uid", ["u-1", "u-2"])
def test_beside_a_later_lineage_with_batches_nothing_runs_before_a_person_has_chosen(uid: str) -> None:
    objects = copied_during_a_rollback()
    adopts: dict[str, Any] = {"u-1": {}, "u-2": {"adopt": True}}[uid]
    asked = launch(4, 1, uid=uid, **adopts)
    if adopts:
        assert known(objects, launch(1, 1, uid=uid, **adopts)) == Known(3, 1, adopted_from="u-1")
    found = fault(objects, asked)
    assert found.reason is Reason.STORAGE_OLDER
    assert "app.json names lineage 1, and a later one, 2, has batches" in found.message
    assert "spec.startFrom.adoptLineage 2 continues with those, 1 without them" in found.message
    chosen = dataclasses.replace(asked, adopt=True)
    assert fault(objects, chosen) == found
    later = dict(objects)
    assert known(later, dataclasses.replace(chosen, adopt_lineage=2)) == Known(4, 2)
    assert known(later, dataclasses.replace(asked, epoch=5, lineage=2)) is None
    assert known(objects, dataclasses.replace(chosen, adopt_lineage=1)) is None
    assert known(objects, dataclasses.replace(asked, epoch=5)) is None, "asked once"


@pytest.mark.parametrize("end", ["json", "begin", "empty"])
def test_a_later_lineage_counts_with_whatever_says_why_it_is_there(end: str) -> None:
    beside = {f"{ROOT}/lineages/2/main/commits/900": b"", f"{ROOT}/lineages/2.{end}": b"{}"}
    found = fault({**claim_of(3, 1), **checkpoint("main", 40), **beside}, launch(4, 1))
    assert found.reason is Reason.STORAGE_OLDER


def test_a_lineage_that_a_repartition_makes_or_that_has_no_batch_is_not_a_later_one() -> None:
    objects = {**claim_of(9, 1), **checkpoint("main", 40), f"{ROOT}/lineages/3/main/offsets/0": b""}
    beside = {f"{ROOT}/lineages/2.json": b"{}", f"{ROOT}/lineages/3.begin": b"{}"}
    made = {f"{ROOT}/lineages/2/main/commits/40": b"", f"{ROOT}/repartitions/2.json": b"{}"}
    assert known({**objects, **beside, **made}, launch(10, 1)) is None


def test_what_a_pod_that_was_taken_for_lost_wrote_after_its_lineage_was_removed_is_not_a_later_one() -> None:
    late = {f"{ROOT}/lineages/3/main/commits/4": b"", f"{ROOT}/lineages/3/main/state/0/0/5.delta": b""}
    assert known({**claim_of(9, 1), **checkpoint("main", 40), **late}, launch(10, 1)) is None


def test_of_several_later_lineages_a_person_chooses_and_is_asked_before_another_one_is_opened() -> None:
    more = {f"{ROOT}/lineages/4/main/commits/7": b"", f"{ROOT}/lineages/4.begin": b"{}"}
    objects = {**copied_during_a_rollback(), **more}
    asked = launch(5, 3, OPENS_FROM_SNAPSHOT, start_from=PIN)
    found = fault({**objects, **claim_of(4, 2)}, asked)
    assert "names lineage 2, and a later one, 4, has batches" in found.message
    found = fault(objects, launch(4, 1))
    assert "names lineage 1, and later ones, 2, 4, have batches" in found.message
    assert known(objects, launch(4, 1, adopt=True, adopt_lineage=2)) == Known(4, 2)
    assert known(objects, launch(5, 2)) is None
    assert json.loads(objects[OWN])["passed"] == 4


def test_nothing_is_rolled_back_into_a_lineage_with_another_history() -> None:
    objects = {**copied_during_a_rollback(), **claim_of(3, 1, passed=2)}
    found = fault(objects, launch(4, 2, OPENS_FROM_SNAPSHOT, start_from=PIN))
    assert found.reason is Reason.LINEAGE_NOT_EMPTY
    assert f"batches of another history below {PLACE.uri}/lineages/2" in found.message
    assert known(objects, launch(4, 3, OPENS_FROM_SNAPSHOT, start_from=PIN)) is None


@pytest.mark.parametrize("beside", ["2.json", "2.begin"])
@pytest.mark.parametrize(("content", "is_own"), [(b'{"snapshot": "up-2"}', True), (b'{"snapshot": "up-9"}', False)])
def test_a_rollback_goes_on_in_the_lineage_that_it_began_to_fill_although_the_claim_was_put_back(
    beside: str, content: bytes, is_own: bool
) -> None:
    half = {f"{ROOT}/lineages/2/main/commits/4": b"", f"{ROOT}/lineages/{beside}": content}
    objects = {**claim_of(3, 1), **checkpoint("main", 40), **half}
    opens = launch(4, 2, OPENS_FROM_SNAPSHOT, start_from=PIN)
    assert known(objects, opens) is None if is_own else fault(objects, opens).reason is Reason.LINEAGE_NOT_EMPTY


@pytest.mark.parametrize("content", [b"{", b"[]", b'{"snapshot": 7}', b"[" * 100_000])
def test_what_says_nothing_of_a_lineage_makes_it_nobodys(content: bytes) -> None:
    half = {f"{ROOT}/lineages/2/main/commits/4": b"", f"{ROOT}/lineages/2.json": content}
    found = fault({**claim_of(3, 1), **half}, launch(4, 2, OPENS_FROM_SNAPSHOT, start_from=PIN))
    assert found.reason is Reason.LINEAGE_NOT_EMPTY


@pytest.mark.parametrize("expects", [EXPECTS_BEGINNING, EXPECTS_STATE])
def test_a_claim_that_is_older_than_the_fence_is_reported_where_the_lineage_of_the_fence_is_gone(expects: str) -> None:
    objects = {**claim_of(9, 1), **checkpoint("main", 40), f"{ROOT}/fence.json": fence_of(10, 2)}
    assert known(objects, launch(1, 1)) == Known(9, 1)
    found = fault(objects, launch(11, 2, expects=expects))
    assert found.reason is Reason.STORAGE_OLDER
    assert "ends in lineage 1, but the application has run in lineage 2" in found.message


@pytest.mark.parametrize(("holder", "stays"), [((10, 2), False), ((10, 1), True), ((13, 2), True)])
def test_who_accepts_an_older_copy_beside_a_newer_fence_is_not_kept_out_by_that(
    holder: tuple[int, int], stays: bool
) -> None:
    objects = {**claim_of(9, 1), **checkpoint("main", 40), f"{ROOT}/fence.json": fence_of(*holder)}
    accepted: dict[str, Any] = {"adopt": True, "adopt_lineage": 1, "expects": EXPECTS_STATE}
    assert known(objects, launch(11, 2, **accepted)) == Known(9, 1)
    assert f"{ROOT}/fence.json" in objects, "a launch that does not run removes nothing"
    assert known(objects, launch(12, 1, **accepted)) is None
    assert (f"{ROOT}/fence.json" in objects) is stays


def test_what_belongs_to_another_application_is_not_called_empty() -> None:
    assert fault(claim_of(9, 2), launch(1, 0, uid="u-2", expects=EXPECTS_BEGINNING)).reason is Reason.STORAGE_OWNED
    assert fault(dict(LINEAGES), ASKS).reason is Reason.CLAIM_DAMAGED


# --- start with nothing ---


@pytest.mark.parametrize("left", ["lineages/3/main/offsets/0", "lineages/3.json", "lineages/3.begin"])
def test_a_lineage_that_is_to_start_from_nothing_and_has_something_is_not_begun(left: str) -> None:
    objects = {**claim_of(9, 2), f"{ROOT}/{left}": b"{}"}
    found = fault(objects, launch(10, 3, OPENS_EMPTY))
    assert found.reason is Reason.LINEAGE_NOT_EMPTY
    assert "s3://streams/apps/shop/orders/lineages/3" in found.message


def test_what_an_attempt_at_a_repartition_left_is_no_obstacle_and_neither_is_another_lineage() -> None:
    attempt = {f"{ROOT}/repartitions/3.json": b"{}", f"{ROOT}/lineages/3/main/commits/4": b""}
    assert known({**claim_of(9, 2), **attempt}, launch(10, 3, OPENS_EMPTY)) is None
    others = {f"{ROOT}/lineages/2/main/commits/4": b"", f"{ROOT}/lineages/31/main/commits/4": b""}
    assert known({**claim_of(9, 2), **others}, launch(10, 3, OPENS_EMPTY)) is None


def test_a_lineage_that_was_to_start_empty_and_is_empty_is_started_although_the_claim_was_put_back() -> None:
    assert known({**claim_of(9, 2), f"{ROOT}/lineages/3.empty": b"{}"}, launch(10, 3, OPENS_EMPTY)) is None


def test_a_lineage_that_started_from_nothing_is_gone_on_with() -> None:
    objects = {**claim_of(9, 3, **opened(3, OPENS_EMPTY)), f"{ROOT}/lineages/3/main/commits/4": b""}
    assert known(objects, launch(10, 3, OPENS_EMPTY)) is None


# --- another resource of the name ---


def test_another_resource_is_refused_and_one_that_adopts_takes_over_where_the_earlier_one_ended() -> None:
    objects = claim_of(9, 2, sparkVersion="4.1.0", **opened(2, OPENS_FROM_SNAPSHOT, PIN))
    assert fault(objects, launch(1, 1, uid="u-2")).reason is Reason.STORAGE_OWNED
    assert known(objects, launch(1, 1, uid="u-2", adopt=True)) == Known(9, 2, adopted_from="u-1")
    content = json.loads(objects[OWN])
    assert (content["uid"], content["epoch"], content["lineage"]) == ("u-2", 9, 2)
    assert (content["earlier"], content["opening"]) == (["u-1"], opened(2, OPENS_FROM_SNAPSHOT, PIN)["opening"])
    # Killed before it could say so, its next process finds the place its own.
    assert known(objects, launch(1, 1, uid="u-2", adopt=True)) == Known(9, 2)
    assert known(objects, launch(10, 2, uid="u-2", adopt=True)) is None


def test_a_resource_that_lost_its_place_does_not_take_it_back() -> None:
    objects = claim_of(9, 2)
    assert known(objects, launch(1, 1, uid="u-2", adopt=True)) is not None
    assert fault(objects, launch(10, 2, adopt=True)).reason is Reason.STORAGE_OWNED


def test_nobody_takes_over_what_an_application_of_another_namespace_has_claimed() -> None:
    objects = claim_of(9, 2, namespace="bank")
    assert fault(objects, launch(1, 1, uid="u-2", adopt=True)).reason is Reason.STORAGE_OWNED


def test_a_place_without_anything_is_not_adopted_and_started_from_nothing_instead() -> None:
    assert fault({}, launch(1, 1, adopt=True)).reason is Reason.NOTHING_TO_ADOPT
    assert known({}, launch(1, 1)) is None


LINEAGES = {f"{ROOT}/lineages/2/main/commits/7": b""}
FENCE = {
    f"{ROOT}/fence.json": json.dumps({"uid": "u-1", "epoch": 9, "lineage": 2, "pod_uid": "p", "process": "x"}).encode()
}


@pytest.mark.parametrize("uid", ["u-1", "u-2"])
def test_lineages_without_a_claim_are_never_claimed_unless_they_are_adopted_by_what_the_fence_says(uid: str) -> None:
    assert fault({**LINEAGES, **FENCE}, launch(10, 2, uid=uid)).reason is Reason.CLAIM_DAMAGED
    without = fault(dict(LINEAGES), launch(10, 2, uid=uid, adopt=True))
    assert (without.reason, "fence.json is missing or damaged as well" in without.message) == (
        Reason.CLAIM_DAMAGED,
        True,
    )
    objects = {**LINEAGES, **FENCE}
    assert known(objects, launch(1, 1, uid=uid, adopt=True)) == Known(9, 2, adopted_from="u-1")
    assert known(objects, launch(10, 2, uid=uid, adopt=True)) is None


def test_a_damaged_claim_is_adopted_by_what_the_fence_says() -> None:
    objects = {**LINEAGES, **FENCE, OWN: b"{"}
    assert fault(dict(objects), launch(10, 2)).reason is Reason.CLAIM_DAMAGED
    assert known(objects, launch(1, 1, adopt=True)) == Known(9, 2, adopted_from="u-1")
    assert known(objects, launch(10, 2, adopt=True)) is None


@pytest.mark.parametrize("claim", [{}, {OWN: b"{"}], ids=["missing claim", "damaged claim"])
@pytest.mark.parametrize("guard", [{}, {f"{ROOT}/fence.json": b"[]"}], ids=["missing fence", "damaged fence"])
def test_where_nothing_says_which_lineage_it_was_a_person_does(
    claim: dict[str, bytes], guard: dict[str, bytes]
) -> None:
    objects = {**LINEAGES, f"{ROOT}/lineages/10/main/commits/3": b"", f"{ROOT}/lineages/2.pin": b"", **claim, **guard}
    refused = fault(dict(objects), launch(3, 1, adopt=True))
    assert refused.reason is Reason.CLAIM_DAMAGED
    assert "spec.startFrom.adoptLineage" in refused.message
    assert "There are: 2, 10." in refused.message
    absent = fault(dict(objects), launch(3, 1, adopt=True, adopt_lineage=4))
    assert (absent.reason, "There are: 2, 10." in absent.message) == (Reason.NOTHING_TO_ADOPT, True)
    assert known(objects, launch(3, 1, adopt=True, adopt_lineage=2)) == Known(3, 2, adopted_from="u-1")
    assert known(objects, launch(4, 2, adopt=True, adopt_lineage=2)) is None
    assert f"{ROOT}/fence.json" not in objects  # the next driver makes it


def test_what_a_newer_tidegate_wrote_is_not_adopted_by_a_lineage_that_is_named() -> None:
    objects = {**LINEAGES, OWN: b'{"version": 99}'}
    assert fault(objects, launch(3, 1, adopt=True, adopt_lineage=2)).reason is Reason.NEWER_FORMAT
