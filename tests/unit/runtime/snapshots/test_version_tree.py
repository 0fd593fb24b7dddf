"""Which snapshot one follows, and of which version it is, across rollbacks and forks. The stores are in memory."""

import json
import threading
from typing import Any

import pytest

from tidegate_spark.contract.protocol import StartFrom, Storage
from tidegate_spark.contract.snapshot_protocol import AdoptOrder, SnapshotOrder, SnapshotReport
from tidegate_spark.driver.starting_point import Filler
from tidegate_spark.snapshots import manifest
from tidegate_spark.snapshots.copying import Copiers, Progress
from tidegate_spark.snapshots.lineages import upgrade_pin
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_spark.snapshots.service.operations import Carrier
from tidegate_testing.driver_process import driver_config
from tidegate_testing.fake_checkpoint import LAYOUT
from tidegate_testing.memory_store import MemoryStore
from tidegate_testing.snapshot_scenes import Scene

COPY, PIN = "up-1-copy", "up-1"
PLACE = Storage("s3://here/apps/orders")


def quiet(progress: Progress) -> None:
    pass


def carrier(scene: Scene, repository: SnapshotRepository | None = None) -> Carrier:
    config = driver_config("orders", "main", PLACE, lineage=scene.lineage, epoch=3)
    return Carrier(config, lambda: repository or scene.repository(), "4.1.0", LAYOUT, lambda: 1000.0, Copiers(1))


def take(scene: Scene, name: str, **fields: Any) -> SnapshotReport:
    scene.batches()
    return carrier(scene).take(SnapshotOrder(name, manual=True, **fields), quiet)


def fill(config: Any, own: SnapshotRepository, origin: SnapshotRepository) -> None:
    Filler(config, config.start_from, own, origin, threading.Event(), lambda *_: None, Copiers(1), LAYOUT).fill()


def upgrade(scene: Scene, pin: str = PIN) -> None:
    """Copy the state while the previous version runs, and keep what it ends with."""
    copy = f"{pin}-copy"
    carrier(scene).take(SnapshotOrder(copy, holders=(copy,)), quiet)
    scene.batches()
    carrier(scene).take(upgrade_pin.order_of(scene.repository(), pin, scene.lineage, "shop:1", LAYOUT), quiet)


def roll_back(scene: Scene, pin: str = PIN) -> None:
    """Go back to the pin, in the next lineage; the version that failed has committed something meanwhile."""
    scene.batches()
    start = StartFrom(PLACE, pin, f"rollback-{pin}", lineage=scene.lineage, image="shop:1")
    scene.lineage += 1
    config = driver_config("orders", "main", PLACE, lineage=scene.lineage, epoch=4, start_from=start)
    fill(config, scene.repository(), scene.repository())


def parents(scene: Scene) -> dict[str, str]:
    return {name: known.parent for name, known in scene.repository().read().snapshots.items()}


# --- which one it follows ---


def test_what_an_upgrade_keeps_for_itself_is_left_out_of_the_tree() -> None:
    scene = Scene()
    take(scene, "monday")
    upgrade(scene)
    take(scene, "tuesday")
    assert parents(scene) == {"monday": "", COPY: "monday", PIN: "monday", "tuesday": "monday"}


def test_after_a_rollback_the_first_one_follows_the_last_one_before_the_upgrade() -> None:
    scene = Scene()
    take(scene, "monday")
    upgrade(scene)
    take(scene, "of-the-version-that-failed")
    roll_back(scene)
    # Those go with the next upgrade: what the tree says does not hang on them.
    for name in (COPY, PIN):
        carrier(scene).dispose(name)
    report = take(scene, "tuesday")
    assert (report.lineage, report.parent) == (2, "monday")
    assert take(scene, "wednesday").parent == "tuesday"


def test_a_rollback_right_after_another_one_leads_back_to_the_same() -> None:
    scene = Scene()
    take(scene, "monday")
    upgrade(scene)
    roll_back(scene)
    upgrade(scene, "up-2")
    roll_back(scene, "up-2")
    assert (take(scene, "tuesday").parent, scene.lineage) == ("monday", 3)


def test_a_pin_that_is_completed_late_does_not_follow_what_is_rolled_back_with_it() -> None:
    scene = Scene()
    take(scene, "monday")
    upgrade_pin.order_of(scene.repository(), PIN, 1, "shop:1", LAYOUT)
    take(scene, "of-the-version-that-failed")
    roll_back(scene)
    assert (parents(scene)[PIN], take(scene, "tuesday").parent) == ("monday", "monday")


def test_after_a_rollback_of_what_nobody_has_a_snapshot_of_there_is_no_parent() -> None:
    scene = Scene()
    scene.batches()
    upgrade(scene)
    roll_back(scene)
    assert take(scene, "monday").parent == ""


class Fork:
    """Application ``variant``, which began with snapshot ``monday`` of the scene's application."""

    def __init__(self) -> None:
        origin = Scene()
        take(origin, "monday")
        place = Storage("s3://here/apps/variant")
        start = StartFrom(PLACE, "monday", "fork-uid-2")
        self.config = driver_config("variant", "main", place, start_from=start)
        self.repository = SnapshotRepository(MemoryStore(origin.buckets, "here"), "apps/variant", lambda seconds: None)
        fill(self.config, self.repository, origin.repository())

    def take(self, name: str) -> SnapshotReport:
        carrier = Carrier(self.config, lambda: self.repository, "4.1.0", LAYOUT, lambda: 1000.0, Copiers(1))
        return carrier.take(SnapshotOrder(name), quiet)


def test_the_first_one_of_a_fork_follows_another_applications_and_says_whose() -> None:
    fork = Fork()
    assert fork.take("first").parent == "tests/orders/monday"
    assert fork.take("second").parent == "first"


@pytest.mark.parametrize("mark", [b"{", b"[]", b'{"snapshot": "monday"}', b'{"parent": 3}'])
def test_a_beginning_that_does_not_say_its_parent_keeps_no_snapshot_from_being_taken(mark: bytes) -> None:
    fork = Fork()
    fork.repository.store.put(fork.repository.key("lineages", "1.json"), mark)
    assert fork.take("first").parent == ""


# --- of which version it is ---

VERSION = {"spec_hash": "0123456789abcdef", "spec": '{"application.image":"shop:1"}'}


def test_the_version_is_in_the_manifest_and_the_reports_have_its_hash() -> None:
    scene = Scene()
    report = take(scene, "monday", **VERSION)
    assert (report.spec_hash, report.spec) == (VERSION["spec_hash"], "")
    written = json.loads(scene.content("snapshots/monday/manifest.json"))
    assert (written["spec_hash"], written["spec"]) == (VERSION["spec_hash"], VERSION["spec"])


def test_an_import_learns_the_version_from_the_manifest() -> None:
    scene = Scene()
    take(scene, "monday", **VERSION)
    report = carrier(scene).adopt(AdoptOrder("import-1", "monday", "import-uid"))
    assert (report.spec_hash, report.spec) == (VERSION["spec_hash"], VERSION["spec"])


def test_a_manifest_of_before_says_nothing_of_it() -> None:
    scene = Scene()
    take(scene, "monday", **VERSION)
    written = json.loads(scene.content("snapshots/monday/manifest.json"))
    older = {field: value for field, value in written.items() if field not in VERSION}
    read = manifest.parse(json.dumps(older).encode(), "monday/manifest.json")
    assert (read.spec_hash, read.spec) == ("", "")
