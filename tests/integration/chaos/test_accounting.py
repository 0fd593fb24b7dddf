"""The application under chaos on real Spark and Kafka: what it writes and what it holds can be accounted for.

No cluster: a process that is killed in the middle stands for all faults.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from devcluster import kafka
from devcluster.site import LocalSite
from tests.chaos.checker import Verdict, check
from tests.chaos.load import Load, ends_of, read_topic
from tests.chaos.records import decode_output, decode_record
from tests.chaos.state import SETTINGS, read_state
from tidegate_testing import spark_jars
from tidegate_testing.commit_log import CommitLog, await_running
from tidegate_testing.waiting import wait_for

SCRIPT = Path(__file__).parents[2] / "chaos" / "scripts" / "accounting.py"
KEYS, RATE = 10, 200.0


@pytest.fixture(scope="module")
def broker() -> Iterator[str]:
    with LocalSite() as site:
        kafka.up(site)
        yield site.kafka_host


class Application:
    """The script as a process of its own."""

    def __init__(self, folder: Path, arguments: Sequence[str]) -> None:
        self.log = CommitLog(folder / "checkpoint" / "accounts")
        self._folder, self._arguments = folder, arguments
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        jars = ",".join(map(str, sorted(spark_jars.fetched("kafka").glob("*.jar"))))
        conf = {
            **SETTINGS,
            "spark.sql.shuffle.partitions": "2",
            "spark.sql.streaming.checkpointLocation": str(self._folder / "checkpoint"),
        }
        options = " ".join(f"--conf {key}={value}" for key, value in conf.items())
        variables = {
            "PYSPARK_SUBMIT_ARGS": f"--master local[2] --jars {jars} {options} pyspark-shell",
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
        assert self._process is not None
        if self._process.poll() is not None:
            raise RuntimeError((self._folder / "application.log").read_text(errors="replace")[-3000:])
        return len(self.log.committed())


def verdict_on_a_killed_application(folder: Path, broker: str, plant: str) -> Verdict:
    """Run the application under load, kill it inside a batch, start it again, and account for everything."""
    topics = [f"records-{plant}", f"accounts-{plant}"]
    for topic in topics:
        kafka.create_topic(broker, topic, 2)
    arguments = [f"--brokers={broker}", f"--records={topics[0]}", f"--accounts={topics[1]}", f"--plant={plant}"]
    application = Application(folder, [*arguments, "--trigger=200 milliseconds"])
    try:
        with Load(broker, topics[0], keys=KEYS, rate=RATE) as load:
            application.start()
            wait_for("some batches", lambda: application.batches() >= 3, 120)
            await_running(application.log, 60)
            application.kill()
            application.start()
            wait_for("the planted record to be sent", lambda: load.sent >= 40 * KEYS, 60)
        assert load.refused == []
        ends = {str(p): end for p, end in ends_of(broker, topics[0]).items()}

        def read() -> bool:
            application.batches()
            (source,) = application.log.ends(max(application.log.committed()))
            return bool(source[topics[0]] == ends)

        wait_for("everything to be read", read, 120)
    finally:
        application.kill()
    inputs = [decode_record(*record) for record in read_topic(broker, topics[0])]
    outputs = [decode_output(record.time, record.content) for record in read_topic(broker, topics[1])]
    assert {(r.key, r.number) for r in inputs} == load.confirmed
    assert len(inputs) == load.sent
    return check(inputs, outputs, read_state(application.log.checkpoint))


def test_nothing_is_lost_or_wrong_though_it_is_killed_inside_a_batch(tmp_path: Path, broker: str) -> None:
    verdict = verdict_on_a_killed_application(tmp_path, broker, "none")
    assert verdict.ok, verdict.report()
    assert verdict.inputs >= 40 * KEYS


def test_a_planted_loss_is_found_in_output_and_state(tmp_path: Path, broker: str) -> None:
    verdict = verdict_on_a_killed_application(tmp_path, broker, "loss")
    assert (verdict.amount("lost"), verdict.amount("doubled")) == (KEYS, 0)
    assert len(verdict.wrong_states) == KEYS
    assert not verdict.ok
