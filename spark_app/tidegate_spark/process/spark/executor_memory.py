"""Divides an executor's memory when the script sets the heap; the total is the spec's. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tidegate_spark.contract.protocol import DriverConfig

HEAP, OFF_HEAP, OFF_HEAP_SIZE = "spark.executor.memory", "spark.memory.offHeap.enabled", "spark.memory.offHeap.size"
KEYS = frozenset({HEAP, OFF_HEAP, OFF_HEAP_SIZE})
SMALLEST_HEAP_MIB = 450
"""Spark refuses to start an executor whose heap is under 1.5 times its 300 MiB of reserved memory."""
_SIZE = re.compile(r"(\d+)\s*([bkmgtp]?)b?")
_LONGEST_SIZE = 32
"""Characters of a size: 2**63, the largest that a JVM reads, has 19 digits."""
_UNITS = {"b": 2**-20, "k": 2**-10, "m": 1, "g": 2**10, "t": 2**20, "p": 2**30}


def fits(config: DriverConfig, script: Mapping[str, str]) -> bool:
    """Return whether the spec's memory has room for what the script asks for, and Spark can use it."""
    try:
        heap = _mebibytes(script[HEAP]) if HEAP in script else config.executor.heap_mib
        return heap >= min(SMALLEST_HEAP_MIB, config.executor.heap_mib) and overhead_beside(config, script) > 0
    except ValueError:
        return False


def overhead_beside(config: DriverConfig, script: Mapping[str, str]) -> int:
    """Return the MiB of an executor's container that are neither heap nor off-heap memory: Spark adds up the three.

    Raises:
        ValueError: a size cannot be read.
    """
    executor, spec = config.executor, config.spark_conf
    whole = executor.heap_mib + executor.overhead_mib + _off_heap(spec)
    heap = _mebibytes(script[HEAP]) if HEAP in script else executor.heap_mib
    return whole - heap - _off_heap({**script, **spec})


def _off_heap(conf: Mapping[str, str]) -> int:
    return _mebibytes(conf.get(OFF_HEAP_SIZE, "0"), "b") if conf.get(OFF_HEAP, "").lower() == "true" else 0


def _mebibytes(text: str, bare: str = "m") -> int:
    # What a number without a unit means differs by key: MiB for heaps, bytes for off-heap memory.
    match = _SIZE.fullmatch(text.strip().lower()) if len(text) <= _LONGEST_SIZE else None
    if match is None:
        raise ValueError(text[:_LONGEST_SIZE])
    return int(int(match[1]) * _UNITS[match[2] or bare])
