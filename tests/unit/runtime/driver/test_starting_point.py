"""A lineage that is to start from a snapshot, starts from it or not at all. The stores are in memory."""

import json
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from tidegate_spark.contract.protocol import StartFrom, Storage
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.rehearsal_protocol import Rehearsal
from tidegate_spark.control_log.log import ControlLog
from tidegate_spark.driver.origin_credentials import credentials_of_origin, is_apart
from tidegate_spark.driver.starting_point import Filler, StoppedError, fill_lineage, start_empty
from tidegate_spark.snapshots import catalog, collect
from tidegate_spark.snapshots.copying import Copiers
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_spark.storage.s3_client import Credentials, FaultError
from tidegate_testing.control_log import message
from tidegate_testing.driver_process import driver_config
from tidegate_testing.fake_checkpoint import LAYOUT, content_of
from tidegate_testing.memory_store import Buckets, Call, MemoryStore
from tidegate_testing.snapshot_scenes import Scene
from tidegate_testing.waiting import wait_for

HOLDER = "fork-uid-2"
MARK = "apps/variant/lineages/1.json"
ROOT = "apps/variant/lineages/1/main"


class Fork:
    """Application ``variant``, which is to start from snapshot ``a`` of the scene's application."""

    def __init__(self, batches: int = 3) -> None:
        self.scene, self.notices = Scene(), list[tuple[str, str]]()
        self.scene.batches(batches)
        self.made = self.scene.take("a", image="shop:1")
        self.stopping = threading.Event()

    def fill(
        self,
        watch: Callable[[Call], None] = lambda call: None,
        origin_watch: Callable[[Call], None] = lambda call: None,
        **fields: Any,
    ) -> None:
        place = Storage("s3://here/apps/variant")
        start_from = StartFrom(Storage("s3://here/apps/orders"), fields.pop("snapshot", "a"), HOLDER)
        pause = fields.pop("release_pause", 30.0)
        config = driver_config("variant", "local:///main.py", place, start_from=start_from, **fields)
        own = SnapshotRepository(MemoryStore(self.scene.buckets, "here", watch), "apps/variant", lambda seconds: None)
        origin = self.scene.repository(origin_watch)
        Filler(config, start_from, own, origin, self.stopping, self._note, Copiers(1), release_pause=pause).fill()

    def _note(self, reason: str, message: str) -> None:
        self.notices.append((reason, message))

    @property
    def content(self) -> dict[str, bytes]:
        return content_of(self.scene.store(), ROOT, 2)

    @property
    def holders(self) -> frozenset[str]:
        return self.scene.repository().read().snapshots["a"].holders

    def mark(self) -> Any:
        stored = self.scene.buckets.read("here", MARK)
        return json.loads(stored.body) if stored else None


def refusal(attempt: Callable[[], None]) -> FaultError:
    with pytest.raises(FaultError) as caught:
        attempt()
    return caught.value


def no_answer(call: Call) -> None:
    raise EndpointConnectionError(endpoint_url="http://store")


def test_the_lineage_holds_the_snapshot_and_another_query_id() -> None:
    fork = Fork()
    fork.fill()
    original = content_of(fork.scene.store(), fork.scene.root(), 2)
    assert {path: body for path, body in fork.content.items() if path != "metadata"} == {
        path: body for path, body in original.items() if path != "metadata"
    }
    assert fork.content["metadata"] != original["metadata"]


def test_where_the_original_writes_is_known_before_the_lineage_counts_as_filled() -> None:
    fork, writes = Fork(), list[str]()
    origin = fork.scene.repository()
    origin.store.put(origin.key("outputs.json"), b'{"application":"s3://here/apps/orders","queries":{}}')
    fork.fill(watch=lambda call: writes.append(call.key) if call.writes and call.done else None)
    assert writes.index("apps/variant/origin.json") < writes.index(MARK)
    stored = fork.scene.buckets.read("here", "apps/variant/origin.json")
    assert stored is not None
    assert json.loads(stored.body)["application"] == "s3://here/apps/orders"


HERE, ELSEWHERE = Storage("s3://here/apps/orders", "http://minio.east:9000"), "http://minio.west:9000"


def paused_with_snapshot() -> Scene:
    """Return an application that was paused by its first message, with snapshot ``a`` of the batch after it."""
    scene = Scene()
    log = ControlLog(scene.repository())
    log.load()
    log.append([message("pause")])
    scene.batches(1)
    scene.store().put(f"{scene.root()}/offsets/0", b'v1\n{}\n{"tidegate-control": 1}')
    scene.take("a")
    return scene


def is_paused(scene: Scene) -> bool:
    log = ControlLog(scene.repository())
    log.load()
    return log.state_at(log.last).paused


def fill_same_uri(own: Scene, origin: Scene, start_from: StartFrom, lineage: int) -> None:
    config = driver_config("orders", "local:///main.py", HERE, start_from=start_from, lineage=lineage)
    stopping = threading.Event()
    Filler(
        config, start_from, own.repository(), origin.repository(), stopping, lambda *reported: None, Copiers(1), LAYOUT
    ).fill()


def test_a_snapshot_of_the_same_uri_in_another_store_is_another_applications() -> None:
    origin, own = paused_with_snapshot(), Scene()
    fill_same_uri(own, origin, StartFrom(Storage(HERE.uri, ELSEWHERE), "a", HOLDER), 1)
    assert is_paused(origin)
    assert not is_paused(own)
    # It starts where the snapshot is. Nothing of its own was rolled back.
    log = ControlLog(own.repository())
    log.load()
    assert log.last == 1


@pytest.mark.parametrize(
    "start_from",
    [
        StartFrom(HERE, "a", HOLDER),
        StartFrom(Storage(HERE.uri, "HTTP://Minio.East:9000/"), "a", HOLDER),
        StartFrom(Storage(HERE.uri, ELSEWHERE), "a", HOLDER, lineage=1),
    ],
    ids=["the same place", "in another spelling", "a rollback from before the endpoint was edited"],
)
def test_a_snapshot_of_the_own_place_goes_on_with_what_was_in_force_also_a_pause(start_from: StartFrom) -> None:
    scene = paused_with_snapshot()
    fill_same_uri(scene, scene, start_from, 2)
    assert is_paused(scene)
    log = ControlLog(scene.repository())
    log.load()
    assert log.last == 2


def test_a_rehearsal_takes_nothing_along() -> None:
    fork = Fork()
    origin = fork.scene.repository()
    origin.store.put(origin.key("outputs.json"), b'{"application":"s3://here/apps/orders","queries":{}}')
    fork.fill(rehearsal=Rehearsal(3, 60))
    assert fork.scene.buckets.read("here", "apps/variant/origin.json") is None


def test_the_snapshot_is_held_while_it_is_copied_and_released_after_it() -> None:
    fork, held = Fork(), list[frozenset[str]]()
    fork.fill(lambda call: held.append(fork.holders) if call.verb == "copy" else None)
    assert set(held) == {frozenset({HOLDER})}
    assert fork.holders == frozenset()
    assert fork.mark() == {
        "snapshot": "a",
        "origin": "s3://here/apps/orders",
        "batches": {"main": 2},
        "parent": "tests/orders/a",
        "released": True,
    }


def test_a_lineage_that_was_filled_is_not_touched_again_whatever_became_of_the_snapshot() -> None:
    fork = Fork()
    fork.fill()
    collect.dispose(fork.scene.repository(), "a")
    collect.collect(fork.scene.repository(), 2000.0)
    fork.scene.store().put(f"{ROOT}/commits/3", b"its own")
    calls: list[Call] = []
    fork.fill(calls.append, no_answer)
    assert [call for call in calls if call.writes] == []


def test_wherever_an_attempt_ends_the_next_one_finishes() -> None:
    requests: list[Call] = []
    Fork().fill(requests.append)
    for number in range(len(requests)):
        fork, left = Fork(), [number]

        def watch(call: Call, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] < 0:
                no_answer(call)

        attempt = partial(fork.fill, watch)
        assert refusal(attempt).fault.reason is Reason.STORAGE_UNAVAILABLE
        fork.fill()
        assert fork.mark()["released"]
        assert fork.holders == frozenset()
        assert fork.content.keys() == content_of(fork.scene.store(), fork.scene.root(), 2).keys()


def test_a_stop_ends_it_in_the_middle_without_a_mark() -> None:
    fork = Fork()
    fork.stopping.set()
    with pytest.raises(StoppedError):
        fork.fill()
    assert fork.mark() is None
    fork.stopping.clear()
    fork.fill()
    assert fork.mark() is not None


def test_a_snapshot_that_is_not_there_is_refused_and_nothing_written() -> None:
    fork = Fork()
    fault = refusal(lambda: fork.fill(snapshot="b")).fault
    assert fault.reason is Reason.SNAPSHOT_UNUSABLE
    assert "there is no snapshot b" in fault.message
    assert "spec.startFrom" in fault.message
    assert fork.scene.buckets.keys("here", "apps/variant/") == []


def test_a_snapshot_that_was_disposed_of_is_refused_and_nothing_written() -> None:
    fork = Fork()
    collect.dispose(fork.scene.repository(), "a")
    fault = refusal(fork.fill).fault
    assert (fault.reason, "there is no snapshot a" in fault.message) == (Reason.SNAPSHOT_UNUSABLE, True)
    assert fork.scene.buckets.keys("here", "apps/variant/") == []


def test_a_damaged_snapshot_is_refused_with_the_objects_name() -> None:
    fork = Fork()
    key = f"apps/orders/{fork.made.files[0].key}"
    fork.scene.store().delete([key])
    fault = refusal(fork.fill).fault
    assert fault.reason is Reason.SNAPSHOT_UNUSABLE
    assert key in fault.message


def test_a_lineage_that_holds_something_else_is_refused() -> None:
    fork = Fork()
    fork.scene.store().put(f"{ROOT}/commits/9", b"whose?")
    fault = refusal(fork.fill).fault
    assert fault.reason is Reason.SNAPSHOT_UNUSABLE
    assert "commits/9" in fault.message


def test_a_storage_of_the_snapshot_that_is_away_is_waited_for_and_called_so() -> None:
    fork = Fork()
    fault = refusal(lambda: fork.fill(origin_watch=no_answer)).fault
    assert fault.reason is Reason.STORAGE_UNAVAILABLE
    assert fault.message.startswith("The storage of the snapshot in spec.startFrom: ")


def test_a_snapshot_that_cannot_be_released_now_is_released_by_the_next_start() -> None:
    fork = Fork()

    def watch(call: Call) -> None:
        if fork.mark() is not None:
            no_answer(call)

    fork.fill(origin_watch=watch)
    assert fork.holders == {HOLDER}
    assert not fork.mark()["released"]
    fork.fill()
    assert fork.holders == frozenset()
    assert fork.mark()["released"]


def test_a_snapshot_that_cannot_be_released_now_is_released_while_the_driver_runs() -> None:
    fork, down = Fork(), threading.Event()

    def watch(call: Call) -> None:
        if fork.mark() is not None and not down.is_set():
            down.set()
            no_answer(call)

    fork.fill(origin_watch=watch, release_pause=0.01)
    wait_for("the release", lambda: fork.holders == frozenset(), 60, 0.01)


def test_the_user_is_told_the_batches() -> None:
    fork = Fork()
    fork.fill()
    assert fork.notices == [
        ("StartedFromSnapshot", "Started from snapshot a of s3://here/apps/orders: 'main' after batch 2.")
    ]


def test_a_snapshot_held_by_us_is_not_disposed_of_before_the_lineage_is_filled() -> None:
    fork = Fork()
    with pytest.raises(FaultError):
        fork.fill(lambda call: no_answer(call) if call.verb == "copy" else None)
    with pytest.raises(catalog.HeldError, match=HOLDER):
        collect.dispose(fork.scene.repository(), "a")


# --- other credentials for the snapshot ---

OWN, OTHERS = Credentials("own", "secret-1"), Credentials("others", "secret-2")


def with_secret(name: str = "far-keys") -> StartFrom:
    return StartFrom(Storage("s3://here/apps/orders"), "a", HOLDER, credentials_secret=name)


def keys_in(folder: Path) -> str:
    (folder / "AWS_ACCESS_KEY_ID").write_text("others")
    (folder / "AWS_SECRET_ACCESS_KEY").write_text("secret-2")
    return str(folder)


def test_a_snapshot_without_a_secret_of_its_own_is_reached_as_everything_else() -> None:
    assert credentials_of_origin(with_secret(""), OWN, "/nowhere") is OWN
    assert [is_apart(OWN, OWN), is_apart(None, None), is_apart(OWN, OTHERS), is_apart(None, OTHERS)] == [
        False,
        False,
        True,
        True,
    ]


def test_an_imported_one_is_reached_with_its_own_secret_which_is_waited_for(tmp_path: Path) -> None:
    with pytest.raises(FaultError) as missing:
        credentials_of_origin(with_secret(), OWN, str(tmp_path))
    assert missing.value.fault.reason is Reason.CREDENTIALS_MISSING
    assert "'far-keys' of the imported snapshot" in missing.value.fault.message
    assert credentials_of_origin(with_secret(), OWN, keys_in(tmp_path)) == OTHERS


def test_the_secret_may_go_when_the_lineage_was_filled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fork, reached, answers = Fork(), list[tuple[str, bool]](), True

    def watch(call: Call) -> None:
        if not answers:
            no_answer(call)

    def reach(place: Storage, credentials: Credentials | None, *, apart: bool = False) -> SnapshotRepository:
        reached.append((credentials.access_key if credentials else "", apart))
        store = MemoryStore(fork.scene.buckets, place.bucket, watch)
        return SnapshotRepository(store, place.prefix, lambda seconds: None)

    monkeypatch.setattr("tidegate_spark.driver.starting_point.reach_repository", reach)
    monkeypatch.setenv("TIDEGATE_ORIGIN_CREDENTIALS_DIRECTORY", str(tmp_path))
    config = driver_config("variant", "main", Storage("s3://here/apps/variant"), start_from=with_secret())

    def start() -> None:
        fill_lineage(config, OWN, fork.stopping, fork._note)

    with pytest.raises(FaultError):
        start()
    keys_in(tmp_path)
    start()
    assert fork.mark()["released"]
    assert reached[-2:] == [("own", False), ("others", True)]
    (tmp_path / "AWS_SECRET_ACCESS_KEY").unlink()
    start()
    # Whether it was filled is not known while the application's own storage does not answer.
    answers = False
    with pytest.raises(FaultError) as silent:
        start()
    assert silent.value.fault.reason is Reason.STORAGE_UNAVAILABLE


def test_beside_a_lineage_that_starts_empty_it_says_so_and_what_an_attempt_left_there_is_gone() -> None:
    buckets = Buckets()
    store = MemoryStore(buckets, "here", lambda call: None)
    own = SnapshotRepository(store, "apps/orders", lambda seconds: None)
    store.put("apps/orders/repartitions/3.json", b"{}")
    store.put("apps/orders/lineages/3/main/commits/4", b"")
    assert start_empty(own, 3)
    assert not start_empty(own, 3)
    assert buckets.keys("here") == ["apps/orders/lineages/3.empty"]
