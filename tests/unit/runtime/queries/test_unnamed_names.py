"""What queries without a name are called, start after start, version after version. The store is in memory."""

import re
from collections.abc import Mapping

import pytest

from tidegate_spark.contract.json_form import to_json
from tidegate_spark.contract.object_paths import checkpoint_directory
from tidegate_spark.contract.protocol import Fault, Storage
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.process.progress import Progress
from tidegate_spark.queries.entries import Entry
from tidegate_spark.queries.queries import Queries
from tidegate_spark.queries.refusals import QueryRefusedError
from tidegate_spark.queries.unnamed.naming import UndecidedError, digest_of, name_of, plain_location
from tidegate_spark.queries.unnamed.registry import UnnamedQueries
from tidegate_spark.snapshots.lineages import upgrade_pin
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_spark.snapshots.restore import Origin, Target, restore
from tidegate_spark.snapshots.service.order_faults import trouble_of
from tidegate_spark.storage import location_notes
from tidegate_spark.storage.location_notes import DamagedNotesError, LocationNotes
from tidegate_spark.storage.s3_client import FaultError
from tidegate_spark.storage.store import NewerStorageError
from tidegate_testing.driver_process import driver_config
from tidegate_testing.fake_checkpoint import LAYOUT
from tidegate_testing.memory_store import Call
from tidegate_testing.snapshot_scenes import Scene

ORDERS, REFUNDS, RETURNS = (f"s3a://lake/checkpoints/{table}" for table in ("orders", "refunds", "returns"))
NO_LOCATION = ""


class World:
    """An application's storage; each start is one of a driver process."""

    def __init__(self) -> None:
        self.scene = Scene()

    def start(
        self,
        *locations: str,
        only: bool | None = None,
        others: Mapping[int, str] | None = None,
        commits: bool = True,
    ) -> list[str]:
        """Start unnamed queries in a process of their own, each with a batch; return their names.

        Args:
            locations: in their order.
            only: whether the text of the script shows that there is no other; by default it does if there is none.
            others: number of a start -> name of a query that the script names and starts before that.
            commits: whether each has a batch.
        """
        is_only = len(locations) == 1 if only is None else only
        unnamed = UnnamedQueries(self.scene.lineage, self.scene.repository, lambda site, name: is_only)
        started: set[str] = set()
        names = []
        for number, location in enumerate(locations):
            if others and number in others:
                started.add(others[number])
            names.append(unnamed.name(f"main.py:{number}", location, frozenset(started)))
            started.add(names[-1])
            if commits:
                self.commit(names[-1])
        return names

    def commit(self, name: str) -> None:
        self.scene.batches(1, name)

    @property
    def notes(self) -> dict[str, str]:
        notes, _ = location_notes.read(self.scene.repository(), self.scene.lineage)
        newest = LAYOUT.newest_committed
        listed = self.scene.repository().checkpoints(self.scene.lineage)
        return notes.in_force(lambda name: -1 if (batch := newest(listed.get(name, {}))) is None else batch)

    def note(self, body: bytes) -> None:
        repository = self.scene.repository()
        repository.store.put(location_notes.notes_key(repository, self.scene.lineage), body)

    def begin_lineage(self, snapshot: str) -> None:
        """Have a new lineage start from a snapshot."""
        repository = self.scene.repository()
        restore(Origin(repository, snapshot), Target(repository, self.scene.lineage + 1), f"holder of {snapshot}")
        self.scene.lineage += 1


def test_the_first_is_main_and_each_further_one_is_called_after_its_location() -> None:
    world = World()
    assert world.start(ORDERS, REFUNDS, RETURNS) == ["main", name_of(REFUNDS), name_of(RETURNS)]
    assert world.start(RETURNS, ORDERS, REFUNDS) == [name_of(RETURNS), "main", name_of(REFUNDS)]


def test_one_without_a_location_runs_alone_in_whatever_order() -> None:
    world = World()
    with pytest.raises(UndecidedError, match=r"'main', has no checkpointLocation.*\.queryName\('main'\) continues"):
        world.start(NO_LOCATION, REFUNDS)
    other = World()
    with pytest.raises(UndecidedError, match=r"neither a name nor a checkpointLocation.*\.queryName\("):
        other.start(ORDERS, REFUNDS, NO_LOCATION)
    with pytest.raises(UndecidedError, match=r"neither a name nor a checkpointLocation, and 'main'.* were not started"):
        other.start(NO_LOCATION)


def test_the_only_query_of_a_lineage_needs_no_location_whatever_the_script_looks_like() -> None:
    world = World()
    assert [world.start(NO_LOCATION, only=False) for _ in range(3)] == [["main"]] * 3
    assert world.start(" ", only=False) == ["main"]


def test_one_without_a_location_does_not_continue_what_another_one_left() -> None:
    world = World()
    world.start(ORDERS)
    with pytest.raises(UndecidedError, match="'main' was not started"):
        world.start(NO_LOCATION, only=False)
    with pytest.raises(UndecidedError, match="'main' was not started"):
        world.start(NO_LOCATION, ORDERS)
    assert world.start(ORDERS) == ["main"]


def test_one_with_a_location_does_not_continue_what_one_without_left() -> None:
    world = World()
    world.start(NO_LOCATION)
    with pytest.raises(UndecidedError, match="'main' was not started"):
        world.start(ORDERS, only=False)
    assert world.start(ORDERS, only=True) == ["main"]


def test_the_only_query_continues_wherever_its_location_is() -> None:
    world = World()
    starts = [NO_LOCATION, ORDERS, "/ckpt/2026-11-27", "/ckpt/2026-11-28", NO_LOCATION]
    assert [world.start(each) for each in starts] == [["main"]] * 5


def test_a_query_from_before_locations_were_noted_continues_whatever_the_script_looks_like() -> None:
    world = World()
    world.commit("main")
    assert world.start(ORDERS, only=False) == ["main"]
    assert world.notes == {"main": digest_of(ORDERS)}


def test_a_query_from_before_whose_location_is_another_one_at_each_start_goes_on_also_after_a_rollback() -> None:
    world = World()
    world.commit("main")
    places = [f"file:///tmp/checkpoint-{number}" for number in range(6)]
    assert [world.start(place, only=False) for place in places[:3]] == [["main"]] * 3
    pin = upgrade_pin.order_of(world.scene.repository(), "up-1", 1, "", LAYOUT)
    world.start(places[3], only=False)
    world.scene.take("up-1", exact=pin.exact, alone=True)
    world.begin_lineage("up-1")
    assert [world.start(place, only=False) for place in places[3:]] == [["main"]] * 3
    assert world.start(NO_LOCATION, only=False) == ["main"]


def test_a_query_from_before_locations_were_noted_is_known_by_one_that_it_had_twice() -> None:
    world = World()
    world.commit("main")
    assert [world.start(ORDERS, only=False) for _ in range(2)] == [["main"]] * 2
    with pytest.raises(UndecidedError, match="'main' was not started"):
        world.start(REFUNDS, ORDERS, only=False)
    assert world.start(ORDERS, REFUNDS) == ["main", name_of(REFUNDS)]


def test_a_start_that_failed_may_be_tried_again_with_another_location() -> None:
    for before in (False, True):
        world = World()
        if before:
            world.commit("main")
        unnamed = UnnamedQueries(1, world.scene.repository, lambda site, name: False)
        assert unnamed.name("main.py:1", ORDERS, frozenset()) == "main"
        unnamed.forget("main")
        assert unnamed.name("main.py:1", REFUNDS, frozenset()) == "main"


def test_a_query_that_the_process_started_already_asks_the_storage_for_nothing() -> None:
    world = World()
    unnamed = UnnamedQueries(1, world.scene.repository, lambda site, name: True)
    unnamed.name("main.py:1", ORDERS, frozenset())
    world.note(b"damaged")
    assert unnamed.name("main.py:1", ORDERS, frozenset({"main"})) == "main"


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


def test_a_location_that_was_started_already_is_the_same_query_in_whatever_spelling() -> None:
    unnamed = UnnamedQueries(1, World().scene.repository)
    names = [
        unnamed.name("main.py:1", each, frozenset()) for each in (ORDERS, f"{ORDERS}/", "s3://lake//checkpoints/orders")
    ]
    assert names == ["main"] * 3


def test_a_query_that_the_script_names_is_not_missing() -> None:
    world = World()
    world.start(ORDERS)
    assert world.start(REFUNDS, others={0: "main"}) == [name_of(REFUNDS)]


def test_the_only_query_of_now_takes_no_state_of_one_of_several() -> None:
    world = World()
    world.start(ORDERS, REFUNDS)
    with pytest.raises(UndecidedError, match="were not started"):
        world.start(RETURNS)


def test_a_query_that_never_committed_keeps_no_other_one_from_moving() -> None:
    world = World()
    world.start(ORDERS)
    UnnamedQueries(1, world.scene.repository).name("main.py:2", REFUNDS, frozenset({"main"}))
    assert world.notes == {"main": digest_of(ORDERS), name_of(REFUNDS): digest_of(REFUNDS)}
    assert world.start(RETURNS) == ["main"]


def test_a_start_at_a_new_location_that_commits_nothing_loses_nothing_of_the_old_one() -> None:
    world = World()
    world.start(ORDERS)
    world.start(REFUNDS, commits=False)
    world.start(REFUNDS, commits=False)
    assert world.notes == {"main": digest_of(ORDERS)}
    assert world.start(ORDERS, RETURNS, commits=False) == ["main", name_of(RETURNS)]
    world.start(REFUNDS, only=True, commits=False)
    with pytest.raises(UndecidedError, match="'main' was not started"):
        world.start(REFUNDS, only=False)
    assert world.start(REFUNDS) == ["main"]
    assert world.notes == {"main": digest_of(REFUNDS), name_of(RETURNS): digest_of(RETURNS)}
    with pytest.raises(UndecidedError, match="'main' was not started"):
        world.start(ORDERS, only=False)


def test_a_pin_and_a_snapshot_have_the_location_of_the_batch_that_they_are_of() -> None:
    world = World()
    world.start(ORDERS)
    world.start(REFUNDS, commits=False)
    upgrade_pin.order_of(world.scene.repository(), "up-1", 1, "", LAYOUT)
    assert upgrade_pin.locations(world.scene.repository(), "up-1") == {"main": digest_of(ORDERS)}
    assert world.scene.take("before").locations == {"main": digest_of(ORDERS)}
    world.commit("main")
    assert world.scene.take("after").locations == {"main": digest_of(REFUNDS)}


def test_an_answer_that_was_lost_does_not_undo_what_was_noted_and_nobody_writes_over_what_another_one_noted() -> None:
    world = World()
    calls: list[Call] = []

    def interfere(call: Call) -> None:
        if call.verb == "put_if" and not call.done and not calls:
            calls.append(call)
            world.note(to_json(LocationNotes({"main": digest_of(ORDERS)})).encode())

    name = UnnamedQueries(1, lambda: world.scene.repository(interfere)).name("main.py:1", REFUNDS, frozenset())
    assert calls
    assert name == "main"  # it has no state yet
    assert world.notes == {"main": digest_of(REFUNDS)}


@pytest.mark.parametrize("verb", ["get", "list", "put_if"])
@pytest.mark.parametrize("done", [False, True])
def test_a_storage_that_fails_is_no_failure_of_the_script_at_whichever_request(verb: str, done: bool) -> None:
    world = World()
    names = world.start(ORDERS, REFUNDS)

    def fail(call: Call) -> None:
        if (call.verb, call.done) == (verb, done):
            raise ConnectionResetError("reset by peer")

    def start_all() -> None:
        unnamed = UnnamedQueries(1, lambda: world.scene.repository(fail))
        for location in (ORDERS, REFUNDS, RETURNS):
            unnamed.name("main.py:1", location, frozenset())

    with pytest.raises(FaultError) as caught:
        start_all()
    assert caught.value.fault.reason is Reason.STORAGE_UNAVAILABLE
    assert world.start(REFUNDS, ORDERS, RETURNS) == [*names[::-1], name_of(RETURNS)]


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (FaultError(Fault(Reason.STORAGE_THROTTLED, "slow down")), Reason.STORAGE_THROTTLED),
        (DamagedNotesError("names/unnamed-1.json is damaged"), Reason.NOTES_DAMAGED),
        (NewerStorageError("names/unnamed-1.json cannot be read"), Reason.NEWER_FORMAT),
        (UndecidedError("it may be another one"), Reason.QUERY_REFUSED),
    ],
)
def test_why_a_query_has_no_name_is_the_reason_with_which_the_driver_ends(error: Exception, reason: Reason) -> None:
    def name(site: str, location: str, others: frozenset[str]) -> str:
        raise error

    ends = []
    config = driver_config("orders", "local:///main.py", Storage(uri="s3://lake/orders"))
    queries = Queries("s3a://lake/orders/lineages/1", 2, Progress(config))
    queries.name_unnamed = name
    queries.on_refusal = lambda reason, message: ends.append((reason, message))
    with pytest.raises(QueryRefusedError) as caught:
        queries._named(Entry("main", "main.py:1", named=False, location=ORDERS))
    assert caught.value.reason is reason
    ((reported, message),) = ends
    assert reported is reason
    assert "lake" not in message


def test_what_is_stored_and_cannot_be_read_is_the_reason_with_which_the_driver_ends() -> None:
    ends = []
    config = driver_config("orders", "local:///main.py", Storage(uri="s3://lake/orders"))
    queries = Queries("s3a://lake/orders/lineages/1", 2, Progress(config))
    queries.on_refusal = lambda reason, message: ends.append((reason, message))
    with pytest.raises(QueryRefusedError) as caught, queries._refusing("main.py:1"):
        raise FaultError(Fault(Reason.SNAPSHOT_UNUSABLE, "lineages/2.json says nothing."))
    assert caught.value.reason is Reason.SNAPSHOT_UNUSABLE
    assert ends == [(Reason.SNAPSHOT_UNUSABLE, "lineages/2.json says nothing.")]


def test_a_fault_that_is_known_keeps_its_reason() -> None:
    def as_fault(error: Exception) -> Exception:
        return FaultError(Fault(Reason.CREDENTIALS_EXPIRED, f"{error}"))

    def connect() -> SnapshotRepository:
        raise OSError("expired")

    with pytest.raises(FaultError) as caught:
        UnnamedQueries(1, connect, as_fault=as_fault).name("main.py:1", ORDERS, frozenset())
    assert caught.value.fault == Fault(Reason.CREDENTIALS_EXPIRED, "expired")


@pytest.mark.parametrize(("only", "reported"), [(False, [("UnnamedQuery", True)]), (True, [])])
def test_a_script_whose_text_shows_too_little_hears_so_at_its_first_start_and_once(
    only: bool, reported: list[tuple[str, bool]]
) -> None:
    notices = []
    unnamed = UnnamedQueries(
        1,
        World().scene.repository,
        lambda site, name: only,
        notice=lambda reason, message, warning: notices.append((str(reason.value), message, warning)),  # type: ignore[attr-defined] # a member
        beside=lambda work: work(),
    )
    names = [unnamed.name("job.py:7", each, frozenset()) for each in (ORDERS, REFUNDS)]
    assert [(reason, warning) for reason, _, warning in notices] == reported
    assert all("'main', started at job.py:7" in message and "lake" not in message for _, message, _ in notices)
    assert names[0] == "main"


def test_a_process_that_was_killed_before_the_first_batch_leaves_nothing_to_be_mixed_up() -> None:
    world = World()
    UnnamedQueries(1, world.scene.repository).name("main.py:1", ORDERS, frozenset())
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


def test_a_rollback_runs_the_version_again_of_which_a_query_had_no_batch() -> None:
    world = World()
    quiet = UnnamedQueries(1, world.scene.repository)
    assert quiet.name("main.py:1", ORDERS, frozenset()) == "main"
    name = quiet.name("main.py:2", REFUNDS, frozenset({"main"}))
    world.commit(name)
    pin = upgrade_pin.order_of(world.scene.repository(), "up-1", 1, "", LAYOUT)
    world.start(REFUNDS, RETURNS)
    made = world.scene.take("up-1", exact=pin.exact, alone=True)
    assert made.queries.keys() == {name}
    world.begin_lineage("up-1")
    assert world.notes == {"main": digest_of(ORDERS), name: digest_of(REFUNDS)}
    assert world.start(ORDERS, REFUNDS) == ["main", name]


def test_a_rollback_gets_the_locations_of_the_version_that_it_rolls_back_to() -> None:
    world = World()
    world.start(ORDERS)
    repository = world.scene.repository()
    pin = upgrade_pin.order_of(repository, "up-1", 1, "", LAYOUT)
    world.start(REFUNDS)
    assert world.notes == {"main": digest_of(REFUNDS)}
    world.scene.take("up-1", exact=pin.exact, alone=True)
    world.begin_lineage("up-1")
    assert world.notes == {"main": digest_of(ORDERS)}


def test_a_rehearsal_and_a_fork_get_the_locations_with_the_state() -> None:
    world = World()
    world.start(ORDERS, REFUNDS)
    world.scene.take("nightly")
    elsewhere = SnapshotRepository(world.scene.store(), "apps/fork")
    restore(Origin(world.scene.repository(), "nightly"), Target(elsewhere, 1, fork=True), "fork")
    assert location_notes.read(elsewhere, 1)[0].queries == world.notes


def test_a_lineage_that_starts_from_a_snapshot_of_before_locations_were_noted_forgets_those_of_its_number() -> None:
    world = World()
    world.commit("main")
    world.scene.take("nightly")
    location_notes.note_queries(world.scene.repository(), 2, {"main": digest_of(REFUNDS)})
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


@pytest.mark.parametrize(
    "location",
    [
        "https://user:pass/word@host/ckpt",
        "s3a://AKIAXXXXXXXX:wJalr/XUtn/FEMI@lake/ckpt/FEMI",
        "/ckpt/user:pass/word@host",
        "s3a://lake/ckpt?token=ab/word",
        "s3a://lake/ckpt?signature=ab/word",
        "s3a://lake/ckpt#word",
        "s3a://lake/ckpt;key/word",
        "s3a://lake/password=word",
        "s3a://lake/%77ord/word",
        "s3a://lake/wJalrXUtnFEMIK7MDENGbPxRfiCY/word",
        "s3a://lake/ckpt/wordK7MDENGbPxRfiCYEXAMPLEKEY",
    ],
)
def test_a_location_that_may_hold_a_secret_anywhere_gives_its_query_no_word(location: str) -> None:
    assert re.fullmatch(r"query-[0-9a-f]{8}", name_of(location))


def test_damaged_notes_name_the_object_and_the_ways_on_and_stay_as_they_are() -> None:
    world = World()
    for body in (
        b"[]",
        b"{",
        b'{"queries":{"main":1}}',
        b'{"queries":{"../main":""}}',
        b'{"moves":{"main":{}}}',
        b"\xff",
    ):
        world.note(body)
        with pytest.raises(DamagedNotesError, match=r"names/unnamed-1\.json is damaged .*in lineage 1"):
            world.start(ORDERS)
        assert world.scene.content("names/unnamed-1.json") == body


def test_with_damaged_notes_no_snapshot_is_taken_and_no_upgrade_begins_until_they_are_gone() -> None:
    world = World()
    world.start(ORDERS)
    world.note(b"[]")
    with pytest.raises(DamagedNotesError) as caught:
        world.scene.take("nightly")
    trouble = trouble_of(caught.value, Storage("s3://lake/orders"), "keys", runs=True)
    assert (trouble.reason, trouble.tries) == (Reason.NOTES_DAMAGED, 1)
    with pytest.raises(DamagedNotesError):
        upgrade_pin.order_of(world.scene.repository(), "up-1", 1, "", LAYOUT)
    repository = world.scene.repository()
    repository.store.delete([location_notes.notes_key(repository, 1)])
    assert world.scene.take("weekly").locations == {}
    assert world.start(ORDERS) == ["main"]


def test_notes_that_are_lost_let_no_query_continue_what_another_one_left() -> None:
    world = World()
    names = world.start(ORDERS, REFUNDS)
    repository = world.scene.repository()
    repository.store.delete([location_notes.notes_key(repository, 1)])
    with pytest.raises(UndecidedError, match="'main'"):
        world.start(ORDERS, REFUNDS, commits=False)
    # Each by the name that it had.
    assert world.start(RETURNS, others={0: "main"}, only=False) == [name_of(RETURNS)]
    assert UnnamedQueries(1, world.scene.repository).name("main.py:1", REFUNDS, frozenset({"main"})) == names[1]


def test_notes_of_a_newer_tidegate_are_left_alone() -> None:
    world = World()
    world.note(b'{"version":2}')
    with pytest.raises(NewerStorageError, match=r"names/unnamed-1\.json"):
        world.start(ORDERS)


def test_a_location_of_a_mebibyte_and_one_that_is_no_text_have_names() -> None:
    for location in ("/" + "a" * (1 << 20), "a/1B" * (1 << 18), "s3a://" + "x:" * (1 << 19), "/ckpt/\udcff", "/\0"):
        assert re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9_-]{0,99}", name_of(location))
    composed, decomposed = "/ckpt/gr\u00f6\u00dfe", "/ckpt/gro\u0308\u00dfe"
    assert name_of(composed) != name_of(decomposed)


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
