"""Where queries write, and what of that a fork must not do. Pure, and with stores in memory."""

from typing import Any

import pytest

from tidegate_spark.contract.protocol import Storage
from tidegate_spark.queries.sinks.output_registry import (
    ORIGIN_FILE,
    OUTPUTS_FILE,
    OutputRegistry,
    read_outputs,
    take_along,
)
from tidegate_spark.queries.sinks.outputs import Output, Outputs, is_same, output_of, refusal
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_testing.driver_process import driver_config
from tidegate_testing.memory_store import Buckets, Call, MemoryStore

TOPIC = Output("kafka", "decisions", ("a:9092", "b:9092"))
FUNCTION = Output("foreachbatch")
ORIGINAL = Outputs("s3://here/apps/orders", "f00d", {"decisions": TOPIC, "told": FUNCTION})


@pytest.mark.parametrize(
    ("kind", "table", "options", "output"),
    [
        ("kafka", "", {"topic": "decisions", "kafka.bootstrap.servers": "b:9092, a:9092"}, TOPIC),
        ("Kafka", "", {"kafka.bootstrap.servers": "a:9092"}, Output("kafka", "", ("a:9092",))),
        ("parquet", "", {"path": "s3://out//counts/"}, Output("path", "s3a://out/counts")),
        ("delta", "", {"path": "s3a://out/counts"}, Output("path", "s3a://out/counts")),
        ("parquet", "Shop.Counts", {"path": "s3a://out"}, Output("table", "shop.counts")),
        ("console", "", {}, None),
        ("noop", "", {"path": "/out"}, None),
        ("foreachBatch", "", {"path": "/out"}, FUNCTION),
        ("rabbit", "", {"queue": "q"}, Output("rabbit")),
    ],
)
def test_where_a_query_writes(kind: str, table: str, options: dict[str, str | None], output: Output | None) -> None:
    assert output_of(kind, table, options) == output


@pytest.mark.parametrize(
    ("other", "same"),
    [
        (Output("kafka", "decisions", ("b:9092", "c:9092")), True),
        (Output("kafka", "decisions", ("elsewhere:9092",)), False),
        (Output("kafka", "decisions-b", ("a:9092",)), False),
        (Output("kafka", "", ("a:9092",)), False),
        (Output("path", "decisions"), False),
    ],
)
def test_topics_are_one_if_they_share_a_broker(other: Output, same: bool) -> None:
    assert is_same(TOPIC, other) is same
    assert is_same(other, TOPIC) is same


def test_what_is_not_known_is_not_the_same() -> None:
    assert not is_same(FUNCTION, FUNCTION)


def test_a_refusal_names_both_queries_the_field_and_what_to_do() -> None:
    why = refusal("mine", TOPIC, "other", ORIGINAL)
    assert "topic 'decisions' of a:9092,b:9092, where query 'decisions' of" in why
    assert "s3://here/apps/orders" in why
    assert "option topic of writeStream" in why
    assert "spec.startFrom.outputs to TakeOver" in why


@pytest.mark.parametrize(
    ("name", "program", "refused"),
    [("told", "f00d", True), ("told", "beef", False), ("told", "", False), ("another", "f00d", False)],
)
def test_a_function_is_refused_only_if_everything_about_it_is_the_originals(
    name: str, program: str, refused: bool
) -> None:
    assert bool(refusal(name, FUNCTION, program, ORIGINAL)) is refused


def test_a_function_in_the_place_of_a_topic_is_another_output() -> None:
    assert refusal("decisions", FUNCTION, "f00d", ORIGINAL) == ""


class Places:
    """An application and a fork of it, in one store."""

    def __init__(self) -> None:
        self.buckets = Buckets()
        self.requests: list[Call] = []

    def repository(self, app: str) -> SnapshotRepository:
        return SnapshotRepository(
            MemoryStore(self.buckets, "here", self.requests.append), f"apps/{app}", lambda seconds: None
        )

    def registry(self, app: str, original: Outputs | None = None, **fields: Any) -> OutputRegistry:
        config = driver_config(app, "local:///main.py", Storage(f"s3://here/apps/{app}"), **fields)
        return OutputRegistry(config, lambda: self.repository(app), original)


def test_a_fork_takes_along_where_its_original_writes_and_does_not_write_there() -> None:
    places = Places()
    assert places.registry("orders", program="f00d").refusal_of("decisions", TOPIC) == ""
    take_along(places.repository("orders"), places.repository("variant"))
    original = read_outputs(places.repository("variant"), ORIGIN_FILE)
    assert original == Outputs("s3://here/apps/orders", "f00d", {"decisions": TOPIC})
    fork = places.registry("variant", original)
    assert "where query 'decisions' of" in fork.refusal_of("decisions", TOPIC)
    assert read_outputs(places.repository("variant"), OUTPUTS_FILE) is None
    other = Output("kafka", "decisions-b", ("a:9092",))
    assert fork.refusal_of("decisions", other) == ""
    noted = read_outputs(places.repository("variant"), OUTPUTS_FILE)
    assert noted is not None
    assert noted.queries == {"decisions": other}


def test_all_queries_of_a_process_are_noted_and_what_is_noted_is_not_written_again() -> None:
    places = Places()
    registry = places.registry("orders")
    for name, output in [("decisions", TOPIC), ("told", FUNCTION), ("decisions", TOPIC), ("shown", None)]:
        assert registry.refusal_of(name, output) == ""
    noted = read_outputs(places.repository("orders"), OUTPUTS_FILE)
    assert noted is not None
    assert noted.queries == {"decisions": TOPIC, "told": FUNCTION}
    assert len([call for call in places.requests if call.verb == "put" and call.done]) == 2


def noted_by(places: Places) -> dict[str, Output]:
    noted = read_outputs(places.repository("orders"), OUTPUTS_FILE)
    assert noted is not None
    return noted.queries


def test_a_process_that_starts_again_does_not_forget_where_its_later_queries_write() -> None:
    """A fork that begins between its first query and its last one takes the note along as it is then."""
    places = Places()
    for name, output in [("decisions", TOPIC), ("judged", FUNCTION)]:
        places.registry("orders", program="f00d").refusal_of(name, output)
    again = places.registry("orders", program="f00d")
    moved = Output("kafka", "decisions-b", ("a:9092",))
    assert again.refusal_of("decisions", moved) == ""
    assert noted_by(places) == {"decisions": moved, "judged": FUNCTION}


@pytest.mark.parametrize(("before", "after"), [("f00d", "beef"), ("", "")])
def test_of_another_program_nothing_stays_noted(before: str, after: str) -> None:
    places = Places()
    places.registry("orders", program=before).refusal_of("judged", FUNCTION)
    places.registry("orders", program=after).refusal_of("decisions", TOPIC)
    assert noted_by(places) == {"decisions": TOPIC}


def test_a_store_that_does_not_answer_keeps_nothing_from_starting() -> None:
    def no_answer() -> SnapshotRepository:
        raise ConnectionError("no answer")

    config = driver_config("orders", "local:///main.py", Storage("s3://here/apps/orders"))
    assert OutputRegistry(config, no_answer).refusal_of("decisions", TOPIC) == ""


@pytest.mark.parametrize("text", [b"", b"[]", b"{}", b"no JSON"])
def test_a_note_that_can_not_be_read_says_nothing(text: bytes) -> None:
    places = Places()
    origin = places.repository("orders")
    origin.store.put(origin.key(OUTPUTS_FILE), text)
    take_along(origin, places.repository("variant"))
    assert read_outputs(places.repository("variant"), ORIGIN_FILE) is None


def test_an_application_without_a_note_leaves_none() -> None:
    places = Places()
    take_along(places.repository("orders"), places.repository("variant"))
    assert read_outputs(places.repository("variant"), ORIGIN_FILE) is None
