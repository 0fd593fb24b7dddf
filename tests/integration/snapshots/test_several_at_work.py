"""Several at work on one application's snapshots, on a real S3 server, while its checkpoint is written and cleaned up.

The checkpoint is a simple one, so that what each batch consisted of is known.
"""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from devcluster import s3
from devcluster.site import LocalSite
from tidegate_spark.contract.protocol import Storage
from tidegate_spark.snapshots import collect, restore, take
from tidegate_spark.snapshots.copying import Copiers
from tidegate_spark.snapshots.manifest import Application, Manifest
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_spark.snapshots.restore import Origin, Target
from tidegate_spark.snapshots.take import Request
from tidegate_spark.storage.s3 import reach
from tidegate_spark.storage.s3_client import Credentials
from tidegate_testing import fake_checkpoint
from tidegate_testing.fake_checkpoint import LAYOUT

BUCKET = "several"
NOW = 1000.0


@pytest.fixture
def objects() -> Iterator[Callable[[], SnapshotRepository]]:
    """Return what gives each actor a client of its own."""
    with LocalSite() as site:
        s3.up(site)
        s3.ensure_bucket(site, BUCKET)
        place = Storage(f"s3://{BUCKET}", site.s3_endpoint_host, s3.REGION, path_style_access=True)
        keys = Credentials(site.s3_keys.access_key, site.s3_keys.secret_key)
        yield lambda: SnapshotRepository(reach(place, keys, 4), "apps/orders")


def test_what_is_complete_is_whole_and_in_the_end_nothing_else_is_left(
    objects: Callable[[], SnapshotRepository],
) -> None:
    mine = objects()
    root = mine.lineage_key(1, "main")
    truth: dict[int, dict[str, bytes]] = {}
    stop = threading.Event()

    def write() -> None:
        while not stop.is_set():
            fake_checkpoint.write_batch(own.store, root, note=truth.__setitem__)
            fake_checkpoint.clean(own.store, root, keep=3)

    def take_one(name: str) -> Manifest:
        request = Request(name, Application("tests", "orders", "uid", 1))
        return take.take(objects(), LAYOUT, request, NOW, Copiers(4))

    def collect_all() -> None:
        others = objects()
        while not stop.is_set():
            collect.collect(others, NOW)

    own = objects()
    fake_checkpoint.write_batch(own.store, root, note=truth.__setitem__)
    with ThreadPoolExecutor(6) as pool:
        background = [pool.submit(write), pool.submit(collect_all)]
        try:
            # Each by two at once.
            made = list(pool.map(take_one, [f"s{number // 2}" for number in range(12)]))
        finally:
            stop.set()
        for future in background:
            future.result()
    assert [made[2 * number] == made[2 * number + 1] for number in range(6)] == [True] * 6
    for lineage, name in enumerate(mine.read().ready(), 2):
        manifest = restore.restore(Origin(mine, name), Target(mine, lineage), "test")
        assert content(mine, lineage) == truth[manifest.queries["main"].batch]
        restore.release(Origin(mine, name), "test")
    for number in range(5):
        collect.dispose(mine, f"s{number}")
    collect.collect(mine, NOW)
    kept = {mine.key(file.key) for file in made[-1].files} | {mine.catalog_key, mine.manifest_key("s5")}
    there = {entry.key for place in ("snapshots", "objects") for entry in mine.store.list(f"apps/orders/{place}/")}
    assert there == kept
    assert restore.damages(Origin(mine, "s5")) == []


def content(objects: SnapshotRepository, lineage: int) -> dict[str, bytes]:
    root = objects.lineage_key(lineage, "main") + "/"
    found = {entry.key[len(root) :]: objects.store.get(entry.key) for entry in objects.store.list(root)}
    return {path: got[0] for path, got in found.items() if got}
