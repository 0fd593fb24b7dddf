"""What becomes of the autoscaler's advice: status, driver, events. Pure."""

import dataclasses
import datetime
import math
from typing import Any

import msgspec
import pytest

from tidegate.api.spec import AutoscalingMode, AutoscalingSpec
from tidegate.api.streaming_app import AutoscalingStatus, Phase, StreamingApp, StreamingAppStatus
from tidegate.app.actions import CreateDriver, RecordLaunch, SetExecutors, WriteStatus
from tidegate.app.rules.plan import decide
from tidegate.autoscaling.algorithm.evaluate import Evaluation
from tidegate.autoscaling.algorithm.large_batches import LargeBatches
from tidegate.autoscaling.algorithm.past import Past
from tidegate.autoscaling.algorithm.recommend import Advice, Sight, recommend
from tidegate.autoscaling.algorithm.samples import KEPT_SECONDS, History
from tidegate.autoscaling.algorithm.settings import ExcludedPeriod, Mode, Settings
from tidegate.autoscaling.rules.inputs import past_of, settings_of
from tidegate.engine.rules.actions import PublishEvent
from tidegate.wiring.metrics import OperatorMetrics
from tidegate_spark.contract.protocol import AgentReport, DriverConfig, QueryReport, from_json
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.autoscaling import STEADY, measured, query, report
from tidegate_testing.observations import NOW, app_with, launched, observe, report_of, running_driver

WORDS = "6 executors instead of 2."


def scaled_app(mode: str = "Active", **status: Any) -> StreamingApp:
    app = app_with({"autoscaling.mode": mode, "autoscaling.maxExecutors": 8, "executor.instances": 2})
    return launched(app, phase=Phase.RUNNING, **status)


def advice(step: Reason = Reason.SCALE_UP, *, mode: Mode = Mode.ACTIVE, target: int = 6) -> Advice:
    """Return the advice of an evaluation that has just raised the target from two."""
    up = step is Reason.SCALE_UP
    past = Past(version="v") if mode is Mode.ADVISE else Past(target=target, version="v", packing=0.8)
    if up and mode is Mode.ACTIVE:
        past = Past(target, NOW - 1, 2, "ScaleUp", WORDS, 400.0, 2, packing=0.8, version="v")
    return Advice(mode, Evaluation(step, 2, target, up, past, 5.6), WORDS, measured(400.0), NOW - 1)


def plan_of(app: StreamingApp, *, reported: int = 2, **fields: Any) -> tuple[Any, ...]:
    driver = running_driver(app, ready=True)
    report = report_of(driver, executors_wanted=reported, executors_running=reported)
    return decide(observe(app, driver=driver, agent=report, **fields), NOW).actions


def of_kind(actions: tuple[Any, ...], kind: type[Any]) -> list[Any]:
    return [action for action in actions if isinstance(action, kind)]


def written(actions: tuple[Any, ...]) -> AutoscalingStatus:
    (write,) = of_kind(actions, WriteStatus)
    found = write.status.autoscaling
    assert isinstance(found, AutoscalingStatus)
    return found


def stored(app: StreamingApp, actions: tuple[Any, ...]) -> StreamingApp:
    (write,) = of_kind(actions, WriteStatus)
    return msgspec.structs.replace(app, status=write.status)


def test_the_target_is_in_the_status_before_the_driver_hears_of_it() -> None:
    actions = plan_of(scaled_app(), advice=advice())
    kinds = [type(action) for action in actions]
    assert kinds.index(WriteStatus) < kinds.index(SetExecutors)
    assert of_kind(actions, SetExecutors)[0].instances == 6
    status = written(actions)
    assert (status.mode, status.target, status.recommended, status.reason) == ("Active", 6, 6, "ScaleUp")
    assert status.last_scale is not None
    assert (status.last_scale.from_, status.last_scale.to, status.last_scale.message) == (2, 6, WORDS)


def test_the_status_explains_itself_with_its_numbers() -> None:
    status = written(plan_of(scaled_app(), advice=advice()))
    assert status.message == WORDS
    assert status.metrics is not None
    assert (status.metrics.arriving_rows_per_second, status.metrics.needed_executors) == (400.0, 5.6)
    assert (status.metrics.usable_percent, status.metrics.lag_rows) == (80, 0)


def test_a_change_is_told_once_with_its_reason() -> None:
    app = scaled_app()
    first = plan_of(app, advice=advice())
    events = [event for event in of_kind(first, PublishEvent) if event.reason in {"Autoscaled", "Rescaled"}]
    assert [(event.reason, event.message) for event in events] == [("Autoscaled", WORDS)]
    later = plan_of(stored(app, first), reported=6, advice=advice())
    assert of_kind(later, PublishEvent) == []


def test_the_last_change_stays_in_the_status_when_something_else_is_said() -> None:
    app = scaled_app()
    first = stored(app, plan_of(app, advice=advice()))
    past = advice().evaluation.past
    now = Advice(Mode.ACTIVE, Evaluation(Reason.STEADY, 6, 6, False, past), "6 executors are right.", None, NOW)
    status = written(plan_of(first, reported=6, advice=now))
    assert status.reason == "Steady"
    assert first.status.autoscaling is not None
    assert status.last_scale == first.status.autoscaling.last_scale


def test_advice_is_written_and_nothing_is_done() -> None:
    actions = plan_of(scaled_app("Advise"), advice=advice(mode=Mode.ADVISE))
    status = written(actions)
    assert (status.mode, status.target, status.recommended, status.last_scale) == ("Advise", None, 6, None)
    assert of_kind(actions, SetExecutors) == []
    assert [e for e in of_kind(actions, PublishEvent) if e.reason == "Autoscaled"] == []


def test_what_keeps_executors_away_is_told_once_when_it_begins() -> None:
    app = scaled_app()
    first = plan_of(app, advice=advice(Reason.QUOTA_REACHED, target=2))
    assert [e.reason for e in of_kind(first, PublishEvent) if e.reason == "QuotaReached"] == ["QuotaReached"]
    assert of_kind(plan_of(stored(app, first), advice=advice(Reason.QUOTA_REACHED, target=2)), PublishEvent) == []


def test_a_new_process_of_the_operator_goes_on_with_the_target_in_the_status() -> None:
    app = scaled_app(autoscaling=AutoscalingStatus(mode="Active", target=6))
    assert of_kind(plan_of(app, reported=6), SetExecutors) == []
    assert of_kind(plan_of(app, reported=2), SetExecutors)[0].instances == 6


def test_a_driver_keeps_its_executors_when_status_and_memory_are_lost() -> None:
    """It says how many it has; the spec's number is what it started with, days ago."""
    lost = msgspec.structs.replace(scaled_app(), status=StreamingAppStatus())
    driver = running_driver(scaled_app(), ready=True)
    silent = observe(lost, driver=driver, silence="the connection timed out")
    before_report = stored(lost, decide(silent, NOW).actions)
    for app in (lost, before_report):
        reported = report_of(driver, executors_wanted=6, executors_running=6, lineage=1)
        actions = decide(observe(app, driver=driver, agent=reported), NOW).actions
        assert (of_kind(actions, SetExecutors), written(actions).target) == ([], 6)
        again = decide(observe(stored(app, actions), driver=driver, agent=reported), NOW).actions
        assert of_kind(again, SetExecutors) == []


def test_a_number_that_a_driver_had_is_taken_over_within_the_bounds() -> None:
    lost = msgspec.structs.replace(scaled_app(), status=StreamingAppStatus())
    driver = running_driver(scaled_app(), ready=True)
    reported = report_of(driver, executors_wanted=20, executors_running=20, lineage=1)
    actions = decide(observe(lost, driver=driver, agent=reported), NOW).actions
    assert ([each.instances for each in of_kind(actions, SetExecutors)], written(actions).target) == ([8], 8)


def test_a_number_that_is_not_lost_is_not_taken_from_the_driver() -> None:
    """Whoever switches the autoscaler on has it start from the spec's number."""
    (action,) = of_kind(plan_of(scaled_app(), reported=6), SetExecutors)
    assert action.instances == 2
    off = msgspec.structs.replace(scaled_app("Off"), status=StreamingAppStatus())
    driver = running_driver(off, ready=True)
    reported = report_of(driver, executors_wanted=6, executors_running=6, lineage=1)
    (action,) = of_kind(decide(observe(off, driver=driver, agent=reported), NOW).actions, SetExecutors)
    assert action.instances == 2


def test_a_driver_that_is_launched_starts_from_the_target() -> None:
    app = scaled_app(autoscaling=AutoscalingStatus(mode="Active", target=6))
    plan = decide(observe(app), NOW)
    assert of_kind(plan.actions, RecordLaunch)[0].status.autoscaling.target == 6
    manifest = of_kind(plan.actions, CreateDriver)[0].manifest
    driver = next(c for c in manifest["spec"]["containers"] if c["name"] == "driver")
    config = next(e["value"] for e in driver["env"] if e["name"] == "TIDEGATE_CONFIG")
    assert from_json(DriverConfig, config).executor.instances == 6


def test_a_number_to_start_from_that_is_out_of_bounds_is_not_started_from() -> None:
    app = app_with({"autoscaling.mode": "Active", "autoscaling.maxExecutors": 3, "executor.instances": 20})
    assert of_kind(plan_of(launched(app, phase=Phase.RUNNING), reported=20), SetExecutors)[0].instances == 3


def test_a_window_is_no_longer_than_metrics_are_retained() -> None:
    assert settings_of(AutoscalingSpec(max_executors=3, metrics_window_seconds=86400)).window == KEPT_SECONDS


@pytest.mark.parametrize("mode", ["Off", "Advise"])
def test_switched_off_the_spec_holds_again(mode: str) -> None:
    app = scaled_app(mode, autoscaling=AutoscalingStatus(mode="Active", target=6))
    assert of_kind(plan_of(app, reported=6), SetExecutors)[0].instances == 2


def test_while_it_is_off_nothing_is_said_of_it() -> None:
    app = scaled_app("Off", autoscaling=AutoscalingStatus(mode="Active", target=6))
    (write,) = of_kind(plan_of(app), WriteStatus)
    assert write.status.autoscaling is None


def test_what_the_status_holds_is_what_the_next_process_starts_from() -> None:
    status = written(plan_of(scaled_app(), advice=advice()))
    past = past_of(status)
    assert (past.target, past.scaled_from, past.packing) == (6, 2, 0.8)
    assert (past.capacity_before, past.capacity_with, past.capacity_busy) == (400.0, 2, 1.0)
    assert (past.scaled_at, past.scaled_message, past.version) == (float(int(NOW - 1)), WORDS, "v")
    learned = Past(6, held=6, held_at=NOW, held_from=2, held_before=400.0, held_after=430.5, tasks_at_once=9)
    learned = dataclasses.replace(learned, held_arriving=300.5, held_times=3)
    held = Advice(Mode.ACTIVE, Evaluation(Reason.STEADY, 6, 6, False, learned), "", None, NOW)
    again = past_of(written(plan_of(scaled_app(), advice=held)))
    assert (again.held, again.held_at) == (6, NOW)
    assert (again.held_from, again.held_before, again.held_after, again.tasks_at_once) == (2, 400.0, 430.5, 9)
    assert (again.held_arriving, again.held_times) == (300.5, 3)


def test_what_was_done_before_several_small_steps_outlives_the_process() -> None:
    past = Past(6, NOW - 1, 5, "ScaleUp", WORDS, 400.0, 4, 0.8, version="v")
    said = Advice(Mode.ACTIVE, Evaluation(Reason.STEADY, 6, 6, False, past), "", None, NOW)
    again = past_of(written(plan_of(scaled_app(), advice=said)))
    assert (again.scaled_from, again.capacity_before, again.capacity_with, again.capacity_busy) == (5, 400.0, 4, 0.8)


def test_what_was_learned_of_large_batches_outlives_the_process_and_is_what_the_figures_show() -> None:
    small = measured(35.0, rate=5.0, busy=1.0, back_to_back=True, rows_per_batch=60.04, shares=(0.75, 0.25))
    learned = Past(6, large=LargeBatches(40.0, 3400.0, (0.75, 0.25)))
    status = written(plan_of(scaled_app(), advice=Advice(Mode.ACTIVE, steady(learned), "", small, NOW)))
    assert past_of(status).large == learned.large
    assert status.metrics is not None
    assert (status.metrics.rows_per_second_per_executor, status.metrics.rows_per_batch) == (40.0, 60.0)


def test_the_metric_shows_the_rate_that_was_used_as_the_status_does() -> None:
    large = LargeBatches(40.0, 3400.0, (0.75, 0.25))
    small = measured(35.0, rate=5.0, busy=1.0, back_to_back=True, rows_per_batch=60.0, shares=(0.75, 0.25))
    with_pauses = dataclasses.replace(small, back_to_back=False)
    for past, metrics, used in ((Past(6, large=large), small, 40.0), (Past(6, large=large), with_pauses, 5.0)):
        shown, advised = OperatorMetrics(), Advice(Mode.ACTIVE, steady(past), "", metrics, NOW)
        shown.autoscaling.show(("shop", "orders"), advised)
        rate = shown.registry.get_sample_value(
            "tidegate_autoscaling_executor_rows_per_second", {"namespace": "shop", "app": "orders"}
        )
        status = written(plan_of(scaled_app(), advice=advised))
        assert status.metrics is not None
        assert (rate, status.metrics.rows_per_second_per_executor) == (used, used)


def steady(past: Past) -> Evaluation:
    return Evaluation(Reason.STEADY, 6, 6, False, past)


def test_what_keeps_executors_away_is_the_same_event_each_time_it_begins_within_the_hour() -> None:
    limited = dataclasses.replace(advice(Reason.AT_MAXIMUM), summary="More than 6 executors would be needed.")
    reported = [
        of_kind(
            plan_of(scaled_app(), advice=dataclasses.replace(limited, message=f"{rows} rows/s arrive.")), PublishEvent
        )
        for rows in (700, 800)
    ]
    first, second = ([event for event in events if event.reason == "AtMaximum"] for events in reported)
    assert len(first) == 1
    assert first == second


def test_figures_alone_are_no_reason_to_write() -> None:
    app = scaled_app()
    first = stored(app, plan_of(app, advice=advice()))
    known = advice()
    other = Advice(Mode.ACTIVE, known.evaluation, "other words", measured(401.0), NOW)
    assert of_kind(plan_of(first, advice=other), WriteStatus) == []


def test_settings_are_those_of_the_spec() -> None:
    spec = msgspec.convert(
        {
            "maxExecutors": 8,
            "catchUpSeconds": 300,
            "excludedPeriods": [{"schedule": "0 8 * * *", "durationSeconds": 7200}],
        },
        AutoscalingSpec,
    )
    assert settings_of(spec) == Settings(
        most=8, mode=Mode.OFF, catch_up=300.0, excluded=(ExcludedPeriod("0 8 * * *", 7200.0),)
    )
    assert settings_of(AutoscalingSpec(max_executors=8)) == Settings(most=8, mode=Mode.OFF)


def test_times_in_the_status_are_whole_seconds() -> None:
    status = written(plan_of(scaled_app(), advice=advice()))
    assert status.evaluation_time == datetime.datetime.fromtimestamp(int(NOW - 1), datetime.UTC)


FIGURES: dict[str, list[float]] = {"int": [10**300, 10**400, -(10**400)], "float": [1e306, -1e306, 5e-324]}
"""Whole numbers may be of any length in an agent's answer, others not."""
OF_A_DRIVER = ("executors_wanted", "executors_running", "executors_idle", "executors_leaving", "executors_short_since")
IMPLAUSIBLE = [
    pytest.param(kind, each.name, value, id=f"{each.name} {str(value)[:6]}")
    for kind, names in ((QueryReport, None), (AgentReport, (*OF_A_DRIVER, "task_seconds")))
    for each in dataclasses.fields(kind)
    if each.type in FIGURES and (names is None or each.name in names)
    for value in FIGURES[str(each.type)]
]


@pytest.mark.parametrize(("kind", "figure", "value"), IMPLAUSIBLE)
def test_whatever_figures_a_driver_reports_there_is_advice_and_it_can_be_written_down(
    kind: type, figure: str, value: float
) -> None:
    """They are a program's. A fault of the operator's would be an alert about it, and such a status be refused."""
    history, past = History(), Past()
    for batch in range(12):
        grown = value if figure.startswith("executors") else value * (batch + 1)
        said: dict[str, Any] = {figure: grown}
        of_query, of_driver = (said, {}) if kind is QueryReport else ({}, said)
        reported = report((query(batch, NOW + 10 * batch, 9.9, 1000, **of_query),), 4, 8.0 * (batch + 1))
        reported = dataclasses.replace(reported, **of_driver)
        sight = Sight(NOW + 10 * batch, STEADY + 10 * batch, 4, 1, "v", reported, STEADY + 10 * batch, "p")
        settings = settings_of(AutoscalingSpec(mode=AutoscalingMode.ACTIVE, max_executors=8))
        history, found = recommend(settings, history, past, sight)
        past = found.evaluation.past
        OperatorMetrics().autoscaling.show(("shop", "orders"), found)
        status = written(plan_of(scaled_app(), advice=found))
        assert status.last_scale is None or abs(status.last_scale.from_) < 2**63
        numbers = msgspec.structs.asdict(status.metrics).values() if status.metrics is not None else ()
        assert all(math.isfinite(number) for number in numbers if number is not None)
        assert all(0 <= number < 2**63 for number in numbers if isinstance(number, int))
