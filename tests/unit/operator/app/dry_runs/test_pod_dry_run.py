"""Which pods the API server is asked about before anything is stopped for them. The server is a dictionary; no I/O."""

import itertools
from typing import Any

import msgspec
import pytest

from tidegate.api.streaming_app import StreamingApp, UpgradePhase
from tidegate.app.dry_runs.pod_dry_run import LASTS, MISSING_LASTS, UNKNOWN_LASTS, PodDryRun
from tidegate.app.observation import PodRejection
from tidegate.cache.index import Index
from tidegate.kube.failures import Failure, Forbidden, Invalid, Throttled, Unavailable
from tidegate_testing.dictionary_server import ApiServer
from tidegate_testing.limit_ranges import Floored
from tidegate_testing.observations import app_with, deleted, launched, observe
from tidegate_testing.pod_refusals import OVER_THE_LIMIT
from tidegate_testing.upgrades import IMAGE, A, B, C, edited, new_app, old_app

PODS = "/api/v1/namespaces/shop/pods"
TEMPLATE: dict[str, Any] = {"executor.podTemplate": {"spec": {"tolerations": []}}}
TYPO = Invalid('unknown field "spec.tolerationz"', in_itself=True)


class World:
    """Trials on such a server, with a clock that stands still."""

    def __init__(self) -> None:
        self.api: ApiServer = ApiServer()
        self.now = 1000.0
        client: Any = self.api
        self.pod_dry_run = PodDryRun(client, lambda: self.now)

    @property
    def tried(self) -> list[str]:
        return [manifest["metadata"]["name"] for manifest in self.api.tried]

    async def check(self, app: StreamingApp) -> PodRejection | None:
        return await self.pod_dry_run.check(observe(app))


@pytest.mark.parametrize(
    ("app", "tried"),
    [
        (edited(old_app(), {IMAGE: B}), ["orders-driver"]),
        (edited(old_app(), {IMAGE: B, **TEMPLATE}), ["orders-driver", "orders-e2-exec-1"]),
        (app_with(TEMPLATE), ["orders-e1-exec-1"]),
        (app_with(), []),
        (old_app(), []),
        (launched(app_with(TEMPLATE)), []),
        (edited(new_app(UpgradePhase.ROLLED_BACK), {IMAGE: A}), []),
        (new_app(UpgradePhase.ROLLED_BACK), []),
        (edited(new_app(UpgradePhase.ROLLED_BACK), {IMAGE: C}), ["orders-driver"]),
        (edited(old_app(), {IMAGE: B, "suspend": True}), []),
        (deleted(edited(old_app(), {IMAGE: B})), []),
        (edited(old_app(), {"driver.podTemplate": {"spec": {"containers": "none"}}}), []),
    ],
    ids=[
        "edit",
        "edit with template",
        "first launch",
        "plain",
        "stable",
        "launched",
        "back",
        "taken back",
        "mended",
        "suspended",
        "gone",
        "no",
    ],
)
async def test_only_pods_of_a_version_that_was_not_launched_yet_are_tried(app: StreamingApp, tried: list[str]) -> None:
    world = World()
    assert await world.check(app) is None
    assert world.tried == tried
    assert world.api.objects == {}


async def test_what_is_wrong_with_a_pod_is_told_with_its_role() -> None:
    world = World()
    app = edited(old_app(), {IMAGE: B, **TEMPLATE})
    world.api.refusing[f"{PODS}/orders-e2-exec-1"] = TYPO
    assert await world.check(app) == PodRejection("executor", TYPO.message)
    world = World()
    world.api.refusing[PODS] = TYPO
    assert await world.check(app) == PodRejection("driver", TYPO.message)
    assert world.tried == ["orders-driver"]


async def test_the_pod_that_runs_under_the_name_is_nothing_against_the_new_one() -> None:
    world = World()
    world.api.put(f"{PODS}/orders-driver", {"metadata": {"name": "orders-driver"}})
    assert await world.check(edited(old_app(), {IMAGE: B})) is None
    world.now += UNKNOWN_LASTS
    await world.check(edited(old_app(), {IMAGE: B}))
    assert len(world.tried) == 1, "it is known"


@pytest.mark.parametrize(
    "failure",
    [
        Forbidden("exceeded quota: the driver that runs is counted"),
        Invalid("admission webhook does not support dry run"),
        Throttled("later", 1.0),
        Unavailable("failed calling webhook"),
    ],
)
async def test_what_is_no_fault_of_the_pod_itself_is_left_to_its_creation(failure: Failure) -> None:
    world = World()
    world.api.refusing[PODS] = failure
    app = edited(old_app(), {IMAGE: B})
    assert await world.check(app) is None
    await world.check(app)
    assert len(world.tried) == 1
    world.now += UNKNOWN_LASTS
    world.api.refusing[PODS] = TYPO
    assert await world.check(app) == PodRejection("driver", TYPO.message)


MISSING = {
    'error looking up service account shop/team: serviceaccount "team" not found': "ServiceAccount team",
    "no PriorityClass with name urgent was found": "PriorityClass urgent",
    'pod rejected: RuntimeClass "sealed" not found': "RuntimeClass sealed",
}
"""What the API server's own admission says, and what is missing then."""


def forbidden(message: str) -> Forbidden:
    return Forbidden(f'pods "orders-driver" is forbidden: {message}')


@pytest.mark.parametrize(("message", "missing"), MISSING.items())
async def test_an_account_or_class_that_does_not_exist_is_known_before_anything_is_stopped(
    message: str, missing: str
) -> None:
    world = World()
    app = edited(old_app(), {IMAGE: B, "serviceAccountName": "team"})
    world.api.refusing[PODS] = forbidden(message)
    assert await world.check(app) == PodRejection("driver", forbidden(message).message, missing)
    del world.api.refusing[PODS]
    assert (await world.check(app)) is not None
    world.now += MISSING_LASTS
    assert await world.check(app) is None, "somebody has made it"


@pytest.mark.parametrize(
    "message",
    [
        f"ValidatingAdmissionPolicy 'mine' denied request: {next(iter(MISSING))}",
        f"{next(iter(MISSING))} in the register of the team",
    ],
)
async def test_what_a_policy_says_is_not_taken_for_what_the_api_server_knows(message: str) -> None:
    world = World()
    world.api.refusing[PODS] = forbidden(message)
    assert await world.check(edited(old_app(), {IMAGE: B, "serviceAccountName": "team"})) is None


async def test_the_account_that_tidegate_makes_itself_is_nothing_against_an_edit() -> None:
    world = World()
    world.api.refusing[PODS] = forbidden(next(iter(MISSING)))
    assert await world.check(edited(old_app(), {IMAGE: B})) is None


DIVIDING = f"{PODS}/orders-repartition-2"


def repartitioned(memory: str = "2Gi") -> StreamingApp:
    """Return an application whose state is to be repartitioned."""
    old = old_app()
    old = msgspec.structs.replace(old, status=msgspec.structs.replace(old.status, state_partitions=4))
    return edited(old, {"state.partitions": 8, "state.repartition.resources": {"requests": {"memory": memory}}})


async def test_a_limit_range_is_believed_of_the_pod_for_which_the_application_would_stand_still() -> None:
    over = Forbidden(OVER_THE_LIMIT, limit_range=True)
    world = World()
    world.api.refusing[DIVIDING] = over
    assert await world.check(repartitioned()) == PodRejection("repartition", over.message)
    assert world.tried == ["orders-driver", "orders-repartition-2"]
    world = World()
    world.api.refusing[f"{PODS}/orders-driver"] = over
    assert await world.check(repartitioned()) is None, "its launch is tried until a LimitRange lets it in"
    world = World()
    world.api.refusing[DIVIDING] = Forbidden("exceeded quota: what runs is counted")
    assert await world.check(repartitioned()) is None


async def test_a_pod_is_tried_again_at_once_with_what_a_limit_range_demands() -> None:
    world = World()
    api = world.api = Floored()
    client: Any = api
    world.pod_dry_run = PodDryRun(client, lambda: world.now, Index())
    assert await world.check(repartitioned()) is None
    assert world.tried == ["orders-driver", "orders-repartition-2"]
    for pod in api.tried:
        (init,) = pod["spec"]["initContainers"]
        assert init["resources"]["requests"]["memory"] == "1Gi"
    assert api.reads == 1


async def test_what_such_a_pod_gets_makes_no_version_and_is_tried_nevertheless_when_it_is_changed() -> None:
    world = World()
    world.api.refusing[DIVIDING] = Forbidden(OVER_THE_LIMIT, limit_range=True)
    assert await world.check(repartitioned()) is not None
    del world.api.refusing[DIVIDING]
    assert await world.check(repartitioned("1536Mi")) is None


async def test_an_answer_counts_for_a_while_and_only_for_its_version() -> None:
    world = World()
    world.api.refusing[PODS] = TYPO
    bad, fixed = edited(old_app(), {IMAGE: B}), edited(old_app(), {IMAGE: C})
    assert await world.check(bad) == await world.check(bad) == PodRejection("driver", TYPO.message)
    assert len(world.tried) == 1
    del world.api.refusing[PODS]
    assert await world.check(fixed) is None
    world.api.refusing[PODS] = TYPO
    assert await world.check(fixed) is None
    world.now += LASTS
    assert await world.check(fixed) == PodRejection("driver", TYPO.message)


@pytest.mark.parametrize("failure", [Unavailable("TimeoutError"), Forbidden("exceeded quota")])
async def test_a_pod_that_is_wrong_stays_so_while_nothing_is_known(failure: Failure) -> None:
    world = World()
    app = edited(old_app(), {IMAGE: B})
    world.api.refusing[PODS] = TYPO
    assert await world.check(app) == PodRejection("driver", TYPO.message)
    world.now += LASTS
    world.api.refusing[PODS] = failure
    assert await world.check(app) == PodRejection("driver", TYPO.message)
    assert await world.check(edited(old_app(), {IMAGE: C})) is None, "of another version nothing is known"


async def test_a_pod_that_is_wrong_stays_so_whichever_application_is_looked_at_before() -> None:
    world = World()
    app, other = edited(old_app(), {IMAGE: B}), edited(old_app(), {IMAGE: C})
    other = msgspec.structs.replace(other, metadata=msgspec.structs.replace(other.metadata, name="other"))
    world.api.refusing[PODS] = TYPO
    await world.check(app)
    world.now += LASTS
    world.api.refusing[PODS] = Unavailable("no answer")
    await world.check(other)
    assert await world.check(app) == PodRejection("driver", TYPO.message)


async def test_a_pod_that_is_right_by_now_is_right() -> None:
    world, app = World(), edited(old_app(), {IMAGE: B})
    world.api.refusing[PODS] = TYPO
    await world.check(app)
    world.now += LASTS
    del world.api.refusing[PODS]
    assert await world.check(app) is None, "what is known is believed"


async def test_a_pod_that_is_right_by_now_is_so_although_nothing_is_known_of_another_one() -> None:
    world = World()
    app = edited(old_app(), {IMAGE: B, **TEMPLATE})
    world.api.refusing[f"{PODS}/orders-driver"] = TYPO
    assert await world.check(app) == PodRejection("driver", TYPO.message)
    world.now += LASTS
    world.api.refusing = {f"{PODS}/orders-e2-exec-1": Forbidden("exceeded quota")}
    assert await world.check(app) is None


async def test_who_does_not_answer_in_time_is_asked_once_and_not_again_at_once() -> None:
    world = World()
    app = edited(old_app(), {IMAGE: B, **TEMPLATE})

    class Slow(ApiServer):
        async def try_out(self, path: str, manifest: Any, *, patience: float) -> Failure | None:
            world.now += 2 * UNKNOWN_LASTS
            await super().try_out(path, manifest, patience=patience)
            return Unavailable("TimeoutError")

    world.api = Slow()
    client: Any = world.api
    world.pod_dry_run.client = client
    await world.check(app)
    await world.check(app)
    assert world.tried == ["orders-driver"]
    world.now += UNKNOWN_LASTS
    await world.check(app)
    assert world.tried == ["orders-driver"] * 2


async def test_where_there_is_never_an_answer_it_is_asked_for_more_and_more_rarely() -> None:
    world = World()
    app = edited(old_app(), {IMAGE: B})
    world.api.refusing[PODS] = Forbidden("exceeded quota")
    asked_at: list[float] = []
    for _ in range(200):  # an hour and a half
        before = len(world.tried)
        await world.check(app)
        asked_at += [world.now] * (len(world.tried) - before)
        world.now += UNKNOWN_LASTS
    pauses = [later - earlier for earlier, later in itertools.pairwise(asked_at)]
    assert pauses[:5] == [30.0, 60.0, 120.0, 240.0, 300.0]
    assert set(pauses[5:]) == {300.0}
    del world.api.refusing[PODS]
    world.now += LASTS
    await world.check(app)
    world.api.refusing[PODS] = Unavailable("no answer")
    world.now += LASTS
    await world.check(app)
    before = len(world.tried)
    world.now += UNKNOWN_LASTS
    await world.check(app)
    assert len(world.tried) == before + 1, "from the beginning after an answer"
