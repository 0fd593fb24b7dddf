"""The manifest of an export, ``exports/<id>/manifest.json``, written when all files are there. Pure.

It has no time or place, so two exports of one snapshot in one format have equal manifests.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field

from tidegate_spark.contract.json_form import from_stored
from tidegate_spark.contract.object_paths import is_below
from tidegate_spark.exports.errors import ExportError

VERSION = 1
EXPORT_PREFIX = "exports"
"""Below the application's place."""
MANIFEST_FILE = "manifest.json"


@dataclass(frozen=True)
class ExportedQuery:
    """Where a query was when its state was this."""

    batch: int
    offsets: dict[str, str]
    """By the source's number or name: where it goes on after the batch, as Spark writes it; ``-`` for nowhere yet."""
    timestamp_ms: int = 0
    """The batch's time, by which a time to live had passed or had not."""
    watermark_ms: int = 0
    """Rows before it were too late in the batch."""


@dataclass(frozen=True)
class ExportedTable:
    """One file: the whole state of one name of an operator."""

    query: str
    operator: int
    operator_name: str
    """Spark's name of the operator, for example ``transformWithStateInPySparkExec``."""
    name: str
    """Of the state variable; ``left`` or ``right`` of a join; ``$timers``; ``default`` of most other operators."""
    kind: str
    """``value``, ``list``, ``map`` or ``timers`` of an operator with named state; ``rows`` of any other."""
    file: str
    """Relative to the manifest."""
    rows: int
    bytes: int
    sha256: str
    schema: str
    """Of the rows, as Spark's JSON: what the columns are, whatever the file can express of them."""
    ttl: bool = False
    """Its values have a time to live, and say when that ends."""


@dataclass(frozen=True)
class ExportManifest:
    """An export."""

    version: int
    format: str
    snapshot: str
    """Id of the snapshot it was made of."""
    app: str
    """``namespace/name`` of the application whose state it is."""
    lineage: int
    spark_version: str
    """Of the application when the snapshot was taken; empty if that is not known."""
    queries: dict[str, ExportedQuery] = field(default_factory=dict)
    tables: tuple[ExportedTable, ...] = ()

    def body(self) -> bytes:
        """Return it as JSON that people can read: equal manifests have equal bytes."""
        return (json.dumps(self, default=vars, sort_keys=True, indent=1) + "\n").encode()

    @property
    def rows(self) -> int:
        """Rows of all files."""
        return sum(table.rows for table in self.tables)

    @property
    def bytes(self) -> int:
        """Bytes of all files."""
        return sum(table.bytes for table in self.tables)


def parse(text: str | bytes, where: str) -> ExportManifest:
    """Return the manifest of a document.

    Raises:
        ExportError: it is none, or a newer Tidegate wrote it; the message names ``where``.
    """
    try:
        made = from_stored(ExportManifest, text, VERSION)
        for table in made.tables:
            if not is_below(table.file):
                raise ValueError(f"a file leads out of the export: {table.file!r:.200}")
    except ValueError as error:
        raise ExportError(f"{where} cannot be read as the manifest of an export: {error}") from error
    return made
