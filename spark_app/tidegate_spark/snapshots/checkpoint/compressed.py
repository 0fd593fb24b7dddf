"""Decompresses the beginning of what Spark's CompressionCodec wrote, no further than asked. Pure.

LZ4 is Spark's default for state (``spark.sql.streaming.stateStore.compression.codec``); zstd is read if pyarrow is
there.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator

_LZ4_MAGIC = b"LZ4Block"
_LZ4_HEADER = struct.Struct("<8sBiii")
_LZ4_RAW, _LZ4_COMPRESSED = 0x10, 0x20
_ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
_OTHERS = {b"\x82SNAPPY\0": "snappy", b"ZV": "lzf"}
_CHUNK = 1 << 16


class NotDecompressedError(Exception):
    """The bytes are not what a codec wrote, or no codec that is read here; the message says which."""


class CodecMissingError(NotDecompressedError):
    """The codec is known, and its library is not installed here; elsewhere the bytes may well be read."""


class DataInput:
    """Reads what Java's DataOutput wrote into a compressed stream."""

    def __init__(self, body: bytes) -> None:
        """Begin at the beginning of ``body``, all of it compressed."""
        self._chunks = _chunks(body)
        self._ready = b""

    def take(self, size: int) -> bytes:
        """Return the next ``size`` bytes.

        Raises:
            EOFError: there are fewer.
            NotDecompressedError: they cannot be had.
        """
        while len(self._ready) < size:
            chunk = next(self._chunks, b"")
            if not chunk:
                raise EOFError
            self._ready += chunk
        taken, self._ready = self._ready[:size], self._ready[size:]
        return taken

    def utf(self) -> str:
        """Return what ``writeUTF`` wrote; raises as ``take``, and UnicodeDecodeError if it is no such thing."""
        return self.take(struct.unpack(">H", self.take(2))[0]).decode("utf-8")


def _chunks(body: bytes) -> Iterator[bytes]:
    if body.startswith(_LZ4_MAGIC):
        return _lz4_blocks(body)
    if body.startswith(_ZSTD_MAGIC):
        return _zstd(body)
    for magic, codec in _OTHERS.items():
        if body.startswith(magic):
            raise NotDecompressedError(f"is compressed with {codec}; lz4 and zstd are read")
    raise NotDecompressedError("is not compressed by a codec of Spark's that is known here")


def _lz4_blocks(body: bytes) -> Iterator[bytes]:
    """Yield the blocks that LZ4BlockOutputStream of lz4-java wrote."""
    position = 0
    while position < len(body):
        if len(body) < position + _LZ4_HEADER.size:
            raise NotDecompressedError("ends inside the header of an LZ4 block")
        magic, token, compressed, original, _ = _LZ4_HEADER.unpack_from(body, position)
        position += _LZ4_HEADER.size
        block = body[position : position + compressed]
        position += compressed
        if magic != _LZ4_MAGIC or len(block) != compressed:
            raise NotDecompressedError("is not whole LZ4 blocks")
        if not original:
            return
        method = token & 0xF0
        if method not in (_LZ4_RAW, _LZ4_COMPRESSED):
            raise NotDecompressedError(f"has an LZ4 block of an unknown kind, {method:#x}")
        plain = block if method == _LZ4_RAW else _lz4_block(block)
        if len(plain) != original:
            raise NotDecompressedError("has an LZ4 block with another length than it says")
        yield plain


def _lz4_block(block: bytes) -> bytes:
    """Return the content of one block of LZ4's block format."""
    plain = bytearray()
    position = 0
    try:
        while True:
            token = block[position]
            length, position = _lz4_length(block, position + 1, token >> 4)
            plain += block[position : position + length]
            position += length
            if position >= len(block):
                return bytes(plain)
            distance = block[position] | block[position + 1] << 8
            length, position = _lz4_length(block, position + 2, token & 0x0F)
            if not 0 < distance <= len(plain):
                raise NotDecompressedError("refers to bytes before its beginning")
            start = len(plain) - distance
            # The bytes that are copied may be among those that the copy itself produces.
            for offset in range(start, start + length + 4):
                plain.append(plain[offset])
    except IndexError as error:
        raise NotDecompressedError("ends inside an LZ4 block") from error


def _lz4_length(block: bytes, position: int, length: int) -> tuple[int, int]:
    if length == 15:
        while True:
            more = block[position]
            position += 1
            length += more
            if more != 255:
                break
    return length, position


def _zstd(body: bytes) -> Iterator[bytes]:
    try:
        import pyarrow  # type: ignore[import-untyped] # noqa: PLC0415 - Spark images have it, others need not
    except ImportError as error:
        raise CodecMissingError("is compressed with zstd, which is read if pyarrow is installed") from error
    try:
        with pyarrow.CompressedInputStream(io.BytesIO(body), "zstd") as stream:
            while chunk := stream.read(_CHUNK):
                yield chunk
    except OSError as error:
        raise NotDecompressedError(f"is not whole zstd frames ({error})") from error
