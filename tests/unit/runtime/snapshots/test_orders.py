"""What becomes of orders about snapshots, in the process that carries them out. The store is in memory."""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from tidegate_spark.contract.protocol import Storage
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.snapshot_protocol import (
    LONGEST_OFFSETS,
    ReleaseOrder,
    SnapshotOrder,
    SnapshotOrders,
    SnapshotReport,
    SnapshotState,
)
from tidegate_spark.snapshots import catalog
from tidegate_spark.snapshots.catalog import State
from tidegate_spark.snapshots.catalog_json import encode
from tidegate_spark.snapshots.copying import Copiers
from tidegate_spark.snapshots.service.operations import Carrier, shown_offsets
from tidegate_spark.snapshots.service.queue import KEPT, NOT_BEGUN
from tidegate_spark.snapshots.service.service import SnapshotDesk
from tidegate_spark.snapshots.service.worker import SnapshotKeeper
from tidegate_testing.driver_process import driver_config
from tidegate_testing.fake_checkpoint import LAYOUT
from tidegate_testing.memory_store import Call
from tidegate_testing.snapshot_scenes import Scene
from tidegate_testing.waiting import wait_for

READY, FAILED, WAITING = SnapshotState.READY, SnapshotState.FAILED, SnapshotState.WAITING
DOWN = EndpointConnectionError(endpoint_url="http://store")


@dataclass
class Heard:
    """Remembers what it was told."""

    bytes: int = 0
    reports: list[SnapshotReport] = field(default_factory=list)
    times: list[float | None] = field(default_factory=list)

    def copied(self, size: int) -> None:
        self.bytes += size

    def ended(self, report: SnapshotReport) -> None:
        self.reports.append(report)

    def newest(self, created: float | None) -> None:
        self.times.append(created)


class Desk:
    """A keeper for the scene's application, whose attempts are made when the test says so."""

    def __init__(self, scene: Scene, runs: bool = True, watch: Callable[[Call], None] = lambda call: None) -> None:
        self.scene, self.now, self.heard = scene, 0.0, Heard()
        self.watch = watch
        place = Storage("s3://here/apps/orders")
        config = driver_config("orders", "local:///main.py", place, lineage=scene.lineage, epoch=3)
        carrier = self.carrier = Carrier(
            config,
            lambda: scene.library(self.watch),
            "4.2.1",
            LAYOUT,
            lambda: 1000.0 + self.now,
            Copiers(1),
            steady=lambda: self.now,
        )
        self.keeper = SnapshotKeeper(carrier, runs, self.heard, lambda: self.now)

    def take(self, name: str, **fields: Any) -> None:
        self.keeper.give(SnapshotOrders(take=(SnapshotOrder(name, **fields),)))

    def dispose(self, *names: str) -> None:
        self.keeper.give(SnapshotOrders(dispose=names))

    def attempt(self, number: int = 1) -> None:
        """Attempt what is due, and let time go on until something is again; so many times."""
        for _ in range(number):
            self.now += self.keeper.attempt_next() or 0.0

    def report(self, name: str) -> SnapshotReport:
        (found,) = (report for report in self.keeper.reports() if report.id == name)
        return found


def desk_with(batches: int = 3, **fields: Any) -> Desk:
    scene = Scene()
    scene.batches(batches)
    return Desk(scene, **fields)


def known(desk: Desk) -> catalog.Catalog:
    return desk.scene.library().read()


def dies_at(verb: str, part: str) -> Callable[[Call], None]:
    """Return a watch that loses the connection before such a request."""

    def watch(call: Call) -> None:
        if (call.verb, call.done) == (verb, False) and part in call.key:
            raise DOWN

    return watch


# --- taking ---


def test_an_order_waits_until_somebody_carries_it_out() -> None:
    desk = desk_with()
    desk.take("a")
    assert (desk.report("a").state, desk.report("a").message) == (WAITING, NOT_BEGUN)


def test_a_snapshot_that_was_taken_is_reported_with_all_that_it_is() -> None:
    desk = desk_with()
    desk.take("a", manual=True, holders=("upgrade-1",), image="shop:1")
    desk.attempt()
    report, made = desk.report("a"), known(desk).snapshots["a"]
    assert (report.state, report.reason, report.lineage) == (READY, Reason.NONE, 1)
    assert (report.files, report.bytes, report.digest) == (report.of_files, made.bytes, made.digest)
    assert report.new_bytes == report.bytes > 0
    assert (report.manifest, report.spark_version) == ("s3://here/apps/orders/snapshots/a/manifest.json", "4.2.1")
    assert report.created == made.created == 1000.0
    assert {name: pin.batch for name, pin in report.queries.items()} == {"main": 2}
    assert made.manual
    assert made.holders == {"upgrade-1"}
    assert b'"image":"shop:1"' in desk.scene.content("snapshots/a/manifest.json")


def test_the_second_one_names_the_first_as_its_parent_and_shares_with_it() -> None:
    desk = desk_with()
    desk.take("a")
    desk.take("b")
    desk.attempt(2)
    report = desk.report("b")
    assert (report.state, report.parent) == (READY, "a")
    assert report.new_bytes < report.bytes


def test_an_order_that_is_known_is_not_begun_again() -> None:
    desk = desk_with()
    desk.take("a")
    desk.attempt()
    before = desk.report("a")
    desk.take("a")
    desk.attempt()
    assert desk.report("a") == before
    assert len(desk.heard.reports) == 1


def test_progress_shows_while_files_are_copied() -> None:
    desk = desk_with()
    seen: list[SnapshotReport] = []
    desk.watch = lambda call: seen.append(desk.report("a")) if call.verb == "copy" and not call.done else None
    desk.take("a")
    desk.attempt()
    assert [report.files for report in seen] == list(range(len(seen)))
    assert {report.state for report in seen} == {SnapshotState.COPYING}
    assert {report.of_files for report in seen[1:]} == {len(seen)}


def test_nothing_committed_yet_is_waited_for_while_the_application_runs() -> None:
    desk = desk_with(0)
    desk.take("a")
    desk.attempt(20)
    assert (desk.report("a").state, desk.report("a").reason) == (WAITING, Reason.NOTHING_COMMITTED)
    desk.scene.batches(1)
    desk.attempt()
    assert desk.report("a").state is READY


def test_nothing_committed_is_the_end_where_nothing_runs() -> None:
    desk = desk_with(0, runs=False)
    desk.take("a")
    desk.attempt(2)
    assert (desk.report("a").state, desk.report("a").reason) == (FAILED, Reason.NOTHING_COMMITTED)
    assert known(desk).snapshots == {}


def test_pauses_grow_to_half_a_minute_and_no_further() -> None:
    desk, pauses = desk_with(0), []
    desk.take("a")
    for _ in range(8):
        before = desk.now
        desk.attempt()
        pauses.append(desk.now - before)
    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30]


def test_a_store_that_is_away_is_waited_for() -> None:
    desk = desk_with()
    desk.watch = dies_at("copy", "")
    desk.take("a")
    desk.attempt(5)
    assert (desk.report("a").state, desk.report("a").reason) == (WAITING, Reason.STORAGE_UNAVAILABLE)
    assert "http://store" in desk.report("a").message
    desk.watch = lambda call: None
    desk.attempt()
    assert (desk.report("a").state, desk.report("a").message) == (READY, "")


def test_an_order_that_waits_does_not_keep_others_waiting() -> None:
    desk = desk_with()
    desk.watch = dies_at("put_if", "/a/")
    desk.take("a")
    desk.take("b")
    desk.attempt(2)
    assert (desk.report("a").state, desk.report("b").state) == (WAITING, READY)


def test_a_batch_that_was_asked_for_by_its_number_goes_first() -> None:
    desk = desk_with(5)
    for name in "ab":
        desk.take(name)
    desk.take("c", exact={"main": 3})
    desk.attempt()
    assert {report.id: report.state for report in desk.keeper.reports()} == {"a": WAITING, "b": WAITING, "c": READY}


def test_a_batch_that_is_lost_is_given_up_and_nothing_is_left_of_it() -> None:
    desk = desk_with()
    desk.scene.clean(keep=1)
    desk.take("a", exact={"main": 0}, holders=("rollback-1",))
    desk.attempt(2)
    assert (desk.report("a").state, desk.report("a").reason) == (FAILED, Reason.BATCH_LOST)
    assert "a" in known(desk).gone
    assert [key for key in desk.scene.keys("") if "/a/" in key or key.startswith("objects/")] == []


def test_what_is_given_up_does_not_wait_for_others_to_be_called_so() -> None:
    desk = desk_with()
    desk.scene.clean(keep=1)
    desk.take("a", exact={"main": 0})
    for name in "bc":
        desk.take(name)
    desk.attempt(2)
    assert desk.report("a").state is FAILED


def test_giving_up_is_finished_when_the_store_is_back() -> None:
    desk = desk_with()
    desk.scene.clean(keep=1)
    desk.take("a", exact={"main": 0})
    desk.attempt()
    desk.watch = dies_at("get", "catalog")
    desk.attempt(3)
    assert (desk.report("a").state, desk.report("a").reason) == (WAITING, Reason.STORAGE_UNAVAILABLE)
    desk.watch = lambda call: None
    desk.attempt()
    assert (desk.report("a").state, desk.report("a").reason) == (FAILED, Reason.BATCH_LOST)


def test_a_checkpoint_that_cannot_be_read_is_given_up_with_the_files_name() -> None:
    desk = desk_with()
    desk.scene.store().put(f"{desk.scene.root()}/state/2.zip", b"nonsense")
    desk.take("a")
    desk.attempt(2)
    assert desk.report("a").state is FAILED
    assert "state/2.zip" in desk.report("a").message


def test_a_fault_of_our_own_is_given_up_with_its_name() -> None:
    desk = desk_with()

    def watch(call: Call) -> None:
        if call.verb == "copy":
            raise KeyError("surprise")

    desk.watch = watch
    desk.take("a")
    desk.attempt(2)
    assert (desk.report("a").state, desk.report("a").reason) == (FAILED, Reason.INTERNAL_ERROR)
    assert "KeyError" in desk.report("a").message


def test_without_the_catalog_it_waits_for_a_person() -> None:
    desk = desk_with()
    desk.take("a")
    desk.attempt()
    lost = desk.scene.content("snapshots/catalog.json")
    desk.scene.store().delete(["apps/orders/snapshots/catalog.json"])
    desk.take("b")
    desk.dispose("a")
    desk.attempt(4)
    assert {desk.report(name).reason for name in "ab"} == {Reason.CATALOG_LOST}
    desk.scene.store().put("apps/orders/snapshots/catalog.json", lost)
    desk.attempt(2)
    assert (desk.report("a").state, desk.report("b").state) == (SnapshotState.DISPOSED, READY)


def test_the_next_process_finishes_what_one_that_ended_began() -> None:
    first = desk_with(5)
    first.take("a")

    def watch(call: Call) -> None:
        if call.verb == "copy" and call.done:
            first.keeper.stop()

    first.watch = watch
    first.attempt()
    assert first.report("a").state is SnapshotState.COPYING
    assert known(first).snapshots["a"].state is State.TAKING
    second = Desk(first.scene)
    second.take("a")
    second.attempt()
    assert second.report("a").state is READY
    assert 0 < second.heard.bytes < second.report("a").bytes


# --- keeping Spark from cleaning up meanwhile ---


def pins(desk: Desk) -> list[bool]:
    """Have noted at each copy whether cleaning is held up; return the notes."""
    noted = list[bool]()

    def watch(call: Call) -> None:
        if call.verb == "copy" and not call.done:
            noted.append("lineages/1.pin" in desk.scene.keys("lineages/"))

    desk.watch = watch
    return noted


def test_an_exact_batch_is_pinned_while_it_is_copied() -> None:
    desk = desk_with(5)
    noted = pins(desk)
    desk.take("a", exact={"main": 3})
    desk.attempt()
    assert desk.report("a").queries["main"].batch == 3
    assert set(noted) == {True}
    assert "lineages/1.pin" not in desk.scene.keys("lineages/")


def test_the_newest_batch_needs_no_pin() -> None:
    desk = desk_with()
    noted = pins(desk)
    desk.take("a")
    desk.attempt()
    assert set(noted) == {False}


def test_after_spark_was_too_fast_it_is_pinned() -> None:
    desk = desk_with(20)
    noted = pins(desk)
    note = desk.watch

    def watch(call: Call) -> None:
        note(call)
        if call.verb == "copy" and not call.done and not noted[-1]:
            desk.scene.batches(1)
            desk.scene.clean(keep=1)

    desk.watch = watch
    desk.take("a")
    desk.attempt()
    assert desk.report("a").reason is Reason.CLEANED_TOO_FAST
    assert set(noted) == {False}
    desk.attempt()
    assert desk.report("a").state is READY
    assert noted[-1]


def test_a_pin_goes_whatever_becomes_of_the_snapshot() -> None:
    desk = desk_with()
    desk.scene.clean(keep=1)
    desk.take("a", exact={"main": 0})
    desk.attempt(2)
    assert (desk.report("a").state, desk.report("a").reason) == (FAILED, Reason.BATCH_LOST)
    assert "lineages/1.pin" not in desk.scene.keys("lineages/")


def test_a_pin_stays_between_two_attempts_at_an_exact_batch() -> None:
    desk = desk_with(5, watch=dies_at("copy", "commits"))
    desk.take("a", exact={"main": 4})
    desk.attempt()
    assert (desk.report("a").state, desk.report("a").reason) == (WAITING, Reason.STORAGE_UNAVAILABLE)
    assert "lineages/1.pin" in desk.scene.keys("lineages/")
    desk.watch = lambda call: None
    desk.attempt()
    assert desk.report("a").state is READY
    assert "lineages/1.pin" not in desk.scene.keys("lineages/")


def test_a_pin_is_renewed_while_it_takes_long() -> None:
    desk, puts = desk_with(5), list[float]()

    def watch(call: Call) -> None:
        if call.verb == "copy" and call.done:
            desk.now += 45
        if call.verb == "put" and call.done and call.key.endswith(".pin"):
            puts.append(desk.now)

    desk.watch = watch
    desk.take("a", exact={"main": 4})
    desk.attempt()
    assert len(puts) > 2
    assert max(later - earlier for earlier, later in pairwise(puts)) < 600


def test_an_exact_batch_is_pinned_when_it_is_ordered_and_not_when_its_turn_comes() -> None:
    desk = desk_with(5)
    desk.take("a", exact={"main": 4})
    wait_for("the pin", lambda: "lineages/1.pin" in desk.scene.keys("lineages/"), 60, 0.01)
    desk.attempt()
    assert "lineages/1.pin" not in desk.scene.keys("lineages/")


def test_the_pin_stays_for_the_next_exact_batch() -> None:
    desk = desk_with(5)
    desk.take("a", exact={"main": 3})
    desk.take("b", exact={"main": 4})
    desk.attempt()
    assert "lineages/1.pin" in desk.scene.keys("lineages/")
    desk.attempt()
    assert (desk.report("a").state, desk.report("b").state) == (READY, READY)
    assert "lineages/1.pin" not in desk.scene.keys("lineages/")


def test_nothing_is_pinned_for_an_application_that_does_not_run() -> None:
    desk = desk_with(5, runs=False)
    desk.take("a", exact={"main": 3})
    noted = pins(desk)
    desk.attempt()
    assert set(noted) == {False}


def test_an_exact_batch_goes_before_a_copy_that_is_under_way_and_that_one_goes_on_later() -> None:
    desk, copies = desk_with(5), list[str]()

    def watch(call: Call) -> None:
        if call.verb == "copy" and call.done:
            copies.append(call.key)
            if len(copies) == 1:
                desk.take("b", exact={"main": 3})

    desk.watch = watch
    desk.take("a")
    desk.attempt()
    assert (len(copies), desk.report("a").state) == (1, SnapshotState.COPYING)
    desk.attempt()
    assert (desk.report("a").state, desk.report("b").state) == (SnapshotState.COPYING, READY)
    desk.attempt()
    assert desk.report("a").state is READY


# --- disposing ---


def test_whoever_does_not_come_back_is_let_go_before_it_is_disposed_of() -> None:
    desk = desk_with()
    desk.take("a", holders=("fork-u-9",))
    desk.attempt()
    desk.dispose("a")
    desk.attempt()
    assert desk.report("a").state is SnapshotState.HELD
    orders = SnapshotOrders(dispose=("a",), release=(ReleaseOrder("a", "fork-u-9"),))
    desk.keeper.give(orders)
    desk.keeper.give(orders)
    desk.attempt()
    assert desk.report("a").state is SnapshotState.DISPOSED
    assert known(desk).snapshots == {}


def test_a_snapshot_is_removed_with_all_that_only_it_needs() -> None:
    desk = desk_with()
    desk.take("a")
    desk.attempt()
    desk.dispose("a")
    desk.attempt()
    assert desk.report("a").state is SnapshotState.DISPOSED
    assert [key for key in desk.scene.keys("") if not key.startswith("lineages/")] == ["snapshots/catalog.json"]


def test_one_that_never_was_is_disposed_of_already() -> None:
    desk = desk_with()
    desk.dispose("never")
    desk.attempt()
    assert desk.report("never").state is SnapshotState.DISPOSED


def test_one_that_is_held_goes_when_it_is_released() -> None:
    desk = desk_with()
    desk.take("a", holders=("fork-7",))
    desk.attempt()
    desk.dispose("a")
    desk.attempt(10)
    assert (desk.report("a").state, desk.report("a").reason) == (SnapshotState.HELD, Reason.HELD)
    assert "fork-7" in desk.report("a").message
    desk.scene.library().change(lambda it: catalog.release(it, "a", "fork-7"))
    desk.attempt()
    assert desk.report("a").state is SnapshotState.DISPOSED


def test_disposing_ends_a_copy_that_is_under_way() -> None:
    desk = desk_with(5)
    desk.watch = lambda call: desk.dispose("a") if call.verb == "copy" and not call.done else None
    desk.take("a")
    desk.attempt()
    desk.watch = lambda call: None
    desk.attempt()
    assert desk.report("a").state is SnapshotState.DISPOSED
    assert [key for key in desk.scene.keys("") if not key.startswith("lineages/")] == ["snapshots/catalog.json"]


def test_to_take_what_is_being_disposed_of_changes_nothing() -> None:
    desk = desk_with()
    desk.dispose("a")
    desk.take("a")
    desk.attempt()
    assert desk.report("a").state is SnapshotState.DISPOSED


def test_disposing_is_never_given_up() -> None:
    desk = desk_with()
    desk.take("a")
    desk.attempt()

    def watch(call: Call) -> None:
        if call.verb == "delete":
            raise KeyError("surprise")

    desk.watch = watch
    desk.dispose("a")
    desk.attempt(5)
    assert (desk.report("a").state, desk.report("a").reason) == (WAITING, Reason.INTERNAL_ERROR)


# --- what is remembered ---


def test_of_ended_orders_the_newest_are_kept_and_those_that_are_still_given() -> None:
    desk = desk_with()
    names = [f"s{number}" for number in range(KEPT + 5)]
    for name in names:
        desk.keeper.give(SnapshotOrders(take=tuple(map(SnapshotOrder, ["s0", "s1", name]))))
        desk.attempt(2)
    assert [report.id for report in desk.keeper.reports()] == ["s0", "s1", *names[-KEPT - 1 :]]


def test_one_that_was_forgotten_is_found_complete() -> None:
    desk = desk_with()
    for number in range(KEPT + 5):
        desk.take(f"s{number}")
        desk.attempt()
    copied = desk.heard.bytes
    desk.take("s0")
    desk.attempt()
    assert (desk.report("s0").state, desk.heard.bytes) == (READY, copied)


@pytest.mark.parametrize("wrong", ["", "A", "-a", "a/b", "a" * 64])
def test_what_is_no_id_is_refused_and_nothing_entered(wrong: str) -> None:
    desk = desk_with()
    with pytest.raises(ValueError, match="no id of a snapshot"):
        desk.keeper.give(SnapshotOrders(take=(SnapshotOrder("good"),), dispose=(wrong,)))
    assert desk.keeper.reports() == ()


def test_a_batch_below_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="no batch -1"):
        desk_with().take("a", exact={"main": -1})


# --- what others are told ---


def test_long_offsets_are_cut_and_say_so() -> None:
    text = "v1\n{metadata}\n" + "x" * 5000
    assert len(shown_offsets(text)) == LONGEST_OFFSETS
    assert shown_offsets(text).endswith("(cut)")


def test_offsets_are_those_of_the_sources() -> None:
    assert shown_offsets('v1\n{"batchWatermarkMs":0}\n{"t":{"0":5}}\n{"u":1}') == '{"t":{"0":5}}\n{"u":1}'


def test_observers_are_told_bytes_ends_and_the_newest() -> None:
    desk = desk_with()
    desk.take("a")
    desk.attempt()
    desk.dispose("a")
    desk.attempt()
    assert desk.heard.bytes > 0
    assert [report.state for report in desk.heard.reports] == [READY, SnapshotState.DISPOSED]
    assert desk.heard.times == [1000.0, None]


def test_what_an_upgrade_keeps_for_itself_makes_no_snapshot_new() -> None:
    desk = desk_with()
    desk.keeper.give(SnapshotOrders(take=(SnapshotOrder("up-1", holders=("up-1",)),)))
    desk.attempt()
    assert [report.state for report in desk.heard.reports] == [READY]
    desk.take("a")
    desk.attempt()
    assert desk.heard.times == [None, 1000.0]


# --- the desk ---


def test_the_desk_has_nobody_behind_it_until_the_first_order() -> None:
    desk, made = desk_with(), list[SnapshotKeeper]()

    def make() -> SnapshotKeeper:
        made.append(desk.keeper)
        return desk.keeper

    front = SnapshotDesk(make)
    assert (front.reports(), made) == ((), [])
    for name in "ab":
        front.give(SnapshotOrders(take=(SnapshotOrder(name),)))
    assert made == [desk.keeper]
    assert [report.id for report in front.reports()] == ["a", "b"]


def test_what_was_given_to_the_desk_before_the_start_is_carried_out_after_it() -> None:
    desk = desk_with()
    front = SnapshotDesk(lambda: desk.keeper)
    front.give(SnapshotOrders(take=(SnapshotOrder("a"),)))
    front.start()
    wait_for("the snapshot", lambda: front.reports()[0].state is READY, 30, 0.01)
    front.stop()


def test_a_driver_finds_what_lacks_files_at_its_start_and_when_the_catalog_changes() -> None:
    desk = desk_with(3)
    desk.take("a")
    desk.attempt()
    desk.keeper.look()
    assert desk.report("a").state is READY
    desk.now += 400
    lost = desk.scene.keys("snapshots/a/files/")[0]
    content = desk.scene.content(lost)
    desk.scene.store().delete([f"apps/orders/{lost}"])
    desk.keeper.look()
    assert desk.report("a").state is READY  # the catalog is what it was: nothing is listed
    desk.scene.library().change(lambda known: catalog.hold(known, "a", "fork"))
    desk.now += 400
    desk.keeper.look()
    desk.now += 5
    found = desk.report("a")
    assert (found.state, found.reason, found.seconds) == (FAILED, Reason.SNAPSHOT_DAMAGED, 5)
    assert found.message.startswith(f"snapshot a is not whole: apps/orders/{lost}")
    desk.scene.store().put(f"apps/orders/{lost}", content)
    desk.now += 70
    desk.keeper.look()
    assert desk.report("a").state is READY


def test_a_driver_enters_again_what_a_catalog_that_was_put_back_does_not_know() -> None:
    desk = desk_with(3)
    desk.take("a")
    desk.attempt()
    before = desk.scene.content("snapshots/catalog.json")
    desk.take("b")
    desk.attempt()
    desk.scene.store().put("apps/orders/snapshots/catalog.json", before)
    desk.keeper.look()
    assert desk.scene.library().read().ready() == ["a", "b"]


def test_what_was_begun_and_is_published_is_not_removed_when_it_is_given_up() -> None:
    desk = desk_with(3)
    desk.take("a")
    desk.attempt()
    before = desk.scene.keys("snapshots/")
    taking = catalog.begin(catalog.Catalog(serial=1), "a", catalog.Snapshot(State.TAKING, 1.0))
    desk.scene.store().put("apps/orders/snapshots/catalog.json", encode(taking))
    desk.carrier.abandon(SnapshotOrder("a"))
    assert desk.scene.keys("snapshots/") == before
