"""What Spark's offline repartition can divide, and what is said of the rest. Pure."""

import re
from pathlib import Path

import pytest

from tidegate_spark.contract.protocol import (
    EXIT_APPLICATION,
    EXIT_DEPENDENCY,
    EXIT_OK,
    Storage,
    Termination,
    from_json,
    to_json,
)
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.repartition_protocol import (
    OPERATORS,
    WITH_STATE,
    Repartition,
    RepartitionedQuery,
    RepartitionEnd,
    find_obstacle,
    needs_repartition,
    second_way,
)
from tidegate_spark.contract.snapshot_protocol import StateFacts
from tidegate_spark.queries.sinks.file_sinks import lacks
from tidegate_spark.repartition.pod import exit_code
from tidegate_spark.repartition.pod_settings import config_for_spark, end_of
from tidegate_testing.driver_process import driver_config

CONFIG = driver_config("orders", "local:///main.py", Storage("s3://here/apps/orders"))


@pytest.mark.parametrize("operator", sorted(OPERATORS))
@pytest.mark.parametrize("version", ["4.2.0", "4.2.1", "4.3.0", "4.10.0-SNAPSHOT", "5.0", ""])
def test_each_operator_that_spark_knows_the_keys_of_can_be_repartitioned(operator: str, version: str) -> None:
    assert find_obstacle({"main": StateFacts("RocksDB", 4, (operator,))}, 8, version) is None


@pytest.mark.parametrize("version", ["3.5.6", "4.0.1", "4.1.2"])
def test_a_spark_that_can_not_is_told_by_its_version(version: str) -> None:
    obstacle = find_obstacle({"main": StateFacts("RocksDB", 4, ("dedupe",))}, 8, version)
    assert obstacle is not None
    assert obstacle.what is Reason.SPARK_TOO_OLD
    assert "4.2" in obstacle.message


@pytest.mark.parametrize(
    ("operators", "named"),
    [
        (("transformWithStateInPySparkExec",), True),
        (("transformWithStateExec", "dedupe"), False),
        (("stateStoreSave",), False),
    ],
)
def test_the_second_way_is_named_for_state_that_a_script_can_start_from(
    operators: tuple[str, ...], named: bool
) -> None:
    obstacle = find_obstacle({"main": StateFacts("RocksDB", 4, operators)}, 8, "4.1.2")
    assert obstacle is not None
    assert ("startFrom.exportedState" in obstacle.message) == named
    assert ("docs/recipes.md" in obstacle.message) == named


def test_the_recipe_of_the_second_way_is_where_the_message_says() -> None:
    (title,) = re.findall(r"docs/recipes.md, '(.*?)'", second_way({"main": StateFacts("RocksDB", 4, (WITH_STATE,))}, 8))
    recipes = Path(__file__).parents[4] / "docs" / "recipes.md"
    assert f"\n## {title}\n" in recipes.read_text()


def test_one_query_that_can_not_be_repartitioned_is_enough_and_is_named() -> None:
    facts = {
        "fits": StateFacts("RocksDB", 4, ("dedupe",)),
        "limit": StateFacts("RocksDB", 4, ("stateStoreSave", "globalLimit")),
    }
    obstacle = find_obstacle(facts, 8, "4.2.1")
    assert obstacle is not None
    assert obstacle.what is Reason.UNSUPPORTED_OPERATOR
    assert "'limit'" in obstacle.message
    assert "globalLimit" in obstacle.message


def test_what_has_the_number_already_or_no_state_is_nobodys_business() -> None:
    facts = {"stateless": StateFacts(), "there": StateFacts("HDFS", 8, ("globalLimit",))}
    assert not needs_repartition(facts, 8)
    assert find_obstacle(facts, 8, "3.5.0") is None
    assert needs_repartition(facts, 4)


@pytest.mark.parametrize(
    ("names", "batch", "gap"),
    [
        ([], 5, False),
        (["4"], 5, True),
        (["3", "4", ".4.crc"], 5, True),
        (["9.compact", "8"], 10, True),
        (["4", "5"], 5, False),
        (["6"], 5, False),
        (["2"], 5, False),
    ],
)
def test_a_file_sinks_log_gets_an_entry_for_the_batch_that_it_ends_right_before(
    names: list[str], batch: int, gap: bool
) -> None:
    assert lacks(names, batch) == gap


def test_spark_is_started_for_the_new_lineage_without_executors() -> None:
    config = config_for_spark(CONFIG, Repartition(8, "up-1", 1, 2, heap_mib=900, spark_conf={"spark.hadoop.a": "b"}))
    assert (config.lineage, config.state_partitions, config.driver_heap_mib) == (2, 8, 900)
    assert (config.executor.instances, config.spark_conf) == (0, {"spark.hadoop.a": "b", "spark.ui.enabled": "false"})


@pytest.mark.parametrize(
    ("what", "reason", "code"),
    [
        (Reason.SPARK_FAILED, None, EXIT_APPLICATION),
        (Reason.FENCED, None, EXIT_APPLICATION),
        (Reason.DEPENDENCY_UNAVAILABLE, Reason.STORAGE_UNAVAILABLE, EXIT_DEPENDENCY),
    ],
)
def test_the_exit_code_tells_what_another_attempt_may_mend(what: Reason, reason: Reason | None, code: int) -> None:
    end = end_of(CONFIG, what, "words", reason)
    assert (exit_code(end), end.repartition) == (code, RepartitionEnd(what))
    assert exit_code(Termination(Reason.COMPLETED, "", 1)) == EXIT_OK


def test_the_last_words_are_read_as_they_were_written() -> None:
    end = RepartitionEnd(lineage=2, queries={"main": RepartitionedQuery(9, 1000, 4)}, seconds={"spark": 1.5})
    said = Termination(Reason.COMPLETED, "words", 3, repartition=end)
    assert from_json(Termination, to_json(said)) == said
