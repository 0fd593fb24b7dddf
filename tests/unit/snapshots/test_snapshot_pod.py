"""The pod that carries orders out where no driver does: when it ends, and the word it leaves."""

import pytest

from tidegate_spark.protocol import (
    EXIT_DEPENDENCY,
    EXIT_OK,
    TERMINATION_MESSAGE_LIMIT,
    Storage,
    from_json,
)
from tidegate_spark.redaction import Secrets
from tidegate_spark.snapshot_keeper import SnapshotKeeper
from tidegate_spark.snapshot_pod import carry_out, word_of
from tidegate_spark.snapshot_protocol import (
    QueryPin,
    SnapshotOrder,
    SnapshotOrders,
    SnapshotReason,
    SnapshotReport,
    SnapshotReports,
    SnapshotState,
)
from tidegate_spark.snapshot_work import Carrier
from tidegate_spark.snapshots.library import CatalogContendedError
from tidegate_spark.snapshots.memory import Call
from tidegate_spark.snapshots.store import MismatchError, SnapshotError
from tidegate_spark.snapshots.take import TooFastError
from tidegate_testing.driver_process import driver_config
from tidegate_testing.snapshot_scenes import Scene


class Scripted(Carrier):
    """Fails as it is told to, and then takes whatever is ordered."""

    def __init__(self, *failures: Exception) -> None:
        config = driver_config("orders", "main", Storage("s3://here/apps/orders"))
        super().__init__(config, Scene().library)
        self.failures, self.attempts = list(failures), 0

    def take(self, order: SnapshotOrder, tell: object, pin: bool = False) -> SnapshotReport:
        self.attempts += 1
        if self.failures:
            raise self.failures.pop(0)
        return SnapshotReport(order.id, SnapshotState.READY)


def end(carrier: Scripted) -> tuple[int, SnapshotReport, float]:
    """Let a pod do its work; return its exit code, what it says of the order, and how long it paused."""
    now = [0.0]
    keeper = SnapshotKeeper(carrier, runs=False, clock=lambda: now[0])
    keeper.give(SnapshotOrders(take=(SnapshotOrder("a"),)))

    def pause(seconds: float) -> None:
        now[0] += seconds

    code = carry_out(keeper, pause)
    (report,) = keeper.reports()
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
    assert (report.reason, carrier.attempts) == (SnapshotReason.STORAGE_UNAVAILABLE, 1)


def test_disposing_that_fails_for_no_known_cause_ends_and_is_tried_again() -> None:
    scene, now = Scene(), [0.0]
    carrier = Scripted()

    def fail(call: Call) -> None:
        raise ZeroDivisionError

    carrier.connect = lambda: scene.library(fail)
    keeper = SnapshotKeeper(carrier, runs=False, clock=lambda: now[0])
    keeper.give(SnapshotOrders(dispose=("a",)))

    def pause(seconds: float) -> None:
        now[0] += seconds

    assert carry_out(keeper, pause) == EXIT_DEPENDENCY
    assert keeper.reports()[0].reason is SnapshotReason.INTERNAL


def test_without_orders_it_ends_well() -> None:
    keeper = SnapshotKeeper(Scripted(), runs=False)
    keeper.give(SnapshotOrders())
    assert carry_out(keeper, lambda seconds: None) == EXIT_OK


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


def test_then_messages_are_cut_and_at_last_queries_and_reports_go() -> None:
    queries = {"query" * 10 + str(number): QueryPin(number, "") for number in range(200)}
    many = tuple(
        SnapshotReport(f"s{number}", SnapshotState.FAILED, message="é" * 5000, queries=queries) for number in range(20)
    )
    left = reports_of(word_of(many, Secrets()))
    assert [report.id for report in left] == [f"s{number}" for number in range(len(left))]
    assert left
    assert all(report.message.endswith("…") and report.queries == {} for report in left)
