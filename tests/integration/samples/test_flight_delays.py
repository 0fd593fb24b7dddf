"""The flights' sample under the real runtime, with real Spark, S3 and Kafka: killed, looked into, fixed, begun again.

What is predicted, and what a dump holds, is compared with an independent computation over the same records.
"""

import hashlib
import json
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from devcluster.demo.compare import read_topic
from devcluster.demo.flights_analysis import analyse
from devcluster.demo.flights_data import Record, records
from devcluster.demo.flights_dump import Dump, bucket, read_dump
from devcluster.demo.flights_oracle import BUILT_IN, Hindsight, Weights, expected_state
from devcluster.demo.flights_replay import FlightReplay
from devcluster.demo.flights_report import check
from devcluster.demo.replay import create_topics
from devcluster.demo.snapshot_cut import read_records
from devcluster.demo.watch import Once
from tests.integration.spark_runtime.conftest import ACCESS, SECRET, StartDriver
from tidegate_spark.contract.control_protocol import (
    CONTROL_COMMAND,
    ControlOrder,
    ControlOrders,
    MessageReport,
    MessageState,
)
from tidegate_spark.contract.protocol import EXIT_OK, to_json
from tidegate_spark.contract.snapshot_protocol import ExportOrder, SnapshotOrders
from tidegate_testing.driver_process import DriverProcess, ObjectStore
from tidegate_testing.snapshot_pods import run_pod
from tidegate_testing.waiting import wait_for

SAMPLE = Path(__file__).parents[3] / "spark_app" / "samples" / "flight_delays.py"
DEPARTURES = 5_000
RATE = 250.0
"""Records per second: so slow that messages come into force while flights leave."""
FINISHED = {MessageState.DONE, MessageState.FAILED, MessageState.REJECTED, MessageState.EXPIRED}


class Run:
    """One run of the sample, and what it has been told."""

    def __init__(self, start: StartDriver, store: ObjectStore, broker: str, folder: Path) -> None:
        self._start, self._store, self.broker, self._folder = start, store, broker, folder
        create_topics(broker, {"flights": 3, "arrivals": 2, "arrivals-again": 2})
        self._replay = FlightReplay(broker, "flights")
        self.driver = self.start("flight-delays", "arrivals")

    def start(self, name: str, output: str, *more: str, **fields: Any) -> DriverProcess:
        args = ("--brokers", self.broker, "--arrivals", output, "--trigger", "300 milliseconds", *more)
        return self._start(name, f"local://{SAMPLE}", args=args, **fields)

    def send(self, sent: list[Record], events: Mapping[float, Callable[[], object]]) -> None:
        """Send records; do something when such a share of them is confirmed."""
        due = [Once(action, at=int(share * len(sent))) for share, action in events.items()]

        def progress(confirmed: int) -> None:
            for action in due:
                action(confirmed)

        self._replay.run(sent, progress, RATE)

    # --- what is done to it ---

    def kill(self) -> None:
        """SIGKILL when it has something to lose; then as the kubelet would."""
        self.driver.await_batch(0, "arrivals")
        self.driver.kill()
        self.driver.start()

    def send_message(self, name: str, kind: str, payload: Any = None) -> None:
        order = ControlOrder(name, kind, json.dumps(payload), created=time.time(), source="tests/flights")
        answer = self.driver.command("POST", CONTROL_COMMAND, json.loads(to_json(ControlOrders((order,)))))
        assert answer == (202, "{}")

    def reload(self, name: str, content: str) -> None:
        """Have a model where workers find it, and send the message that names it."""
        body, place = content.encode(), self.driver.config.storage
        key = place.key("models", name)
        self._store.client.put_object(Bucket=place.bucket, Key=key, Body=body)
        uri, digest = f"s3://{place.bucket}/{key}", hashlib.sha256(body).hexdigest()
        self.send_message(name, "reload-model", {"name": "delays", "uri": uri, "sha256": digest})

    # --- what is seen ---

    def await_end(self, name: str) -> MessageReport:
        def probe() -> MessageReport | None:
            report = self.driver.report()
            assert report is not None, self.driver.output[-3000:]
            found = next((each for each in report.control.messages if each.id == name), None)
            assert found is not None, f"{name} is not in the log"
            assert found.state in FINISHED, found
            return found

        found = wait_for(f"the end of message {name}", probe, 600, 0.2)
        assert found is not None
        return found

    def await_predictions(self, topic: str, due: set[str]) -> list[dict[str, Any]]:
        """Return the predictions of a topic once all that are due are there."""

        def probe() -> list[dict[str, Any]]:
            self.driver.must_run()
            found = read_topic(self.broker, topic)
            assert due <= {prediction["id"] for prediction in found}, f"{len(found)} of {len(due)}"
            return found

        return wait_for("the last prediction", probe, 600, 1.0)

    def export(self, snapshot: str) -> str:
        """Export a dump's snapshot as the operator has it done; return the address."""
        order = ExportOrder("look", snapshot, "look-1", "JSONLines", heap_mib=512)
        work = self._folder / "work"
        work.mkdir()
        code, reports = run_pod(
            self.driver.config,
            SnapshotOrders(export=(order,)),
            self._folder / "pod",
            keys=(ACCESS, SECRET),
            work=work,
        )
        assert code == EXIT_OK, reports
        assert reports["look"].manifest, reports
        return reports["look"].manifest

    def before(self, dump: Dump) -> set[tuple[str, str]]:
        """Return the records that the topic holds before a dump's offsets: event and id."""
        ends = dump.offsets["flights"]
        found = read_records(self.broker, "flights")
        return {(record["event"], record["id"]) for place, record in found if place[1] < ends[place[0]]}


def named(record: Record) -> tuple[str, str]:
    return ("landing" if record.is_landing else "departure", record.flight.id)


def departures(sent: list[Record]) -> set[str]:
    return {record.flight.id for record in sent if not record.is_landing}


@pytest.mark.long
def test_a_model_is_learned_dumped_mended_and_begun_again_and_every_prediction_is_the_oracles(
    start_driver: StartDriver, object_store: ObjectStore, broker: str, tmp_path: Path
) -> None:
    flown = list(records(DEPARTURES))
    third, last = len(flown) // 3, len(flown) * 9 // 10
    run = Run(start_driver, object_store, broker, tmp_path)
    run.send(flown[:third], {0.4: run.kill})
    run.driver.await_batch(0, "arrivals")  # of a slow machine the only one so far

    # A dump while records flow is that of one batch.
    run.send(flown[third : 2 * third], {0.3: lambda: run.send_message("look", "dump-state", {"format": "JSONLines"})})
    reported = run.await_end("look")
    assert reported.state is MessageState.DONE, reported
    uri = run.export(reported.results["snapshot"])
    dump = read_dump(bucket(object_store.client, uri))
    seen = run.before(dump)
    assert third <= len(seen) <= 2 * third  # all of them if the machine is slow
    assert dump.differences(expected_state(record for record in flown if named(record) in seen)) == []

    # A model that makes no sense is refused, and the one before goes on; one that does is used from one batch on.
    model = analyse(dump).model("mended")
    # It is one that departures load, and not together with the next: records go on while it is sent, and wait after it.
    with ThreadPoolExecutor(1) as aside:
        sending: list[Future[None]] = []
        ended: list[MessageReport] = []

        def await_broken() -> None:
            sending[0].result()
            ended.append(run.await_end("broken"))

        events: dict[float, Callable[[], object]] = {
            0.1: lambda: sending.append(aside.submit(run.reload, "broken", '{"version": "of half a file"')),
            0.7: await_broken,
        }
        run.send(flown[2 * third : last], events)
    run.reload("mended", json.dumps(model))
    (broken,), fixed = ended, run.await_end("mended")
    # However long that took: what leaves now is predicted by it.
    run.send(flown[last:], {})
    assert broken.state is MessageState.FAILED, broken
    assert "delays" in broken.queries["arrivals"].errors[0]
    assert fixed.state is MessageState.DONE, fixed
    predicted = run.await_predictions("arrivals", departures(flown))
    hindsight = Hindsight(flown)
    comparison = check(hindsight, predicted, [BUILT_IN, Weights.of(model)])
    print(comparison.report())
    assert comparison.ok, comparison.report()
    assert {prediction["model"] for prediction in predicted} == {"built-in", "mended"}
    run.driver.terminate()
    run.driver.exit_code()

    # Its state thrown away, it goes on with the record after the dump, as if nothing had been lost.
    run.driver = run.start("again", "arrivals-again", "--begin-with-dump", export=uri)
    later = [record for record in flown if named(record) not in seen]
    again = run.await_predictions("arrivals-again", departures(later))
    due = hindsight.predictions(lambda flight: BUILT_IN)
    wrong = [each for each in again if abs(each["expected"] - due[each["id"]]["expected"]) > 1e-6]
    assert wrong == []
    assert {prediction["id"] for prediction in again} == departures(later)
