"""Configuration that is too long for a variable: the same schedules, with a Secret beside each driver and rehearsal.

Every configuration counts as too long here, so that whatever can happen to an application happens to such a one.
"""

import base64
import json

import pytest

from tests.scenario import coverage
from tests.scenario.api_server import SECRETS, Change
from tests.scenario.events import operators
from tests.scenario.events.people import edit
from tests.scenario.restart_rules import reason_of
from tests.scenario.schedule import Result, run, run_course
from tests.scenario.surroundings import content_of
from tests.scenario.test_pods_that_do_not_start import create
from tests.scenario.world import NAMESPACE, ORDERS, World
from tidegate.access.launch_secrets import LaunchSecrets
from tidegate.app.builders import configuration
from tidegate_spark.contract import configuration_protocol

SEEDS = range(30)
SECONDS = 900


@pytest.fixture(autouse=True)
def every_configuration_is_long(monkeypatch: pytest.MonkeyPatch, quiet_log: None) -> None:
    monkeypatch.setattr(configuration, "LONGEST_IN_VARIABLE", 0)
    # Aimed at often, because few schedules are run.
    monkeypatch.setattr(operators, "PAIRS", [*coverage.PAIRS, *coverage.pairs_of(coverage.ELSEWHERE) * 10])


def test_schedules_come_to_rest_break_no_rule_and_leave_no_configuration_of_an_earlier_epoch() -> None:
    results = [run(seed) for seed in SEEDS]
    assert {result.seed: result.violations for result in results if result.violations} == {}
    assert sum(result.facts["ran with a long configuration"] for result in results) > len(SEEDS)
    assert any(action in coverage.ELSEWHERE for result in results for action, _, _ in result.crashed)


def begin(w: World) -> None:
    w.replicas = 1
    w.start_operator()
    create(w, {})


def runs(w: World) -> bool:
    app = w.app(ORDERS) or {}
    return (app.get("status") or {}).get("phase") == "Running" and reason_of(app) == "Running"


async def until_it_runs(w: World) -> None:
    for _ in range(SECONDS):
        await w.sleep(1.0)
        if runs(w):
            return
    w.violated(f"it does not run: {w.app(ORDERS)}")


def is_configuration(change: Change) -> bool:
    return change.place.plural == SECRETS and "-config-" in change.place.name and change.type == "ADDED"


async def replaced_once(w: World, result: Result) -> None:
    """Somebody puts another Secret in place of the first, before the kubelet mounts it."""
    seen: list[str] = []

    def replace(path: str, body: dict[str, object]) -> None:
        if w.api.find(path) is not None:
            w.api.delete(path)
        w.api.create(f"/api/v1/namespaces/{NAMESPACE}/secrets", body)

    def notice(change: Change) -> None:
        if is_configuration(change) and not seen:
            seen.append(change.place.path)
            rest = {**json.loads(content_of(change.body)), "args": ["--of-somebody-else"]}
            data = {configuration_protocol.REST_KEY: base64.b64encode(json.dumps(rest).encode()).decode()}
            w.later(0.0, replace, change.place.path, {**change.body, "data": data})

    w.api.listeners.append(notice)
    begin(w)
    await until_it_runs(w)
    result.facts = w.facts
    if w.facts["ran with a long configuration"] != 1:
        w.violated("the second launch has a configuration of its own")


def test_a_secret_that_somebody_replaced_is_never_taken_and_the_next_launch_has_its_own() -> None:
    result = run_course(0, replaced_once)
    assert result.violations == []
    assert result.facts["found another configuration than its own"] == 1


def test_a_runtime_that_compares_no_digest_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    genuine = configuration_protocol.digest_of
    known: list[str] = []

    def always_the_first(content: bytes) -> str:
        known.append(genuine(content))
        return known[0]

    monkeypatch.setattr(configuration_protocol, "digest_of", always_the_first)
    assert any("what somebody put into" in text for text in run_course(0, replaced_once).violations)


async def lost_once(w: World, result: Result) -> None:
    """Whoever made the pod dies before it has made the Secret."""
    begin(w)
    await until_it_runs(w)


@pytest.mark.parametrize("seed", range(3))
def test_an_operator_that_dies_between_pod_and_secret_is_followed_by_one_that_makes_it(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    genuine, times = LaunchSecrets.provide, []

    async def not_at_first(self: LaunchSecrets, secret: dict[str, object], *, replace: bool) -> object:
        times.append(replace)
        return None if len(times) == 1 else await genuine(self, secret, replace=replace)

    monkeypatch.setattr(LaunchSecrets, "provide", not_at_first)
    assert run_course(seed, lost_once).violations == []
    assert times[:2] == [True, False]


async def never_there(w: World, result: Result) -> None:
    """The Secret vanishes, and what would be in it now is something else: the pod can never start."""
    begin(w)
    await w.sleep(20.0)
    edit(w, ORDERS, {"control": {"messageTimeoutSeconds": 77}})
    await until_it_runs(w)


def test_a_driver_whose_secret_cannot_be_made_again_is_replaced(monkeypatch: pytest.MonkeyPatch) -> None:
    genuine, times = LaunchSecrets.provide, []

    async def not_for_the_first_pod(self: LaunchSecrets, secret: dict[str, object], *, replace: bool) -> object:
        times.append(replace)
        return None if len(times) == 1 else await genuine(self, secret, replace=replace)

    monkeypatch.setattr(LaunchSecrets, "provide", not_for_the_first_pod)
    assert run_course(0, never_there).violations == []
    assert times.count(True) == 2


async def edited(w: World, result: Result) -> None:
    """A version with another configuration follows: the one before goes with its pod."""
    begin(w)
    await until_it_runs(w)
    edit(w, ORDERS, {"application": {"args": ["--b"]}})
    for _ in range(SECONDS):
        await w.sleep(1.0)
    names = [secret["metadata"]["name"] for secret in w.api.all(SECRETS, NAMESPACE)]
    if [name.rpartition("-")[0] for name in names if "-config-" in name] != [f"{ORDERS}-config-2"]:
        w.violated(f"after an edit there are {names}")


def test_a_configuration_goes_with_its_pod() -> None:
    assert run_course(1, edited).violations == []
