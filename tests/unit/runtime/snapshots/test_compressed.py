"""The head of what Spark compressed. Pure; pyarrow is the other implementation."""

import random
import struct

import pyarrow  # type: ignore[import-untyped]
import pytest

from tidegate_spark.snapshots.checkpoint.compressed import DataInput, NotDecompressedError
from tidegate_testing.spark_checkpoint import lz4, utf

TEXTS = [b"", b"a", b"abc" * 1000, bytes(range(256)) * 40, b"x" * 20 + random.Random(4).randbytes(700) + b"y" * 300]


def lz4_compressed(*blocks: bytes) -> bytes:
    """What LZ4BlockOutputStream writes of blocks that it made smaller."""
    body = b""
    for block in blocks:
        small = pyarrow.Codec("lz4_raw").compress(block, asbytes=True)
        body += b"LZ4Block" + struct.pack("<Biii", 0x26, len(small), len(block), 0) + small
    return body + lz4()


@pytest.mark.parametrize("text", TEXTS)
def test_lz4_blocks_are_read_as_they_were_written(text: bytes) -> None:
    assert DataInput(lz4_compressed(text, text)).take(2 * len(text)) == 2 * text
    assert DataInput(lz4(text)).take(len(text)) == text


def test_zstd_frames_are_read() -> None:
    text = b"abcdefgh" * 50_000
    assert DataInput(pyarrow.Codec("zstd").compress(text, asbytes=True)).take(len(text)) == text


def test_strings_that_java_wrote_follow_each_other() -> None:
    head = DataInput(lz4_compressed(utf("v3")[:3], utf("v3")[3:] + utf("grüße") + b"rest"))
    assert (head.utf(), head.utf(), head.take(4)) == ("v3", "grüße", b"rest")


def test_no_more_is_decompressed_than_asked_for() -> None:
    damaged = lz4(b"good") + b"LZ4Block bad"
    assert DataInput(lz4(b"good")[:25] + damaged[25:]).take(4) == b"good"


def test_the_end_is_noticed() -> None:
    with pytest.raises(EOFError):
        DataInput(lz4(b"four")).take(5)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        (b"\x82SNAPPY\0\0", "snappy"),
        (b"ZV\x01", "lzf"),
        (b"plain text", "no codec|not compressed"),
        (lz4(b"four")[:10], "header"),
        (lz4(b"four")[:23], "whole"),
        (b"LZ4Block" + struct.pack("<Biii", 0x46, 1, 1, 0) + b"x", "unknown kind"),
        (b"LZ4Block" + struct.pack("<Biii", 0x26, 2, 9, 0) + b"\x10x", "another length"),
        (b"LZ4Block" + struct.pack("<Biii", 0x26, 4, 9, 0) + b"\x10x\x09\x00", "before its beginning"),
        (b"LZ4Block" + struct.pack("<Biii", 0x26, 3, 9, 0) + b"\x10x\x01", "inside an LZ4 block"),
        (b"\x28\xb5\x2f\xfd nonsense", "zstd"),
    ],
)
def test_what_cannot_be_read_is_said(body: bytes, reason: str) -> None:
    with pytest.raises(NotDecompressedError, match=reason):
        DataInput(body).take(4)


def test_random_texts_of_all_kinds_come_back() -> None:
    chance = random.Random(7)
    for _ in range(60):
        words = [chance.randbytes(chance.randint(1, 9)) for _ in range(chance.randint(1, 6))]
        text = b"".join(chance.choice(words) for _ in range(chance.randint(1, 900)))
        assert DataInput(lz4_compressed(text)).take(len(text)) == text
