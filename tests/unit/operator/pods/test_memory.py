"""The division of a container's memory."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidegate.api.values.errors import SpecError
from tidegate.pods.spark.memory import SMALLEST_HEAP_MIB, MemorySplit, split_memory

SPLITS: dict[str, tuple[str, str | int, dict[str, str], MemorySplit]] = {
    "60 % is heap": ("driver", "2Gi", {}, MemorySplit(1228, 820)),
    "a number is bytes": ("executor", 2**30, {}, MemorySplit(614, 410)),
    "the user's heap": ("driver", "2Gi", {"spark.driver.memory": "1g"}, MemorySplit(1024, 1024)),
    "a heap without unit is MiB": ("executor", "2Gi", {"spark.executor.memory": "700"}, MemorySplit(700, 1348)),
    "the other one's heap": ("driver", "2Gi", {"spark.executor.memory": "1g"}, MemorySplit(1228, 820)),
    "off-heap memory that is on": (
        "executor",
        "2Gi",
        {"spark.memory.offHeap.enabled": "true", "spark.memory.offHeap.size": "256m"},
        MemorySplit(1228, 564),
    ),
    "off-heap memory that is off": ("executor", "2Gi", {"spark.memory.offHeap.size": "256m"}, MemorySplit(1228, 820)),
    "off-heap memory in bytes": (
        "executor",
        "2Gi",
        {"spark.memory.offHeap.enabled": "TRUE", "spark.memory.offHeap.size": str(2**27)},
        MemorySplit(1228, 692),
    ),
    "a bound on Python is part of the rest": (
        "executor",
        "2Gi",
        {"spark.executor.pyspark.memory": "512m"},
        MemorySplit(1228, 820),
    ),
}


@pytest.mark.parametrize(("role", "memory", "conf", "split"), SPLITS.values(), ids=SPLITS.keys())
def test_memory_is_split(role: str, memory: str | int, conf: dict[str, str], split: MemorySplit) -> None:
    assert split_memory(role, memory, conf) == split


IMPOSSIBLE: dict[str, tuple[str, str | int, dict[str, str], str]] = {
    "too small for Spark": (
        "driver",
        "700Mi",
        {},
        r"spec\.driver\.resources\.requests\.memory: .*give it 750Mi or more",
    ),
    "a heap too small for Spark": (
        "driver",
        "2Gi",
        {"spark.driver.memory": "100m"},
        r"spark\.driver\.memory .*450 MiB",
    ),
    "a heap as large as the container": (
        "executor",
        "2Gi",
        {"spark.executor.memory": "2g"},
        r"spec\.executor\.resources\.requests\.memory: 2048 MiB cannot hold .* lower spark\.executor\.memory",
    ),
    "a heap that is no size": ("driver", "2Gi", {"spark.driver.memory": "much"}, r"sparkConf\[spark\.driver\.memory\]"),
    "memory that is no size": (
        "driver",
        "much",
        {},
        r"spec\.driver\.resources\.requests\.memory: 'much' is no quantity",
    ),
}


@pytest.mark.parametrize(("role", "memory", "conf", "message"), IMPOSSIBLE.values(), ids=IMPOSSIBLE.keys())
def test_what_does_not_fit_is_an_error_that_says_what_to_change(
    role: str, memory: str | int, conf: dict[str, str], message: str
) -> None:
    with pytest.raises(SpecError, match=message):
        split_memory(role, memory, conf)


@given(total=st.integers(min_value=750, max_value=2**20))
def test_the_parts_are_the_whole_and_spark_starts(total: int) -> None:
    split = split_memory("executor", f"{total}Mi", {})
    assert split.heap_mib + split.overhead_mib == total
    assert split.heap_mib >= SMALLEST_HEAP_MIB
    assert split.overhead_mib > 0
