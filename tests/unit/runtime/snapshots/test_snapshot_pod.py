"""The pod that carries orders out where no driver does: when it ends, and the word it leaves."""

import dataclasses
import urllib.error
import urllib.request
from typing import Any

import pytest

from tidegate_spark.contract.protocol import (
    EXIT_DEPENDENCY,
    EXIT_OK,
    EXIT_STOPPED,
    TERMINATION_MESSAGE_LIMIT,
    Storage,
    from_json,
)
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.snapshot_protocol import (
    PROGRESS_PATH,
    AdoptOrder,
    ExportOrder,
    QueryPin,
    ReleaseOrder,
    SnapshotOrder,
    SnapshotOrders,
    SnapshotReport,
    SnapshotReports,
    SnapshotState,
    VerifyOrder,
)
from tidegate_spark.process.redaction import Secrets
from tidegate_spark.snapshots import collect, manifest
from tidegate_spark.snapshots.copying import Copiers, Progress
from tidegate_spark.snapshots.repository import CatalogContendedError, SnapshotRepository
from tidegate_spark.snapshots.service.operations import Carrier
from tidegate_spark.snapshots.service.pod import carry_out, judge_claim, stopped, word_of
from tidegate_spark.snapshots.service.progress_server import serve
from tidegate_spark.snapshots.service.worker import SnapshotWorker
from tidegate_spark.snapshots.take import TooFastError
from tidegate_spark.storage.store import MismatchError, SnapshotError
from tidegate_testing.driver_process import driver_config
from tidegate_testing.fake_checkpoint import LAYOUT
from tidegate_testing.memory_store import Call
from tidegate_testing.snapshot_scenes import Scene


class Scripted(Carrier):
    """Fails as it is told to, and then takes whatever is ordered."""

    def __init__(self, *failures: Exception) -> None:
        config = driver_config("orders", "main", Storage("s3://here/apps/orders"))
        super().__init__(config, Scene().repository)
        self.failures, self.attempts = list(failures), 0

    def take(self, order: SnapshotOrder, *_: object) -> SnapshotReport:
        self.attempts += 1
        if self.failures:
            raise self.failures.pop(0)
        return SnapshotReport(order.id, SnapshotState.READY)


def end(carrier: Scripted) -> tuple[int, SnapshotReport, float]:
    """Let a pod do its work; return its exit code, what it says of the order, and how long it paused."""
    now = [0.0]
    worker = SnapshotWorker(carrier, runs=False, clock=lambda: now[0])
    worker.give(SnapshotOrders(take=(SnapshotOrder("a"),)))

    def pause(seconds: float) -> None:
        now[0] += seconds

    code = carry_out(worker, pause)
    (report,) = worker.reports()
    return code, report, now[0]


def test_it_ends_well_when_everything_was_done() -> None:
    code, report, paused = end(Scripted())
    assert (code, report.state, paused) == (EXIT_OK, SnapshotState.READY, 0.0)


def test_it_ends_well_when_something_was_given_up_for_good() -> None:
    code, report, _ = end(Scripted(SnapshotError("never")))
    assert (code, report.state) == (EXIT_OK, SnapshotState.FAILED)


@pytest.mark.parametrize("passing", [TooFastError("cleaned"), MismatchError("torn")])
def test_what_may_pass_in_seconds_is_waited_for_here(passing: Exception) -> None:
    code, report, paused = end(Scripted(passing))
    assert (code, report.state) == (EXIT_OK, SnapshotState.READY)
    assert paused > 0


def test_a_store_that_is_away_is_left_to_the_kubelet() -> None:
    carrier = Scripted(CatalogContendedError("again and again"))
    code, report, paused = end(carrier)
    assert (code, report.state, paused) == (EXIT_DEPENDENCY, SnapshotState.WAITING, 0.0)
    assert (report.reason, carrier.attempts) == (Reason.STORAGE_UNAVAILABLE, 1)


def test_disposing_that_fails_for_no_known_cause_ends_and_is_tried_again() -> None:
    scene, now = Scene(), [0.0]
    carrier = Scripted()

    def fail(call: Call) -> None:
        raise ZeroDivisionError

    carrier.connect = lambda: scene.repository(fail)
    worker = SnapshotWorker(carrier, runs=False, clock=lambda: now[0])
    worker.give(SnapshotOrders(dispose=("a",)))

    def pause(seconds: float) -> None:
        now[0] += seconds

    assert carry_out(worker, pause) == EXIT_DEPENDENCY
    assert worker.reports()[0].reason is Reason.INTERNAL_ERROR


def test_without_orders_it_ends_well() -> None:
    worker = SnapshotWorker(Scripted(), runs=False)
    worker.give(SnapshotOrders())
    assert carry_out(worker, lambda seconds: None) == EXIT_OK


def test_a_hold_of_somebody_who_does_not_come_back_is_released() -> None:
    scene = Scene()
    scene.batches()
    scene.take("a", holders=frozenset(("fork-u-9", "fork-u-8")))
    carrier = Scripted()
    carrier.connect = scene.repository
    worker = SnapshotWorker(carrier, runs=False)
    worker.give(SnapshotOrders(release=(ReleaseOrder("a", "fork-u-9"), ReleaseOrder("gone", "fork-u-9"))))
    assert carry_out(worker, lambda seconds: None) == EXIT_OK
    assert {report.state for report in worker.reports()} == {SnapshotState.RELEASED}
    assert scene.repository().read().snapshots["a"].holders == {"fork-u-8"}


def test_one_that_is_asked_to_stop_ends_at_the_next_file_and_begins_nothing_else() -> None:
    class Asked(Scripted):
        def take(self, order: SnapshotOrder, *rest: Any) -> SnapshotReport:
            rest[0](Progress(files=3, of_files=8))
            worker.stop()
            rest[0](Progress(files=4, of_files=8))
            raise AssertionError("it goes on")

    worker = SnapshotWorker(Asked(), runs=False)
    worker.give(SnapshotOrders(take=(SnapshotOrder("a"), SnapshotOrder("b"))))
    assert carry_out(worker, lambda seconds: None) == EXIT_STOPPED
    first, second = map(stopped, worker.reports())
    assert (first.state, first.reason, "3 of 8" in first.message) == (SnapshotState.COPYING, Reason.STOPPED, True)
    assert (second.state, second.reason) == (SnapshotState.WAITING, Reason.STOPPED)


def test_what_had_ended_or_said_why_it_waits_when_it_was_asked_to_stop_stays_as_it_is() -> None:
    waits = SnapshotReport("a", SnapshotState.WAITING, Reason.STORAGE_UNAVAILABLE, "no answer")
    for report in (waits, SnapshotReport("a", SnapshotState.READY), SnapshotReport("a", SnapshotState.HELD)):
        assert stopped(report) == report
    worker = SnapshotWorker(Scripted(), runs=False)
    worker.give(SnapshotOrders())
    worker.stop()
    assert carry_out(worker, lambda seconds: None) == EXIT_OK


# --- snapshots of others ---

ADOPT = AdoptOrder("mine-1", "a", "import-u-9")


def adopt(scene: Scene) -> tuple[int, SnapshotReport]:
    carrier, now = Scripted(), [0.0]
    carrier.connect = scene.repository
    worker = SnapshotWorker(carrier, runs=False, clock=lambda: now[0])
    worker.give(SnapshotOrders(adopt=(ADOPT,)))

    def pause(seconds: float) -> None:
        now[0] += seconds

    code = carry_out(worker, pause)
    (report,) = worker.reports()
    return code, report


def test_one_that_is_whole_is_held_from_then_on_and_reported_under_the_orders_name() -> None:
    scene = Scene()
    scene.batches(3)
    made = scene.take("a", image="shop:1", spark_version="4.2.1")
    code, report = adopt(scene)
    assert (code, report.id, report.state) == (EXIT_OK, "mine-1", SnapshotState.READY)
    assert (report.queries["main"].batch, report.lineage, report.image) == (2, 1, "shop:1")
    assert (report.app, report.app_uid, report.spark_version) == ("tests/orders", "uid-1", "4.2.1")
    assert report.manifest == "s3://here/apps/orders/snapshots/a/manifest.json"
    assert report.bytes == sum({file.key: file.size for file in made.files}.values())
    assert scene.repository().read().snapshots["a"].holders == {"import-u-9"}
    assert adopt(scene) == (code, dataclasses.replace(report, seconds=0.0))


def test_one_that_is_not_there_yet_is_waited_for() -> None:
    scene = Scene()
    scene.batches()
    code, report = adopt(scene)
    assert (code, report.state, report.reason) == (EXIT_DEPENDENCY, SnapshotState.WAITING, Reason.SNAPSHOT_MISSING)
    assert "there is no snapshot a" in report.message


def test_one_that_is_damaged_is_refused_and_not_held() -> None:
    scene = Scene()
    scene.batches(3)
    made = scene.take("a")
    scene.store().delete([f"apps/orders/{made.files[0].key}"])
    code, report = adopt(scene)
    assert (code, report.state, report.reason) == (EXIT_OK, SnapshotState.FAILED, Reason.SNAPSHOT_DAMAGED)
    assert made.files[0].key in report.message
    assert scene.repository().read().snapshots["a"].holders == frozenset()


# --- reading back ---


def read_back(scene: Scene) -> tuple[int, SnapshotReport]:
    carrier = Scripted()
    carrier.connect, carrier.layout = scene.repository, LAYOUT
    worker = SnapshotWorker(carrier, runs=False)
    worker.give(SnapshotOrders(verify=(VerifyOrder("mine-1", "a"),)))
    code = carry_out(worker, lambda seconds: None)
    (report,) = worker.reports()
    return code, report


def test_one_that_is_whole_is_said_to_be() -> None:
    scene = Scene()
    scene.batches(3)
    made = scene.take("a")
    code, report = read_back(scene)
    assert (code, report.id, report.state) == (EXIT_OK, "mine-1", SnapshotState.VERIFIED)
    assert (report.files, "were read back" in report.message) == (len({file.key for file in made.files}), True)


def test_one_that_is_not_says_what_and_where() -> None:
    scene = Scene()
    scene.batches(3)
    made = scene.take("a")
    scene.store().put(f"apps/orders/{made.files[0].key}", b"x" * made.files[0].size)
    code, report = read_back(scene)
    assert (code, report.state, report.reason) == (EXIT_OK, SnapshotState.FAILED, Reason.SNAPSHOT_DAMAGED)
    assert made.files[0].key in report.message


def complete_before() -> Scene:
    scene = Scene()
    scene.batches(3)
    scene.take("a")
    return scene


def remove(scene: Scene, *parts: str) -> None:
    scene.store().delete([f"apps/orders/{key}" for key in scene.keys("") if any(part in key for part in parts)])


def deleted_in_the_storage() -> Scene:
    scene = complete_before()
    collect.dispose(scene.repository(), "a")
    return scene


def purged() -> Scene:
    scene = complete_before()
    remove(scene, "")
    return scene


@pytest.mark.parametrize("scene", [Scene(), deleted_in_the_storage(), purged()], ids=["unknown", "deleted", "purged"])
def test_reading_back_what_is_not_there_any_more_ends_and_says_so(scene: Scene) -> None:
    """A snapshot is read back once it is complete, so nothing comes that could be waited for."""
    code, report = read_back(scene)
    assert (code, report.state, report.reason) == (EXIT_OK, SnapshotState.FAILED, Reason.SNAPSHOT_GONE)
    assert report.message == "Snapshot a is not in here/apps/orders any more. Use another one."


def test_reading_back_a_published_one_without_its_catalog_waits_for_a_person() -> None:
    scene = complete_before()
    remove(scene, "catalog.json")
    code, report = read_back(scene)
    assert (code, report.state, report.reason) == (EXIT_DEPENDENCY, SnapshotState.WAITING, Reason.CATALOG_LOST)


def test_reading_back_a_published_one_that_an_older_catalog_lacks_finds_it_damaged_without_its_files() -> None:
    scene = Scene()
    scene.batches(1)
    scene.take("before")
    older = scene.store().get("apps/orders/snapshots/catalog.json")
    assert older is not None
    scene.batches(3)
    made = scene.take("a")
    scene.store().put("apps/orders/snapshots/catalog.json", older[0])
    scene.store().delete([f"apps/orders/{made.files[0].key}"])
    code, report = read_back(scene)
    assert (code, report.state, report.reason) == (EXIT_OK, SnapshotState.FAILED, Reason.SNAPSHOT_DAMAGED)


def test_an_export_of_what_is_not_there_any_more_ends_and_says_so() -> None:
    def export(repository: SnapshotRepository, order: ExportOrder, copiers: Copiers) -> SnapshotReport:
        manifest.read(repository, order.snapshot, repository.read())
        raise AssertionError("it is not there")

    carrier = Scripted()
    carrier.connect, carrier.make_export = purged().repository, export
    worker = SnapshotWorker(carrier, runs=False)
    worker.give(SnapshotOrders(export=(ExportOrder("mine-1", "a", "e1", "CSV"),)))
    assert carry_out(worker, lambda seconds: None) == EXIT_OK
    (report,) = worker.reports()
    assert (report.state, report.reason) == (SnapshotState.FAILED, Reason.SNAPSHOT_GONE)


# --- whose storage it is ---

CONFIG = driver_config("orders", "main", Storage("s3://here/apps/orders"))


def test_the_last_driver_left_its_sparks_version() -> None:
    assert judge_claim({"uid": CONFIG.uid, "sparkVersion": "4.2.1"}, CONFIG) == "4.2.1"
    assert [judge_claim(claim, CONFIG) for claim in (None, {"uid": CONFIG.uid})] == ["", ""]


def test_nothing_is_taken_where_another_application_is_by_now() -> None:
    with pytest.raises(SnapshotError, match=r"another application by now \(uid another\)"):
        judge_claim({"uid": "another"}, CONFIG)


# --- how far it is ---


def test_whoever_asks_is_told_figures_and_neither_words_nor_offsets_nor_where_and_whose_it_is() -> None:
    """The port is open to everybody who reaches the pod."""
    report = SnapshotReport("a", SnapshotState.READY, message="words", files=3, bytes=7, of_files=9, rows=2)
    reported = dataclasses.replace(
        report,
        queries={"main": QueryPin(3, "{}")},
        spec="{}",
        spec_hash="0123456789abcdef",
        manifest="s3://here/apps/orders/snapshots/a/manifest.json",
        digest="sha256:1",
        image="registry.shop/orders:1",
        app="shop/orders",
        app_uid="u-1",
        parent="earlier",
        spark_version="4.2.1",
        lineage=3,
        created=1.0,
    )
    server = serve("127.0.0.1", 0, lambda: (reported,))
    assert server is not None
    address = f"http://127.0.0.1:{server.port}"
    with urllib.request.urlopen(address + PROGRESS_PATH) as answer:
        (seen,) = from_json(SnapshotReports, answer.read()).snapshots
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(address + "/metrics")
    assert serve("127.0.0.1", server.port, tuple) is None, "two at one port"
    server.close()
    assert seen == SnapshotReport("a", SnapshotState.READY, files=3, bytes=7, of_files=9, rows=2)


# --- the termination message ---


def reports_of(text: str) -> tuple[SnapshotReport, ...]:
    assert len(text.encode()) <= TERMINATION_MESSAGE_LIMIT
    return from_json(SnapshotReports, text).snapshots


def test_a_short_report_is_left_as_it_is_but_for_secrets() -> None:
    report = SnapshotReport("a", SnapshotState.READY, message="key hush-hush", queries={"main": QueryPin(3, "{}")})
    (left,) = reports_of(word_of((report,), Secrets(["hush-hush"])))
    assert left.message == "key [redacted]"
    assert left.queries == report.queries


def test_offsets_go_first_and_batches_stay() -> None:
    queries = {f"q{number}": QueryPin(number, "x" * 2000) for number in range(5)}
    (left,) = reports_of(word_of((SnapshotReport("a", SnapshotState.READY, queries=queries),), Secrets()))
    assert {name: pin.batch for name, pin in left.queries.items()} == {f"q{number}": number for number in range(5)}
    assert {pin.offsets for pin in left.queries.values()} == {""}


def test_a_versions_spec_goes_before_any_word_of_a_message() -> None:
    (left,) = reports_of(
        word_of((SnapshotReport("a", SnapshotState.READY, message="m" * 900, spec="s" * 4000),), Secrets())
    )
    assert (left.message, left.spec) == ("m" * 900, "")


def test_then_messages_are_cut_and_at_last_queries_and_reports_go() -> None:
    queries = {"query" * 10 + str(number): QueryPin(number, "") for number in range(200)}
    many = tuple(
        SnapshotReport(f"s{number}", SnapshotState.FAILED, message="é" * 5000, queries=queries) for number in range(20)
    )
    left = reports_of(word_of(many, Secrets()))
    assert [report.id for report in left] == [f"s{number}" for number in range(len(left))]
    assert left
    assert all(report.message.endswith("…") and report.queries == {} for report in left)
