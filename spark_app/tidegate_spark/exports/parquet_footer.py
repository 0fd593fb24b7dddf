"""Sorts the unordered parts of a Parquet footer, so that equal rows give equal bytes.

Parquet's writer keeps a column's encodings in a hash set (ParquetMetadataConverter.toFormatEncodings), whose order
differs between JVMs. Reads and writes the file, talks to Spark's JVM.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

_MAGIC = b"PAR1"
_LENGTH_BYTES = 4


def settle(jvm: Any, file: Path) -> None:
    """Write the file's footer again, with encodings and their statistics in order.

    See https://parquet.apache.org/docs/file-format/: data, footer, length of the footer (little endian), magic bytes.

    Raises:
        ValueError: it is no Parquet file.
    """
    with file.open("r+b") as opened:
        tail = len(_MAGIC) + _LENGTH_BYTES
        end = opened.seek(0, 2)
        opened.seek(max(0, end - tail))
        length, magic = opened.read(_LENGTH_BYTES), opened.read()
        start = end - tail - int.from_bytes(length, "little")
        if magic != _MAGIC or start < len(_MAGIC):
            raise ValueError(f"{file.name} does not end like a Parquet file")
        opened.seek(start)
        footer = _in_order(jvm, opened.read(end - tail - start))
        opened.seek(start)
        opened.truncate()
        opened.write(footer + len(footer).to_bytes(_LENGTH_BYTES, "little") + _MAGIC)


def _in_order(jvm: Any, footer: bytes) -> bytes:
    thrift, sort = jvm.org.apache.parquet.format.Util, jvm.java.util.Collections.sort
    meta = thrift.readFileMetaData(jvm.java.io.ByteArrayInputStream(footer))
    for group in meta.getRow_groups():
        for column in group.getColumns():
            sort(column.getMeta_data().getEncodings())
            if column.getMeta_data().isSetEncoding_stats():
                sort(column.getMeta_data().getEncoding_stats())
    written = jvm.java.io.ByteArrayOutputStream()
    thrift.writeFileMetaData(meta, written)
    return bytes(written.toByteArray())
