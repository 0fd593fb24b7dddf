"""A rehearsal starts from a snapshot in a place of its own, and that goes with the snapshot. The store is in memory."""

import threading

import pytest

from tidegate_spark.contract.protocol import StartFrom, Storage
from tidegate_spark.contract.rehearsal_protocol import rehearsal_place
from tidegate_spark.driver.starting_point import Filler
from tidegate_spark.snapshots.copying import Copiers
from tidegate_spark.snapshots.lineages import rehearsal_copy as places
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_spark.snapshots.service.operations import Carrier
from tidegate_testing.driver_process import driver_config
from tidegate_testing.fake_checkpoint import LAYOUT
from tidegate_testing.snapshot_scenes import Scene

PLACE, COPY = Storage("s3://here/apps/orders"), "up-1-copy"


@pytest.fixture
def scene() -> Scene:
    """An application with three batches, a copy of which was taken for an upgrade."""
    made = Scene()
    made.batches(3)
    made.take(COPY, holders=frozenset({COPY}))
    return made


def rehearse(scene: Scene) -> None:
    """Do what the process of a rehearsal does at its start."""
    own = rehearsal_place(PLACE, COPY)
    start_from = StartFrom(PLACE, COPY, COPY)
    config = driver_config("orders", "local:///main.py", own, start_from=start_from)
    repository = SnapshotRepository(scene.store(), own.prefix, lambda seconds: None)
    reported: list[tuple[str, str]] = []
    Filler(
        config,
        start_from,
        repository,
        scene.repository(),
        threading.Event(),
        lambda reason, message: reported.append((reason, message)),
        Copiers(1),
        LAYOUT,
        "4.1.0",
    ).fill()


def carrier(scene: Scene) -> Carrier:
    config = driver_config("orders", "local:///main.py", PLACE)
    return Carrier(config, scene.repository, "4.1.0", LAYOUT, lambda: 1000.0, Copiers(1))


def test_it_starts_from_the_copy_and_writes_nothing_where_the_application_writes(scene: Scene) -> None:
    before = {key: scene.content(key) for part in ("lineages", "objects") for key in scene.keys(part)}
    rehearse(scene)
    assert {key: scene.content(key) for part in ("lineages", "objects") for key in scene.keys(part)} == before
    assert scene.keys(f"rehearsals/{COPY}/lineages/1/main/offsets/")


def test_it_leaves_nothing_when_it_has_forgotten_itself(scene: Scene) -> None:
    rehearse(scene)
    others = [key for key in scene.keys("") if not key.startswith("rehearsals/")]
    places.forget(scene.repository(), COPY)
    places.forget(scene.repository(), COPY)
    assert scene.keys("") == others


def test_another_attempt_starts_from_the_copy_again(scene: Scene) -> None:
    rehearse(scene)
    places.forget(scene.repository(), COPY)
    rehearse(scene)
    assert scene.keys(f"rehearsals/{COPY}/lineages/1/main/offsets/")


def test_what_was_left_of_it_goes_with_the_copy(scene: Scene) -> None:
    rehearse(scene)
    carrier(scene).dispose(COPY)
    assert scene.keys("rehearsals") == []
    assert scene.keys(f"snapshots/{COPY}") == []
    assert scene.keys("lineages/1/main/offsets/")


def test_that_of_another_copy_stays(scene: Scene) -> None:
    rehearse(scene)
    carrier(scene).dispose("up-2-copy")
    assert scene.keys("rehearsals")


def test_a_process_that_is_no_rehearsal_removes_nothing() -> None:
    with pytest.raises(ValueError, match="no rehearsal"):
        places.forget_own(driver_config("orders", "local:///main.py", PLACE), None)
