"""Whatever happens meanwhile, a restart with other offsets goes on with the state there is, and can be rolled back."""

import pytest

from tests.scenario.api_server import APPS, Body
from tests.scenario.happenings import choose_among, losses, people
from tests.scenario.schedule import Result, misfortune, run_course
from tests.scenario.world import World

SEEDS = range(40)
OFFSETS = '{"orders":{"0":0}}'


def start_elsewhere(w: World) -> str | None:
    """Somebody has a stable application start again with other offsets."""
    apps = [app for app in w.api.all(APPS) if "lastStable" in (app.get("status") or {})]
    if not apps:
        return None
    app: Body = w.rng.choice(apps)
    lineage = app["status"].get("lineage", 1)
    order = {"startingOffsets": {"lineage": lineage, "offsets": OFFSETS}}
    w.count("asked to start elsewhere")
    name = app["metadata"]["name"]
    return people.edit(w, name, {"restartNonce": w.rng.randrange(500, 600), "upgrade": order}, f"from {lineage}")


ELSEWHERE = misfortune(
    choose_among(
        people.create_app,
        start_elsewhere,
        start_elsewhere,
        start_elsewhere,
        people.edit_args,
        people.break_next_version,
        people.suspend_or_resume,
        losses.back_up,
        losses.lose_status,
        losses.restore_status,
    )
)


@pytest.mark.usefixtures("quiet_log")
@pytest.mark.parametrize("seed", SEEDS)
def test_an_application_that_starts_elsewhere_keeps_its_state_and_never_goes_back_unasked(seed: int) -> None:
    assert run_course(seed, ELSEWHERE).violations == []


@pytest.mark.usefixtures("quiet_log")
def test_it_happens() -> None:
    results: list[Result] = [run_course(seed, ELSEWHERE) for seed in range(10)]
    assert sum(result.facts["asked to start elsewhere"] for result in results)
