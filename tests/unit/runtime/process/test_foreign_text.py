"""Each condition of Spark's by which a text is recognized is one that the Spark here has. Reads pyspark's jars."""

import json
import re
import zipfile
from pathlib import Path

import pyspark
import pytest

from tidegate_spark.process.faults.foreign_text import (
    PLAN_CONDITIONS,
    STATE_SCHEMA_CONDITIONS,
    names_plan,
    names_state_schema,
    numbered_files,
)

JARS = Path(pyspark.__file__).parent / "jars"
ASSERTING = "org/apache/spark/sql/execution/streaming/checkpointing/OffsetSeqBase.class"


def in_jar(jar: str, name: str) -> bytes:
    (path,) = JARS.glob(f"{jar}[_-][0-9]*.jar")
    with zipfile.ZipFile(path) as found:
        return found.read(name)


@pytest.fixture(scope="module")
def conditions() -> set[str]:
    return set(json.loads(in_jar("spark-common-utils", "error/error-conditions.json")))


@pytest.mark.parametrize("pattern", [*STATE_SCHEMA_CONDITIONS, *PLAN_CONDITIONS])
def test_spark_has_a_condition_that_is_looked_for(conditions: set[str], pattern: str) -> None:
    assert [name for name in conditions if re.fullmatch(pattern, name)] != []


def test_a_condition_that_spark_has_is_recognized_in_its_message(conditions: set[str]) -> None:
    of_schema = {name for name in conditions if names_state_schema(f"[{name}] What is wrong. SQLSTATE: 42K06")}
    of_plan = {name for name in conditions if names_plan(f"[{name}.SUB_CLASS] What is wrong. SQLSTATE: 42K06")}
    assert {"STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE", "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE"} <= of_schema
    assert {"STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA", "STREAMING_OUTPUT_MODE"} <= of_plan
    assert of_schema & of_plan == set()


def test_what_spark_asserts_without_a_condition_is_in_its_code() -> None:
    assert b"sources in the checkpoint offsets and now there are" in in_jar("spark-sql", ASSERTING)


def test_of_a_listing_of_hadoops_those_files_are_read_whose_names_are_numbers() -> None:
    shown = in_jar("hadoop-client-api", "org/apache/hadoop/fs/FileStatus.class")
    assert all(part in shown for part in (b"path=", b"; isDirectory="))
    listing = (
        "FileStatus{path=file:/orders/offsets/10; isDirectory=false; length=12}\n"
        "S3AFileStatus{path=s3a://b/orders/offsets/9; isDirectory=false; length=12}\n"
        "FileStatus{path=file:/orders/offsets/.9.crc; isDirectory=false; length=12}"
    )
    assert numbered_files(listing) == [9, 10]
