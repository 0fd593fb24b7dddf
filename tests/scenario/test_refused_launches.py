"""An application that was refused before its first launch is deleted at once, and one that was launched never so.

The finalizer says that there may have been a launch, and it comes last before the launch is recorded. The schedules of
``test_schedules.py`` refuse pods alone, for which an epoch is recorded.
"""

from collections.abc import Callable
from functools import partial

import pytest

from tests.scenario.api_server import APPS, PODS, SECRETS, Body, Change, Place, RefusedError
from tests.scenario.events import choose_among, losses, operators, people
from tests.scenario.schedule import Result, misfortune, run_course
from tests.scenario.world import World
from tidegate.app.rules.launch import launch
from tidegate_spark.contract.protocol import FINALIZER
from tidegate_testing.mistakes import Course, planted

SEEDS = (*range(24), 56)
SCHEDULES = 300
"""So many are tried when the recorded one no longer fails."""
RETAINED = "is said to have left something in its storage, in which nothing ever ran"


def refuse_what_comes_before_a_pod(w: World) -> str | None:
    """A quota has no room for Secrets, or for the accounts and roles of a driver."""
    admit, until, accounts = w.api.admit, w.now() + w.some(60.0, 1500.0), w.rng.random() < 0.7

    def refuse(place: Place, body: Body) -> None:
        is_one = place.plural == "serviceaccounts" if accounts else place.plural == SECRETS
        if is_one and w.now() < until and w.api.by.startswith("operator"):
            raise RefusedError(403, "Forbidden", "exceeded quota.")
        admit(place, body)

    w.api.admit = refuse
    w.count("refused before a pod")
    return f"{'accounts' if accounts else 'Secrets'} are refused for {until - w.now():.0f} s"


REFUSED = misfortune(
    choose_among(
        refuse_what_comes_before_a_pod,
        people.create_app,
        people.create_app,
        people.delete_app,
        people.delete_app,
        losses.lose_status,
        operators.aim_crash,
        operators.arm_crash,
        operators.crash_operator,
    )
)


async def refused(w: World, result: Result) -> None:
    """Have that happen, and say so if an application has something retained that never had a driver.

    Unless its operator ended between the finalizer and the driver, one moment after the other: nobody else can know
    whether that launch was recorded, and the purge finds what another application has in a folder of its place.
    """
    launched: set[str] = set()
    promised: dict[str, str] = {}

    def note(change: Change) -> None:
        body = change.body
        if change.place.plural == APPS and FINALIZER in body["metadata"].get("finalizers", ()):
            promised.setdefault(body["metadata"]["uid"], w.api.by.split()[0] if w.api.by else "")
        if change.place.plural == PODS and change.place.name.endswith("-driver"):
            launched.update(owner["uid"] for owner in body["metadata"].get("ownerReferences", ()))
        about = body.get("involvedObject", {})
        is_alive = promised.get(about.get("uid", "")) in {each.name for each in w.operators}
        if body.get("reason") == "StorageRetained" and about["uid"] not in launched and is_alive:
            w.violated(f"{about['name']} {RETAINED}")

    w.api.listeners.append(note)
    await REFUSED(w, result)


@pytest.mark.usefixtures("quiet_log")
@pytest.mark.parametrize("seed", SEEDS)
def test_what_was_refused_before_its_first_launch_leaves_nothing_and_what_was_launched_is_ended_in_order(
    seed: int,
) -> None:
    assert run_course(seed, refused).violations == []


def with_the_finalizer_first(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(launch, "_finalizer_of_launched", launch._finalizer)


MISTAKES: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], str]] = {
    take_out.__name__: (take_out, broken) for take_out, broken in ((with_the_finalizer_first, RETAINED),)
}
PLANTED = planted(__file__, MISTAKES)


def shows(broken: str, seed: Course) -> bool:
    """Return whether a schedule ends in what must never happen."""
    return any(broken in text for text in run_course(int(seed), refused).violations)


@pytest.mark.usefixtures("quiet_log")
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_about_the_finalizer_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    take_out, broken = MISTAKES[name]
    PLANTED.assert_noticed_by_schedules(name, lambda: take_out(monkeypatch), partial(shows, broken), SCHEDULES)


def test_there_is_a_schedule_for_each_mistake_and_for_nothing_else() -> None:
    assert list(PLANTED.recorded()) == list(MISTAKES)
