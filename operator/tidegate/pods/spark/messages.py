"""Messages: why a setting or an amount of memory cannot be used, and what to set instead. No I/O."""

from __future__ import annotations


def no_memory_left(total: int, heap: int, beside: int, key: str) -> str:
    return (
        f"{total} MiB cannot hold what sparkConf asks for: {heap} MiB of heap and {beside} MiB beside it leave "
        f"nothing for Python workers and RocksDB; raise it, or lower {key}"
    )


def heap_too_small(key: str, heap: int, least: int) -> str:
    return f"{key} in sparkConf makes the heap {heap} MiB; Spark needs at least {least} MiB"


def memory_too_small(total: int, heap: int, least_heap: int, least: int) -> str:
    return f"{total} MiB leaves {heap} MiB of heap and Spark needs {least_heap} MiB; give it {least}Mi or more"


def no_size(text: str) -> str:
    return f"{text!r} is no size; write something like 512m or 2g"
