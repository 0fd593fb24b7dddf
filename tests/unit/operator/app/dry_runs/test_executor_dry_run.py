"""What the API server is asked about executors that have no pod. The API server is a dictionary."""

from typing import Any

import pytest

from tidegate.app.dry_runs.executor_dry_run import LASTS, ExecutorDryRun
from tidegate.kube.failures import Failure, Forbidden, Invalid, Unavailable
from tidegate_testing.dictionary_server import ApiServer
from tidegate_testing.observations import app_with, driver_of, launched, observe

APP = launched(app_with())
PODS = "/api/v1/namespaces/shop/pods"


class World:
    """Trials on such a server, with a clock of its own."""

    def __init__(self, answer: Failure | None = None) -> None:
        self.api, self.now = ApiServer(), 1000.0
        if answer is not None:
            self.api.refusing[PODS] = answer
        client: Any = self.api
        self.pod_dry_run = ExecutorDryRun(client, lambda: self.now)

    async def check(self, **of_driver: Any) -> str:
        return await self.pod_dry_run.check(observe(APP, driver=driver_of(APP, **of_driver)))


@pytest.mark.parametrize("answer", [Forbidden("violates PodSecurity"), Invalid("violates PodSecurity")])
async def test_a_refusal_is_told_in_the_servers_words(answer: Failure) -> None:
    assert await World(answer).check() == "violates PodSecurity"


@pytest.mark.parametrize("answer", [None, Unavailable("no answer")])
async def test_where_it_holds_nothing_against_them_or_does_not_answer_nothing_is_told(answer: Failure | None) -> None:
    assert await World(answer).check() == ""


async def test_it_is_asked_once_a_minute_for_each_driver() -> None:
    world = World(Forbidden("violates PodSecurity"))
    for _ in range(3):
        await world.check()
    assert len(world.api.tried) == 1
    await world.check(uid="another")
    world.now += LASTS
    del world.api.refusing[PODS]
    assert await world.check() == ""
    assert len(world.api.tried) == 3


async def test_it_is_not_asked_about_executors_of_a_version_that_is_not_the_specs() -> None:
    world = World(Forbidden("violates PodSecurity"))
    assert await world.check(spec_hash="another") == ""
    assert world.api.tried == []
