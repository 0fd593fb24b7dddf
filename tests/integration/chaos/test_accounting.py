"""The application under chaos on real Spark and Kafka: what it writes and what it holds can be accounted for.

No cluster: a process that is killed in the middle stands for all faults. Two queries of that process read the same
records, one of them with a planted mistake.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from devcluster import kafka
from devcluster.site import LocalSite
from tests.chaos.checker import Verdict, check
from tests.chaos.load import Load, ends_of, read_topic
from tests.chaos.records import Record, decode_output, decode_record
from tests.chaos.state import SETTINGS, read_state
from tidegate_testing import class_archive
from tidegate_testing.commit_log import CommitLog, await_running
from tidegate_testing.waiting import wait_for

SCRIPT = Path(__file__).parent / "scripts" / "with_and_without.py"
SCRIPTS = Path(__file__).parents[2] / "chaos" / "scripts"
PLANTS = ("none", "loss")
RECORDS = "records"
KEYS, RATE = 10, 200.0


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    with LocalSite() as site:
        kafka.up(site)
        yield site.kafka_host


class Application:
    """The script as a process of its own."""

    def __init__(self, folder: Path, arguments: Sequence[str]) -> None:
        self.logs = {plant: CommitLog(folder / "checkpoint" / plant) for plant in PLANTS}
        self._folder, self._arguments = folder, arguments
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        conf = {
            **SETTINGS,
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.streaming.checkpointLocation": str(self._folder / "checkpoint"),
        }
        variables = {
            "PYSPARK_SUBMIT_ARGS": class_archive.submit_args("local[2]", conf),
            "PYTHONPATH": str(SCRIPTS),
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
            "SPARK_LOCAL_DIRS": str(self._folder / "local"),
        }
        with (self._folder / "application.log").open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, str(SCRIPT), *self._arguments],
                env={**os.environ, **variables},
                cwd=self._folder,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    def kill(self) -> None:
        """SIGKILL to Python and JVM at once; nothing to kill is fine."""
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def batches(self) -> int:
        """Return how many batches each query has committed at least."""
        assert self._process is not None
        if self._process.poll() is not None:
            raise RuntimeError((self._folder / "application.log").read_text(errors="replace")[-3000:])
        return min(len(log.committed()) for log in self.logs.values())

    def ends(self) -> list[Mapping[str, Any]]:
        """Return what each query has read."""
        self.batches()
        return [log.ends(max(log.committed()))[0] for log in self.logs.values()]


@pytest.fixture(scope="module")
def verdicts(tmp_path_factory: pytest.TempPathFactory, broker: str) -> dict[str, Verdict]:
    """Run the application under load, kill it inside a batch, start it again, and account for everything."""
    for topic in (RECORDS, *PLANTS):
        kafka.create_topic(broker, topic, 2)
    application = Application(tmp_path_factory.mktemp("application"), [broker, RECORDS])
    try:
        with Load(broker, RECORDS, keys=KEYS, rate=RATE) as load:
            application.start()
            wait_for("some batches", lambda: application.batches() >= 3, 600)
            await_running(application.logs["none"], 300)
            application.kill()
            application.start()
            wait_for("the planted record to be sent", lambda: load.sent >= 40 * KEYS, 300)
        assert load.refused == []
        ends = {RECORDS: {str(p): end for p, end in ends_of(broker, RECORDS).items()}}
        wait_for("everything to be read", lambda: application.ends() == [ends] * len(PLANTS), 600)
    finally:
        application.kill()
    inputs = [decode_record(*record) for record in read_topic(broker, RECORDS)]
    assert {(r.key, r.number) for r in inputs} == load.confirmed
    assert len(inputs) == load.sent
    return {plant: verdict_on(application.logs[plant], broker, plant, inputs) for plant in PLANTS}


def verdict_on(log: CommitLog, broker: str, topic: str, inputs: Sequence[Record]) -> Verdict:
    outputs = [decode_output(record.time, record.content) for record in read_topic(broker, topic)]
    return check(inputs, outputs, read_state(log.checkpoint))


def test_nothing_is_lost_or_wrong_though_it_is_killed_inside_a_batch(verdicts: dict[str, Verdict]) -> None:
    verdict = verdicts["none"]
    assert verdict.ok, verdict.report()
    assert verdict.inputs >= 40 * KEYS


def test_a_planted_loss_is_found_in_output_and_state(verdicts: dict[str, Verdict]) -> None:
    verdict = verdicts["loss"]
    assert (verdict.amount("lost"), verdict.amount("doubled")) == (KEYS, 0)
    assert len(verdict.wrong_states) == KEYS
    assert not verdict.ok
