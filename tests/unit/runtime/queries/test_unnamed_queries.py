"""What unnamed queries with checkpointLocations of their own are called, start after start. The store is in memory."""

import re

import pytest

from tidegate_spark.contract.object_paths import checkpoint_directory
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.queries.unnamed_queries import (
    NOTES_FILE,
    UndecidedError,
    UnnamedQueries,
    is_of_one_start,
    name_of_location,
    plain_location,
)
from tidegate_spark.snapshots.repository import Library
from tidegate_spark.storage.memory import Buckets, MemoryStore
from tidegate_spark.storage.s3_client import FaultError

ORDERS, REFUNDS, RETURNS = (f"s3a://lake/checkpoints/{table}" for table in ("orders", "refunds", "returns"))
NOON = 1_795_780_800.0  # 2026-11-27T12:00:00Z
OF_EACH_START = "/tmp/temporary-0b5e1f7a-6b3c-4c1e-9c39-5a9f1f6f6a10"


class World:
    """An application's storage; each start is one of a driver process."""

    def __init__(self) -> None:
        self.library = Library(MemoryStore(Buckets(), "here"), "apps/orders")

    def start(self, *locations: str, lineage: int = 1) -> list[str]:
        """Start unnamed queries in a process of their own, each with a batch; return their names."""
        unnamed, of_main, names = UnnamedQueries(lineage, lambda: self.library, lambda: NOON), None, []
        for location in locations:
            names.append(unnamed.name(location, of_main))
            if names[-1] == "main" and of_main is None:
                of_main = location
            self.commit(names[-1], lineage)
        return names

    def commit(self, name: str, lineage: int = 1) -> None:
        self.library.store.put(self.library.lineage_key(lineage, name, "commits/0"), b"v1")

    def note(self, body: bytes) -> None:
        self.library.store.put(self.library.key(NOTES_FILE), body)


def test_a_lone_unnamed_query_is_main_wherever_its_location_is() -> None:
    world = World()
    assert [world.start(each) for each in ("", ORDERS, REFUNDS, OF_EACH_START, ORDERS)] == [["main"]] * 5


def test_a_lone_query_from_before_locations_were_noted_keeps_its_state() -> None:
    world = World()
    world.commit("main")
    assert world.start(ORDERS) == ["main"]


def test_each_further_query_is_called_after_its_location() -> None:
    world = World()
    assert world.start(ORDERS, REFUNDS, RETURNS) == ["main", name_of_location(REFUNDS), name_of_location(RETURNS)]
    assert world.start("", REFUNDS) == ["main", name_of_location(REFUNDS)]


def test_queries_keep_their_names_in_whatever_order_threads_start_them() -> None:
    world = World()
    main, other = world.start(ORDERS, REFUNDS)
    assert world.start(REFUNDS, ORDERS) == [other, main]


def test_a_query_that_was_ended_before_its_first_batch_keeps_its_name() -> None:
    world = World()
    unnamed = UnnamedQueries(1, lambda: world.library, lambda: NOON)
    assert unnamed.name(REFUNDS, ORDERS) == name_of_location(REFUNDS)
    assert world.start(REFUNDS, "") == [name_of_location(REFUNDS), "main"]


def test_a_new_query_before_the_others_takes_nobodys_state() -> None:
    world = World()
    earlier = world.start(ORDERS, REFUNDS)
    assert world.start(RETURNS, ORDERS, REFUNDS) == [name_of_location(RETURNS), *earlier]


def test_a_query_whose_checkpoint_another_one_continues_is_refused_with_the_name_to_give() -> None:
    world = World()
    world.start(ORDERS)
    # An edited location, or a second query before the first one: nothing tells.
    with pytest.raises(UndecidedError, match=r"(?s)'s3a://lake/checkpoints/orders'.*refunds.*\.queryName\(.*'main'"):
        world.start(REFUNDS, ORDERS)


def test_after_a_rollback_that_left_a_query_out_the_lone_one_is_main_again_wherever_it_is() -> None:
    world = World()
    world.start(ORDERS, REFUNDS)
    world.commit("main", lineage=2)
    assert world.start(RETURNS, lineage=2) == ["main"]


def test_a_fork_finds_its_queries_by_their_checkpoints_in_whatever_order() -> None:
    world = World()
    for name in ("main", name_of_location(REFUNDS)):
        world.commit(name)
    assert world.start(REFUNDS, ORDERS) == [name_of_location(REFUNDS), "main"]


def test_the_same_location_has_the_same_name_again_in_the_same_process() -> None:
    world = World()
    main, other = world.start(ORDERS, REFUNDS)
    unnamed = UnnamedQueries(1, lambda: world.library, lambda: NOON)
    assert [unnamed.name(each, ORDERS) for each in (ORDERS + "/", REFUNDS)] == [main, other]


@pytest.mark.parametrize(
    "location",
    [
        OF_EACH_START,
        "/tmp/0B5E1F7A6B3C4C1E9C395A9F1F6F6A10/cp",
        "/tmp/tmpk3v_9x2a",
        f"s3a://lake/cp-{NOON:.0f}",
        f"s3a://lake/cp-{NOON * 1000:.0f}",
        f"s3a://lake/cp-{NOON + 0.25}",
        "s3a://lake/20261127/cp",
        "s3a://lake/2026-11-27T11:58:01/cp",
        "s3a://lake/2026/11/28/cp",
    ],
)
def test_a_location_with_a_random_part_or_the_time_names_no_query(location: str) -> None:
    assert is_of_one_start(location, NOON)
    world = World()
    # Two of them are refused by whoever asks, as two without a location.
    assert world.start(location, location) == ["main", "main"]
    assert world.library.store.get(world.library.key(NOTES_FILE)) is None


@pytest.mark.parametrize(
    "location", [ORDERS, "/cp/2025-01-01", "/cp/v20240101", "/cp/1500000000", "/cp/orders-3fe9ee08", "/cp/tmp/orders"]
)
def test_a_location_that_stays_names_a_query(location: str) -> None:
    assert not is_of_one_start(location, NOON)


@pytest.mark.parametrize("location", [ORDERS, "cp", "/", "s3a://lake", "/größe/ /", "x" * 500, "/a/.empty-start-1f"])
def test_a_name_is_a_plain_word_that_is_a_directory_of_its_own(location: str) -> None:
    name = name_of_location(location)
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", name)
    assert checkpoint_directory(name) == name


def test_spellings_of_one_place_are_one_and_places_that_differ_differ() -> None:
    assert plain_location("s3://lake//checkpoints/orders/") == plain_location(ORDERS) == ORDERS
    assert plain_location("file:///cp/a/") == plain_location("file:/cp/a") == "/cp/a"
    names = {
        name_of_location(each) for each in (ORDERS, REFUNDS, "s3a://pond/checkpoints/orders", "/checkpoints/orders")
    }
    assert len(names) == 4
    assert name_of_location(ORDERS) == "checkpoints-orders-cd93af32"  # of each release


def test_notes_that_cannot_be_read_decide_nothing() -> None:
    world = World()
    world.note(b'{"main": 7}')
    with pytest.raises(UndecidedError, match=re.escape(".queryName(")):
        world.start(ORDERS)
    world.note(b'{"version": 2}')
    with pytest.raises(FaultError) as newer:
        world.start(ORDERS)
    assert newer.value.fault.reason is Reason.NEWER_FORMAT


def test_a_query_without_a_location_costs_no_request() -> None:
    def unreachable() -> Library:
        raise ConnectionError("no route")

    assert UnnamedQueries(1, unreachable, lambda: NOON).name("", None) == "main"
