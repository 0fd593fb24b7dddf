"""What snapshots and exports are stored as: catalog, manifest, manifest of an export. Golden copies; pure."""

import dataclasses

import pytest

from tidegate_spark.control_log.entries import Entry, Kind
from tidegate_spark.control_log.reducer import Model
from tidegate_spark.control_log.reducer import State as InForce
from tidegate_spark.control_log.snapshot_state import Kept
from tidegate_spark.exports import manifest as exported
from tidegate_spark.exports.errors import ExportError
from tidegate_spark.exports.manifest import ExportedQuery, ExportedTable, ExportManifest
from tidegate_spark.snapshots import catalog_json, manifest
from tidegate_spark.snapshots.catalog import Catalog, Snapshot, State, violations
from tidegate_spark.snapshots.manifest import Application, File, Manifest, QueryAt
from tidegate_spark.storage.store import NewerStorageError
from tidegate_testing.stored_forms import Form, assert_written, each, each_written, stored, with_more

READY = Snapshot(
    State.READY,
    created=1767225600.25,
    lineage=2,
    parent="nightly-0",
    manual=True,
    # Two runs: what came between them is of another snapshot.
    objects=frozenset({"000007.sst.nightly-1", "000008.sst.nightly-1", "000012.sst.hourly-9"}),
    holders=frozenset({"fork-uid-9", "export-uid-3"}),
    queries={"main": 41, "dedupe": 7},
    sequence=5,
    digest="sha256:0c2f1f2ad7f52e1e9b9d9bbb61b4ee1f5d5f5d6b6f1cc2b8df6a63a8a1a0ce11",
    files=12,
    bytes=73400320,
)
TAKING = Snapshot(State.TAKING, 1767229200.5, 2, "nightly-1", objects=frozenset({"000009.sst.hourly-9"}))
DELETING = Snapshot(State.DELETING, 1767139200.0, 1, "weekly-3", sequence=2, files=3, bytes=2048)
CATALOG = Catalog(
    serial=17,
    snapshots={"nightly-1": READY, "hourly-9": TAKING, "nightly-0": DELETING},
    objects={
        "000007.sst.nightly-1": 4096,
        "000008.sst.nightly-1": 8192,
        "000009.sst.hourly-9": 512,
        "000012.sst.hourly-9": 1024,
    },
    condemned=frozenset({"000003.sst.nightly-0", "000004.sst.nightly-0"}),
    gone={"weekly-3": 1766620800.75},
)

MODEL = Model("s3://models/fraud/8.onnx", "8f" * 32, 12)
ENTRY = Entry(
    14,
    id="shop%23desk#limits-3",
    type="reload-config",
    payload='{"limits":{"de":30}}',
    time=1767225590.5,
    expires=1767229190.5,
    source="shop#desk",
    origin="control/0",
    offset=88,
)
IN_FORCE = InForce(
    position=14,
    config={"limits": {"de": 30}, "rates": [1, 2.5]},
    models={"fraud": MODEL},
    models_before={"fraud": (dataclasses.replace(MODEL, uri="s3://models/fraud/7.onnx", sequence=9),)},
    last={"reload-config": ENTRY},
    last_before={"reload-config": (dataclasses.replace(ENTRY, sequence=10, payload='{"limits":null}'),)},
    paused=True,
    log_level="WARN",
    messages=6,
    lineage=2,
    consumed={"control/0": 89},
)
# Notes of the log itself have what no message has.
ROLLED_BACK = Entry(15, kind=Kind.ROLLED_BACK, of=11, lineage=2, time=1767225595.0)
REJECTED = Entry(16, kind=Kind.REJECTED, id="x#1", reason="UnknownType", message="No handler.", origin="control/1")
MANIFEST = Manifest(
    version=1,
    id="nightly-1",
    created=1767225600.25,
    parent="nightly-0",
    application=Application("shop", "orders", "0b1c-uid", lineage=2, epoch=6),
    queries={
        "main": QueryAt(
            41, 'v1\n{"batchWatermarkMs":5}\n{"orders":{"0":10}}', {"provider": "RocksDB", "partitions": 8}
        ),
        "dedupe": QueryAt(7, "v1\n{}\n-", {"stateless": True}),
    },
    files=(
        File("main", "state/0/0/000007.sst", "objects/000007.sst.nightly-1", 4096, '"e7"', "crc32:7", shared=True),
        File("main", "offsets/41", "snapshots/nightly-1/main/offsets/41", 77, '"e41"', "crc32:41"),
    ),
    image="shop/orders:7",
    spark_version="4.1.0",
    tidegate_version="0.9.0",
    spec_hash="5d1a0e",
    spec='{"application.image":"shop/orders:7"}',
    control=Kept({"main": 16, "dedupe": 14}, IN_FORCE, (ROLLED_BACK, REJECTED)),
)
# One of them has no batch.
LOCATED = dataclasses.replace(
    MANIFEST,
    locations={
        "main": "cd93af3200000000cd93af3200000000",
        "refunds-963ba530": "963ba53007c24c5b3ac2d7bb0bf2a5e6",
        "bare": "",
    },
)
# The script names this one.
NAMED = dataclasses.replace(
    LOCATED,
    queries={
        "main": MANIFEST.queries["main"],
        "dedupe": QueryAt(
            7, "v1\n{}\n-", {"stateless": True, "name": "de dupe", "location": "11f2b1c300000000cd93af3200000000"}
        ),
    },
)

EXPORT = ExportManifest(
    version=1,
    format="JsonLines",
    snapshot="nightly-1",
    app="shop/orders",
    lineage=2,
    spark_version="4.2.1",
    queries={"main": ExportedQuery(41, {"0": '{"orders":{"0":10}}', "1": "-"}, 1767225599000, 1767225000000)},
    tables=(
        ExportedTable(
            query="main",
            operator=1,
            operator_name="transformWithStateInPySparkExec",
            name="basket",
            kind="map",
            file="main/1-basket.jsonl",
            rows=3,
            bytes=90,
            sha256="ab" * 32,
            schema='{"type":"struct","fields":[]}',
            ttl=True,
        ),
    ),
)


def read_manifest(body: bytes) -> Manifest:
    return manifest.parse(body, "there")


FORMS = [
    Form("catalog", CATALOG, catalog_json.decode, catalog_json.encode),
    # Its digest is in the catalog, and an export's is what two exports are compared by.
    Form("manifest", MANIFEST, lambda body: manifest.parse(body, "there"), None),
    Form(
        "manifest-with-locations", LOCATED, lambda body: manifest.parse(body, "there"), Manifest.body, to_the_byte=True
    ),
    Form(
        "manifest-with-named-locations",
        NAMED,
        lambda body: manifest.parse(body, "there"),
        Manifest.body,
        to_the_byte=True,
    ),
    Form("export", EXPORT, lambda body: exported.parse(body, "there"), ExportManifest.body, to_the_byte=True),
]


@each(FORMS)
def test_what_is_stored_is_read(form: Form) -> None:
    form.assert_read()


@each_written(FORMS)
def test_what_is_stored_is_what_is_written(form: Form) -> None:
    form.assert_written()


@each(FORMS)
def test_a_field_of_a_later_version_changes_nothing(form: Form) -> None:
    form.assert_read_with_more()


@each_written(FORMS)
def test_what_is_stored_tells_of_every_field(form: Form) -> None:
    form.assert_reported()


def test_the_catalog_that_is_stored_is_one_that_may_be() -> None:
    assert violations(CATALOG) == []


def test_what_has_the_number_of_a_later_version_is_refused_whatever_else_is_in_it() -> None:
    later = {name: stored(name).replace(b'"version":1', b'"version":2') for name in ("catalog", "manifest")}
    with pytest.raises(NewerStorageError, match="its format is 2"):
        catalog_json.decode(later["catalog"])
    with pytest.raises(NewerStorageError, match="its format is 2"):
        manifest.parse(later["manifest"], "there")
    with pytest.raises(ExportError, match="its format is 2"):
        exported.parse(stored("export").replace(b'"version": 1', b'"version": 2'), "there")


def test_what_a_later_version_adds_to_the_catalog_is_gone_once_this_one_has_changed_it() -> None:
    body = catalog_json.encode(catalog_json.decode(with_more("catalog", CATALOG)))
    assert_written("catalog", body)
