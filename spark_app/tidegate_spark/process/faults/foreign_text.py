"""The only module of the runtime that reads text written by Spark, Hadoop, the JVM and brokers for people. No I/O.

Tests hold the patterns to the real thing: tests/unit/runtime/process/test_foreign_text.py,
tests/integration/spark_runtime/test_rehearsals.py and test_exports.py, tests/integration/control_channels. Text that is
not recognized is no error: it is shown as it is.
"""

from __future__ import annotations

import re

STATE_SCHEMA_CONDITIONS = (
    r"STATE_STORE_(?:KEY|VALUE)_SCHEMA_\w+",
    r"STATE_STORE_(?:KEY|VALUE)_ROW_FORMAT_\w+",
    r"STATE_STORE_COLUMN_FAMILY_SCHEMA_\w+",
    r"STATE_STORE_INVALID_VALUE_SCHEMA_EVOLUTION",
    r"STATE_STORE_INVALID_VARIABLE_TYPE_CHANGE",
    r"STATE_STORE_STATE_SCHEMA_FILES_\w+",
    r"TRANSFORM_WITH_STATE_SCHEMA_\w+",
)
PLAN_CONDITIONS = (
    r"STREAMING_STATEFUL_OPERATOR_\w+",
    r"STATE_STORE_INVALID_CONFIG_AFTER_RESTART",
    r"STREAMING_QUERY_EVOLUTION_ERROR",
    r"STREAMING_OUTPUT_MODE",
    r"STREAMING_REAL_TIME_MODE",
)
"""Names of Spark's error conditions, as patterns; a message starts with its own, in brackets."""
_STATE_SCHEMA = re.compile(rf"\[(?:{'|'.join(STATE_SCHEMA_CONDITIONS)})[.\]]")
_PLAN = re.compile(
    rf"\[(?:{'|'.join(PLAN_CONDITIONS)})[.\]]"
    # Spark asserts this, and has no condition for it.
    r"|sources in the checkpoint offsets and now there are"
)
_NO_STATE = "[STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY]"
_NO_HEAP = ("OutOfMemoryError", "Java heap space", "GC overhead limit exceeded", "array size exceeds VM limit")
# Py4J puts a colon before the first exception of a JVM.
_CAUSE = re.compile(r"(?:Caused by: |: )?[\w.$]+(?:Exception|Error|Failed): (?P<why>.+)")
_NUMBERED_FILE = re.compile(r"/([0-9]{1,19}); isDirectory=")
_PYTHON_ERROR = re.compile(r"(?P<name>[A-Za-z_][\w.]*)(?:: (?P<message>.*))?$")
_NO_MODULE = re.compile(r"No module named '(?P<name>[^']+)'")
LONGEST_CAUSE = 1000
_TOPIC_PARTITION = re.compile(r"(?<![\w.-])(?P<topic>[\w.-]+)-(?P<partition>\d+)(?![\w.-])")
"""Of topic names, Kafka allows these characters and no others."""
_KAFKA_LOSS = "KafkaIllegalStateException: Some data may have been lost"
_KAFKA_RANGE = re.compile(
    r"Could not read records in offset \[(?P<startOffset>\d+), (?P<endOffset>\d+)\) "
    r"for topic partition (?P<topicPartition>\S+)"
)


def names(message: str, text: str) -> bool:
    """Return whether a text has the words that a rule is about (see tidegate_spark.process.faults.faults.RULES)."""
    return message in text


def names_state_schema(text: str) -> bool:
    """Return whether Spark says that the state has another schema, by its error conditions in brackets."""
    return _STATE_SCHEMA.search(text) is not None


def names_plan(text: str) -> bool:
    """Return whether Spark says that a query does not fit its checkpoint, or is none that it runs."""
    return _PLAN.search(text) is not None


def names_missing_state(text: str) -> bool:
    """Return whether Spark says that a query with state finds none in its checkpoint."""
    return _NO_STATE in text


def names_lack_of_heap(text: str) -> bool:
    """Return whether a JVM says that it needed more memory than it has; of a cause there is no more than its words."""
    return any(message in text for message in _NO_HEAP)


def names_unresolved_bootstrap(text: str) -> bool:
    """Return whether Kafka's clients cannot look up a broker's name, which they call a fault of the settings."""
    return "bootstrap" in text and "resolv" in text


def names_exclusive_use(text: str) -> bool:
    """Return whether RabbitMQ refuses a queue because it has another reader."""
    return "exclusive" in text


def last_cause(error: Exception) -> str:
    """Return what an exception of Spark's comes down to: the last cause that it names, without a stack."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    causes = [found["why"] for found in map(_CAUSE.match, lines) if found is not None]
    return (causes or lines or [type(error).__name__])[-1 if causes else 0][:LONGEST_CAUSE]


def numbered_files(listing: str) -> list[int]:
    """Return the names that are numbers, sorted, of the files in Hadoop's text of their statuses."""
    return sorted(int(name) for name in _NUMBERED_FILE.findall(listing))


def python_error_in(text: str) -> tuple[str, str] | None:
    """Return class and message of the Python exception whose traceback a text holds, None if it holds none.

    Errors of Python workers and of foreachBatch functions reach the JVM only in that form.
    """
    _, found, traceback = text.rpartition("Traceback (most recent call last)")
    if not found:
        return None
    for line in reversed(traceback.splitlines()):
        match = _PYTHON_ERROR.match(line)
        if match and match["name"].rpartition(".")[2][:1].isupper():
            return match["name"], match["message"] or ""
    return None


def missing_module_in(text: str) -> str:
    """Return the module that Python did not find, empty if a text does not say so."""
    found = _NO_MODULE.search(text)
    return found["name"] if found is not None else ""


def kafka_range_in(text: str) -> dict[str, str] | None:
    """Return what Spark's Kafka connector says of a range that a task could not read, by the names of its parameters.

    A failure inside a foreachBatch function reaches the JVM as the text of a Python exception, without a condition.
    """
    _, _, after = text.partition(_KAFKA_LOSS)
    found = _KAFKA_RANGE.search(after)
    return found.groupdict() if found is not None else None


def topic_partitions_in(text: str) -> list[tuple[str, int]]:
    """Return topics and partitions, as Kafka and Scala's collections write one or several of them."""
    return sorted((found["topic"], int(found["partition"])) for found in _TOPIC_PARTITION.finditer(text))


def first_line(text: str) -> str:
    """Return the first line of a text."""
    return text.strip().split("\n", 1)[0]
