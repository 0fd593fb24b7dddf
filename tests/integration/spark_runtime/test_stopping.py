"""A driver that is told to stop stops between two batches, and its successor goes on with the next one."""

import asyncio
import json
from pathlib import Path

import pytest

from tidegate.agent import client as agent_client
from tidegate.agent.client import AgentClient, Unanswered
from tidegate.agent.session import launch_of
from tidegate.pods.records.record import PodRecord
from tidegate_spark.contract.protocol import EXIT_STOPPED, AgentReport, DriverState
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.driver_process import DriverProcess, ObjectStore
from tidegate_testing.observations import KEYS, app_with, launched, running_driver
from tidegate_testing.slow_clients import SLOW, SlowClients
from tidegate_testing.waiting import wait_for

from .conftest import SECRET, StartDriver, driver_logs


def logged_batches(store: ObjectStore, driver: DriverProcess, log: str, query: str = "main") -> list[int]:
    """Return the batch numbers in the ``offsets`` or ``commits`` log of the query's checkpoint."""
    place = driver.config.storage
    keys = store.keys(place.bucket, place.key("lineages", str(driver.config.lineage), query, log) + "/")
    return sorted(int(key.rpartition("/")[2]) for key in keys if key.rpartition("/")[2].isdigit())


def current(driver: DriverProcess) -> AgentReport:
    report = driver.report()
    assert report is not None
    return report


def signed_for(app: str) -> PodRecord:
    """Return the pod of an application that takes orders of the operator alone."""
    known = launched(app_with(name=app, namespace="tests", uid=f"uid-of-{app}"))
    return running_driver(known, ip="127.0.0.1", signs=True)


def ask_as_operator(pod: PodRecord) -> AgentReport | Unanswered:
    async def asked() -> AgentReport | Unanswered:
        async with AgentClient(KEYS, 1) as client:
            return await client.read_progress((pod.namespace, pod.app), pod)

    return asyncio.run(asked())


def await_report_to_operator(driver: DriverProcess, pod: PodRecord, batch: int, slow: SlowClients) -> None:
    """Wait until the operator knows of ``batch``, and more clients came again than one port's."""

    def reported() -> bool:
        driver.must_run()
        answer = ask_as_operator(pod)
        assert isinstance(answer, AgentReport), answer
        return answer.queries[0].batch_id >= batch and slow.cut > SLOW

    wait_for(f"a report of batch {batch}", reported, 1200, 0.2)


def test_a_back_to_back_query_beside_slow_clients_stops_at_a_batch_boundary_and_the_next_driver_goes_on_after_it(
    start_driver: StartDriver, object_store: ObjectStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    pod = signed_for("counting")
    access = {"token": KEYS.inspection_token(launch_of(pod)), "operator": KEYS.number(launch_of(pod))}
    first = start_driver("counting", "counting.py", agent_secret=pod.agent_secret, **access)
    monkeypatch.setattr(agent_client, "COMMAND_PORT", first.command_port)
    first.await_batch(3)

    report = current(first)
    assert report.state is DriverState.RUNNING
    notices = [notice.message for notice in report.notices]
    assert any("checkpointLocation of the script is not used" in message for message in notices)
    assert any("lineages/1/main" in message for message in notices)
    assert not any("/tmp/checkpoint-of-the-script" in message for message in notices)
    assert any("spark.master" in message and "local[*]" in message for message in notices)
    assert any("spec.state.partitions (2)" in message for message in notices)
    assert report.queries[0].state_rows == 5
    assert first.status("/healthz")[0] == 200
    wait_for("readiness", lambda: first.status("/readyz")[0] == 200, 180)
    metrics = first.status("/metrics")[1]
    assert 'tidegate_query_batch_id{app="counting",epoch="1",namespace="tests",query="main"}' in metrics
    assert "process_resident_memory_bytes" in metrics
    assert first.command("GET", "/v1/progress", token="another")[0] == 401
    assert first.command("POST", "/v1/stop", {}, token="")[0] == 401

    with SlowClients(first.status_port, first.command_port) as slow:
        await_report_to_operator(first, pod, first.batch() + 3, slow)
        assert first.status("/healthz") == (200, "ok\n")
        first.terminate()
        first.terminate()
        assert first.exit_code() == EXIT_STOPPED
    offsets = logged_batches(object_store, first, "offsets")
    assert offsets == logged_batches(object_store, first, "commits")
    assert first.termination.reason is Reason.STOPPED
    assert first.termination.boundary
    assert first.termination.batches == {"main": offsets[-1]}
    assert "the script goes on after awaitTermination" in first.output

    second = start_driver("counting", "counting.py", epoch=2)
    second.await_batch(offsets[-1] + 2)
    assert second.command("POST", "/v1/executors", {"instances": 0})[0] == 400
    assert second.command("POST", "/v1/stop", {})[0] == 202
    assert second.exit_code() == EXIT_STOPPED
    numbers = logged_batches(object_store, second, "offsets")
    assert numbers == list(range(numbers[0], second.termination.batches["main"] + 1))
    assert second.termination.boundary

    place = second.config.storage
    claim = json.loads(object_store.text(place.bucket, place.key("app.json")))
    assert (claim["uid"], claim["epoch"]) == (second.config.uid, 2)
    kept = driver_logs(object_store, place)
    assert len(kept) == 2
    for log in kept:
        assert "the script goes on after awaitTermination" in log
        assert SECRET not in log
    # Two partitions by the spec, although the script asked for seven.
    state = object_store.keys(place.bucket, place.key("lineages/1/main/state/0") + "/")
    assert {key.split("/state/0/")[1].split("/")[0] for key in state} - {"_metadata"} == {"0", "1"}


def test_queries_that_wait_for_data_or_for_their_trigger_stop_once_and_at_once(
    start_driver: StartDriver, tmp_path: Path
) -> None:
    (tmp_path / "words").mkdir()
    (tmp_path / "words" / "a.txt").write_text("x\ny\nx\n")
    # With a long pause between two looks for data, the stop finds the query in that pause.
    pause = {"spark.sql.streaming.pollingDelay": "3s"}
    driver = start_driver("waiting", "waiting.py", args=(str(tmp_path / "words"),), spark_conf=pause)
    driver.await_batch(0, "idle")
    driver.await_batch(0, "sleeping")
    wait_for("readiness", lambda: driver.status("/readyz")[0] == 200, 180)
    driver.terminate()
    assert driver.exit_code() == EXIT_STOPPED
    assert driver.termination.boundary
    assert driver.termination.batches == {"idle": 0, "sleeping": 0}
    # A query that was stopped and still counted as active would be stopped again and again.
    assert driver.output.count("stopping: query 'idle'") == 1
    assert driver.output.count("stopping: query 'sleeping'") == 1


def test_a_script_that_stops_the_other_query_when_the_first_has_ended_does_not_cut_its_batch(
    start_driver: StartDriver,
) -> None:
    driver = start_driver("rest", "stops_the_rest.py")
    driver.await_batch(1, "quick")
    wait_for("a long batch", lambda: driver.ended() or "batch 1 begins" in driver.output, 600)
    driver.terminate()
    assert driver.exit_code() == EXIT_STOPPED
    assert driver.termination.boundary, driver.termination
    assert driver.termination.batches["slow"] >= 1
    assert "the script has stopped the rest" in driver.output


@pytest.mark.long
def test_a_batch_that_outlasts_the_grace_period_is_said_to_be_unfinished_and_run_again(
    start_driver: StartDriver, object_store: ObjectStore
) -> None:
    driver = start_driver("slow", "slow_batch.py", args=("600",), stop_grace_seconds=10)
    wait_for("the second batch", lambda: driver.ended() or "batch 1 begins" in driver.output, 600)
    driver.terminate()
    assert driver.exit_code() == EXIT_STOPPED
    assert not driver.termination.boundary
    assert "'main'" in driver.termination.message
    assert driver.termination.batches == {"main": 0}
    assert logged_batches(object_store, driver, "offsets") == [0, 1]

    again = start_driver("slow", "slow_batch.py", args=("0.1",), epoch=2)
    again.await_batch(1)
    assert "batch 1 begins" in again.output
    assert "batch 0 begins" not in again.output
    # This script never ends by itself.
    again.terminate()
    assert again.exit_code() == EXIT_STOPPED
    assert again.termination.boundary
