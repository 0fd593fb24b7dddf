"""What an edit refers to is asked for before anything is stopped for it. The server is a dictionary; no I/O."""

from typing import Any

import pytest

from tidegate.api.streaming_app import StreamingApp, UpgradePhase
from tidegate.app.dry_runs.pod_dry_run import LASTS, MISSING_LASTS
from tidegate.app.dry_runs.reference_checks import MOST_OBJECTS, ReferenceChecks
from tidegate.app.observation import CheckedReferences
from tidegate.kube.failures import Failure, Forbidden, Invalid, Throttled, TooLong, Unavailable
from tidegate_testing.dictionary_server import ApiServer
from tidegate_testing.observations import app_with, observe
from tidegate_testing.upgrades import A, B, edited, new_app, old_app, stable

SHOP = "/api/v1/namespaces/shop"
RULES, DATA, TLS = f"{SHOP}/configmaps/rules", f"{SHOP}/persistentvolumeclaims/data", f"{SHOP}/secrets/tls"
IMAGE = "application.image"
AN_OBJECT: dict[str, Any] = {"metadata": {"name": "it"}}


def template(*volumes: dict[str, Any]) -> dict[str, Any]:
    """Return the change to a driver with such volumes."""
    named = [{"name": f"v{n}", **volume} for n, volume in enumerate(volumes)]
    mounts = [{"name": volume["name"], "mountPath": f"/{volume['name']}"} for volume in named]
    containers = [{"name": "driver", "volumeMounts": mounts}]
    return {IMAGE: B, "driver.podTemplate": {"spec": {"volumes": named, "containers": containers}}}


OF_RULES = {"configMap": {"name": "rules"}}
OF_A_KEY = {"configMap": {"name": "rules", "items": [{"key": "eu.json", "path": "eu.json"}]}}
OF_DATA = {"persistentVolumeClaim": {"claimName": "data"}}
OF_TLS = {"secret": {"secretName": "tls"}}
OF_ITS_KEY = {"secret": {"secretName": "tls", "items": [{"key": "tls.crt", "path": "tls.crt"}]}}
ALL = template(OF_RULES, OF_DATA, OF_TLS)


class World:
    """Checks on such a server, with a clock that stands still."""

    def __init__(self, *paths: str) -> None:
        self.api = ApiServer()
        self.now = 1000.0
        client: Any = self.api
        self.checks = ReferenceChecks(client, lambda: self.now)
        for path in paths:
            self.api.put(path, AN_OBJECT)

    async def check(self, change: dict[str, Any]) -> CheckedReferences:
        return await self.checks.check(observe(edited(old_app(), change)))

    async def missing(self, change: dict[str, Any]) -> list[str]:
        return [each.what for each in (await self.check(change)).missing]

    async def unchecked(self, change: dict[str, Any]) -> list[str]:
        return [each.what for each in (await self.check(change)).unchecked]


async def test_what_does_not_exist_is_missing_and_what_exists_is_not() -> None:
    world = World()
    assert await world.missing(ALL) == ["ConfigMap rules", "PersistentVolumeClaim data", "Secret tls"]
    assert await World(RULES, DATA, TLS).check(ALL) == CheckedReferences()


async def test_of_a_config_map_the_key_is_looked_for_and_else_its_metadata_read_alone() -> None:
    world = World(RULES)
    assert await world.missing(template(OF_A_KEY)) == ["key eu.json of ConfigMap rules"]
    assert world.api.read == [(RULES, "application/json")]
    for content in ({"data": {"eu.json": "{}"}}, {"binaryData": {"eu.json": "AA=="}}):
        world = World()
        world.api.put(RULES, {**AN_OBJECT, **content})
        assert await world.missing(template(OF_A_KEY)) == []
    assert await world.missing(template(OF_RULES)) == []
    assert "PartialObjectMetadata" in world.api.read[-1][1]


async def test_a_secret_is_never_read_and_nothing_is_made_of_one_that_is_missing() -> None:
    world = World()
    assert await world.missing(template(OF_TLS, OF_ITS_KEY)) == ["Secret tls", "key tls.crt of Secret tls"]
    (tried,) = world.api.tried
    assert (tried["kind"], tried["metadata"]["name"], tried["metadata"]["namespace"]) == ("Secret", "tls", "shop")
    assert tried["metadata"]["labels"]["app.kubernetes.io/managed-by"] == "tidegate", "the chart's policy lets it in"
    assert (world.api.read, world.api.objects) == ([], {})


async def test_which_keys_a_secret_has_is_not_asked_and_of_no_edit_said() -> None:
    world = World(TLS)
    assert await world.check(template(OF_TLS)) == CheckedReferences()
    assert await world.check(template(OF_ITS_KEY)) == CheckedReferences()
    assert world.api.read == []


async def test_a_key_of_a_secret_that_may_not_be_asked_for_is_unchecked() -> None:
    world = World(TLS)
    world.api.refusing = {f"{SHOP}/secrets": Forbidden("not granted")}
    assert await world.unchecked(template(OF_ITS_KEY)) == ["key tls.crt of Secret tls"]


@pytest.mark.parametrize("answer", [Forbidden("not granted"), Invalid("no dry run"), TooLong("too long")])
async def test_what_may_not_be_known_is_unchecked_and_never_missing(answer: Failure) -> None:
    world = World()
    world.api.unreadable, world.api.refusing = {RULES: answer, DATA: answer}, {f"{SHOP}/secrets": answer}
    assert await world.missing(ALL) == []
    assert await world.unchecked(ALL) == ["ConfigMap rules", "PersistentVolumeClaim data", "Secret tls"]
    assert not (await world.check(ALL)).unanswered


@pytest.mark.parametrize("answer", [Unavailable("no answer"), Throttled("later", 1.0)])
async def test_what_was_missing_stays_so_while_nobody_answers(answer: Failure) -> None:
    world = World()
    assert await world.missing(template(OF_RULES)) == ["ConfigMap rules"]
    world.now += MISSING_LASTS
    world.api.unreadable = {RULES: answer}
    assert await world.missing(template(OF_RULES)) == ["ConfigMap rules"]


async def test_who_does_not_answer_is_asked_a_few_times_and_for_nothing_else() -> None:
    world = World()
    world.api.unreadable = {RULES: Unavailable("no answer")}
    checked = await world.check(ALL)
    assert (checked.missing, checked.unanswered, len(checked.unchecked)) == ((), True, 3)
    assert [path for path, _ in world.api.read] == [RULES] * 3
    assert world.api.tried == []


async def test_what_is_missing_is_asked_for_again_soon_and_what_is_there_later() -> None:
    world = World(RULES)
    change = template(OF_RULES, OF_DATA)
    assert await world.missing(change) == ["PersistentVolumeClaim data"]
    world.api.put(DATA, AN_OBJECT)
    assert await world.missing(change) == ["PersistentVolumeClaim data"]
    world.now += MISSING_LASTS
    assert await world.missing(change) == []
    assert [path for path, _ in world.api.read] == [RULES, DATA, DATA]
    del world.api.objects[RULES]
    world.now += LASTS
    assert await world.missing(change) == ["ConfigMap rules"]


async def test_another_edit_asks_anew() -> None:
    world = World()
    assert await world.missing(template(OF_RULES)) == ["ConfigMap rules"]
    world.api.put(RULES, AN_OBJECT)
    assert await world.missing({**template(OF_RULES), IMAGE: "shop/orders:9"}) == []


@pytest.mark.parametrize(
    "app",
    [
        app_with(template(OF_RULES)),
        edited(old_app(), {**template(OF_RULES), "suspend": True}),
        edited(new_app(UpgradePhase.ROLLED_BACK), {IMAGE: A}),
        old_app(),
    ],
    ids=["first launch", "suspended", "back", "as it is"],
)
async def test_nothing_is_asked_where_nothing_is_to_be_stopped(app: StreamingApp) -> None:
    world = World()
    assert await world.checks.check(observe(app)) == CheckedReferences()
    assert (world.api.read, world.api.tried) == ([], [])


async def test_more_objects_than_anybody_names_are_not_asked_for() -> None:
    world = World()
    checked = await world.check(template(*({"configMap": {"name": f"m{n}"}} for n in range(MOST_OBJECTS + 2))))
    assert len(checked.missing) == len(world.api.read) == MOST_OBJECTS
    assert [each.name for each in checked.unchecked] == [f"m{MOST_OBJECTS}", f"m{MOST_OBJECTS + 1}"]


async def test_a_pull_secret_holds_up_the_edit_that_brings_it_in_and_no_later_one() -> None:
    world = World()
    secret = {"application.imagePullSecrets": [{"name": "registry"}]}
    assert await world.missing({IMAGE: B, **secret}) == ["Secret registry"]
    runs = stable(edited(old_app(), secret))
    assert await world.checks.check(observe(edited(runs, {IMAGE: B, **secret}))) == CheckedReferences()
