"""The application under chaos accounts as its description says, and makes a mistake only if one is planted."""

import importlib.util
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from devcluster import paths
from tests.chaos.checker import check
from tests.chaos.records import Account, Output, Record, decode_output, decode_record, encode, value_of


@pytest.fixture(scope="module")
def script() -> ModuleType:
    path = Path(paths.ROOT / "tests/chaos/scripts/accounting.py")
    spec = importlib.util.spec_from_file_location("accounting", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Store:
    """Spark's state of one key."""

    def __init__(self) -> None:
        self.held: tuple[int, int, int] | None = None

    def getValueState(self, name: str, schema: str) -> "Store":  # noqa: N802 - Spark's name
        assert (name, schema.split(maxsplit=1)[0]) == ("account", "count")
        return self

    def get(self) -> tuple[int, int, int] | None:
        return self.held

    def update(self, value: tuple[int, int, int]) -> None:
        self.held = value


def records(count: int) -> list[Record]:
    return [Record(0, n, float(n), "a", n + 1, value_of("a", n + 1)) for n in range(count)]


def run(script: ModuleType, plant: str, batches: list[list[Record]]) -> tuple[list[Output], Mapping[str, Account]]:
    store, outputs = Store(), []
    processor = script.Accounts(plant)
    processor.init(store)
    for batch in batches:
        # The shuffle keeps no order.
        rows = [
            SimpleNamespace(**{n: getattr(r, n) for n in ("partition", "offset", "number", "value")}) for r in batch
        ]
        for row in processor.handleInputRows(("a",), reversed(rows), None):
            outputs.append(as_output(row))
    processor.close()
    assert store.held is not None
    return outputs, {"a": Account(*store.held)}


def as_output(row: Any) -> Output:
    partition, offset = row.id.split("/")
    return Output(int(partition), int(offset), 0.0, row.key, row["count"], row["sum"], row.last)


@pytest.mark.parametrize("cut", [1, 7, 29])
def test_however_the_input_is_cut_into_batches_the_outputs_are_right(script: ModuleType, cut: int) -> None:
    inputs = records(30)
    batches = [inputs[n : n + cut] for n in range(0, len(inputs), cut)]
    assert check(inputs, *run(script, "none", batches)).ok


@pytest.mark.parametrize(("plant", "amounts"), [("loss", (1, 0)), ("duplicate", (0, 1))])
def test_a_planted_mistake_is_found_where_it_was_planted(
    script: ModuleType, plant: str, amounts: tuple[int, int]
) -> None:
    inputs = records(30)
    verdict = check(inputs, *run(script, plant, [inputs[:12], inputs[12:]]))
    assert (verdict.amount("lost"), verdict.amount("doubled")) == amounts
    # What is doubled shows in the count of the next record.
    assert verdict.mistakes[0].number in {script.PLANTED_NUMBER, script.PLANTED_NUMBER + 1}


def test_records_are_read_back_as_they_were_sent() -> None:
    record = decode_record(2, 7, 12.5, encode("a", 3))
    assert record == Record(2, 7, 12.5, "a", 3, value_of("a", 3))


def test_a_record_that_was_changed_on_its_way_is_refused() -> None:
    with pytest.raises(ValueError, match="does not have the value"):
        decode_record(0, 0, 0.0, encode("a", 3).replace(b'"number": 3', b'"number": 4'))


def test_an_output_is_known_by_the_place_of_its_input() -> None:
    content = b'{"id":"3/41","key":"a","count":2,"sum":9,"last":2}'
    assert decode_output(1.0, content) == Output(3, 41, 1.0, "a", 2, 9, 2)
