"""The real sample on real Spark and real Kafka, killed without warning in the middle of a batch."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import pytest
from confluent_kafka import Producer

from devcluster.demo.compare import compare, read_topic
from devcluster.demo.oracle import expected_decisions
from devcluster.demo.replay import Replay, create_topics
from devcluster.demo.scenario import Scenario
from tidegate_testing import class_archive
from tidegate_testing.waiting import wait_for

SAMPLE = Path(__file__).parents[3] / "spark_app" / "samples" / "temperature_control.py"
SCENARIO = Scenario(readings=12_000)
READINGS_PER_SECOND = 1_000


class Application:
    """The sample as a process of its own; can be killed and started again on the same checkpoint."""

    def __init__(self, folder: Path, arguments: Sequence[str]) -> None:
        self.checkpoint = folder / "checkpoint" / "decisions"
        self._folder, self._arguments = folder, arguments
        provider = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
        conf = {
            "spark.ui.enabled": "false",
            "spark.ui.showConsoleProgress": "false",
            "spark.local.dir": folder / "local",
            "spark.sql.shuffle.partitions": 2,
            "spark.sql.streaming.stateStore.providerClass": provider,
            "spark.sql.streaming.stateStore.checkpointFormatVersion": 2,
            "spark.sql.streaming.checkpointLocation": folder / "checkpoint",
        }
        self._environment = os.environ | {
            "PYSPARK_SUBMIT_ARGS": class_archive.submit_args("local[2]", conf),
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        self._log: IO[bytes] = (folder / "application.log").open("ab")
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, str(SAMPLE), *self._arguments],
            env=self._environment,
            cwd=self._folder,
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def kill(self) -> None:
        """SIGKILL to Python and the JVM at once: nothing gets to tidy up."""
        assert self._process is not None
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._process = None

    def close(self) -> None:
        if self._process is not None:
            self.kill()
        self._log.close()

    def log(self) -> str:
        return (self._folder / "application.log").read_text(errors="replace")

    def last(self, kind: str) -> int:
        """The number of the last batch in ``offsets`` or ``commits``; -1 if there is none."""
        folder = self.checkpoint / kind
        return max((int(p.name) for p in folder.glob("[0-9]*")), default=-1) if folder.is_dir() else -1

    def check(self) -> None:
        if self._process is not None and self._process.poll() is not None:
            raise RuntimeError(f"the application has ended: {self.log()[-3000:]}")

    def in_a_batch(self) -> bool:
        self.check()
        return self.last("offsets") > self.last("commits") >= 0

    def batches(self) -> int:
        self.check()
        return self.last("commits") + 1

    def planned_sources(self) -> list[dict[str, dict[str, int]]]:
        """The end offsets of the last committed batch, by topic and partition, for each source in Spark's order."""
        lines = (self.checkpoint / "offsets" / str(self.last("commits"))).read_text().splitlines()
        return [json.loads(line) for line in lines[2:]]


@pytest.fixture
def application(tmp_path: Path, broker: str) -> Iterator[Application]:
    create_topics(broker, {"readings": 4, "settings": 3, "decisions": 2})
    application = Application(tmp_path, ["--brokers", broker, "--trigger", "200 milliseconds"])
    yield application
    application.close()


def send_nonsense(brokers: str, topic: str, values: Sequence[str]) -> None:
    producer = Producer({"bootstrap.servers": brokers, "acks": "all"})
    for value in values:
        producer.produce(topic, value.encode())
    assert producer.flush(120) == 0


def in_the_middle(is_time: Callable[[], bool], action: Callable[[], None]) -> Callable[[int], None]:
    """A progress callback that acts once: when half of the readings are confirmed, and as soon as it is time.

    Readings go on coming until then, and so do batches.
    """
    left = [action]

    def progress(confirmed: int) -> None:
        if left and confirmed >= SCENARIO.readings // 2 and is_time():
            left.pop()()

    return progress


def start_offsets_fixed(application: Application) -> None:
    wait_for("the first committed batch", application.batches, timeout=600, interval=0.1)


def committed_records(application: Application) -> int:
    return sum(end for source in application.planned_sources() for ends in source.values() for end in ends.values())


@pytest.mark.long
def test_killed_in_the_middle_of_a_batch_it_decides_what_the_oracle_decides(
    application: Application, broker: str, tmp_path: Path
) -> None:
    bad_settings = ["no JSON", '{"sensor": "x"}', '{"sensor":"x","time":"2010-03-10T00:00:00Z","desired":"warm"}']
    bad_readings = ["", '{"sensor":"seattle+1","time":"someday","temperature":1}', "[1, 2]", '{"sensor": "", "time":']
    killed_in: list[int] = []

    def kill_and_restart() -> None:
        application.kill()
        killed_in.append(application.last("offsets"))
        # Sent to nobody: else a batch may take some of them and the next the rest, or the kill may keep a batch from
        # telling of them.
        send_nonsense(broker, "readings", bad_readings)
        application.start()

    send_nonsense(broker, "settings", bad_settings)
    application.start()
    sent = Replay(broker, "readings", "settings").run(
        SCENARIO.records(),
        ready=lambda: start_offsets_fixed(application),
        progress=in_the_middle(application.in_a_batch, kill_and_restart),
        rate=READINGS_PER_SECOND,
    )
    assert killed_in, "no batch was met in its middle"
    total = sent.readings + sent.settings + len(bad_readings) + len(bad_settings)
    wait_for("all input to be committed", lambda: committed_records(application) == total, timeout=600)

    decided: list[dict[str, Any]] = read_topic(broker, "decisions")
    comparison = compare(expected_decisions(SCENARIO.records()), decided)
    assert comparison.ok, comparison.report()
    assert comparison.expected > 500
    assert 0 < killed_in[0] < application.last("commits")
    assert [list(source) for source in application.planned_sources()] == [["readings"], ["settings"]]
    wait_for(
        "what was dropped to be told of",
        lambda: all(f"dropped {len(bad)} of " in application.log() for bad in (bad_settings, bad_readings)),
        timeout=180,
    )
