"""Exports a snapshot: reads its state with Spark, writes files and, last, the manifest. Does I/O.

It can be interrupted and repeated: equal state gives equal files under equal names.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from pyspark.errors import PySparkException
from pyspark.sql import Observation, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from tidegate_spark.contract.snapshot_protocol import ExportOrder, export_format
from tidegate_spark.exports import formats, messages, parquet_footer, state_reader
from tidegate_spark.exports.checkpoint_copy import bones_of, fetch, operators_of, stores_of
from tidegate_spark.exports.errors import ExportError, ExportExistsError, StateUnreadableError, UnsuitableFormatError
from tidegate_spark.exports.manifest import (
    EXPORT_PREFIX,
    MANIFEST_FILE,
    VERSION,
    ExportedQuery,
    ExportedTable,
    ExportManifest,
    parse,
)
from tidegate_spark.exports.tables import Table, check_choices, chosen, tables_of
from tidegate_spark.process.faults.foreign_text import last_cause
from tidegate_spark.snapshots import manifest
from tidegate_spark.snapshots.checkpoint.query_logs import read_offsets
from tidegate_spark.snapshots.copying import Copiers, Progress
from tidegate_spark.snapshots.manifest import DamagedError, Manifest, QueryAt
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_spark.snapshots.restore import Origin, damages

PIECE = 1 << 20


@dataclass(frozen=True)
class Made:
    """A complete export."""

    manifest: ExportManifest
    uri: str
    """Of the manifest: s3://bucket/key."""
    digest: str


@dataclass
class Exporter:
    """Makes one export."""

    repository: SnapshotRepository
    order: ExportOrder
    spark: Callable[[], SparkSession]
    """Starts Spark, or returns the session that runs."""
    work: Path
    """A directory that is there, for what is of use meanwhile: the state of one operator, and one file, at a time."""
    copiers: Copiers
    """Called with how many tables are written, of how many."""

    def run(self) -> Made:
        """Make the export, or find it.

        Raises:
            UnknownSnapshotError, NotReadyError, UnreadableManifestError: see :func:`manifest.read`.
            DamagedError, VanishedError: the snapshot is not whole.
            StateNotFoundError: what is asked for is not among its state.
            UnsuitableFormatError: the format cannot hold it.
            StateUnreadableError: Spark cannot read it.
            ExportExistsError: there is another export of this id, or one whose files are gone or changed.
            Exception: what the store's client raises.
        """
        origin = Origin(self.repository, self.order.snapshot)
        made = manifest.read(self.repository, origin.id, self.repository.read())
        wrong = damages(origin)
        if wrong:
            raise DamagedError(f"snapshot {origin.id} is not whole: {wrong[0]}", len(wrong))
        plan = self._plan(made)
        check_choices(plan, self.order.states)
        wanted = {query: chosen(tables, query, self.order.states) for query, tables in plan.items()}
        return self._find(made, wanted) or self._publish(made, self._write_all(made, wanted))

    # --- what there is ---

    def _find(self, made: Manifest, wanted: Mapping[str, list[Table]]) -> Made | None:
        """Return the export if it is complete, None if it has no manifest: it is to be made.

        Raises:
            ExportExistsError: the export of this id is another one, whose files must not be written over; or files of
                it are gone or changed, and another image's would not be those that its manifest names.
        """
        found = self.repository.store.get(self._key(MANIFEST_FILE))
        if found is None:
            return None
        try:
            known = parse(found[0], self._key(MANIFEST_FILE))
            is_this = (known.snapshot, export_format(known.format)) == (made.id, export_format(self.order.format))
        except (ExportError, ValueError) as error:
            raise ExportExistsError(f"{messages.export_exists(self._key(MANIFEST_FILE))} ({error})") from error
        tables = {(query, table.operator, table.name) for query, of in wanted.items() for table in of}
        if not is_this or tables != {(table.query, table.operator, table.name) for table in known.tables}:
            raise ExportExistsError(messages.export_exists(self._key(MANIFEST_FILE)))
        there = {entry.key: entry.size for entry in self.repository.store.list(self._key() + "/")}
        wrong = [table.file for table in known.tables if there.get(self._key(table.file)) != table.bytes]
        if wrong:
            raise ExportExistsError(messages.export_is_not_whole(self._key(MANIFEST_FILE), wrong[0], len(wrong)))
        return self._made(known, found[0])

    def _plan(self, made: Manifest) -> dict[str, list[Table]]:
        """Return the tables of each query, by what its checkpoint says without its state."""
        found: dict[str, list[Table]] = {}
        for query in sorted(made.queries):
            if not operators_of(made, query):
                found[query] = []
                continue
            shutil.rmtree(self._place(query), ignore_errors=True)
            fetch(self.repository, bones_of(made, query), self._place(query), _silent(self.copiers))
            session = self._session(made.queries[query])
            rows = self._asked(partial(state_reader.stores_of, session, str(self._place(query))))
            found[query] = tables_of(rows)
        return found

    def _place(self, query: str) -> Path:
        return self.work / "checkpoints" / query

    def _session(self, at: QueryAt) -> SparkSession:
        """Return a session with the settings under which the state was written; Spark's reader goes by them."""
        session = state_reader.session_at(self.spark(), at)
        session.conf.set("spark.sql.parquet.outputTimestampType", "TIMESTAMP_MICROS")
        session.conf.set("spark.sql.files.maxRecordsPerFile", "0")
        return session

    # --- what is written ---

    def _write_all(self, made: Manifest, wanted: Mapping[str, list[Table]]) -> list[ExportedTable]:
        of_tables, written = sum(len(tables) for tables in wanted.values()), list[ExportedTable]()
        size = 0
        for query, tables in wanted.items():
            for operator in sorted({table.operator for table in tables}):
                fetch(self.repository, stores_of(made, query, operator), self._place(query), _silent(self.copiers))
                session = self._session(made.queries[query])
                for table in (table for table in tables if table.operator == operator):
                    written.append(self._write(session, made, query, table))
                    size += written[-1].bytes
                    self.copiers.report(Progress(len(written), size, of_tables, size))
                shutil.rmtree(self._place(query) / "state" / str(operator))
        return written

    def _write(self, session: SparkSession, made: Manifest, query: str, table: Table) -> ExportedTable:
        directory = self.work / "table"
        shutil.rmtree(directory, ignore_errors=True)
        name = table.file(query, formats.SUFFIXES[export_format(self.order.format)])

        def write() -> tuple[int, str]:
            batch = made.queries[query].batch
            rows = formats.portable(state_reader.rows_of(session, str(self._place(query)), batch, table))
            counted = Observation()
            ordered = formats.in_order(rows, table.kind).observe(counted, F.count(F.lit(1)).alias("rows"))
            formats.write(ordered, export_format(self.order.format), directory.as_uri())
            return int(counted.get["rows"]), rows.schema.json()

        number, schema = self._asked(write)
        file = _only_file(directory)
        if export_format(self.order.format) == formats.PARQUET and number:
            parquet_footer.settle(session._jvm, file)
        digest, size = _digest_of(file)
        self.repository.store.put_file(self._key(name), file)
        return ExportedTable(
            query=query,
            operator=table.operator,
            operator_name=table.operator_name,
            name=table.name,
            kind=table.kind,
            file=name,
            rows=number,
            bytes=size,
            sha256=digest,
            schema=schema,
            ttl=table.ttl,
        )

    def _asked(self, question: Callable[[], Any]) -> Any:
        try:
            return question()
        except UnsuitableFormatError:
            raise
        except PySparkException as error:
            raise StateUnreadableError(f"Spark cannot read the state: {last_cause(error)}") from error
        except Exception as error:
            if type(error).__module__.startswith("py4j"):
                raise StateUnreadableError(f"Spark cannot read the state: {last_cause(error)}") from error
            raise

    def _key(self, *parts: str) -> str:
        return self.repository.key(EXPORT_PREFIX, self.order.export, *parts)

    def _publish(self, made: Manifest, tables: list[ExportedTable]) -> Made:
        application = made.application
        complete = ExportManifest(
            version=VERSION,
            format=export_format(self.order.format),
            snapshot=made.id,
            app=f"{application.namespace}/{application.name}",
            lineage=application.lineage,
            spark_version=made.spark_version,
            queries={query: _exported(at) for query, at in sorted(made.queries.items())},
            tables=tuple(tables),
        )
        key, body = self._key(MANIFEST_FILE), complete.body()
        if self.repository.store.put_if(key, body, None) is None:
            found = self.repository.store.get(key)
            # It may be that of an earlier attempt.
            if found is None or found[0] != body:
                raise ExportExistsError(messages.export_exists(key))
        return self._made(complete, body)

    def _made(self, complete: ExportManifest, body: bytes) -> Made:
        uri = f"s3://{self.repository.store.bucket}/{self._key(MANIFEST_FILE)}"
        return Made(complete, uri, f"sha256:{hashlib.sha256(body).hexdigest()}")


def _silent(copiers: Copiers) -> Copiers:
    return Copiers(min(copiers.number, 4), lambda progress: None)


def _exported(at: QueryAt) -> ExportedQuery:
    head = json.loads(at.offsets.split("\n")[1] or "{}")
    return ExportedQuery(
        batch=at.batch,
        offsets=read_offsets(state_reader.log_of(at), at.batch).by_source,
        timestamp_ms=int(head.get("batchTimestampMs", 0)),
        watermark_ms=int(head.get("batchWatermarkMs", 0)),
    )


def _only_file(directory: Path) -> Path:
    files = sorted(path for path in directory.iterdir() if path.name.startswith("part-"))
    if not files:
        # Of no rows at all.
        (directory / "part-empty").touch()
        return directory / "part-empty"
    if len(files) > 1:
        raise AssertionError(f"Spark wrote {len(files)} files of one partition")
    return files[0]


def _digest_of(file: Path) -> tuple[str, int]:
    digest, size = hashlib.sha256(), 0
    with file.open("rb") as content:
        while piece := content.read(PIECE):
            digest.update(piece)
            size += len(piece)
    return digest.hexdigest(), size
