"""The operator's metrics: what Prometheus sees of applications, and that nothing stays of those that are gone."""

from prometheus_client import generate_latest

from docs import generate_metrics
from tidegate.app.metrics.apps import App
from tidegate.app.metrics.lifecycle import Restart
from tidegate.wiring.metrics import OperatorMetrics

ORDERS: App = ("shop", "orders")
CLICKS: App = ("shop", "clicks")


def show(metrics: OperatorMetrics, app: App, phase: str = "Running", health: str = "Ready", epoch: int = 1) -> None:
    metrics.show_app(app, phase=phase, health=health, reason=phase, epoch=epoch)


def series(metrics: OperatorMetrics, name: str) -> dict[str, float]:
    """Return a metric's series: the text of the labels -> the value."""
    lines = generate_latest(metrics.registry).decode().splitlines()
    return {
        line[len(name) :].split(" ")[0]: float(line.split(" ")[1]) for line in lines if line.startswith(f"{name}{{")
    }


def test_only_the_phase_and_the_health_that_are_true_have_a_series() -> None:
    metrics = OperatorMetrics()
    show(metrics, ORDERS, "Starting", "Reconciling")
    show(metrics, ORDERS, "Running", "Ready", epoch=2)
    assert series(metrics, "tidegate_app_phase") == {'{app="orders",namespace="shop",phase="Running"}': 1}
    (health,) = series(metrics, "tidegate_app_health")
    assert health == '{app="orders",health="Ready",namespace="shop",reason="Running"}'
    assert series(metrics, "tidegate_app_epoch") == {'{app="orders",namespace="shop"}': 2}


def test_the_series_of_a_deleted_application_disappear_and_those_of_others_stay() -> None:
    metrics = OperatorMetrics()
    for app in (ORDERS, CLICKS):
        show(metrics, app)
        metrics.count_restarts(app, [Restart("ApplicationFailed", 2), Restart("SpecChanged", 1)])
        metrics.count_refused_snapshot(app)
    metrics.forget_app(*ORDERS)
    text = generate_latest(metrics.registry).decode()
    assert 'app="orders"' not in text
    assert len([line for line in text.splitlines() if 'app="clicks"' in line]) == 6


def test_no_metric_has_a_series_of_an_application_that_is_gone_with_its_snapshots_and_messages() -> None:
    metrics = generate_metrics.exercised_metrics()
    assert 'app="orders"' in generate_latest(metrics.registry).decode()
    metrics.control.show(generate_metrics.APP, {})
    metrics.snapshots.forget(generate_metrics.SNAPSHOT)
    metrics.forget_app(*generate_metrics.APP)
    lines = generate_latest(metrics.registry).decode().splitlines()
    left = {line.partition("{")[0] for line in lines if 'app="orders"' in line}
    assert left == set(), "remove its series in `forget` (of messages: `show`) of the module that defines the metric"


def test_an_application_that_is_made_again_under_the_name_starts_from_nothing() -> None:
    metrics = OperatorMetrics()
    show(metrics, ORDERS, epoch=7)
    metrics.count_restarts(ORDERS, [Restart("SpecChanged", 1)])
    metrics.forget_app(*ORDERS)
    metrics.forget_app(*ORDERS)
    show(metrics, ORDERS)
    assert series(metrics, "tidegate_app_restarts_total") == {}
    assert series(metrics, "tidegate_app_epoch") == {'{app="orders",namespace="shop"}': 1}


def test_restarts_add_up_by_reason() -> None:
    metrics = OperatorMetrics()
    metrics.count_restarts(ORDERS, [Restart("OOMKilled", 2)])
    metrics.count_restarts(ORDERS, [Restart("OOMKilled", 1)])
    assert series(metrics, "tidegate_app_restarts_total") == {'{app="orders",namespace="shop",reason="OOMKilled"}': 3}


def test_requests_are_counted_by_verb_and_code_and_a_watch_has_no_duration() -> None:
    metrics = OperatorMetrics()
    metrics.count_request("GET", "200", 0.01)
    metrics.count_request("WATCH", "200")
    assert series(metrics, "tidegate_api_requests_total") == {
        '{code="200",verb="GET"}': 1,
        '{code="200",verb="WATCH"}': 1,
    }
    assert series(metrics, "tidegate_api_request_duration_seconds_count") == {'{verb="GET"}': 1}


def test_every_result_of_a_reconcile_has_a_series_before_it_first_happens() -> None:
    assert series(OperatorMetrics(), "tidegate_reconciles_total") == dict.fromkeys(
        ('{result="done"}', '{result="error"}', '{result="repeat"}'), 0
    )


def test_leading_is_shown_as_one_and_standing_by_as_zero() -> None:
    metrics = OperatorMetrics()
    metrics.show_leader(True)
    assert "\ntidegate_leader 1.0\n" in generate_latest(metrics.registry).decode()
    metrics.show_leader(False)
    assert "\ntidegate_leader 0.0\n" in generate_latest(metrics.registry).decode()
