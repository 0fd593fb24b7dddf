"""What queries without a name are called, start after start, version after version. The store is in memory."""

import re
from collections.abc import Mapping

import pytest

from tidegate_spark.contract.object_paths import checkpoint_directory
from tidegate_spark.queries.unnamed.naming import UndecidedError, digest_of, name_of, plain_location
from tidegate_spark.queries.unnamed.registry import UnnamedQueries
from tidegate_spark.snapshots.lineages import upgrade_pin
from tidegate_spark.snapshots.repository import Library
from tidegate_spark.snapshots.restore import Origin, Target, restore
from tidegate_spark.storage import location_notes
from tidegate_spark.storage.store import NewerStorageError
from tidegate_testing.fake_checkpoint import LAYOUT
from tidegate_testing.snapshot_scenes import Scene

ORDERS, REFUNDS, RETURNS = (f"s3a://lake/checkpoints/{table}" for table in ("orders", "refunds", "returns"))
NO_LOCATION = ""


class World:
    """An application's storage; each start is one of a driver process."""

    def __init__(self) -> None:
        self.scene = Scene()

    def start(self, *locations: str, only: bool | None = None, others: Mapping[int, str] | None = None) -> list[str]:
        """Start unnamed queries in a process of their own, each with a batch; return their names.

        Args:
            locations: in their order.
            only: whether the text of the script shows that there is no other; by default it does if there is none.
            others: number of a start -> name of a query that the script names and starts before that.
        """
        is_only = len(locations) == 1 if only is None else only
        unnamed = UnnamedQueries(self.scene.lineage, self.scene.library, lambda site, name: is_only)
        started: set[str] = set()
        names = []
        for number, location in enumerate(locations):
            if others and number in others:
                started.add(others[number])
            names.append(unnamed.name(f"main.py:{number}", location, frozenset(started)))
            started.add(names[-1])
            self.commit(names[-1])
        return names

    def commit(self, name: str) -> None:
        self.scene.batches(1, name)

    @property
    def notes(self) -> dict[str, str]:
        return location_notes.read(self.scene.library(), self.scene.lineage)

    def note(self, body: bytes) -> None:
        library = self.scene.library()
        library.store.put(location_notes.notes_key(library, self.scene.lineage), body)

    def begin_lineage(self, snapshot: str) -> None:
        """Have a new lineage start from a snapshot."""
        library = self.scene.library()
        restore(Origin(library, snapshot), Target(library, self.scene.lineage + 1), f"holder of {snapshot}")
        self.scene.lineage += 1


def test_the_first_is_main_and_each_further_one_is_called_after_its_location() -> None:
    world = World()
    assert world.start(ORDERS, REFUNDS, RETURNS) == ["main", name_of(REFUNDS), name_of(RETURNS)]
    assert world.start(RETURNS, ORDERS, REFUNDS) == [name_of(RETURNS), "main", name_of(REFUNDS)]


def test_one_without_a_location_and_others_with_one_run_together() -> None:
    world = World()
    assert world.start(NO_LOCATION, REFUNDS) == ["main", name_of(REFUNDS)]
    assert world.start(REFUNDS, NO_LOCATION) == [name_of(REFUNDS), "main"]
    other = World()
    assert other.start(ORDERS, REFUNDS) == ["main", name_of(REFUNDS)]
    with pytest.raises(UndecidedError, match=r"neither a name nor a checkpointLocation.*\.queryName\("):
        other.start(ORDERS, REFUNDS, NO_LOCATION)


def test_the_only_query_continues_wherever_its_location_is() -> None:
    world = World()
    starts = [NO_LOCATION, ORDERS, "/ckpt/2026-11-27", "/ckpt/2026-11-28", NO_LOCATION]
    assert [world.start(each) for each in starts] == [["main"]] * 5


def test_a_query_from_before_locations_were_noted_continues_whatever_the_script_looks_like() -> None:
    world = World()
    world.commit("main")
    assert world.start(ORDERS, only=False) == ["main"]
    assert world.notes == {"main": digest_of(ORDERS)}


def test_a_second_query_is_refused_where_nothing_says_whose_the_state_was_and_nothing_is_noted() -> None:
    world = World()
    world.commit("main")
    with pytest.raises(UndecidedError, match=r"'main', was started before.*Give both a name with \.queryName\("):
        world.start(REFUNDS, ORDERS)
    assert world.notes == {}


def test_a_version_that_puts_a_query_above_the_first_gives_it_nobodys_state() -> None:
    world = World()
    world.start(ORDERS)
    with pytest.raises(UndecidedError, match=r"'main' was not started.*\.queryName\('main'\) continues the state"):
        world.start(REFUNDS, ORDERS)
    assert world.start(ORDERS, REFUNDS) == ["main", name_of(REFUNDS)]
    assert world.start(REFUNDS, ORDERS) == [name_of(REFUNDS), "main"]


def test_a_location_that_changes_starts_nothing_empty_where_there_are_several() -> None:
    world = World()
    world.start(ORDERS, "/ckpt/2026-11-27")
    dated = name_of("/ckpt/2026-11-27")
    with pytest.raises(UndecidedError, match=rf"'{dated}' was not started"):
        world.start(ORDERS, "/ckpt/2026-11-28")
    with pytest.raises(UndecidedError, match="'main'"):
        world.start("/ckpt/2026-11-28")
    assert world.start(ORDERS) == ["main"]


def test_a_changed_location_of_a_query_that_may_not_be_the_only_one_is_refused() -> None:
    world = World()
    world.start(ORDERS)
    with pytest.raises(UndecidedError, match="'main' was not started"):
        world.start(REFUNDS, only=False)


def test_a_second_query_is_refused_where_the_first_was_taken_for_the_only_one() -> None:
    world = World()
    world.start(ORDERS)
    with pytest.raises(UndecidedError, match="another unnamed query, called 'main', was started before"):
        world.start(REFUNDS, ORDERS, only=True)
    assert world.notes == {"main": digest_of(ORDERS)}


def test_a_query_that_the_script_names_is_not_missing() -> None:
    world = World()
    world.start(ORDERS)
    assert world.start(REFUNDS, others={0: "main"}) == [name_of(REFUNDS)]


def test_the_only_query_of_now_takes_no_state_of_one_of_several() -> None:
    world = World()
    world.start(ORDERS)
    UnnamedQueries(1, world.scene.library).name("main.py:2", REFUNDS, frozenset({"main"}))
    with pytest.raises(UndecidedError, match="were not started"):
        world.start(RETURNS)


def test_a_process_that_was_killed_before_the_first_batch_leaves_nothing_to_be_mixed_up() -> None:
    world = World()
    UnnamedQueries(1, world.scene.library).name("main.py:1", ORDERS, frozenset())
    assert world.start(REFUNDS, ORDERS) == ["main", name_of(ORDERS)]


def test_a_lineage_that_starts_from_a_snapshot_tells_its_queries_apart_as_the_original_does() -> None:
    world = World()
    names = world.start(ORDERS, REFUNDS)
    world.scene.take("nightly")
    world.begin_lineage("nightly")
    assert world.start(REFUNDS, ORDERS) == names[::-1]
    with pytest.raises(UndecidedError):
        world.start(RETURNS)


def test_a_query_that_a_snapshot_does_not_have_is_new_after_it() -> None:
    world = World()
    world.start(ORDERS)
    world.scene.take("nightly")
    world.start(ORDERS, REFUNDS)
    world.begin_lineage("nightly")
    assert world.notes == {"main": digest_of(ORDERS)}
    assert world.start(ORDERS, RETURNS) == ["main", name_of(RETURNS)]


def test_a_rollback_gets_the_locations_of_the_version_that_it_rolls_back_to() -> None:
    world = World()
    world.start(ORDERS)
    library = world.scene.library()
    pin = upgrade_pin.order_of(library, "up-1", 1, "", LAYOUT)
    world.start(REFUNDS)
    assert world.notes == {"main": digest_of(REFUNDS)}
    world.scene.take("up-1", exact=pin.exact, alone=True)
    world.begin_lineage("up-1")
    assert world.notes == {"main": digest_of(ORDERS)}


def test_a_rehearsal_and_a_fork_get_the_locations_with_the_state() -> None:
    world = World()
    world.start(ORDERS, REFUNDS)
    world.scene.take("nightly")
    elsewhere = Library(world.scene.store(), "apps/fork")
    restore(Origin(world.scene.library(), "nightly"), Target(elsewhere, 1, fork=True), "fork")
    assert location_notes.read(elsewhere, 1) == world.notes


def test_a_lineage_that_starts_from_a_snapshot_of_before_locations_were_noted_forgets_those_of_its_number() -> None:
    world = World()
    world.commit("main")
    world.scene.take("nightly")
    location_notes.write(world.scene.library(), 2, {"main": digest_of(REFUNDS)})
    world.begin_lineage("nightly")
    assert world.notes == {}
    assert world.start(ORDERS) == ["main"]


def test_no_location_is_stored_and_no_secret_is_shown() -> None:
    world = World()
    secret = "ghp_" + "a1B2" * 9
    (_, name) = world.start(ORDERS, f"s3a://lake/{secret}")
    keys = world.scene.buckets.keys("here", "")
    bodies = [stored.body for key in keys if (stored := world.scene.buckets.read("here", key)) is not None]
    assert secret not in name
    assert not [key for key in keys if secret in key]
    assert not [body for body in bodies if secret.encode() in body or b"lake" in body]


def test_damaged_notes_name_the_object_and_those_of_a_newer_tidegate_are_left_alone() -> None:
    world = World()
    world.note(b"[]")
    with pytest.raises(UndecidedError, match=r"names/unnamed-1\.json, .* is damaged"):
        world.start(ORDERS)
    world.note(b'{"version":2}')
    with pytest.raises(NewerStorageError, match=r"names/unnamed-1\.json"):
        world.start(ORDERS)


@pytest.mark.parametrize("location", [ORDERS, "cp", "/", "s3a://lake", "/größe/ /", "x" * 500, "/a/.empty-start-1f"])
def test_a_name_is_a_plain_word_that_is_a_directory_of_its_own(location: str) -> None:
    name = name_of(location)
    assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", name)
    assert checkpoint_directory(name) == name


def test_spellings_of_one_place_are_one_and_places_that_differ_differ() -> None:
    assert plain_location("S3://lake//checkpoints/orders/") == plain_location(ORDERS) == ORDERS
    assert plain_location("file:///cp/a/") == plain_location("file:/cp/a") == "/cp/a"
    assert len({name_of(each) for each in (ORDERS, REFUNDS, "s3a://pond/checkpoints/orders", "/orders")}) == 4
    assert name_of(ORDERS) == "orders-cd93af32"  # of each release
