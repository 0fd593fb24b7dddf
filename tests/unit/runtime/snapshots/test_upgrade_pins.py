"""What an upgrade leaves behind is kept exactly, and a rollback starts with exactly that. The store is in memory."""

import contextlib
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from tidegate_spark.contract.protocol import EarlierPin, Pin, StartFrom, Storage
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.snapshot_protocol import SnapshotOrder
from tidegate_spark.driver import launch_state, starting_point
from tidegate_spark.driver.starting_point import Filler
from tidegate_spark.snapshots import catalog, collect
from tidegate_spark.snapshots.copying import Copiers
from tidegate_spark.snapshots.lineages import upgrade_pin
from tidegate_spark.snapshots.lineages.upgrade_pin import StateMissingError
from tidegate_spark.snapshots.service.operations import Carrier
from tidegate_spark.storage.s3_client import FaultError
from tidegate_spark.storage.store import SnapshotError
from tidegate_testing.driver_process import driver_config
from tidegate_testing.fake_checkpoint import LAYOUT, content_of
from tidegate_testing.memory_store import Call
from tidegate_testing.snapshot_scenes import Scene

PIN = "up-1"
PLACE = Storage("s3://here/apps/orders")
NOTED = "upgrades/up-1.json"


def scene_with(batches: int) -> Scene:
    scene = Scene()
    scene.batches(batches)
    return scene


def order(scene: Scene, watch: Callable[[Call], None] = lambda call: None) -> SnapshotOrder:
    return upgrade_pin.order_of(scene.repository(watch), PIN, scene.lineage, "shop:1", LAYOUT)


def carrier(scene: Scene, watch: Callable[[Call], None] = lambda call: None) -> Carrier:
    config = driver_config("orders", "local:///main.py", PLACE, lineage=scene.lineage, epoch=3)
    return Carrier(config, lambda: scene.repository(watch), "4.1.0", LAYOUT, lambda: 1000.0, Copiers(1))


def roll_back(scene: Scene, watch: Callable[[Call], None] = lambda call: None) -> list[tuple[str, str]]:
    """Do what the driver of a rollback does at its start, in lineage 2."""
    notices: list[tuple[str, str]] = []
    start_from = StartFrom(PLACE, PIN, f"rollback-{PIN}", lineage=1, image="shop:1")
    config = driver_config("orders", "local:///main.py", PLACE, lineage=2, epoch=4, start_from=start_from)
    repository = scene.repository(watch)

    def note(reason: str, message: str) -> None:
        notices.append((reason, message))

    filler = Filler(config, start_from, repository, repository, threading.Event(), note, Copiers(1), LAYOUT, "4.1.0")
    filler.fill()
    return notices


def roll_back_once_more(scene: Scene) -> list[tuple[str, str]]:
    """Do what the driver of the next rollback does, in lineage 3: of a version that was launched in lineage 2."""
    notices: list[tuple[str, str]] = []
    earlier = EarlierPin(PIN, f"rollback-{PIN}", 1)
    start_from = StartFrom(PLACE, "up-2", "rollback-up-2", lineage=2, image="shop:1", otherwise=(earlier,))
    config = driver_config("orders", "local:///main.py", PLACE, lineage=3, epoch=6, start_from=start_from)
    repository = scene.repository()
    report = lambda reason, message: notices.append((reason, message))  # noqa: E731
    Filler(config, start_from, repository, repository, threading.Event(), report, Copiers(1), LAYOUT, "4.1.0").fill()
    return notices


def without_id(content: dict[str, bytes]) -> dict[str, bytes]:
    return {path: body for path, body in content.items() if path != "metadata"}


def no_answer(call: Call) -> None:
    raise EndpointConnectionError(endpoint_url="http://store")


def fault_of(attempt: Callable[[], Any]) -> Any:
    with pytest.raises(FaultError) as caught:
        attempt()
    return caught.value.fault


def test_the_batches_are_those_of_the_first_look_whatever_is_committed_later() -> None:
    scene = scene_with(3)
    scene.batches(2, "other")
    first = order(scene)
    scene.batches(4)
    scene.batches(1, "new")
    assert first == SnapshotOrder(PIN, exact={"main": 2, "other": 1}, alone=True, holders=(PIN,), image="shop:1")
    assert order(scene) == first


def test_without_a_committed_batch_there_is_nothing_to_go_on_with_and_nothing_is_noted() -> None:
    scene = Scene()
    with pytest.raises(StateMissingError):
        order(scene)
    assert scene.keys("") == []


def test_a_note_that_says_nothing_is_not_taken_for_another_one() -> None:
    for body in (b"", b"[]", b'{"lineage": 2, "batches": {"main": 1}}', b'{"lineage": 1}'):
        scene = scene_with(3)
        scene.store().put(f"apps/orders/{NOTED}", body)
        with pytest.raises(SnapshotError, match=NOTED):
            order(scene)


def test_two_that_look_at_once_keep_the_same_batches() -> None:
    scene, others = scene_with(3), list[SnapshotOrder]()

    def meanwhile(call: Call) -> None:
        if call.verb == "put_if" and not call.done and not others:
            others.append(order(scene))
            scene.batches(1)

    assert [order(scene, meanwhile)] == others


def test_the_pin_is_held_until_it_is_disposed_of_and_then_nothing_of_it_is_left() -> None:
    scene = scene_with(3)
    carrier(scene).take(order(scene), lambda progress: None)
    assert scene.repository().read().snapshots[PIN].holders == {PIN}
    with pytest.raises(catalog.HeldError):
        collect.dispose(scene.repository(), PIN)
    carrier(scene).dispose(PIN)
    assert [key for key in scene.keys("") if not key.startswith("lineages/")] == ["snapshots/catalog.json"]


def test_a_pin_that_somebody_else_needs_is_released_by_the_upgrade_and_stays() -> None:
    scene = scene_with(3)
    carrier(scene).take(order(scene), lambda progress: None)
    scene.repository().change(lambda it: catalog.hold(it, PIN, "fork-2"))
    with pytest.raises(catalog.HeldError, match="fork-2"):
        carrier(scene).dispose(PIN)


def test_a_rollback_starts_from_exactly_what_the_version_before_had_committed() -> None:
    scene = scene_with(3)
    before = without_id(content_of(scene.store(), scene.root(), 2))
    carrier(scene).take(order(scene), lambda progress: None)
    scene.batches(2)
    scene.clean()
    notices = roll_back(scene)
    assert without_id(content_of(scene.store(), "apps/orders/lineages/2/main", 2)) == before
    # Sinks that know a batch by query and number must not take the next one for one that they have.
    assert scene.content("lineages/2/main/metadata") != scene.content("lineages/1/main/metadata")
    assert [key for key in scene.keys("lineages/2/") if "/3" in key] == []
    assert notices == [("StartedFromSnapshot", f"Started from snapshot {PIN} of {PLACE.uri}: 'main' after batch 2.")]


def test_a_rollback_completes_the_pin_that_the_failed_version_did_not_come_to() -> None:
    scene = scene_with(3)
    order(scene)
    scene.batches(2)
    roll_back(scene)
    made = scene.repository().read().snapshots[PIN]
    assert (made.lineage, set(made.holders)) == (1, {PIN})
    assert max(key for key in scene.keys("lineages/2/main/commits")) == "lineages/2/main/commits/2"


def test_a_query_that_only_the_failed_version_has_is_no_part_of_what_is_gone_back_to() -> None:
    scene = scene_with(3)
    wanted = order(scene)
    scene.batches(2, "new")
    carrier(scene).take(wanted, lambda progress: None)
    assert scene.repository().read().snapshots[PIN].queries == {"main": 2}
    roll_back(scene)
    assert scene.keys("lineages/2/new") == []


def test_a_rollback_of_a_version_that_never_came_to_a_query_keeps_every_batch() -> None:
    scene = scene_with(3)
    roll_back(scene)
    assert scene.keys("lineages/2/main/commits") == ["lineages/2/main/commits/2"]


def test_a_rollback_to_batches_that_are_gone_starts_nothing() -> None:
    scene = scene_with(3)
    order(scene)
    scene.batches(5)
    scene.clean()
    fault = fault_of(lambda: roll_back(scene))
    assert fault.reason is Reason.SNAPSHOT_UNUSABLE
    assert "batch 2 of query main" in fault.message
    assert "rolled back" in fault.message
    assert scene.keys("lineages/2/") == []


def test_a_rollback_whose_snapshot_was_disposed_of_starts_nothing_and_says_so() -> None:
    scene = scene_with(3)
    carrier(scene).take(order(scene), lambda progress: None)
    carrier(scene).dispose(PIN)
    fault = fault_of(lambda: roll_back(scene))
    assert fault.reason is Reason.SNAPSHOT_UNUSABLE
    assert "to which an upgrade is rolled back: snapshot up-1 was deleted. Nothing was started." in fault.message
    assert scene.keys("lineages/2/") == []


def test_a_rollback_whose_snapshot_is_disposed_of_while_it_is_completed_starts_nothing_and_says_so() -> None:
    scene, done = scene_with(3), threading.Event()
    order(scene)

    def watch(call: Call) -> None:
        if call.verb == "copy" and not done.is_set():
            done.set()
            carrier(scene).dispose(PIN)

    fault = fault_of(lambda: roll_back(scene, watch))
    assert done.is_set()
    assert fault.reason is Reason.SNAPSHOT_UNUSABLE
    assert "snapshot up-1 was deleted" in fault.message
    assert scene.keys("lineages/2/") == []


def test_a_rollback_to_a_lineage_that_nobody_filled_starts_from_what_that_was_to_start_from() -> None:
    scene = scene_with(3)
    order(scene)
    scene.batches(2)
    notices = roll_back_once_more(scene)
    assert scene.keys("lineages/3/main/commits") == ["lineages/3/main/commits/2"]
    assert notices == [("StartedFromSnapshot", f"Started from snapshot {PIN} of {PLACE.uri}: 'main' after batch 2.")]
    before = scene.keys("")
    assert roll_back_once_more(scene) == []
    assert scene.keys("") == before
    carrier(scene).dispose(PIN)
    carrier(scene).dispose("up-2")


def test_a_lineage_that_is_half_filled_is_one_that_nobody_filled() -> None:
    scene = scene_with(3)
    scene.batches(1, "other")
    order(scene)
    copies = []

    def ends_halfway(call: Call) -> None:
        if call.verb == "copy" and "lineages/2" in call.key:
            copies.append(call)
        if len(copies) > 3:
            no_answer(call)

    with pytest.raises(FaultError):
        roll_back(scene, ends_halfway)
    assert scene.keys("lineages/2/")
    roll_back_once_more(scene)
    commits = [key for key in scene.keys("lineages/3/") if "/commits/" in key]
    assert commits == ["lineages/3/main/commits/2", "lineages/3/other/commits/0"]


def test_a_rollback_to_a_lineage_that_was_filled_starts_from_its_end() -> None:
    scene = scene_with(3)
    order(scene)
    scene.batches(2)
    roll_back(scene)
    roll_back_once_more(scene)
    made = scene.repository().read().snapshots["up-2"]
    assert (made.lineage, made.queries) == (2, {"main": 2})


def test_a_rollback_that_did_not_finish_is_known_without_the_operator_and_one_that_did_is_no_news() -> None:
    scene = scene_with(3)
    order(scene)
    with pytest.raises(FaultError):
        roll_back(scene, lambda call: no_answer(call) if call.verb == "copy" else None)
    left = starting_point.left_to_fill(scene.repository(), 2)
    assert left == StartFrom(PLACE, PIN, f"rollback-{PIN}", lineage=1, image="shop:1")
    roll_back(scene)
    assert starting_point.left_to_fill(scene.repository(), 2) is None
    assert starting_point.left_to_fill(scene.repository(), 1) is None


def test_a_beginning_that_says_nothing_is_not_taken_for_none() -> None:
    scene = scene_with(3)
    scene.store().put("apps/orders/lineages/2.begin", b"{")
    with pytest.raises(SnapshotError, match=r"2\.begin"):
        starting_point.left_to_fill(scene.repository(), 2)


def test_wherever_a_rollback_ends_the_next_attempt_finishes_it() -> None:
    requests: list[Call] = []
    whole = scene_with(3)
    order(whole)
    whole.batches(1)
    roll_back(whole, requests.append)
    for number in range(len(requests)):
        scene, left = scene_with(3), [number]
        order(scene)
        scene.batches(1)

        def watch(call: Call, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] < 0:
                no_answer(call)

        with contextlib.suppress(FaultError):  # a pin that cannot be released does not hold anybody up
            roll_back(scene, watch)
        roll_back(scene)
        now = content_of(scene.store(), "apps/orders/lineages/2/main", 2)
        assert without_id(now) == without_id(content_of(scene.store(), scene.root(), 2))


def test_a_process_that_is_started_again_after_its_pin_was_disposed_of_takes_no_other_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = scene_with(3)
    # The real layout reads these checkpoints as well as it has to: which batches are committed.
    monkeypatch.setattr(
        "tidegate_spark.driver.launch_state.reach_repository", lambda place, credentials: scene.repository()
    )
    config = driver_config("orders", "local:///main.py", PLACE, lineage=scene.lineage, pin=Pin(PIN, "shop:1"))

    def start() -> tuple[SnapshotOrder, ...]:
        return launch_state.find_pin(config, None, str(tmp_path / "work")).take

    first = start()
    assert [each.id for each in first] == [PIN]
    scene.batches(2)
    assert start() == first
    carrier(scene).dispose(PIN)
    before = scene.keys("")
    assert start() == ()
    assert scene.keys("") == before


def test_a_process_that_was_ended_before_it_could_note_the_pin_notes_it_when_it_is_started_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene, answers = scene_with(3), False
    watch = lambda call: None if answers else no_answer(call)  # noqa: E731
    monkeypatch.setattr(
        "tidegate_spark.driver.launch_state.reach_repository", lambda place, credentials: scene.repository(watch)
    )
    config = driver_config("orders", "local:///main.py", PLACE, lineage=scene.lineage, pin=Pin(PIN, "shop:1"))
    assert fault_of(lambda: launch_state.find_pin(config, None, str(tmp_path))).reason is Reason.STORAGE_UNAVAILABLE
    answers = True
    assert launch_state.find_pin(config, None, str(tmp_path)).take[0].id == PIN


def test_an_upgrade_does_not_begin_while_nobody_knows_which_query_has_which_location_and_does_once_that_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scene = scene_with(3)
    monkeypatch.setattr(
        "tidegate_spark.driver.launch_state.reach_repository", lambda place, credentials: scene.repository()
    )
    config = driver_config("orders", "local:///main.py", PLACE, lineage=scene.lineage, pin=Pin(PIN, "shop:1"))
    key = scene.repository().key("names", f"unnamed-{scene.lineage}.json")
    scene.store().put(key, b"[]")
    fault = fault_of(lambda: launch_state.find_pin(config, None, str(tmp_path)))
    assert fault.reason is Reason.NOTES_DAMAGED
    assert key in fault.message
    assert "no state" not in fault.message
    scene.store().delete([key])
    assert launch_state.find_pin(config, None, str(tmp_path)).take[0].id == PIN
