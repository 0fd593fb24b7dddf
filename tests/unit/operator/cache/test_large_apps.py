"""Large applications have a bound together: which are kept whole, what becomes of others, and when they come back."""

import json
from typing import Any

import msgspec
import pytest

from tidegate.api.streaming_app import StreamingApp, decode_app
from tidegate.api.values.bounded_json import decoded_size
from tidegate.cache.app_versions import AppVersion, read_gone, read_version
from tidegate.cache.index import Index
from tidegate.cache.known_apps import KnownApp, UnreadableApp
from tidegate.cache.large_apps import LARGE, MOST_OF_ALL, MOST_OF_NAMESPACE, LargeApp, LargeApps

HALF = MOST_OF_NAMESPACE // 2


def large(name: str, day: int, size: int = HALF, namespace: str = "shop") -> LargeApp:
    return LargeApp(name, (namespace, name), f"2026-01-{day:02}T00:00:00Z", size)


def body(name: str, day: int, length: int, version: int = 1, namespace: str = "shop") -> bytes:
    """Return an application with so many letters in its arguments."""
    metadata = {
        "namespace": namespace,
        "name": name,
        "uid": f"{namespace}-{name}",
        "resourceVersion": str(version),
        "generation": version,
        "creationTimestamp": f"2026-01-{day:02}T00:00:00Z",
        "annotations": {"kubectl.kubernetes.io/last-applied-configuration": "x" * 200_000, "tidegate.dev/own": "1"},
        "managedFields": [{"manager": "kubectl", "fieldsV1": {f"f:{n}": {} for n in range(2_000)}}],
    }
    application = {"image": "x", "main": "local:///x.py", "args": ["x" * length]}
    return json.dumps(
        {"metadata": metadata, "spec": {"application": application, "storage": {"uri": "s3://b/p"}}}
    ).encode()


class World:
    """An index that is told of applications as their watch tells it."""

    def __init__(self) -> None:
        self.index = Index()

    def read(self, stored: bytes) -> AppVersion:
        """Read a version, as a thread does, before it is taken in."""
        return read_version(stored, self.index.large.admits_version)

    def report(self, stored: bytes) -> set[tuple[str, str]]:
        return self.index.put_version(self.read(stored))

    def whole(self) -> set[str]:
        keys = self.index.keys()
        return {key[1] for key in keys if isinstance(self.index.app(key), KnownApp)}

    def unreadable(self, name: str) -> UnreadableApp:
        found = self.index.app(("shop", name))
        assert isinstance(found, UnreadableApp)
        return found


def test_the_oldest_of_a_namespace_are_kept_whole_in_whatever_order_they_come() -> None:
    first, second, third = large("a", 1), large("b", 2), large("c", 3)
    for order in ([first, second, third], [third, second, first], [second, third, first]):
        apps = LargeApps()
        for app in order:
            apps.admits(app)
        assert [apps.admits(app) for app in (first, second, third)] == [True, True, False]


def test_large_ones_of_one_namespace_take_no_room_of_another_and_ordinary_ones_need_none() -> None:
    apps = LargeApps()
    for number in range(100):
        apps.admits(large(f"hostile-{number}", 1, namespace="hostile"))
    assert apps.admits(large("mine", 20))
    for number in range(2, 2 + MOST_OF_ALL // MOST_OF_NAMESPACE):
        apps.admits(large(f"hostile-{number}", 1, MOST_OF_NAMESPACE, namespace=f"hostile-{number}"))
    assert not apps.admits(large("mine", 20))
    assert apps.admits(large("ordinary", 28, LARGE))


def test_of_each_application_is_kept_what_is_read_of_it() -> None:
    kept = json.loads(read_version(body("a", 1, 10), lambda names, size: size < LARGE).body)
    assert kept["metadata"]["annotations"] == {"tidegate.dev/own": "1"}
    assert "managedFields" not in kept["metadata"]
    assert decode_app(body("a", 1, 10)).metadata.annotations == {"tidegate.dev/own": "1"}


def test_one_for_which_there_is_no_room_is_unreadable_and_says_what_to_do() -> None:
    world = World()
    for number in range(12):
        world.report(body(f"a{number:02}", 1 + number, 1_400_000))
    assert world.whole() == {f"a{number:02}" for number in range(11)}
    refused = world.unreadable("a11")
    assert "make it shorter" in refused.problem
    assert len(msgspec.json.encode(refused)) < 2_000


def test_one_that_loses_its_room_to_an_older_one_gets_it_back_when_that_goes() -> None:
    world = World()
    for number in range(11):
        world.report(body(f"a{number:02}", 2 + number, 1_400_000))
    assert world.report(body("older", 1, 1_400_000, 5)) == {("shop", "older"), ("shop", "a10")}
    assert not world.unreadable("a10").again
    assert world.index.remove_app(("shop", "older"), "shop-older") == {("shop", "older"), ("shop", "a10")}
    assert world.unreadable("a10").again
    read: StreamingApp = decode_app(body("a10", 12, 1_400_000))
    assert world.index.put_app(read) == {("shop", "a10")}
    assert "a10" in world.whole()


def test_a_place_that_gets_free_while_a_version_is_read_is_not_lost_when_that_is_taken_in() -> None:
    world = World()
    for number in range(12):
        world.report(body(f"a{number:02}", 1 + number, 1_400_000))
    in_hands = world.read(body("a11", 12, 1_400_000, 2))
    assert ("shop", "a11") in world.index.remove_app(("shop", "a00"), "shop-a00")
    assert world.index.put_version(in_hands) == {("shop", "a11")}
    assert world.unreadable("a11").again
    world.report(body("a11", 12, 1_400_000, 2))
    assert "a11" in world.whole()


def test_a_place_that_is_taken_while_a_version_is_read_is_not_used_when_that_is_taken_in() -> None:
    world = World()
    for number in range(11):
        world.report(body(f"a{number:02}", 2 + number, 1_400_000))
    in_hands = world.read(body("a10", 12, 1_400_000, 2))
    world.report(body("older", 1, 1_400_000))
    world.index.put_version(in_hands)
    assert world.whole() == {"older", *(f"a{number:02}" for number in range(10))}


def test_a_version_that_comes_too_late_does_not_take_the_place_of_what_is_known_with_it() -> None:
    world = World()
    for number in range(11):
        world.report(body(f"a{number:02}", 1 + number, 1_400_000))
    world.index.put_app(decode_app(body("a11", 12, 1_400_000, 5)))
    shorter = world.read(body("a00", 1, 10, 2))
    late = world.read(body("a11", 12, 1_400_000, 4))
    assert ("shop", "a11") in world.index.put_version(shorter)
    world.index.put_version(late)
    assert "a11" in world.whole()


def test_one_that_cannot_be_read_for_another_reason_is_not_read_again_when_there_is_room() -> None:
    world = World()
    broken = body("a11", 12, 1_400_000).replace(b'"main": "local:///x.py"', b'"main": 7')
    for number in range(11):
        world.report(body(f"a{number:02}", 2 + number, 1_400_000))
    world.report(broken.replace(b"2026-01-12", b"2026-01-01"))
    assert "main" in world.unreadable("a11").problem
    world.report(body("b", 1, 1_400_000).replace(b"2026-01-01", b"2025-01-01"))
    world.index.remove_app(("shop", "b"), "shop-b")
    assert not world.unreadable("a11").again


def test_an_answer_to_a_write_brings_no_more_into_memory_than_a_watch() -> None:
    world = World()
    for number in range(11):
        world.report(body(f"a{number:02}", 1 + number, 1_400_000))
    world.report(body("grows", 28, 10))
    world.index.put_app(decode_app(body("grows", 28, 1_400_000, 2)))
    assert "make it shorter" in world.unreadable("grows").problem


@pytest.mark.parametrize("gone", [True, False])
def test_one_that_is_gone_or_became_short_takes_no_room(gone: bool) -> None:
    world = World()
    for number in range(12):
        world.report(body(f"a{number:02}", 1 + number, 1_400_000))
    if gone:
        who = read_gone(body("a00", 1, 1_400_000, 2)).identity
        world.index.remove_app(who.key, who.uid)
    else:
        world.report(body("a00", 1, 10, 2))
    assert world.index.large.admits(large("shop-a11", 12, 1_500_000))


@pytest.mark.parametrize("text", ["x" * 1_000, "x" * 1_000 + "\u0416", "x" * 1_000 + "\U0001f300"])
@pytest.mark.parametrize("plain", [True, False])
def test_the_memory_of_a_text_is_known_whatever_its_script(text: str, plain: bool) -> None:
    assert decoded_size(json.dumps([text], ensure_ascii=plain).encode()) >= text.__sizeof__() - 100


def test_the_memory_of_values_is_known() -> None:
    value: Any = {f"key {number}": [{}, {"a": str(number)}] for number in range(1_000)}
    entries = [v.__sizeof__() + sum(x.__sizeof__() for x in v) for v in value.values()]
    texts = sum(k.__sizeof__() + v[1]["a"].__sizeof__() for k, v in value.items())
    assert decoded_size(json.dumps(value).encode()) >= value.__sizeof__() + sum(entries) + texts


def test_an_installation_with_more_memory_keeps_more_of_them() -> None:
    apps = LargeApps(2 * MOST_OF_NAMESPACE, 2 * MOST_OF_ALL)
    kept = [apps.admits(large(f"a{number}", number, MOST_OF_NAMESPACE)) for number in range(3)]
    assert kept == [True, True, False]
    for number in range(7):
        elsewhere = f"n{number}"
        assert apps.admits(large(elsewhere, number, MOST_OF_NAMESPACE, namespace=elsewhere)) is (number < 6)
