"""Whether a snapshot is whole, read back to its last byte. The store is in memory."""

import contextlib
import io
import zipfile
from dataclasses import replace
from typing import Any

import pytest

from tidegate_spark.contract.protocol import Fault, Storage
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.snapshots import collect
from tidegate_spark.snapshots.catalog import DisposedError, UnknownSnapshotError
from tidegate_spark.snapshots.checkpoint.checkpoint import UnreadableCheckpointError
from tidegate_spark.snapshots.checkpoint.compressed import CodecMissingError
from tidegate_spark.snapshots.copying import Copiers, Progress
from tidegate_spark.snapshots.manifest import digest
from tidegate_spark.snapshots.restore import Origin
from tidegate_spark.snapshots.service.order_faults import ALWAYS, trouble_of
from tidegate_spark.snapshots.verify import Verification, _unpack, verify
from tidegate_spark.storage.s3_client import FaultError
from tidegate_spark.storage.store import PART_BYTES, Digester, Entry, MismatchError, NewerStorageError
from tidegate_testing.fake_checkpoint import LAYOUT, FakeLayout
from tidegate_testing.memory_store import Buckets, Call
from tidegate_testing.snapshot_scenes import Scene, Watch


def taken(**fields: Any) -> Scene:
    scene = Scene(**fields)
    scene.batches(4)
    scene.take("a")
    return scene


def verified(scene: Scene, watch: Watch = lambda call: None, copiers: Copiers = Copiers(1)) -> Verification:  # noqa: B008 - a value
    return verify(Origin(scene.repository(watch), "a"), LAYOUT, copiers)


def spoil(scene: Scene, part: str, body: bytes) -> str:
    """Put another content in the place of one of the snapshot's files; return its key."""
    key = next(key for key in scene.keys("") if part in key and ("snapshots/a/" in key or "objects/" in key))
    scene.store().put(f"apps/orders/{key}", body)
    return key


def same_size(scene: Scene, part: str) -> bytes:
    key = next(key for key in scene.keys("") if part in key and ("snapshots/a/" in key or "objects/" in key))
    content = scene.content(key)
    return bytes([content[0] ^ 1]) + content[1:]


@pytest.mark.parametrize("number", [1, 4])
def test_what_is_whole_was_read_to_the_last_byte(number: int) -> None:
    scene, reported, read = taken(), list[Progress](), set[str]()

    def watch(call: Call) -> None:
        if call.verb == "get":
            read.add(call.key.removeprefix("apps/orders/"))

    found = verified(scene, watch, Copiers(number, reported.append))
    kept = {key for key in scene.keys("") if key.startswith(("objects/", "snapshots/a/files/"))}
    assert kept <= read
    assert (found.files, found.unproven, found.problems) == (len(kept), 0, ())
    assert (reported[-1].files, reported[-1].bytes) == (len(kept), found.bytes)


def test_a_file_that_is_gone_is_named() -> None:
    scene = taken()
    key = spoil(scene, "objects/", b"")
    scene.store().delete([f"apps/orders/{key}"])
    assert key in verified(scene).problems[0]


@pytest.mark.parametrize("part", ["objects/", "files/main/state", "files/main/offsets"])
def test_a_file_with_another_content_of_the_same_size_is_found(part: str) -> None:
    scene = taken()
    key = spoil(scene, part, same_size(scene, part))
    (problem,) = verified(scene).problems
    assert key in problem


def test_where_etags_are_no_hashes_it_is_said_what_could_not_be_compared() -> None:
    scene = taken(buckets=Buckets(opaque=True))
    found = verified(scene)
    assert (found.unproven, found.problems) == (found.files, ())


def test_what_is_no_checkpoint_is_found_though_it_is_what_was_published() -> None:
    scene = Scene(buckets=Buckets(opaque=True))
    scene.batches(4)
    made = scene.take("a")
    (state,) = [file for file in made.files if file.path.startswith("state/")]
    body = scene.content(state.key)
    stored = scene.buckets.content["here"][f"apps/orders/{state.key}"]
    scene.buckets.content["here"][f"apps/orders/{state.key}"] = type(stored)(
        b"?" * len(body), stored.etag, stored.modified
    )
    (problem,) = verified(scene).problems
    assert problem == f"query main: {state.path} says nothing"


def test_a_manifest_that_was_tampered_with_is_found() -> None:
    scene = taken()
    scene.store().put("apps/orders/snapshots/a/manifest.json", b"{}")
    assert "is not the manifest that was published" in verified(scene).problems[0]


def test_a_manifest_of_a_newer_tidegate_is_not_called_damaged_and_nothing_beside_it_is_deleted() -> None:
    scene, key = taken(), "apps/orders/snapshots/a/manifest.json"
    body = b'{"version": 2, "files": "of another kind"}'
    repository = scene.repository()
    repository.store.put(f"{repository.prefix}/snapshots/a/of-the-newer-one", b"x")
    repository.store.put(key, body)
    known = repository.read().snapshots["a"]
    repository.change(lambda it: replace(it, snapshots={"a": replace(known, digest=digest(body))}))
    with pytest.raises(NewerStorageError, match=r"its format is 2.*use a newer Tidegate") as raised:
        verified(scene)
    trouble = trouble_of(raised.value, Storage("s3://bucket/apps/orders"), "keys", runs=True)
    assert trouble.reason is Reason.NEWER_FORMAT
    collect.collect(repository, 2000.0)
    assert repository.store.get(f"{repository.prefix}/snapshots/a/of-the-newer-one") is not None


def test_one_that_goes_meanwhile_is_not_called_damaged_whenever_that_is() -> None:
    requests = list[Call]()
    verified(taken(), requests.append)
    for number in range(len(requests)):
        scene, left = taken(), [number]

        def watch(call: Call, scene: Scene = scene, left: list[int] = left) -> None:
            left[0] -= 1
            if left[0] == -1:
                collect.dispose(scene.repository(), "a")
                collect.collect(scene.repository(), 2000.0)

        with contextlib.suppress(DisposedError, UnknownSnapshotError):
            assert verified(scene, watch).problems == ()


def test_one_that_is_not_there_is_not_damaged_either() -> None:
    with pytest.raises(UnknownSnapshotError):
        verified(Scene())


def archive() -> bytes:
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr("metadata", "v1\n{}" * 100)
    return body.getvalue()


def test_an_archive_is_unpacked_to_its_last_entry() -> None:
    whole = archive()
    entry = Entry("k", len(whole), "e")
    _unpack("state/0/1/7.zip", entry, lambda path: whole)
    for broken in (whole[:-10], whole[:40] + b"\0\0\0" + whole[43:]):
        with pytest.raises(MismatchError, match=r"7\.zip"):
            _unpack("state/0/1/7.zip", entry, lambda path, broken=broken: broken)  # type: ignore[misc]


def test_a_digest_is_that_of_the_whole_and_of_parts() -> None:
    pieces = [b"abc", b"", b"defgh"]
    digester = Digester(part_bytes=4)
    for piece in pieces:
        digester.take(piece)
    found = digester.digest()
    assert (found.size, found.md5) == (8, "e8dc4081b13434b45189a720b77b6818")
    assert found.parts_md5 == "cb93ad6c9c920e2602b79a11ded63ddb-2"
    assert Digester().digest().parts_md5.endswith("-1")
    assert PART_BYTES == 64 << 20


def test_what_cannot_be_interpreted_here_is_not_called_damaged() -> None:
    class WithoutCodec(FakeLayout):
        def needed_files(self, *arguments: Any) -> Any:
            try:
                raise CodecMissingError("is compressed with zstd")
            except CodecMissingError as error:
                raise UnreadableCheckpointError("state/0/1/7.changelog", str(error)) from error

    found = verify(Origin(taken().repository(), "a"), WithoutCodec(), Copiers(1))
    assert found.problems == ()
    assert found.unread == ("query main: state/0/1/7.changelog: is compressed with zstd",)


@pytest.mark.parametrize("reason", [Reason.NEWER_FORMAT, Reason.CLAIM_DAMAGED])
def test_a_storage_that_does_not_say_whose_it_is_is_no_fault_of_the_store(reason: Reason) -> None:
    fault = FaultError(Fault(reason, "app.json cannot be read."))
    trouble = trouble_of(fault, Storage("s3://bucket/apps/orders"), "keys", runs=False)
    assert (trouble.reason, trouble.message, trouble.tries) == (reason, "app.json cannot be read.", ALWAYS)
