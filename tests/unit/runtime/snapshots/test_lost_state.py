"""Whether a query that finds no state had committed some: a lost file, or a version with a new operator."""

from types import SimpleNamespace
from typing import Any

import pytest
from botocore.parsers import ResponseParserError

from tests.scenario.object_store import ObjectStore, StoreClient
from tidegate_spark.contract.protocol import Storage
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.driver.launch_storage import LaunchStorage
from tidegate_spark.monitoring import watch
from tidegate_spark.process.outcome import Outcome
from tidegate_spark.snapshots.checkpoint import lost_state
from tidegate_spark.snapshots.checkpoint.lost_state import lost_of
from tidegate_spark.storage import s3_client
from tidegate_testing.driver_process import driver_config

PLACE = Storage("s3://streams/apps/shop/orders")
ROOT = "streams/apps/shop/orders/lineages"
STATEFUL = b'v2\n{"nextBatchWatermarkMs":0,"stateUniqueIds":{"0":[["a"],["b"]],"1":[["c"],["d"]]}}'
STATELESS = b'v2\n{"nextBatchWatermarkMs":0,"stateUniqueIds":{}}'
FORMAT_1 = b'v1\n{"nextBatchWatermarkMs":0}'


def lost(objects: dict[str, bytes], query: str = "counts") -> str:
    client: Any = StoreClient(ObjectStore({f"{ROOT}/{key}": body for key, body in objects.items()}))
    return lost_of(client, PLACE, 1, query)


def state_of(*operators: int) -> dict[str, bytes]:
    return {f"1/counts/state/{operator}/0/7_ab.changelog": b"" for operator in operators}


def test_state_that_the_newest_commit_names_and_that_is_gone_is_lost() -> None:
    logs = {"1/counts/commits/9": STATELESS, "1/counts/commits/10": STATEFUL, "1/counts/offsets/11": b"v1"}
    assert lost(logs) == "lineages/1/counts/state/0/"
    assert lost({**logs, **state_of(0)}) == "lineages/1/counts/state/1/"
    assert lost({**logs, **state_of(0, 1)}) == ""


@pytest.mark.parametrize("commit", [STATELESS, FORMAT_1, b"v9\n{}", b"", b"v2\n[]"])
def test_a_query_that_had_committed_no_state_or_of_which_that_is_not_known_has_lost_none(commit: bytes) -> None:
    assert lost({"1/counts/commits/10": commit}) == ""


def test_another_lineage_and_a_query_without_a_commit_say_nothing() -> None:
    assert lost({"2/counts/commits/3": STATEFUL, "11/counts/commits/3": STATEFUL, "1/counts/offsets/0": b"v1"}) == ""
    assert lost({}) == ""


def test_what_another_query_has_left_says_nothing_of_the_one_that_failed() -> None:
    logs = {"1/counts/commits/10": STATELESS, "1/counts-2/commits/2": STATEFUL, "1/removed/commits/2": STATEFUL}
    assert lost(logs) == ""
    assert lost(logs, "removed") == "lineages/1/removed/state/0/"


NO_STATE = "Query {!r}: [STREAMING_STATEFUL_OPERATOR_MISSING_STATE_DIRECTORY] State is gone."


def failed(monkeypatch: pytest.MonkeyPatch, **messages: str) -> Any:
    """Return queries that have failed, by the names of their directories."""
    ends = {name: Outcome(Reason.APPLICATION_FAILED, text) for name, text in messages.items()}
    monkeypatch.setattr(watch, "outcome_of", lambda entry: ends.get(entry.directory))
    return SimpleNamespace(entries=lambda: [SimpleNamespace(directory=name) for name in (*messages, "running")])


def test_the_query_that_found_no_state_is_the_one_that_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = NO_STATE.format("a"), NO_STATE.format("b")
    raised = Outcome(Reason.APPLICATION_FAILED, a.partition(": ")[2] + " (/app/main.py, line 7)")
    queries = failed(monkeypatch, a=a, b="Query 'b': another fault")
    assert watch.directory_without_state(queries, raised) == "a"
    queries = failed(monkeypatch, a=a, b=b)
    assert watch.directory_without_state(queries, Outcome(Reason.APPLICATION_FAILED, b)) == "b"
    assert watch.directory_without_state(queries, raised) == ""


def storage(monkeypatch: pytest.MonkeyPatch, objects: dict[str, bytes]) -> LaunchStorage:
    nothing: Any = None
    client = StoreClient(ObjectStore({f"{ROOT}/{key}": body for key, body in objects.items()}))
    monkeypatch.setattr(s3_client, "connect", lambda *_: client)
    return LaunchStorage(driver_config("orders", "local:///main.py", PLACE), nothing, nothing, nothing, nothing)


def test_the_end_of_a_query_that_lost_its_state_is_the_storages_fault(monkeypatch: pytest.MonkeyPatch) -> None:
    end = Outcome(Reason.APPLICATION_FAILED, NO_STATE.format("counts"))
    found = storage(monkeypatch, {"1/counts/commits/10": STATEFUL}).with_lost_state(end, lambda: "counts")
    assert (found.reason, "lineages/1/counts/state/0/" in found.message) == (Reason.CHECKPOINT_FILE_MISSING, True)
    assert storage(monkeypatch, {"1/counts/commits/10": STATEFUL}).with_lost_state(end, lambda: "") == end


@pytest.mark.parametrize("error", [RecursionError("nested"), ResponseParserError("no XML"), OSError("no JVM")])
def test_whatever_keeps_it_from_being_found_out_hides_nothing(
    monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    def fails(*_: object) -> str:
        raise error

    end = Outcome(Reason.APPLICATION_FAILED, NO_STATE.format("counts"))
    assert storage(monkeypatch, {}).with_lost_state(end, fails) == end
    monkeypatch.setattr(lost_state, "lost_of", fails)
    assert storage(monkeypatch, {}).with_lost_state(end, lambda: "counts") == end
