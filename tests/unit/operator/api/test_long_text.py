"""Text that anybody may write is read in as many steps as it has characters: who looks twice at each does not end here.

The texts are such that a regular expression which tries again from each place needs 10**12 steps for them: a megabyte
in ``make test-all``, a third of it at the gate, which is still 10**11.
"""

import json
from collections.abc import Callable
from contextlib import suppress

import pytest

from tidegate.api.foreign_text import (
    is_about_object,
    is_by_limit_range,
    limit_range_demands,
    missing_for_admission,
    missing_object,
    names_limit_range,
    only_lists_volumes,
    split_validation_error,
    with_paths,
    without_ids,
    without_prefix,
    wrong_type,
)
from tidegate.api.values.errors import SpecError
from tidegate.api.values.plain_secrets import without_secrets, without_secrets_of
from tidegate.api.values.quantity import parse_quantity
from tidegate.api.values.times import fault_of
from tidegate.pods.builders.storage_pod import variables_in
from tidegate.pods.spark.java_options import files_named
from tidegate.pods.spark.memory import split_memory
from tidegate.pods.spark.settings import task_slots
from tidegate_spark.contract.secret_shapes import is_literal, names_a_secret, without_shapes
from tidegate_spark.inspect.conditions import conditions_of_filter, conditions_of_key
from tidegate_spark.inspect.errors import BadQuestionError
from tidegate_spark.process.environment import expanded
from tidegate_spark.process.faults.foreign_text import (
    kafka_range_in,
    last_cause,
    missing_module_in,
    names_plan,
    names_state_schema,
    numbered_files,
    python_error_in,
    topic_partitions_in,
)
from tidegate_spark.process.redaction import Secrets, Stream
from tidegate_testing.examples import gate_share

LONG = gate_share(1024 * 1024)
KEY = "correct horse"
SCHEMA = {"key": {"type": "struct", "fields": [{"name": "a", "type": "string", "nullable": True, "metadata": {}}]}}
PIECES = (
    *(
        "a",
        "1",
        "1.",
        ".",
        "$(",
        "(",
        "[",
        "[[",
        "{",
        "'",
        '"',
        "`",
        "\\",
        "=",
        " ",
        "\n",
        "/",
        "a.",
        "-",
        "1e",
        "0 ",
        "*/1,",
    ),
    *(
        "spec[",
        "metadata.",
        "maximum ",
        "x max limit ",
        "path=",
        'configmap "',
        'pods "',
        "no PriorityClass with name ",
        "references non-existent config key: ",
        "0123456789abcdef",
        "json: cannot unmarshal ",
        "Caused by: ",
        "a.b.",
        "token",
    ),
    *(
        "://",
        "://a:b",
        "eyJ",
        "eyJaaaaaaaa.",
        "-----BEGIN ",
        "-----BEGIN PRIVATE KEY-----",
        "ghp_",
        "AKIA",
        "AccountKey=",
        "password=",
        "?password=",
        'password="',
        "password   ",
        "${",
        "/a",
        "xoxb-1",
        "secret.",
    ),
    *(
        "KafkaIllegalStateException: Some data may have been lost",
        "Could not read records in offset [1, ",
        "path=/1",
        "No module named 'a",
        "$",
        "-Dhttp.",
        "a-1",
    ),
    *("a=1 and ", "[STATE_STORE_KEY_SCHEMA_", "Traceback (most recent call last)", "_key", "x: y"),
)
READERS: dict[str, Callable[[str], object]] = {
    "variables": variables_in,
    "options of a JVM": lambda text: files_named({"spark.driver.extraJavaOptions": text}),
    "argument": lambda text: expanded([text], {"a": "b"}),
    "quantity": lambda text: parse_quantity("spec.driver.resources.requests.cpu", text),
    "size of a heap": lambda text: split_memory("driver", "2Gi", {"spark.driver.memory": text}),
    "cores of a task": lambda text: task_slots(2, {"spark.task.cpus": text}),
    "schedule": lambda text: fault_of(text, "UTC"),
    "time zone": lambda text: fault_of("0 * * * *", text),
    "name of a secret": names_a_secret,
    "value of a secret": is_literal,
    "shape of a secret": without_shapes,
    "version": lambda text: without_secrets(json.dumps({"application.args": [text], "sparkConf": {text: text}})),
    "answer about a pod": lambda text: without_secrets_of({"kind": "Pod", "spec": {"x": text}}, text),
    "output": lambda text: Stream(Secrets([KEY])).feed(text.encode()),
    "filter": lambda text: conditions_of_filter(text, SCHEMA),
    "key": lambda text: conditions_of_key(text, SCHEMA),
    "answer of the API server": lambda text: (is_about_object(text), is_by_limit_range(text), without_prefix(text)),
    "complaint": lambda text: (names_limit_range(text), wrong_type(text), split_validation_error(text)),
    "demands of a LimitRange": limit_range_demands,
    "event of a pod": lambda text: (missing_object(text), only_lists_volumes(text), without_ids(text)),
    "answer of admission": missing_for_admission,
    "paths": lambda text: with_paths(text, str.upper),
    "causes": lambda text: last_cause(RuntimeError(text)),
    "conditions of Spark": lambda text: (names_state_schema(text), names_plan(text)),
    "list of files": numbered_files,
    "missing module": missing_module_in,
    "range of Kafka's": lambda text: (kafka_range_in(text), topic_partitions_in(text)),
    "traceback": lambda text: python_error_in("Traceback (most recent call last)" + text),
}


@pytest.mark.parametrize("piece", PIECES)
@pytest.mark.parametrize("reader", READERS)
def test_a_megabyte_of_anything_is_read_in_one_go_or_refused(reader: str, piece: str) -> None:
    for end in ("", "!", ")"):
        with suppress(SpecError, ValueError, BadQuestionError):
            READERS[reader](piece * (LONG // len(piece)) + end)


def test_variables_are_found_as_kubernetes_finds_them() -> None:
    assert variables_in("a$(B)$(C)$(unfinished") == {"B", "C"}
    assert variables_in("no $variable (here)") == set()
