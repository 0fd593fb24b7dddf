"""What a named query's checkpointLocation says: that it is another one's, start after start. The store is in memory."""

from collections.abc import Collection

import pytest

from tidegate_spark.contract.object_paths import checkpoint_directory
from tidegate_spark.contract.protocol import Fault
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.queries.noted_queries import NotedQueries
from tidegate_spark.queries.unnamed.naming import UndecidedError, digest_of
from tidegate_spark.queries.unnamed.registry import UnnamedQueries
from tidegate_spark.snapshots.lineages import upgrade_pin
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_spark.snapshots.restore import Origin, Target, restore
from tidegate_spark.storage import location_notes, query_names
from tidegate_spark.storage.location_notes import MOST_NAMED, DamagedNotesError, LocationNotes, NamedQuery
from tidegate_spark.storage.s3_client import FaultError
from tidegate_spark.storage.store import NewerStorageError
from tidegate_testing.fake_checkpoint import LAYOUT
from tidegate_testing.memory_store import Call
from tidegate_testing.snapshot_scenes import Scene

ORDERS, REFUNDS, RETURNS = (f"s3a://lake/checkpoints/{table}" for table in ("orders", "refunds", "returns"))
MAY = ""


class World:
    """An application's storage; each start is one of a driver process, unless it is of one that is given."""

    def __init__(self) -> None:
        self.scene = Scene()

    def process(self) -> NotedQueries:
        return NotedQueries(self.scene.lineage, self.scene.repository)

    def start(
        self,
        name: str,
        location: str,
        *,
        of: NotedQueries | None = None,
        running: Collection[str] = (),
        commits: bool = True,
    ) -> str:
        """Start a query; return why it must not, and give it a batch otherwise."""
        why = (of or self.process()).refusal_of(name, location, running.__contains__)
        if not why and commits:
            self.scene.batches(1, name)
        return why

    @property
    def notes(self) -> tuple[NamedQuery, ...]:
        return location_notes.read(self.scene.repository(), self.scene.lineage)[0].named

    def note(self, body: bytes) -> None:
        repository = self.scene.repository()
        repository.store.put(location_notes.notes_key(repository, self.scene.lineage), body)

    def begin_lineage(self, snapshot: str) -> None:
        repository = self.scene.repository()
        restore(Origin(repository, snapshot), Target(repository, self.scene.lineage + 1), f"holder of {snapshot}")
        self.scene.lineage += 1


def test_a_query_called_after_its_run_is_refused_at_the_second_one_with_the_name_that_continues() -> None:
    world = World()
    assert world.start("load-1", ORDERS) == MAY
    why = world.start("load-2", "s3://lake//checkpoints/orders/")
    assert ".queryName('load-1')" in why
    assert "another checkpointLocation" in why
    assert world.start("load-1", ORDERS) == MAY
    assert world.start("load-2", REFUNDS) == MAY


def test_so_it_is_within_one_process_also_while_the_first_has_no_batch_yet() -> None:
    world = World()
    process = world.process()
    assert world.start("run_0", ORDERS, of=process, commits=False) == MAY
    assert "'run_0'" in world.start("run_1", ORDERS, of=process, running=["run_0"])
    assert world.start("run_2", ORDERS, of=process) == MAY
    assert "'run_2'" in world.start("run_0", ORDERS, of=process)


def test_a_query_of_which_nothing_was_committed_leaves_its_location_to_whoever_comes() -> None:
    world = World()
    world.start("load-1", ORDERS, commits=False)
    assert world.start("load-2", ORDERS) == MAY
    assert "'load-2'" in world.start("load-3", ORDERS)


def test_a_query_that_keeps_its_name_may_have_another_location_at_each_start() -> None:
    world = World()
    assert [world.start("orders", each) for each in (ORDERS, "/ckpt/1", "/ckpt/2", "", ORDERS)] == [MAY] * 5


def test_one_that_gets_the_location_of_another_is_refused_whichever_of_them_starts_first() -> None:
    for order in (("a", "b"), ("b", "a")):
        world = World()
        world.start("a", ORDERS)
        world.start("b", REFUNDS)
        locations = {"a": REFUNDS, "b": RETURNS}
        refused = {name: world.start(name, locations[name]) for name in order}
        assert refused["b"] == MAY
        assert "is now that of query 'b'" in refused["a"]
        assert world.start("a", ORDERS) == MAY


def test_a_new_query_at_the_location_from_which_another_has_moved_is_refused() -> None:
    world = World()
    world.start("a", ORDERS)
    world.start("a", RETURNS)
    assert "'a'" in world.start("b", ORDERS)


def test_queries_from_before_locations_were_noted_go_on_and_are_noted() -> None:
    world = World()
    for name in ("a", "b"):
        world.scene.batches(1, name)
    for _ in range(2):
        assert [world.start(name, ORDERS) for name in ("a", "b")] == [MAY, MAY]
    assert world.notes == (NamedQuery("a", digest_of(ORDERS)), NamedQuery("b", digest_of(ORDERS)))
    assert world.start("c", ORDERS) != MAY


def test_a_query_whose_name_is_no_directory_is_known_by_it() -> None:
    world = World()
    assert world.start("orders by day!", ORDERS, commits=False) == MAY
    query_names.note(world.scene.repository(), "orders by day!")
    world.scene.batches(1, checkpoint_directory("orders by day!"))
    assert "'orders by day!'" in world.start("b", ORDERS)
    world.scene.take("nightly")
    world.begin_lineage("nightly")
    assert "'orders by day!'" in world.start("b", ORDERS)


def test_a_name_after_none_and_none_after_a_name_are_refused_unless_it_is_the_same_query() -> None:
    world = World()
    unnamed = UnnamedQueries(1, world.scene.repository, lambda site, name: True)
    assert unnamed.name("main.py:1", ORDERS, frozenset()) == "main"
    world.scene.batches(1)
    assert "'main'" in world.start("orders", ORDERS)
    assert world.start("main", ORDERS) == MAY

    other = World()
    other.start("orders", ORDERS)
    with pytest.raises(UndecidedError, match=r"\.queryName\('orders'\)"):
        UnnamedQueries(1, other.scene.repository, lambda site, name: True).name("main.py:1", ORDERS, frozenset())
    assert UnnamedQueries(1, other.scene.repository).name("main.py:1", REFUNDS, frozenset()) == "main"
    assert [query.name for query in other.notes] == ["orders"]


def test_what_goes_by_names_is_no_candidate_for_a_query_without_one() -> None:
    world = World()
    world.start("orders", ORDERS)
    unnamed = UnnamedQueries(1, world.scene.repository, lambda site, name: False)
    assert unnamed.name("main.py:1", REFUNDS, frozenset()) == "main"


def test_the_notes_go_with_the_state_to_a_later_lineage_and_to_a_fork() -> None:
    world = World()
    world.start("load-1", ORDERS)
    world.scene.take("nightly")
    elsewhere = SnapshotRepository(world.scene.store(), "apps/fork")
    restore(Origin(world.scene.repository(), "nightly"), Target(elsewhere, 1, fork=True), "fork")
    assert "'load-1'" in NotedQueries(1, lambda: elsewhere).refusal_of("load-2", ORDERS, lambda name: False)
    world.begin_lineage("nightly")
    assert "'load-1'" in world.start("load-2", ORDERS)


def test_a_rollback_gets_the_locations_of_the_version_that_it_rolls_back_to() -> None:
    world = World()
    world.start("orders", ORDERS)
    pin = upgrade_pin.order_of(world.scene.repository(), "up-1", 1, "", LAYOUT)
    world.start("orders", REFUNDS)
    world.scene.take("up-1", exact=pin.exact, alone=True)
    world.begin_lineage("up-1")
    assert world.notes == (NamedQuery("orders", digest_of(ORDERS)),)


def test_a_rehearsal_leaves_the_notes_of_the_application_alone() -> None:
    world = World()
    world.start("orders", ORDERS)
    before = world.notes
    world.scene.take("nightly")
    elsewhere = SnapshotRepository(world.scene.store(), "apps/orders/rehearsals/r-1")
    restore(Origin(world.scene.repository(), "nightly"), Target(elsewhere, 1), "rehearsal")
    assert NotedQueries(1, lambda: elsewhere).refusal_of("orders", RETURNS, lambda name: False) == MAY
    assert world.notes == before


def test_no_location_is_stored() -> None:
    world = World()
    world.start("orders", "s3a://lake/ghp_secret")
    assert b"lake" not in world.scene.content("names/unnamed-1.json")


def test_the_latest_names_are_kept_of_a_script_that_has_another_one_at_each_start() -> None:
    notes = LocationNotes()
    for number in range(MOST_NAMED + 10):
        notes = notes.with_named(f"load-{number}", digest_of(f"/ckpt/{number}"))
    assert len(notes.named) == MOST_NAMED
    assert notes.named[-1].name == f"load-{MOST_NAMED + 9}"


def test_a_name_that_is_started_again_and_again_is_kept_beside_many_that_are_started_once() -> None:
    notes = LocationNotes().with_named("orders", digest_of(ORDERS))
    for number in range(2 * MOST_NAMED):
        notes = notes.with_named(f"load-{number}", digest_of(f"/ckpt/{number}")).with_named("orders", digest_of(ORDERS))
    assert notes.named_at(digest_of(ORDERS)) == ["orders"]
    assert len(notes.named) == MOST_NAMED


def test_with_notes_that_cannot_be_read_only_a_new_query_does_not_start() -> None:
    world = World()
    world.start("orders", ORDERS)
    for body, error in ((b"[]", DamagedNotesError), (b'{"version":2}', NewerStorageError)):
        world.note(body)
        assert world.start("orders", REFUNDS) == MAY
        with pytest.raises(error):
            world.start("new", RETURNS)
        assert world.scene.content("names/unnamed-1.json") == body


def test_what_another_process_notes_meanwhile_is_seen() -> None:
    world = World()
    others = [True]

    def interfere(call: Call) -> None:
        if call.verb == "put_if" and not call.done and others.pop():
            others.append(False)
            world.start("load-1", ORDERS)

    process = NotedQueries(1, lambda: world.scene.repository(interfere))
    assert "'load-1'" in process.refusal_of("load-2", ORDERS, lambda name: False)


def test_the_storage_is_asked_once_for_a_query_that_the_script_starts_again() -> None:
    world = World()
    calls: list[str] = []
    process = NotedQueries(1, lambda: world.scene.repository(lambda call: calls.append(call.verb)))
    process.refusal_of("orders", ORDERS, lambda name: False)
    calls.clear()
    assert process.refusal_of("orders", ORDERS, lambda name: False) == MAY
    assert process.refusal_of("without", "", lambda name: False) == MAY
    assert calls == []


def test_a_storage_that_fails_is_the_storages_fault() -> None:
    def connect() -> SnapshotRepository:
        raise OSError("expired")

    with pytest.raises(FaultError) as caught:
        NotedQueries(1, connect).refusal_of("orders", ORDERS, lambda name: False)
    assert caught.value.fault.reason is Reason.STORAGE_UNAVAILABLE

    known = FaultError(Fault(Reason.CREDENTIALS_EXPIRED, "expired"))
    with pytest.raises(FaultError) as caught:
        NotedQueries(1, connect, as_fault=lambda error: known).refusal_of("orders", ORDERS, lambda name: False)
    assert caught.value is known
