"""What it costs a stream that Spark's ports are closed: the same batches with ports open and closed, in turns.

Each way is a Spark with two executors on this machine that send each other half of each batch; all are warm before any
trial counts, and each rests while another one works. Starts processes, reads /proc.
"""

import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from tests.bench.intervals import median
from tests.bench.options import bench_options
from tests.bench.process_tree import thread_seconds
from tests.bench.report import print_report
from tests.bench.reporting import say
from tests.bench.turns import turns
from tidegate.pods.spark.settings import spark_settings
from tidegate_spark.contract.protocol import SPARK_SECRET_SETTINGS

SCRIPT = Path(__file__).parent / "scripts" / "shuffling.py"
WAYS = OPEN, CLOSED, SIGNED = "open", "closed", "signed"
"""Spark's own default; Tidegate's; and Tidegate's with the cipher that notices changes on the way."""
CHOSEN: dict[str, dict[str, str]] = {
    OPEN: {"spark.authenticate": "false"},
    CLOSED: {},
    SIGNED: {"spark.network.crypto.cipher": "AES/GCM/NoPadding"},
}
EXECUTORS, EXECUTOR_MIB = 2, 1024
WARM = 4
"""Trials of each way before any counts. Java compiles what enciphers for good only after some tens of megabytes; until
then AES/CTR takes at least twice, AES/GCM more than ten times as long (docs/design/spark-ports.md)."""
PORT_THREADS = "shuffle-", "rpc-"
"""How the names of the threads begin that read and write Spark's ports, and so encipher and decipher."""


@dataclass(frozen=True)
class Trial:
    """One run over all files; ``batches`` are seconds and rows of each but the first."""

    way: str
    batches: Sequence[tuple[float, int]]
    port_ms: float = 0.0
    """CPU time of the threads that serve the ports, of driver and executors, for a batch."""

    @property
    def rows_per_second(self) -> float:
        """Return the throughput while a batch ran."""
        return sum(rows for _, rows in self.batches) / sum(seconds for seconds, _ in self.batches)


def main(arguments: Sequence[str]) -> int:
    """Work the same batches off with Spark's ports open and closed, in turns."""
    parser = bench_options("throughput", main.__doc__)
    parser.add_argument("--rows", type=int, default=200_000, help="of a batch, 144 bytes each")
    parser.add_argument("--batches", type=int, default=10, help="of a trial")
    parser.add_argument("--trials", type=int, default=7, help="of each way")
    parser.add_argument("--warm", type=int, default=WARM, help="trials of each way that do not count")
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        files = Path(folder) / "input"
        write_input(files, options.rows, options.batches + 1)
        streams = {way: stack.enter_context(Stream(files, settings_of(way))) for way in WAYS}
        trials = run_trials(streams, options.trials, options.warm)
    samples = [
        {"way": each.way, "rows_per_second": round(each.rows_per_second), "port_ms": round(each.port_ms, 1)}
        for each in trials
    ]
    print_report("throughput", results(trials), {**vars(options), "samples": samples})
    return 0


def settings_of(way: str) -> dict[str, str]:
    """Return Spark's settings of a way: those of a launch, as far as they are not Kubernetes'; pure."""
    launched = spark_settings(CHOSEN[way], "executor")
    # Only on Kubernetes does Spark take the secret from a file; elsewhere it wants it as a setting.
    kept = {k: v for k, v in launched.items() if k not in SPARK_SECRET_SETTINGS and ".kubernetes." not in k}
    return kept | {
        "spark.authenticate.secret": "of-the-bench",
        "spark.master": f"local-cluster[{EXECUTORS},1,{EXECUTOR_MIB}]",
        "spark.app.name": f"throughput-{way}",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.executor.memory": f"{EXECUTOR_MIB - 384}m",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.sql.shuffle.partitions": "4",
        # An executor would read the files of one on its own machine, where in a cluster it asks it for them.
        "spark.shuffle.readHostLocalDisk": "false",
    }


def write_input(folder: Path, rows: int, files: int) -> None:
    """Write so many files of so many numbers, one a line."""
    folder.mkdir()
    for number in range(files):
        lines = "\n".join(str(row) for row in range(number * rows, (number + 1) * rows))
        (folder / f"{number:04d}.csv").write_text(lines, encoding="utf-8")


class Works(Protocol):
    """What works the files off, and says what its ports have taken."""

    def work_off(self) -> list[tuple[float, int]]: ...

    def port_seconds(self) -> float: ...


class Stream:
    """A process with a Spark of its own; a context manager."""

    def __init__(self, files: Path, settings: Mapping[str, str]) -> None:
        """Start it."""
        command = [sys.executable, str(SCRIPT), str(files), json.dumps(dict(settings))]
        self._process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env={**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"},
        )

    def __enter__(self) -> Self:
        """Wait until Spark runs."""
        self._read()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(60)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def work_off(self) -> list[tuple[float, int]]:
        """Have all files worked off; return seconds and rows of each batch."""
        assert self._process.stdin is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        return [(float(seconds), int(rows)) for seconds, rows in self._read()["batches"]]

    def port_seconds(self) -> float:
        """Return the CPU time so far of the threads that serve Spark's ports."""
        return thread_seconds(self._process.pid, PORT_THREADS)

    def _read(self) -> dict[str, list[tuple[float, int]]]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("Spark ended; its words are above")
        answer: dict[str, list[tuple[float, int]]] = json.loads(line)
        return answer


def run_trials(streams: Mapping[str, Works], number: int, warm: int) -> list[Trial]:
    """Make so many trials of each way, after ``warm`` of each that do not count."""
    found: list[Trial] = []
    for place, way in enumerate(turns(WAYS, warm + number)):
        made = run_trial(way, streams[way])
        counts = place >= warm * len(WAYS)
        found += [made] if counts else []
        mark = "" if counts else " (warming up)"
        say(f"{way}: {made.rows_per_second:,.0f} rows a second, {made.port_ms:.1f} ms for the ports{mark}")
    return found


def run_trial(way: str, stream: Works) -> Trial:
    """Have all files worked off once."""
    before = stream.port_seconds()
    batches = stream.work_off()
    # The first batch, whose time is left out, went through the ports as well.
    return Trial(way, batches, 1000 * (stream.port_seconds() - before) / (len(batches) + 1))


def results(trials: Sequence[Trial]) -> dict[str, float]:
    """Return medians of the ways, and the ratios of trials that were neighbours; pure."""
    by_way = {way: [trial for trial in trials if trial.way == way] for way in WAYS}
    rates = {way: [trial.rows_per_second for trial in by_way[way]] for way in WAYS}
    seconds = {way: statistics.median(s for trial in by_way[way] for s, _ in trial.batches) for way in WAYS}
    return {
        **ratio_of(CLOSED, rates),
        **ratio_of(SIGNED, rates),
        **{f"rows_per_second_{way}": statistics.median(rates[way]) for way in WAYS},
        **{f"batch_ms_{way}": 1000 * seconds[way] for way in WAYS},
        "batch_cost_ms": 1000 * (seconds[CLOSED] - seconds[OPEN]),
        **{f"port_ms_{way}": statistics.median(trial.port_ms for trial in by_way[way]) for way in WAYS},
    }


def ratio_of(way: str, rates: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Return the throughput of a way by that of the open one beside it, and how sure that is; pure."""
    found = median([mine / theirs for mine, theirs in zip(rates[way], rates[OPEN], strict=True)])
    name = f"throughput_ratio_{way}"
    return {name: found.value, f"{name}_low": found.low, f"{name}_high": found.high}
