"""What the bench of launches with Spark's ports open and closed compares, and what it makes of it. Starts no server."""

from typing import Any

import pytest

from tests.bench import launch_ports, submit
from tests.bench.audit import Request
from tests.bench.launch_ports import CLOSED, OPEN, WAYS, Round, results, round_of, spec_of
from tests.bench.scripts.unlocked_operator import SecretsByPorts
from tests.bench.server import NAMESPACE
from tidegate.access.launch_secrets import LaunchSecrets
from tidegate.pods.spark.settings import authenticates, spark_settings
from tidegate_testing.dictionary_server import ApiServer
from tidegate_testing.observations import KEYS, PLATFORM
from tidegate_testing.values import app


def in_round(way: str, cpu_seconds: float, *, requests: int = 100) -> Round:
    return Round(way, 10, cpu_seconds, requests)


def created(resource: str, number: int, *, agent: str = "tidegate-operator/1", place: str = NAMESPACE) -> list[Request]:
    return [Request("create", resource, "", place, f"{i}", agent, 201, float(i), i + 0.5) for i in range(number)]


def test_the_ratio_is_the_median_of_those_of_rounds_beside_each_other_and_has_its_interval() -> None:
    slow_minute = [in_round(OPEN, 4.0), in_round(CLOSED, 5.0)]
    fast_minutes = [in_round(CLOSED, 1.25), in_round(OPEN, 1.0), in_round(OPEN, 1.0), in_round(CLOSED, 2.0)]
    found = results([*slow_minute, *fast_minutes])
    low, middle, high = (found[f"doors_ratio_launches{part}"] for part in ("_low", "", "_high"))
    assert (low, middle, high) == (0.5, 0.8, 0.8)


def test_of_ten_pairs_one_on_each_side_may_be_any() -> None:
    pairs = [(in_round(OPEN, 1.0), in_round(CLOSED, seconds)) for seconds in [1000.0, 1.25, *[1.0] * 6, 0.5, 0.001]]
    found = results([each for pair in pairs for each in pair])
    assert (found["doors_ratio_launches_low"], found["doors_ratio_launches_high"]) == (0.8, 2.0)


def test_rates_and_requests_are_the_medians_of_each_way() -> None:
    opened = [in_round(OPEN, seconds, requests=asked) for seconds, asked in ((1.0, 100), (2.0, 100), (10.0, 170))]
    closed = [in_round(CLOSED, 4.0, requests=110)] * 3
    found = results([*opened, *closed])
    assert (found["launches_per_cpu_second_open"], found["launches_per_cpu_second_closed"]) == (5.0, 2.5)
    assert (found["requests_per_app_open"], found["requests_per_app_closed"]) == (10.0, 11.0)


def test_a_round_has_the_operators_requests_in_the_namespace_of_the_applications() -> None:
    ours = [*created("pods", 3), *created("secrets", 6), *created("events", 3)]
    others = [*created("pods", 3, agent="tidegate-bench"), *created("secrets", 2, place="default")]
    leases = created("leases", 5)
    assert round_of(CLOSED, 3, 1.5, [*ours, *others, *leases]) == Round(CLOSED, 3, 1.5, 12)


@pytest.mark.parametrize(("way", "secrets"), [(OPEN, 6), (CLOSED, 3)])
def test_a_round_whose_launches_made_the_other_ways_secrets_is_no_figure(way: str, secrets: int) -> None:
    with pytest.raises(RuntimeError, match=f"{way}: 3 launches made 3 pods and {secrets} Secrets"):
        round_of(way, 3, 1.0, [*created("pods", 3), *created("secrets", secrets)])


def test_the_ways_differ_in_the_value_of_one_setting_and_the_closed_one_states_the_default() -> None:
    opened, closed = (spec_of(way)["sparkConf"] for way in WAYS)
    assert opened.keys() == closed.keys()
    assert (authenticates(opened), authenticates(closed)) == (False, True)
    assert spark_settings(closed, "executor") == spark_settings({}, "executor")


async def made_by(secrets: type[LaunchSecrets], way: str) -> dict[str, Any]:
    server = ApiServer()
    client: Any = server
    assert await secrets(client, KEYS, PLATFORM).ensure(app(spec_of(way)), 3) is None
    return server.objects


async def test_the_benchs_operator_leaves_out_the_secret_of_open_ports_and_nothing_else() -> None:
    opened, closed = [await made_by(SecretsByPorts, way) for way in WAYS]
    the_operators = await made_by(LaunchSecrets, CLOSED)
    assert closed == the_operators
    (agents,) = opened
    assert opened == {agents: the_operators[agents]}
    assert [path for path in closed if path not in opened] == [path for path in closed if "-spark-3-" in path]


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int, int]]:
    calls: list[tuple[int, int, int]] = []

    async def measure(apps: int, pairs: int, warm: int) -> int:
        calls.append((apps, pairs, warm))
        return 0

    monkeypatch.setattr(launch_ports, "measure", measure)
    return calls


def test_doors_measures_pairs_of_rounds_of_as_many_applications_as_without(
    measured: list[tuple[int, int, int]],
) -> None:
    assert submit.main(["--doors"]) == 0
    assert submit.main(["--doors", "--apps", "40", "--pairs", "2", "--warm", "0"]) == 0
    assert measured == [(200, 10, 1), (40, 2, 0)]


def test_a_fleet_has_no_doors(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        submit.fleet(["--doors"])
    assert "unrecognized arguments: --doors" in capsys.readouterr().err
