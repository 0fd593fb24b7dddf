"""Divides a container's memory between the JVM's heap and the rest. No I/O; all sizes in MiB."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tidegate.api.values.errors import SpecError
from tidegate.api.values.quantity import mebibytes
from tidegate.pods.spark import messages

HEAP_PERCENT = 60
"""The heap's share unless sparkConf names a heap. RocksDB and Python workers live outside of it and are what grows."""

SMALLEST_HEAP_MIB = 450
"""Spark refuses to start a driver or an executor whose heap is under 1.5 times its 300 MiB of reserved memory."""

_JVM_SIZE = re.compile(r"(\d+)\s*([bkmgtp]?)b?", re.IGNORECASE)
_LONGEST_SIZE = 32
"""Characters of a size: 2**63, the largest that a JVM reads, has 19 digits."""
_JVM_UNITS = {"b": 2**-20, "k": 2**-10, "m": 1, "g": 2**10, "t": 2**20, "p": 2**30}


@dataclass(frozen=True)
class MemorySplit:
    """One container's memory: ``heap_mib + overhead_mib`` never exceed what the container has."""

    heap_mib: int
    overhead_mib: int


def split_memory(role: str, memory: str | int, spark_conf: Mapping[str, str]) -> MemorySplit:
    """Divide the memory of a driver or executor container.

    Args:
        role: ``driver`` or ``executor``; names both the field of the spec and Spark's keys.
        memory: the container's whole memory, a Kubernetes quantity.
        spark_conf: the user's settings. ``spark.<role>.memory`` sets the heap. For executors, Spark adds off-heap
            memory to what it asks Kubernetes for, so it is taken from the overhead here. It does not add
            ``spark.executor.pyspark.memory`` in client mode: that only bounds Python workers within the overhead.

    Raises:
        SpecError: a size cannot be read, or the parts do not fit into the container.
    """
    field = f"spec.{role}.resources.requests.memory"
    total = mebibytes(field, memory)
    key = f"spark.{role}.memory"
    heap = _jvm_mebibytes(key, spark_conf[key]) if key in spark_conf else total * HEAP_PERCENT // 100
    asked_beside = _asked_beside(spark_conf) if role == "executor" else 0
    if heap < SMALLEST_HEAP_MIB:
        raise SpecError(field, _too_small(total, heap, key, key in spark_conf))
    if heap + asked_beside >= total:
        raise SpecError(
            field,
            messages.no_memory_left(total, heap, asked_beside, key),
        )
    return MemorySplit(heap_mib=heap, overhead_mib=total - heap - asked_beside)


def _too_small(total: int, heap: int, key: str, heap_was_set: bool) -> str:
    if heap_was_set:
        return messages.heap_too_small(key, heap, SMALLEST_HEAP_MIB)
    least = -(-SMALLEST_HEAP_MIB * 100 // HEAP_PERCENT)
    return messages.memory_too_small(total, heap, SMALLEST_HEAP_MIB, least)


def _asked_beside(spark_conf: Mapping[str, str]) -> int:
    if spark_conf.get("spark.memory.offHeap.enabled", "").lower() != "true":
        return 0
    return _jvm_mebibytes("spark.memory.offHeap.size", spark_conf.get("spark.memory.offHeap.size", "0"), bare="b")


def _jvm_mebibytes(key: str, text: str, bare: str = "m") -> int:
    # What a number without a unit means differs by key: MiB for heaps, bytes for off-heap memory.
    match = _JVM_SIZE.fullmatch(text.strip()) if len(text) <= _LONGEST_SIZE else None
    if match is None:
        raise SpecError(f"spec.sparkConf[{key}]", messages.no_size(text[:_LONGEST_SIZE]))
    number, unit = match.groups()
    return int(int(number) * _JVM_UNITS[(unit or bare).lower()])
