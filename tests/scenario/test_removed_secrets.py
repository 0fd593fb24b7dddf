"""Secrets of launches that somebody removes before pods have mounted them are made again, whatever else happens.

The schedules of ``test_schedules.py`` have this misfortune, too, and hardly ever in the moment before a mount; here
images come late, so that the moment is long.
"""

from collections.abc import Callable
from functools import partial

import pytest

from tests.scenario.api_server import PODS, SECRETS
from tests.scenario.events import choose_among, operators, people, pods, surroundings
from tests.scenario.schedule import misfortune, run_course
from tests.scenario.world import NAMESPACE, World
from tidegate.app.rules import housekeeping
from tidegate_testing.mistakes import Course, planted

SEEDS = range(25)
SCHEDULES = 300
"""So many are tried when the recorded one no longer fails."""


def remove_awaited_secrets(w: World) -> str | None:
    """Somebody removes the Secrets of a namespace while a pod waits for its start."""
    if all(pod["status"].get("phase") != "Pending" for pod in w.api.all(PODS)):
        return None
    paths = [f"/api/v1/namespaces/{NAMESPACE}/secrets/{it['metadata']['name']}" for it in w.api.all(SECRETS, NAMESPACE)]
    for path in paths:
        w.api.delete(path)
    return f"somebody deletes {', '.join(paths)}" if paths else None


REMOVALS = misfortune(
    choose_among(
        remove_awaited_secrets,
        remove_awaited_secrets,
        surroundings.lose_image,
        pods.delete_pod,
        pods.crash_driver,
        people.edit_args,
        people.suspend_or_resume,
        operators.crash_operator,
    )
)


@pytest.mark.usefixtures("quiet_log")
@pytest.mark.parametrize("seed", SEEDS)
def test_whoever_waits_for_a_removed_secret_gets_it_again(seed: int) -> None:
    assert run_course(seed, REMOVALS).violations == []


def without_a_look_after_secrets(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(housekeeping, "_waits_for_volumes", lambda pod, now: False)


MISTAKES: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], str]] = {
    take_out.__name__: (take_out, broken) for take_out, broken in ((without_a_look_after_secrets, "does not run"),)
}
PLANTED = planted(__file__, MISTAKES)


def shows(broken: str, seed: Course) -> bool:
    """Return whether a schedule ends in what must never happen."""
    return any(broken in text for text in run_course(int(seed), REMOVALS).violations)


@pytest.mark.usefixtures("quiet_log")
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_about_removed_secrets_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    take_out, broken = MISTAKES[name]
    PLANTED.assert_noticed_by_schedules(name, lambda: take_out(monkeypatch), partial(shows, broken), SCHEDULES)


def test_there_is_a_schedule_for_each_mistake_and_for_nothing_else() -> None:
    assert list(PLANTED.recorded()) == list(MISTAKES)
