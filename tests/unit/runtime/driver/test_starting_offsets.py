"""A lineage that continues with a snapshot's state and with other offsets of topics. The stores are in memory."""

import dataclasses
import json
import threading

import pytest

from tidegate_spark.contract.named_offsets import with_offsets
from tidegate_spark.contract.protocol import StartFrom, Storage, topic_offsets
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.driver.starting_point import Filler
from tidegate_spark.snapshots.copying import Copiers
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_spark.storage.s3_client import FaultError
from tidegate_testing.driver_process import driver_config
from tidegate_testing.fake_checkpoint import LAYOUT, content_of
from tidegate_testing.memory_store import Call, MemoryStore
from tidegate_testing.snapshot_scenes import Scene

ENDED = b'v1\n{"batchWatermarkMs":7}\n{"orders":{"0":200,"1":30},"bills":{"0":9}}\n-\n{"logOffset":4}'
NEW = '{"orders":{"0":0}}'
MOVED = b'v1\n{"batchWatermarkMs":7}\n{"orders":{"0":0},"bills":{"0":9}}\n-\n{"logOffset":4}'
ROOT = "apps/variant/lineages/1/main"


class CutOffError(Exception):
    """The process was killed here."""


def snapshot_of(ended: bytes) -> Scene:
    """Return an application with snapshot ``a`` of a batch that ended with these offsets."""
    scene = Scene()
    scene.batches(3)
    scene.store().put(f"{scene.root()}/offsets/2", ended)
    scene.take("a")
    return scene


def fill(scene: Scene, offsets: str, cut_at: int = -1) -> list[str]:
    """Fill lineage 1 of application ``variant``, or be killed at a write; return what is told."""
    writes, reported = list[str](), list[str]()

    def watch(call: Call) -> None:
        if call.writes and not call.done:
            if len(writes) == cut_at:
                raise CutOffError
            writes.append(call.key)

    start_from = StartFrom(Storage("s3://here/apps/orders"), "a", "fork-uid-2", offsets=offsets)
    config = driver_config("variant", "local:///main.py", Storage("s3://here/apps/variant"), start_from=start_from)
    own = SnapshotRepository(MemoryStore(scene.buckets, "here", watch), "apps/variant", lambda seconds: None)
    report = lambda reason, message: reported.append(message)  # noqa: E731
    Filler(config, start_from, own, scene.repository(), threading.Event(), report, Copiers(1)).fill()
    return reported


def lineage(scene: Scene) -> dict[str, bytes]:
    return content_of(scene.store(), ROOT, 2)


def mark(scene: Scene) -> object:
    return scene.buckets.read("here", "apps/variant/lineages/1.json")


def test_only_the_offsets_of_the_topics_that_are_named_differ_from_the_snapshot() -> None:
    scene = snapshot_of(ENDED)
    reported = fill(scene, NEW)
    original = content_of(scene.store(), scene.root(), 2)
    assert lineage(scene).pop("offsets/2") == MOVED
    differ = {path for path, body in lineage(scene).items() if body != original[path]}
    assert differ == {"offsets/2", "metadata"}
    assert "Offsets of 'orders' are those of spec.startFrom.startingOffsets." in reported[0]


def go_on(offsets: str, *, forgotten: bool = False) -> tuple[Scene, list[str]]:
    """Have an application go on in lineage 2 from the end of the first one; return what is told as well."""
    scene, reported = Scene(), list[str]()
    scene.batches(3)
    scene.store().put(f"{scene.root()}/offsets/2", ENDED)
    own = Storage("s3://here/apps/orders")
    start_from = StartFrom(own, "pin", "rollback-pin", lineage=1, offsets=offsets)
    config = driver_config("orders", "local:///main.py", own, start_from=start_from, lineage=2)
    repository, report = scene.repository(), lambda reason, message: reported.append(message)
    filler = Filler(config, start_from, repository, repository, threading.Event(), report, Copiers(1), LAYOUT)
    dataclasses.replace(filler, forgotten=forgotten).fill()
    return scene, reported


OWN_ROOT = "apps/orders/lineages/2/main"


@pytest.mark.parametrize("forgotten", [False, True])
def test_an_application_goes_on_from_its_own_end_with_other_offsets_and_the_lineage_before_stays(
    forgotten: bool,
) -> None:
    scene, reported = go_on(NEW, forgotten=forgotten)
    assert content_of(scene.store(), OWN_ROOT, 2)["offsets/2"] == MOVED
    assert content_of(scene.store(), scene.root(), 2)["offsets/2"] == ENDED
    assert "Offsets of 'orders' are those of spec.upgrade.startingOffsets." in reported[0]


def test_it_does_not_with_a_topic_that_no_query_reads() -> None:
    with pytest.raises(
        FaultError, match=r"spec\.upgrade\.startingOffsets.*no query of pin has read 'other'"
    ) as refused:
        go_on('{"other":{"0":0}}')
    assert refused.value.fault.reason is Reason.SNAPSHOT_UNUSABLE


def test_where_nobody_could_roll_that_back_any_more_it_goes_on_with_the_offsets_it_had() -> None:
    scene, reported = go_on('{"other":{"0":0}}', forgotten=True)
    assert content_of(scene.store(), OWN_ROOT, 2)["offsets/2"] == ENDED
    assert "startingOffsets" not in reported[0]


def test_sources_with_names_have_them_too() -> None:
    scene = snapshot_of(b'v2\n{}\n0:{"bills":{"0":9}}\nclicks:{"orders":{"0":200}}')
    fill(scene, NEW)
    assert lineage(scene)["offsets/2"] == b'v2\n{}\n0:{"bills":{"0":9}}\nclicks:{"orders":{"0":0}}'


def test_it_is_the_same_wherever_it_was_cut_off_and_nothing_counts_before() -> None:
    cuts = 0
    while True:
        scene = snapshot_of(ENDED)
        try:
            fill(scene, NEW, cut_at=cuts)
            break
        except CutOffError:
            cuts += 1
        assert mark(scene) is None or lineage(scene)["offsets/2"] == MOVED
        fill(scene, NEW)
        assert lineage(scene)["offsets/2"] == MOVED
    assert cuts > 5


def test_a_lineage_that_was_filled_is_not_moved_back_by_a_later_launch() -> None:
    scene = snapshot_of(ENDED)
    fill(scene, NEW)
    scene.store().put(f"{ROOT}/offsets/2", b"as the application left it")
    fill(scene, NEW)
    found = scene.store().get(f"{ROOT}/offsets/2")
    assert found is not None
    assert found[0] == b"as the application left it"


def test_a_topic_that_no_query_has_read_is_refused_before_anything_is_written() -> None:
    scene = snapshot_of(ENDED)
    with pytest.raises(FaultError) as refused:
        fill(scene, '{"orders":{"0":0},"oders":{"0":0}}')
    assert refused.value.fault.reason is Reason.SNAPSHOT_UNUSABLE
    assert "has read 'oders' (topics that were read: 'bills', 'orders')" in refused.value.fault.message
    assert mark(scene) is None
    assert not list(scene.store().list(ROOT))


def test_without_offsets_the_snapshots_own_count() -> None:
    scene = snapshot_of(ENDED)
    fill(scene, "")
    assert lineage(scene)["offsets/2"] == ENDED


@pytest.mark.parametrize(
    "text",
    [
        *("{", "7", "{}", '{"t":{}}', '{"t":[0]}', '{"t":{"0":-1}}', '{"t":{"0":true}}'),
        *('{"t":{"\u0663":1}}', '{"t":{"0":9223372036854775808}}'),
        pytest.param('{"a":' + "[" * 30_000 + "]" * 30_000 + "}", id="30,000 brackets"),
    ],
)
def test_what_is_no_offset_for_each_partition_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="must be JSON such as"):
        topic_offsets(text)


@pytest.mark.parametrize("logged", ["-", "", '{"logOffset":4}', '{"bills":{"0":9}}', json.dumps({"seq": 3})])
def test_another_source_goes_on_where_it_was(logged: str) -> None:
    assert with_offsets(logged, topic_offsets(NEW)) == logged
