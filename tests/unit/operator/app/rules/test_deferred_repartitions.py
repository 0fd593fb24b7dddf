"""A repartition that finds a batch uncommitted: deferred, begun again by itself, and refused after that. Pure."""

from typing import Any

import msgspec
import pytest

from tidegate.api.spec_hash import spec_hash
from tidegate.api.streaming_app import RepartitionStatus, StreamingApp, UpgradePhase
from tidegate.app import actions as do
from tidegate.app.actions import Plan
from tidegate.app.rules.plan import decide
from tidegate.pods.records.record import Exit
from tidegate_spark.contract.control_protocol import ControlReport
from tidegate_spark.contract.protocol import QueryReport, Termination, to_json
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.repartition_protocol import RepartitionEnd
from tidegate_testing.observations import NOW, driver_of, observe
from tidegate_testing.plans import acts, status_of, verdict_of
from tidegate_testing.upgrades import (
    BEGUN,
    PIN,
    edited,
    events,
    launch_of,
    old_app,
    record,
    runs_with,
    under_test,
    version_launched,
)

EIGHT: dict[str, Any] = {"state.partitions": 8}
IN_BATCH = "Query 'main' was ended inside batch 10. The previous version runs it now."
ONCE_MORE = "(deferral {} of 2)"


def repartitioning(deferrals: int = 0) -> StreamingApp:
    known = RepartitionStatus(
        partitions=8,
        previous_partitions=4,
        snapshot_id=PIN,
        epoch=2,
        lineage=2,
        attempts=1,
        start_time=BEGUN,
        deferrals=deferrals,
    )
    app = under_test(UpgradePhase.REPARTITIONING, EIGHT, repartition=known, epoch=0, last_lineage=2)
    return msgspec.structs.replace(app, status=msgspec.structs.replace(app.status, state_partitions=4))


def ended(app: StreamingApp, what: Reason = Reason.BATCH_UNCOMMITTED) -> Plan:
    """Return what is decided when the attempt's pod has said so."""
    termination = to_json(Termination(Reason.APPLICATION_FAILED, IN_BATCH, 2, repartition=RepartitionEnd(what)))
    at = {"phase": "Failed", "running": False, "ended": Exit(1, "Error", termination, NOW - 1)}
    pod = driver_of(app, name="orders-repartition-2", role="repartition", uid="r-1", epoch=2, **at)
    return decide(observe(app, repartitions=(pod,)), NOW)


def deferrals(number: int = 1) -> StreamingApp:
    """Return the application after that, with the previous version launched."""
    app = repartitioning(number - 1)
    return msgspec.structs.replace(app, status=status_of(ended(app)))


def goes_on(app: StreamingApp, *queries: QueryReport, **fields: Any) -> Plan:
    return decide(observe(app, **runs_with(old_app(), *queries, **fields)), NOW)


@pytest.mark.parametrize("before", [0, 1])
def test_the_version_before_goes_on_and_the_upgrade_is_put_off_twice_at_most(before: int) -> None:
    plan = ended(repartitioning(before))
    upgrade = record(plan)
    assert upgrade.repartition is not None
    assert (upgrade.phase, upgrade.reason) == (UpgradePhase.REFUSED, "StatePartitionsKept")
    assert (upgrade.repartition.cause, upgrade.repartition.deferrals) == ("BatchUncommitted", before + 1)
    assert (launch_of(plan).lineage, version_launched(plan)) == (1, spec_hash(old_app()))
    assert IN_BATCH in upgrade.message
    assert ONCE_MORE.format(before + 1) in upgrade.message
    assert "StatePartitionsKept" in events(plan)


def test_after_that_it_is_refused_until_somebody_says_more() -> None:
    plan = ended(repartitioning(2))
    assert (record(plan).phase, record(plan).reason) == (UpgradePhase.REFUSED, "BatchUncommitted")
    assert "To try again, change spec.restartNonce" in record(plan).message
    refused = msgspec.structs.replace(repartitioning(), status=status_of(plan))
    later = goes_on(refused, QueryReport("main", batch_id=99, committed=99))
    assert (verdict_of(later)[1:], record(later).phase) == (("Stalled", "UpgradeRefused"), UpgradePhase.REFUSED)


def test_while_it_is_put_off_nobody_is_told_that_something_is_to_be_mended() -> None:
    plan = goes_on(deferrals(), QueryReport("main", batch_id=10, committed=1, lag_rows=7))
    assert verdict_of(plan)[1:] == ("Reconciling", "StatePartitionsKept")
    assert ONCE_MORE.format(1) in plan.message
    assert not acts(plan, do.DeleteDriver)


@pytest.mark.parametrize(
    "queries",
    [
        (QueryReport("main", batch_id=14, committed=5, lag_rows=9),),
        (QueryReport("main", batch_id=10, committed=1, lag_rows=0),),
        (QueryReport("main", batch_id=10, committed=1),),
        (QueryReport("main", batch_id=10, lag_rows=0),),
        (QueryReport("main", batch_id=14, committed=5, lag_rows=9), QueryReport("other", batch_id=3, committed=1)),
    ],
    ids=["enough", "no input", "sources that do not tell", "started once more, no input", "one of each"],
)
def test_when_the_version_before_is_stable_again_the_upgrade_begins_from_its_beginning(
    queries: tuple[QueryReport, ...],
) -> None:
    plan = goes_on(deferrals(), *queries)
    upgrade = record(plan)
    assert (upgrade.phase, upgrade.number) == (UpgradePhase.COPYING, 2)
    assert upgrade.repartition == RepartitionStatus(partitions=8, previous_partitions=4, deferrals=1)
    assert not acts(plan, do.DeleteDriver), "its state is copied first"


@pytest.mark.parametrize(
    ("queries", "fields"),
    [
        ((), {}),
        ((QueryReport("main", batch_id=9),), {"ready": False}),
        ((QueryReport("main", batch_id=9, lag_rows=0),), {"control": ControlReport(paused=True)}),
        ((QueryReport("main", batch_id=12, committed=3, lag_rows=9),), {}),
        ((QueryReport("main", batch_id=14, committed=5), QueryReport("other", batch_id=3)), {"ready": False}),
        ((QueryReport("main", batch_id=14, committed=5), QueryReport("other", active=False, failed=True)), {}),
        ((QueryReport("main", batch_id=14, committed=5),), {"ready": False}),
    ],
    ids=[
        "no query",
        "in the batch",
        "paused in the batch",
        "behind",
        "one in its batch",
        "one has failed",
        "not ready",
    ],
)
def test_until_then_nothing_begins(queries: tuple[QueryReport, ...], fields: dict[str, Any]) -> None:
    plan = goes_on(deferrals(), *queries, **fields)
    assert (record(plan).phase, record(plan).number) == (UpgradePhase.REFUSED, 1)


def test_it_counts_by_edit_and_another_one_begins_at_once() -> None:
    again = edited(deferrals(2), {**EIGHT, "restartNonce": 1})
    upgrade = record(goes_on(again, QueryReport("main", batch_id=9)))
    assert (upgrade.phase, upgrade.repartition) == (
        UpgradePhase.COPYING,
        RepartitionStatus(partitions=8, previous_partitions=4),
    )


def test_the_number_set_back_withdraws_it() -> None:
    back = edited(deferrals(), {"application.image": "shop/orders:1"})
    plan = goes_on(back, QueryReport("main", batch_id=14, committed=5))
    assert record(plan).phase is UpgradePhase.WITHDRAWN


def test_what_else_an_attempt_comes_to_is_not_put_off() -> None:
    assert record(ended(repartitioning(), Reason.SPARK_FAILED)).reason == "SparkFailed"
