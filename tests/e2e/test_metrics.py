"""A real Prometheus finds operator and drivers by the documented configuration and answers what people ask of it."""

import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from confluent_kafka import Producer

from devcluster import kafka, prometheus, tools
from tidegate_testing.helm import Helm
from tidegate_testing.operator_pods import SELECTOR
from tidegate_testing.prometheus_server import PrometheusServer
from tidegate_testing.waiting import wait_for
from tidegate_testing.world import OPERATOR_NAMESPACE, World

from .conftest import ROOT

NAMESPACE, NAME, TOPIC = "tidegate-e2e-metrics", "observed", "tidegate-e2e-metrics"
APP = f'namespace="{NAMESPACE}",app="{NAME}"'
QUERY = f'{APP},query="main"'


@pytest.fixture(scope="module")
def rules(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """The rules that the chart renders."""
    helm = Helm(tools.program("helm"), tmp_path_factory.mktemp("helm"))
    objects = helm.render(ROOT / "charts/tidegate", "tidegate", OPERATOR_NAMESPACE, {"monitoring": {"enabled": True}})
    (rule,) = [o for o in objects if o["kind"] == "PrometheusRule"]
    return {"groups": rule["spec"]["groups"]}


@pytest.fixture(scope="module")
def server(world: World, rules: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[PrometheusServer]:
    made = PrometheusServer(world.kubectl, tmp_path_factory.mktemp("prometheus"))
    try:
        made.start(rules)
        yield made
    finally:
        made.stop()


@dataclass(frozen=True)
class Observed:
    """The application, its input, and the Prometheus that knows it."""

    world: World
    server: PrometheusServer
    producer: Producer

    def send(self, rows: int) -> None:
        """Put rows into the application's topic."""
        for number in range(rows):
            self.producer.produce(TOPIC, str(number).encode())
        self.producer.flush(30)

    def until(self, expression: str, expected: float | None, *, sending: int = 0) -> None:
        """Wait until an expression has a value; before each time that it is asked for, so many rows are sent."""

        def is_so() -> bool:
            self.discover()
            self.send(sending)
            found = self.server.value(expression)
            assert found == expected, f"{expression} is {found}"
            return True

        wait_for(f"{expression} == {expected}", is_so, timeout=600, interval=2)

    def discover(self) -> None:
        """Tell Prometheus which pods there are."""
        kubectl = self.world.kubectl
        self.server.discover([*kubectl.list("pods", OPERATOR_NAMESPACE), *kubectl.list("pods", NAMESPACE)])


@pytest.fixture(scope="module")
def observed(world: World, server: PrometheusServer) -> Iterator[Observed]:
    """The application is applied, in a namespace held to the restricted pod security standard."""
    brokers = world.environment.kafka_host
    if TOPIC not in kafka.topics(brokers):
        kafka.create_topic(brokers, TOPIC)
    world.make_namespace(NAMESPACE)
    arguments = [world.environment.kafka_pods, TOPIC, "100"]
    world.kubectl.apply(world.app(NAME, NAMESPACE, main="script:from_kafka.py", args=arguments))
    yield Observed(world, server, Producer({"bootstrap.servers": brokers}))
    world.delete_apps(NAMESPACE)


def test_a_real_prometheus_knows_operator_and_application(observed: Observed) -> None:
    world, server = observed.world, observed.server
    observed.until(f'tidegate_app_phase{{{APP},phase="Running"}}', 1, sending=50)
    observed.until(f"tidegate_query_input_rows_total{{{QUERY}}} > bool 0", 1, sending=50)
    # More rows than a batch takes, again and again until a lag is seen, however quickly it is gone each time.
    lag = f"tidegate_query_source_lag_rows{{{QUERY}}}"
    observed.until(f"max_over_time({lag}[1h]) > bool 0", 1, sending=1000)
    observed.until(lag, 0)
    for check in (the_operator_answers, the_agent_answers, nothing_is_wrong):
        await_poll(check, server)
    promtool_finds_no_fault_in_what_the_pods_show(world)


@pytest.mark.long
def test_a_restart_counts_and_the_figures_that_follow_are_of_another_epoch(observed: Observed) -> None:
    world = observed.world
    world.kubectl.patch("sapp", NAME, NAMESPACE, {"spec": {"application": {"env": [{"name": "X", "value": "y"}]}}})
    observed.until(f'tidegate_app_restarts_total{{{APP},reason="SpecChanged"}}', 1)
    observed.until(f"tidegate_app_epoch{{{APP}}}", 2)
    observed.until(f'tidegate_app_phase{{{APP},phase="Running"}}', 1, sending=50)
    observed.until(f'count(tidegate_query_active{{{QUERY},epoch="2"}})', 1, sending=50)


def test_nothing_is_told_of_an_application_that_was_deleted(observed: Observed) -> None:
    observed.world.delete_apps(NAMESPACE)
    observed.until(f"count({{__name__=~'tidegate_.+',{APP}}})", None)
    observed.until("sum(tidegate_leader)", 1)


def await_poll(check: Callable[[PrometheusServer], None], server: PrometheusServer) -> None:
    """Wait until all that a look asserts is so at once: an answer that comes too late for a scrape is a gap for it."""

    def is_so() -> bool:
        check(server)
        return True

    wait_for(check.__name__.replace("_", " "), is_so, timeout=180, interval=2)


def the_operator_answers(server: PrometheusServer) -> None:
    """Everything the operator owns has series, and they make sense."""
    assert server.value("sum(tidegate_leader)") == 1
    assert server.value(f"tidegate_app_epoch{{{APP}}}") == 1
    healths = [each.labels["health"] for each in server.query(f"tidegate_app_health{{{APP}}}")]
    assert healths in (["Ready"], ["Reconciling"])
    assert server.query(f"tidegate_app_restarts_total{{{APP}}}") == []
    positive = (
        "histogram_quantile(0.5, sum by (le) (rate(tidegate_reconcile_duration_seconds_bucket[5m])))",
        'sum(tidegate_reconciles_total{result="done"})',
        'sum(tidegate_api_requests_total{verb="POST",code="201"})',
        'sum(tidegate_api_requests_total{verb="WATCH",code="200"})',
        "count(tidegate_queue_depth)",
        'sum(tidegate_agent_polls_total{result="answered"})',
    )
    assert {expression: (server.value(expression) or 0) > 0 for expression in positive} == dict.fromkeys(positive, True)


def the_agent_answers(server: PrometheusServer) -> None:
    """Everything the agent owns has a series for the query."""
    assert (server.value(f"sum(tidegate_query_batch_duration_seconds_count{{{QUERY}}})") or 0) > 0
    age = server.value(f"tidegate_query_last_commit_age_seconds{{{QUERY}}}")
    assert age is not None
    assert 0 <= age < 3600, "an age, not a date"
    for name in ("input_rows_per_second", "processed_rows_per_second", "state_rows", "state_bytes", "idle"):
        assert server.value(f"tidegate_query_{name}{{{QUERY}}}") is not None, name
    assert server.value(f"tidegate_driver_executors_wanted{{{APP}}}") == 1


def nothing_is_wrong(server: PrometheusServer) -> None:
    """All targets are up, all rules are evaluated, no alert is about this application."""
    targets = server.targets()
    jobs = {target["labels"]["job"] for target in targets}
    assert jobs == {"tidegate-operator", "tidegate-drivers"}
    assert [t["lastError"] for t in targets if t["labels"]["job"] == "tidegate-operator" and t["health"] != "up"] == []
    assert {r["health"] for r in server.rules()} == {"ok"}, "not all are evaluated"
    assert server.query(f'ALERTS{{alertstate="firing",{APP}}}') == []
    assert server.query('ALERTS{alertname=~"TidegateOperatorDown|TidegateNoLeader"}') == []


def promtool_finds_no_fault_in_what_the_pods_show(world: World) -> None:
    """Asked as Prometheus asks, but through the API server."""
    found = world.kubectl.list("pods", OPERATOR_NAMESPACE, SELECTOR)
    operators = [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]
    pods = [(OPERATOR_NAMESPACE, operator["metadata"]["name"], 8080) for operator in operators]
    for namespace, pod, port in (*pods, (NAMESPACE, f"{NAME}-driver", 8090)):
        text = world.kubectl.run("get", "--raw", f"/api/v1/namespaces/{namespace}/pods/{pod}:{port}/proxy/metrics")
        command = [str(prometheus.program("promtool")), "check", "metrics"]
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout + done.stderr) == (0, ""), pod


def test_the_rules_are_what_prometheus_has_loaded(server: PrometheusServer, rules: dict[str, Any]) -> None:
    wanted = {rule["alert"] for group in rules["groups"] for rule in group["rules"]}
    assert {rule["name"] for rule in server.rules()} == wanted
