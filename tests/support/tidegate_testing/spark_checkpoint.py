"""Checkpoints of streaming queries made by hand, byte for byte in the formats of Spark 4.2."""

import io
import json
import struct
import zipfile
from collections.abc import Iterable, Mapping
from typing import Any

from tidegate_spark.storage.store import Entry

HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
ROOT = "s3a://bucket/app/lineages/1/main"
JOIN_STORES = ("left-keyToNumValues", "left-keyWithIndexToValue", "right-keyToNumValues", "right-keyWithIndexToValue")
AN_ID = "8d1f3b1e-6b0a-4a39-9d0a-2a4a1f1e8f10"


class SparkCheckpoint(dict[str, bytes]):
    """One query's checkpoint: content by path. A world for tests; methods add what Spark would write."""

    def __init__(self, provider: str = ROCKSDB, partitions: int = 2) -> None:
        super().__init__()
        self.provider = provider
        self.partitions = partitions
        self.reads: list[str] = []
        self["metadata"] = json.dumps({"id": AN_ID}).encode()

    @property
    def listing(self) -> dict[str, Entry]:
        return {path: Entry(f"app/{path}", len(body), "etag") for path, body in self.items()}

    def read(self, path: str) -> bytes:
        self.reads.append(path)
        return self[path]

    def offsets(self, batch: int, *lines: str) -> None:
        conf = {
            "spark.sql.streaming.stateStore.providerClass": self.provider,
            "spark.sql.shuffle.partitions": str(self.partitions),
        }
        head = json.dumps({"batchWatermarkMs": 0, "batchTimestampMs": 1700000000000 + batch, "conf": conf})
        self[f"offsets/{batch}"] = "\n".join(["v1", head, *(lines or [str(batch)])]).encode()

    def commit(self, batch: int, ids: Mapping[int, Any] | None = None) -> None:
        found: dict[str, Any] = {"nextBatchWatermarkMs": 0}
        if ids is not None:
            found["stateUniqueIds"] = {str(operator): of for operator, of in ids.items()}
        self[f"commits/{batch}"] = f"v{1 if ids is None else 2}\n{json.dumps(found)}".encode()

    def batches(self, last: int, ids: Mapping[int, Any] | None = None) -> None:
        """All up to ``last``, every one with these ids."""
        for batch in range(last + 1):
            self.offsets(batch)
            self.commit(batch, ids)

    def operator(
        self, number: int = 0, name: str = "stateStoreSave", stores: Iterable[str] = ("default",), keys: int = 1
    ) -> None:
        """Metadata of an operator, version 1, and its schemas."""
        info = [{"storeName": store, "numColsPrefixKey": 0, "numPartitions": self.partitions} for store in stores]
        metadata = {"operatorInfo": {"operatorId": number, "operatorName": name}, "stateStoreInfo": info}
        self[f"state/{number}/_metadata/metadata"] = f"v1\n{json.dumps(metadata)}".encode()
        for store in stores:
            place = f"state/{number}/0" if store == "default" else f"state/{number}/0/{store}"
            self[f"{place}/_metadata/schema"] = schema(keys)

    def evolving_operator(self, batch: int, *schemas: str, number: int = 0, root: str = ROOT) -> None:
        """Metadata of an operator, version 2, as a start before ``batch`` writes it."""
        places = [f"state/{number}/_stateSchema/default/{name}" for name in schemas]
        for place in places:
            self[place] = b"schema"
        info = {
            "storeName": "default",
            "numColsPrefixKey": 0,
            "numPartitions": self.partitions,
            "stateSchemaFilePaths": [f"{root}/{place}" for place in places],
        }
        metadata = {
            "operatorInfo": {"operatorId": number, "operatorName": "transformWithStateInPySparkExec"},
            "stateStoreInfo": [info],
            "operatorPropertiesJson": json.dumps({"timeMode": "None", "stateVariables": ['"v"']}),
        }
        self[f"state/{number}/_metadata/v2/{batch}"] = f"v2\n{json.dumps(metadata)}".encode()

    def snapshot(self, store: str, version: str, *ssts: str, logs: tuple[str, ...] = ()) -> None:
        """A snapshot of RocksDB at ``store``, with its immutable files."""
        metadata: dict[str, Any] = {"sstFiles": [], "numKeys": 7, "columnFamilyMapping": {"default": 0}}
        for name in ssts:
            body = self.setdefault(f"{store}/SSTs/{name}", name.encode())
            metadata["sstFiles"].append({"localFileName": "1.sst", "dfsSstFileName": name, "sizeBytes": len(body)})
        for name in logs:
            body = self.setdefault(f"{store}/logs/{name}", name.encode())
            listed = {"localFileName": "1.log", "dfsLogFileName": name, "sizeBytes": len(body)}
            metadata.setdefault("logFiles", []).append(listed)
        self[f"{store}/{version}.zip"] = zipped(metadata=f"v1\n{json.dumps(metadata)}", CURRENT="MANIFEST-1\n")

    def changelog(self, store: str, version: str, *lineage: str, kind: str = "v3") -> None:
        """A changelog with a lineage of names ``<version>_<id>``."""
        pairs = [name.split("_") for name in lineage]
        items = [{"version": int(number), "checkpointUniqueId": unique_id} for number, unique_id in pairs]
        self[f"{store}/{version}.changelog"] = lz4(utf(kind) + utf(json.dumps(items)) + b"\xff\xff\xff\xff")


def zipped(**entries: str) -> bytes:
    """A zip file."""
    body = io.BytesIO()
    with zipfile.ZipFile(body, "w") as archive:
        for name, text in entries.items():
            archive.writestr(name, text)
    return body.getvalue()


def utf(text: str) -> bytes:
    """What Java's ``writeUTF`` writes."""
    return struct.pack(">H", len(text.encode())) + text.encode()


def lz4(*blocks: bytes) -> bytes:
    """What LZ4BlockOutputStream writes of blocks that it could not make smaller, with its end mark."""
    body = b"".join(b"LZ4Block" + struct.pack("<Biii", 0x16, len(block), len(block), 0) + block for block in blocks)
    return body + b"LZ4Block" + struct.pack("<Biii", 0x16, 0, 0, 0)


def schema(keys: int) -> bytes:
    """A state schema, version 2, whose key has so many columns."""
    fields = [{"name": f"k{n}", "type": "long", "nullable": True, "metadata": {}} for n in range(keys)]
    text = json.dumps({"type": "struct", "fields": fields})
    return utf("v2") + 2 * (struct.pack(">i", 1) + utf(text))
