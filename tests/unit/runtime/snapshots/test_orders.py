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
from tidegate_spark.snapshots.service.service import SnapshotService
from tidegate_spark.snapshots.service.worker import SnapshotWorker
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


class ServiceScene:
    """A keeper for the scene's application, whose attempts are made when the test says so."""

    def __init__(self, scene: Scene, runs: bool = True, watch: Callable[[Call], None] = lambda call: None) -> None:
        self.scene, self.now, self.heard = scene, 0.0, Heard()
        self.watch = watch
        place = Storage("s3://here/apps/orders")
        config = driver_config("orders", "local:///main.py", place, lineage=scene.lineage, epoch=3)
        carrier = self.carrier = Carrier(
            config,
            lambda: scene.repository(self.watch),
            "4.2.1",
            LAYOUT,
            lambda: 1000.0 + self.now,
            Copiers(1),
            steady=lambda: self.now,
        )
        self.worker = SnapshotWorker(carrier, runs, self.heard, lambda: self.now)

    def take(self, name: str, **fields: Any) -> None:
        self.worker.give(SnapshotOrders(take=(SnapshotOrder(name, **fields),)))

    def dispose(self, *names: str) -> None:
        self.worker.give(SnapshotOrders(dispose=names))

    def attempt(self, number: int = 1) -> None:
        """Attempt what is due, and let time go on until something is again; so many times."""
        for _ in range(number):
            self.now += self.worker.attempt_next() or 0.0

    def report(self, name: str) -> SnapshotReport:
        (found,) = (report for report in self.worker.reports() if report.id == name)
        return found


def service_with(batches: int = 3, **fields: Any) -> ServiceScene:
    scene = Scene()
    scene.batches(batches)
    return ServiceScene(scene, **fields)


def known(service: ServiceScene) -> catalog.Catalog:
    return service.scene.repository().read()


def dies_at(verb: str, part: str) -> Callable[[Call], None]:
    """Return a watch that loses the connection before such a request."""

    def watch(call: Call) -> None:
        if (call.verb, call.done) == (verb, False) and part in call.key:
            raise DOWN

    return watch


# --- taking ---


def test_an_order_waits_until_somebody_carries_it_out() -> None:
    service = service_with()
    service.take("a")
    assert (service.report("a").state, service.report("a").message) == (WAITING, NOT_BEGUN)


def test_a_snapshot_that_was_taken_is_reported_with_all_that_it_is() -> None:
    service = service_with()
    service.take("a", manual=True, holders=("upgrade-1",), image="shop:1")
    service.attempt()
    report, made = service.report("a"), known(service).snapshots["a"]
    assert (report.state, report.reason, report.lineage) == (READY, Reason.NONE, 1)
    assert (report.files, report.bytes, report.digest) == (report.of_files, made.bytes, made.digest)
    assert report.new_bytes == report.bytes > 0
    assert (report.manifest, report.spark_version) == ("s3://here/apps/orders/snapshots/a/manifest.json", "4.2.1")
    assert report.created == made.created == 1000.0
    assert {name: pin.batch for name, pin in report.queries.items()} == {"main": 2}
    assert made.manual
    assert made.holders == {"upgrade-1"}
    assert b'"image":"shop:1"' in service.scene.content("snapshots/a/manifest.json")


def test_the_second_one_names_the_first_as_its_parent_and_shares_with_it() -> None:
    service = service_with()
    service.take("a")
    service.take("b")
    service.attempt(2)
    report = service.report("b")
    assert (report.state, report.parent) == (READY, "a")
    assert report.new_bytes < report.bytes


def test_an_order_that_is_known_is_not_begun_again() -> None:
    service = service_with()
    service.take("a")
    service.attempt()
    before = service.report("a")
    service.take("a")
    service.attempt()
    assert service.report("a") == before
    assert len(service.heard.reports) == 1


def test_progress_shows_while_files_are_copied() -> None:
    service = service_with()
    seen: list[SnapshotReport] = []
    service.watch = lambda call: seen.append(service.report("a")) if call.verb == "copy" and not call.done else None
    service.take("a")
    service.attempt()
    assert [report.files for report in seen] == list(range(len(seen)))
    assert {report.state for report in seen} == {SnapshotState.COPYING}
    assert {report.of_files for report in seen[1:]} == {len(seen)}


def test_nothing_committed_yet_is_waited_for_while_the_application_runs() -> None:
    service = service_with(0)
    service.take("a")
    service.attempt(20)
    assert (service.report("a").state, service.report("a").reason) == (WAITING, Reason.NOTHING_COMMITTED)
    service.scene.batches(1)
    service.attempt()
    assert service.report("a").state is READY


def test_nothing_committed_is_the_end_where_nothing_runs() -> None:
    service = service_with(0, runs=False)
    service.take("a")
    service.attempt(2)
    assert (service.report("a").state, service.report("a").reason) == (FAILED, Reason.NOTHING_COMMITTED)
    assert known(service).snapshots == {}


def test_pauses_grow_to_half_a_minute_and_no_further() -> None:
    service, pauses = service_with(0), []
    service.take("a")
    for _ in range(8):
        before = service.now
        service.attempt()
        pauses.append(service.now - before)
    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30]


def test_a_store_that_is_away_is_waited_for() -> None:
    service = service_with()
    service.watch = dies_at("copy", "")
    service.take("a")
    service.attempt(5)
    assert (service.report("a").state, service.report("a").reason) == (WAITING, Reason.STORAGE_UNAVAILABLE)
    assert "http://store" in service.report("a").message
    service.watch = lambda call: None
    service.attempt()
    assert (service.report("a").state, service.report("a").message) == (READY, "")


def test_an_order_that_waits_does_not_keep_others_waiting() -> None:
    service = service_with()
    service.watch = dies_at("put_if", "/a/")
    service.take("a")
    service.take("b")
    service.attempt(2)
    assert (service.report("a").state, service.report("b").state) == (WAITING, READY)


def test_a_batch_that_was_asked_for_by_its_number_goes_first() -> None:
    service = service_with(5)
    for name in "ab":
        service.take(name)
    service.take("c", exact={"main": 3})
    service.attempt()
    assert {report.id: report.state for report in service.worker.reports()} == {"a": WAITING, "b": WAITING, "c": READY}


def test_a_batch_that_is_lost_is_given_up_and_nothing_is_left_of_it() -> None:
    service = service_with()
    service.scene.clean(keep=1)
    service.take("a", exact={"main": 0}, holders=("rollback-1",))
    service.attempt(2)
    assert (service.report("a").state, service.report("a").reason) == (FAILED, Reason.BATCH_LOST)
    assert "a" in known(service).gone
    assert [key for key in service.scene.keys("") if "/a/" in key or key.startswith("objects/")] == []


def test_what_is_given_up_does_not_wait_for_others_to_be_called_so() -> None:
    service = service_with()
    service.scene.clean(keep=1)
    service.take("a", exact={"main": 0})
    for name in "bc":
        service.take(name)
    service.attempt(2)
    assert service.report("a").state is FAILED


def test_giving_up_is_finished_when_the_store_is_back() -> None:
    service = service_with()
    service.scene.clean(keep=1)
    service.take("a", exact={"main": 0})
    service.attempt()
    service.watch = dies_at("get", "catalog")
    service.attempt(3)
    assert (service.report("a").state, service.report("a").reason) == (WAITING, Reason.STORAGE_UNAVAILABLE)
    service.watch = lambda call: None
    service.attempt()
    assert (service.report("a").state, service.report("a").reason) == (FAILED, Reason.BATCH_LOST)


def test_a_checkpoint_that_cannot_be_read_is_given_up_with_the_files_name() -> None:
    service = service_with()
    service.scene.store().put(f"{service.scene.root()}/state/2.zip", b"nonsense")
    service.take("a")
    service.attempt(2)
    assert service.report("a").state is FAILED
    assert "state/2.zip" in service.report("a").message


def test_a_fault_of_our_own_is_given_up_with_its_name() -> None:
    service = service_with()

    def watch(call: Call) -> None:
        if call.verb == "copy":
            raise KeyError("surprise")

    service.watch = watch
    service.take("a")
    service.attempt(2)
    assert (service.report("a").state, service.report("a").reason) == (FAILED, Reason.INTERNAL_ERROR)
    assert "KeyError" in service.report("a").message


def test_without_the_catalog_it_waits_for_a_person() -> None:
    service = service_with()
    service.take("a")
    service.attempt()
    lost = service.scene.content("snapshots/catalog.json")
    service.scene.store().delete(["apps/orders/snapshots/catalog.json"])
    service.take("b")
    service.dispose("a")
    service.attempt(4)
    assert {service.report(name).reason for name in "ab"} == {Reason.CATALOG_LOST}
    service.scene.store().put("apps/orders/snapshots/catalog.json", lost)
    service.attempt(2)
    assert (service.report("a").state, service.report("b").state) == (SnapshotState.DISPOSED, READY)


def test_the_next_process_finishes_what_one_that_ended_began() -> None:
    first = service_with(5)
    first.take("a")

    def watch(call: Call) -> None:
        if call.verb == "copy" and call.done:
            first.worker.stop()

    first.watch = watch
    first.attempt()
    assert first.report("a").state is SnapshotState.COPYING
    assert known(first).snapshots["a"].state is State.TAKING
    second = ServiceScene(first.scene)
    second.take("a")
    second.attempt()
    assert second.report("a").state is READY
    assert 0 < second.heard.bytes < second.report("a").bytes


# --- keeping Spark from cleaning up meanwhile ---


def pins(service: ServiceScene) -> list[bool]:
    """Have noted at each copy whether cleaning is held up; return the notes."""
    noted = list[bool]()

    def watch(call: Call) -> None:
        if call.verb == "copy" and not call.done:
            noted.append("lineages/1.pin" in service.scene.keys("lineages/"))

    service.watch = watch
    return noted


def test_an_exact_batch_is_pinned_while_it_is_copied() -> None:
    service = service_with(5)
    noted = pins(service)
    service.take("a", exact={"main": 3})
    service.attempt()
    assert service.report("a").queries["main"].batch == 3
    assert set(noted) == {True}
    assert "lineages/1.pin" not in service.scene.keys("lineages/")


def test_the_newest_batch_needs_no_pin() -> None:
    service = service_with()
    noted = pins(service)
    service.take("a")
    service.attempt()
    assert set(noted) == {False}


def test_after_spark_was_too_fast_it_is_pinned() -> None:
    service = service_with(20)
    noted = pins(service)
    note = service.watch

    def watch(call: Call) -> None:
        note(call)
        if call.verb == "copy" and not call.done and not noted[-1]:
            service.scene.batches(1)
            service.scene.clean(keep=1)

    service.watch = watch
    service.take("a")
    service.attempt()
    assert service.report("a").reason is Reason.CLEANED_TOO_FAST
    assert set(noted) == {False}
    service.attempt()
    assert service.report("a").state is READY
    assert noted[-1]


def test_a_pin_goes_whatever_becomes_of_the_snapshot() -> None:
    service = service_with()
    service.scene.clean(keep=1)
    service.take("a", exact={"main": 0})
    service.attempt(2)
    assert (service.report("a").state, service.report("a").reason) == (FAILED, Reason.BATCH_LOST)
    assert "lineages/1.pin" not in service.scene.keys("lineages/")


def test_a_pin_stays_between_two_attempts_at_an_exact_batch() -> None:
    service = service_with(5, watch=dies_at("copy", "commits"))
    service.take("a", exact={"main": 4})
    service.attempt()
    assert (service.report("a").state, service.report("a").reason) == (WAITING, Reason.STORAGE_UNAVAILABLE)
    assert "lineages/1.pin" in service.scene.keys("lineages/")
    service.watch = lambda call: None
    service.attempt()
    assert service.report("a").state is READY
    assert "lineages/1.pin" not in service.scene.keys("lineages/")


def test_a_pin_is_renewed_while_it_takes_long() -> None:
    service, puts = service_with(5), list[float]()

    def watch(call: Call) -> None:
        if call.verb == "copy" and call.done:
            service.now += 45
        if call.verb == "put" and call.done and call.key.endswith(".pin"):
            puts.append(service.now)

    service.watch = watch
    service.take("a", exact={"main": 4})
    service.attempt()
    assert len(puts) > 2
    assert max(later - earlier for earlier, later in pairwise(puts)) < 600


def test_an_exact_batch_is_pinned_when_it_is_ordered_and_not_when_its_turn_comes() -> None:
    service = service_with(5)
    service.take("a", exact={"main": 4})
    wait_for("the pin", lambda: "lineages/1.pin" in service.scene.keys("lineages/"), 60, 0.01)
    service.attempt()
    assert "lineages/1.pin" not in service.scene.keys("lineages/")


def test_the_pin_stays_for_the_next_exact_batch() -> None:
    service = service_with(5)
    service.take("a", exact={"main": 3})
    service.take("b", exact={"main": 4})
    service.attempt()
    assert "lineages/1.pin" in service.scene.keys("lineages/")
    service.attempt()
    assert (service.report("a").state, service.report("b").state) == (READY, READY)
    assert "lineages/1.pin" not in service.scene.keys("lineages/")


def test_nothing_is_pinned_for_an_application_that_does_not_run() -> None:
    service = service_with(5, runs=False)
    service.take("a", exact={"main": 3})
    noted = pins(service)
    service.attempt()
    assert set(noted) == {False}


def test_an_exact_batch_goes_before_a_copy_that_is_under_way_and_that_one_goes_on_later() -> None:
    service, copies = service_with(5), list[str]()

    def watch(call: Call) -> None:
        if call.verb == "copy" and call.done:
            copies.append(call.key)
            if len(copies) == 1:
                service.take("b", exact={"main": 3})

    service.watch = watch
    service.take("a")
    service.attempt()
    assert (len(copies), service.report("a").state) == (1, SnapshotState.COPYING)
    service.attempt()
    assert (service.report("a").state, service.report("b").state) == (SnapshotState.COPYING, READY)
    service.attempt()
    assert service.report("a").state is READY


# --- disposing ---


def test_whoever_does_not_come_back_is_released_before_it_is_disposed_of() -> None:
    service = service_with()
    service.take("a", holders=("fork-u-9",))
    service.attempt()
    service.dispose("a")
    service.attempt()
    assert service.report("a").state is SnapshotState.HELD
    orders = SnapshotOrders(dispose=("a",), release=(ReleaseOrder("a", "fork-u-9"),))
    service.worker.give(orders)
    service.worker.give(orders)
    service.attempt()
    assert service.report("a").state is SnapshotState.DISPOSED
    assert known(service).snapshots == {}


def test_a_snapshot_is_removed_with_all_that_only_it_needs() -> None:
    service = service_with()
    service.take("a")
    service.attempt()
    service.dispose("a")
    service.attempt()
    assert service.report("a").state is SnapshotState.DISPOSED
    assert [key for key in service.scene.keys("") if not key.startswith("lineages/")] == ["snapshots/catalog.json"]


def test_one_that_never_was_is_disposed_of_already() -> None:
    service = service_with()
    service.dispose("never")
    service.attempt()
    assert service.report("never").state is SnapshotState.DISPOSED


def test_one_that_is_held_goes_when_it_is_released() -> None:
    service = service_with()
    service.take("a", holders=("fork-7",))
    service.attempt()
    service.dispose("a")
    service.attempt(10)
    assert (service.report("a").state, service.report("a").reason) == (SnapshotState.HELD, Reason.HELD)
    assert "fork-7" in service.report("a").message
    service.scene.repository().change(lambda it: catalog.release(it, "a", "fork-7"))
    service.attempt()
    assert service.report("a").state is SnapshotState.DISPOSED


def test_disposing_ends_a_copy_that_is_under_way() -> None:
    service = service_with(5)
    service.watch = lambda call: service.dispose("a") if call.verb == "copy" and not call.done else None
    service.take("a")
    service.attempt()
    service.watch = lambda call: None
    service.attempt()
    assert service.report("a").state is SnapshotState.DISPOSED
    assert [key for key in service.scene.keys("") if not key.startswith("lineages/")] == ["snapshots/catalog.json"]


def test_to_take_what_is_being_disposed_of_changes_nothing() -> None:
    service = service_with()
    service.dispose("a")
    service.take("a")
    service.attempt()
    assert service.report("a").state is SnapshotState.DISPOSED


def test_disposing_is_never_given_up() -> None:
    service = service_with()
    service.take("a")
    service.attempt()

    def watch(call: Call) -> None:
        if call.verb == "delete":
            raise KeyError("surprise")

    service.watch = watch
    service.dispose("a")
    service.attempt(5)
    assert (service.report("a").state, service.report("a").reason) == (WAITING, Reason.INTERNAL_ERROR)


# --- what is remembered ---


def test_of_ended_orders_the_newest_are_kept_and_those_that_are_still_given() -> None:
    service = service_with()
    names = [f"s{number}" for number in range(KEPT + 5)]
    for name in names:
        service.worker.give(SnapshotOrders(take=tuple(map(SnapshotOrder, ["s0", "s1", name]))))
        service.attempt(2)
    assert [report.id for report in service.worker.reports()] == ["s0", "s1", *names[-KEPT - 1 :]]


def test_one_that_was_forgotten_is_found_complete() -> None:
    service = service_with()
    for number in range(KEPT + 5):
        service.take(f"s{number}")
        service.attempt()
    copied = service.heard.bytes
    service.take("s0")
    service.attempt()
    assert (service.report("s0").state, service.heard.bytes) == (READY, copied)


@pytest.mark.parametrize("wrong", ["", "A", "-a", "a/b", "a" * 64])
def test_what_is_no_id_is_refused_and_nothing_entered(wrong: str) -> None:
    service = service_with()
    with pytest.raises(ValueError, match="no id of a snapshot"):
        service.worker.give(SnapshotOrders(take=(SnapshotOrder("good"),), dispose=(wrong,)))
    assert service.worker.reports() == ()


def test_a_batch_below_zero_is_refused() -> None:
    with pytest.raises(ValueError, match="no batch -1"):
        service_with().take("a", exact={"main": -1})


# --- what others are told ---


def test_long_offsets_are_cut_and_say_so() -> None:
    text = "v1\n{metadata}\n" + "x" * 5000
    assert len(shown_offsets(text)) == LONGEST_OFFSETS
    assert shown_offsets(text).endswith("(cut)")


def test_offsets_are_those_of_the_sources() -> None:
    assert shown_offsets('v1\n{"batchWatermarkMs":0}\n{"t":{"0":5}}\n{"u":1}') == '{"t":{"0":5}}\n{"u":1}'


def test_observers_are_told_bytes_ends_and_the_newest() -> None:
    service = service_with()
    service.take("a")
    service.attempt()
    service.dispose("a")
    service.attempt()
    assert service.heard.bytes > 0
    assert [report.state for report in service.heard.reports] == [READY, SnapshotState.DISPOSED]
    assert service.heard.times == [1000.0, None]


def test_what_an_upgrade_keeps_for_itself_makes_no_snapshot_new() -> None:
    service = service_with()
    service.worker.give(SnapshotOrders(take=(SnapshotOrder("up-1", holders=("up-1",)),)))
    service.attempt()
    assert [report.state for report in service.heard.reports] == [READY]
    service.take("a")
    service.attempt()
    assert service.heard.times == [None, 1000.0]


# --- the desk ---


def test_the_desk_has_nobody_behind_it_until_the_first_order() -> None:
    service, made = service_with(), list[SnapshotWorker]()

    def make() -> SnapshotWorker:
        made.append(service.worker)
        return service.worker

    front = SnapshotService(make)
    assert (front.reports(), made) == ((), [])
    for name in "ab":
        front.give(SnapshotOrders(take=(SnapshotOrder(name),)))
    assert made == [service.worker]
    assert [report.id for report in front.reports()] == ["a", "b"]


def test_what_was_given_to_the_desk_before_the_start_is_carried_out_after_it() -> None:
    service = service_with()
    front = SnapshotService(lambda: service.worker)
    front.give(SnapshotOrders(take=(SnapshotOrder("a"),)))
    front.start()
    wait_for("the snapshot", lambda: front.reports()[0].state is READY, 30, 0.01)
    front.stop()


def test_a_driver_finds_what_lacks_files_at_its_start_and_when_the_catalog_changes() -> None:
    service = service_with(3)
    service.take("a")
    service.attempt()
    service.worker.check()
    assert service.report("a").state is READY
    service.now += 400
    lost = service.scene.keys("snapshots/a/files/")[0]
    content = service.scene.content(lost)
    service.scene.store().delete([f"apps/orders/{lost}"])
    service.worker.check()
    assert service.report("a").state is READY  # the catalog is what it was: nothing is listed
    service.scene.repository().change(lambda known: catalog.hold(known, "a", "fork"))
    service.now += 400
    service.worker.check()
    service.now += 5
    found = service.report("a")
    assert (found.state, found.reason, found.seconds) == (FAILED, Reason.SNAPSHOT_DAMAGED, 5)
    assert found.message.startswith(f"snapshot a is not whole: apps/orders/{lost}")
    service.scene.store().put(f"apps/orders/{lost}", content)
    service.now += 70
    service.worker.check()
    assert service.report("a").state is READY


def test_a_catalog_that_is_what_it_was_is_not_read_again() -> None:
    """With a thousand snapshots of ten thousand objects it has half a gigabyte in memory."""
    service, asked = service_with(3), list[tuple[str, str]]()
    service.take("a")
    service.attempt()
    service.worker.check()
    service.watch = lambda call: asked.append((call.verb, call.key)) if not call.done else None
    newest = service.carrier.newest
    service.now += 400
    service.worker.check()
    assert asked == [("head", "apps/orders/snapshots/catalog.json")]
    assert service.carrier.newest == newest == 1000.0


def test_the_age_of_the_newest_snapshot_is_that_of_the_newest_one_that_is_whole() -> None:
    service = service_with(3)
    for name in "ab":
        service.take(name)
        service.attempt()
        service.scene.batches(1)
        service.now += 400
    service.worker.check()
    ages = [service.heard.times[-1]]
    lost = service.scene.keys("snapshots/b/files/")[0]
    content = service.scene.content(lost)
    service.scene.store().delete([f"apps/orders/{lost}"])
    service.scene.repository().change(lambda known: catalog.hold(known, "a", "fork"))
    service.now += 400
    service.worker.check()
    ages.append(service.heard.times[-1])
    service.scene.store().put(f"apps/orders/{lost}", content)
    service.now += 400
    service.worker.check()
    ages.append(service.heard.times[-1])
    assert ages == [1400.0, 1000.0, 1400.0]


def test_a_driver_enters_again_what_a_catalog_that_was_put_back_does_not_know() -> None:
    service = service_with(3)
    service.take("a")
    service.attempt()
    before = service.scene.content("snapshots/catalog.json")
    service.take("b")
    service.attempt()
    service.scene.store().put("apps/orders/snapshots/catalog.json", before)
    service.worker.check()
    assert service.scene.repository().read().ready() == ["a", "b"]


def test_what_was_begun_and_is_published_is_not_removed_when_it_is_given_up() -> None:
    service = service_with(3)
    service.take("a")
    service.attempt()
    before = service.scene.keys("snapshots/")
    taking = catalog.begin(catalog.Catalog(serial=1), "a", catalog.Snapshot(State.TAKING, 1.0))
    service.scene.store().put("apps/orders/snapshots/catalog.json", encode(taking))
    service.carrier.abandon(SnapshotOrder("a"))
    assert service.scene.keys("snapshots/") == before
