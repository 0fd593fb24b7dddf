"""How long a snapshot of a large state takes, beside a plain copy of the same files, and what it costs the batches.

One application with a Spark of its own in local mode, its state in RocksDB, and a real S3 server, all on this machine.
Whatever is compared takes turns within the run.
"""

import statistics
import threading
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from tests.bench.batch_files import BatchFiles
from tests.bench.options import bench_options
from tests.bench.report import print_report
from tests.bench.reporting import say
from tests.bench.turns import turns
from tidegate_spark.contract.snapshot_protocol import SnapshotOrder, SnapshotOrders, SnapshotReport, SnapshotState
from tidegate_spark.snapshots import manifest
from tidegate_spark.snapshots.manifest import Manifest
from tidegate_spark.storage.s3_client import Credentials, connect
from tidegate_testing.driver_process import DriverProcess
from tidegate_testing.local_apps import BUCKET, LocalApps, await_end, order, until_committed

SCRIPT = Path(__file__).parent / "scripts" / "large_state.py"
APP = "large"
KEY_BYTES = 512
KEYS_OF_A_BATCH = 40_000
"""While the state is built."""
CHANGED_STEP = 20
"""Every so manieth key changes between the first and the second snapshot: 5 %."""
COPIES_AT_ONCE = 16
"""As many as a snapshot makes."""
LIMIT_SECONDS = 900.0
WITHOUT, SNAPSHOTTING, FULL = "without", "snapshotting", "full_copies"
KINDS = (WITHOUT, SNAPSHOTTING, FULL)


@dataclass(frozen=True)
class Trial:
    """Seconds and bytes of one plain copy and the two snapshots beside it."""

    raw: float
    first: float
    second: float
    first_bytes: int
    second_bytes: int
    """Written anew."""
    compacted_files: int
    """Shared files of the first that the second does not need any more: compacted meanwhile."""
    compacted_bytes: int


@dataclass(frozen=True)
class Window:
    """Some batches, back to back."""

    kind: str
    rows_per_second: float
    snapshots: int
    """Ready within it."""


def main(arguments: Sequence[str]) -> int:
    """Take snapshots of a large state; time over a plain copy's, a second one over the first, batches meanwhile."""
    parser = bench_options("snapshot", main.__doc__)
    parser.add_argument("--state-mib", type=int, default=1024, help="size of the state")
    parser.add_argument("--trials", type=int, default=5, help="pairs of snapshots, each beside a plain copy")
    parser.add_argument("--windows", type=int, default=5, help="of batches, of each kind")
    parser.add_argument("--batches", type=int, default=8, help="in a window")
    parser.add_argument("--batch-keys", type=int, default=20_000, help="that change in each of its batches")
    parser.add_argument("--pause", type=float, default=0.0, help="seconds between two snapshots in a window")
    options = parser.parse_args(arguments)
    with LocalApps() as apps:
        run = Run(apps, options.state_mib * 2**20 // KEY_BYTES)
        run.build()
        trials = run.trials(options.trials)
        windows = run.windows(options.windows, options.batches, min(options.batch_keys, run.keys), options.pause)
    parameters = {
        **vars(options),
        "keys": run.keys,
        "state_files": run.state_files,
        "samples": samples(trials, windows),
    }
    print_report("snapshot", {"state_mib": trials[0].first_bytes / 2**20, **results(trials, windows)}, parameters)
    return 0


# --- figures, pure ---------------------------------------------------------------------------------------------------


def results(trials: Sequence[Trial], windows: Sequence[Window]) -> dict[str, float]:
    """Return the medians and their ratios."""
    raw, first, second = (
        _median(t.raw for t in trials),
        _median(t.first for t in trials),
        _median(t.second for t in trials),
    )
    found = {
        "time_ratio": first / raw,
        "second_time_ratio": second / first,
        "second_bytes_ratio": _median(t.second_bytes / t.first_bytes for t in trials),
        "raw_copy_seconds": raw,
        "first_seconds": first,
        "second_seconds": second,
        "compacted_bytes_ratio": _median(t.compacted_bytes / t.first_bytes for t in trials),
        "compacted_files": _median(t.compacted_files for t in trials),
    }
    rates = {kind: [w.rows_per_second for w in windows if w.kind == kind] for kind in KINDS}
    if all(rates.values()):
        medians = {kind: statistics.median(of_kind) for kind, of_kind in rates.items()}
        found["throughput_ratio"] = medians[SNAPSHOTTING] / medians[WITHOUT]
        found["throughput_ratio_full_copies"] = medians[FULL] / medians[WITHOUT]
        found |= {f"rows_per_second_{kind}": median for kind, median in medians.items()}
    return found


def _median(values: Iterable[float]) -> float:
    return statistics.median(list(values))


def samples(trials: Sequence[Trial], windows: Sequence[Window]) -> dict[str, list[dict[str, Any]]]:
    """Return every trial and every window, in the order in which they were made."""
    rounded = [{k: round(v, 2) if isinstance(v, float) else v for k, v in vars(each).items()} for each in trials]
    return {"trials": rounded, "windows": [{**vars(w), "rows_per_second": round(w.rows_per_second)} for w in windows]}


# --- the run ---------------------------------------------------------------------------------------------------------


class Run:
    """One application whose batches are files that the benchmark writes."""

    def __init__(self, apps: LocalApps, keys: int) -> None:
        """Start it; its state will have so many keys."""
        self.keys, self.state_files = keys, 0
        self._apps, self._repository, self._log = apps, apps.repository(APP), apps.commit_log(APP)
        self._input = BatchFiles(apps.folder / "input")
        fields: dict[str, Any] = {"driver_heap_mib": 1536, "state_partitions": 2}
        self._driver: DriverProcess = apps.start(APP, SCRIPT, (str(apps.folder / "input"),), **fields)
        self._snapshots = 0
        self._kept: list[str] = []

    # --- batches ---

    def build(self) -> None:
        """Give every key its first bytes."""
        say(f"building the state of {self.keys} keys")
        for first in range(0, self.keys, KEYS_OF_A_BATCH):
            self._await(self._input.put(first, min(first + KEYS_OF_A_BATCH, self.keys) - 1))

    def _await(self, batch: int) -> float:
        return until_committed(self._log, batch, LIMIT_SECONDS, self._driver)

    # --- snapshots ---

    def _order_snapshot(self) -> str:
        self._snapshots += 1
        name = f"s{self._snapshots}"
        order(self._driver, SnapshotOrders(take=(SnapshotOrder(name),)))
        self._kept.append(name)
        return name

    def take(self, every: float = 0.05) -> tuple[float, SnapshotReport]:
        """Take a snapshot; return how long it took until it was seen to be ready, and the report."""
        began = time.monotonic()
        name = self._order_snapshot()
        report = await_end(self._driver, name, (SnapshotState.READY,), LIMIT_SECONDS, every)
        return time.monotonic() - began, report

    def dispose_of_all(self, but: int = 0) -> None:
        """Dispose of all snapshots but the last so many."""
        going, self._kept = self._kept[: len(self._kept) - but], self._kept[len(self._kept) - but :]
        for name in going:
            order(self._driver, SnapshotOrders(dispose=(name,)))
            await_end(self._driver, name, (SnapshotState.DISPOSED,), LIMIT_SECONDS)

    def _manifest(self) -> Manifest:
        return manifest.read(self._repository, self._kept[-1], self._repository.read())

    # --- trials ---

    def trials(self, number: int) -> list[Trial]:
        """Make so many trials, after one snapshot that does not count."""
        self.take()
        made = self._manifest()
        self.state_files = len(made.files)
        say(f"the state has {sum(file.size for file in made.files) / 2**20:.0f} MiB in {self.state_files} files")
        found: list[Trial] = []
        for turn in range(number):
            found.append(self._trial(turn))
            say(
                f"{turn + 1}: plain copy {found[-1].raw:.2f} s, first {found[-1].first:.2f} s, "
                f"second {found[-1].second:.2f} s with {found[-1].second_bytes / 2**20:.0f} MiB"
            )
        return found

    def _trial(self, turn: int) -> Trial:
        # No batch was committed since the last snapshot: the next one, too, is of these files.
        files = [self._repository.lineage_key(1, file.query, file.path) for file in self._manifest().files]
        self.dispose_of_all()
        raw = first = 0.0
        for what in ("raw", "first") if turn % 2 == 0 else ("first", "raw"):
            if what == "raw":
                raw = self._copy_plainly(files)
            else:
                first, report = self.take()
        before = self._manifest()
        self._await(self._input.put(turn % CHANGED_STEP, self.keys - 1, CHANGED_STEP))
        second, changed = self.take()
        left = {file.key for file in self._manifest().files}
        gone = [file for file in before.files if file.shared and file.key not in left]
        compacted = sum(file.size for file in gone)
        return Trial(raw, first, second, report.new_bytes, changed.new_bytes, len(gone), compacted)

    def _copy_plainly(self, keys: Sequence[str]) -> float:
        """Copy these objects inside the store, as many at a time as a snapshot does, and nothing else; then delete."""
        keys_of = Credentials(self._apps.store.access_key, self._apps.store.secret_key)
        client = connect(self._apps.place(APP), keys_of, LIMIT_SECONDS, COPIES_AT_ONCE)

        def copy(key: str) -> None:
            client.copy_object(Bucket=BUCKET, Key=f"plain/{key}", CopySource={"Bucket": BUCKET, "Key": key})

        client.head_object(Bucket=BUCKET, Key=keys[0])  # the client is made at its first request
        began = time.monotonic()
        with ThreadPoolExecutor(COPIES_AT_ONCE) as pool:
            list(pool.map(copy, keys))
        seconds = time.monotonic() - began
        for key in keys:
            client.delete_object(Bucket=BUCKET, Key=f"plain/{key}")
        return seconds

    # --- windows ---

    def windows(self, rounds: int, batches: int, keys: int, pause: float = 0.0) -> list[Window]:
        """Run windows of every kind in turn."""
        found: list[Window] = []
        for kind in turns(KINDS, rounds):
            self.dispose_of_all(but=0 if kind == FULL else 1)
            if kind != FULL and not self._kept:
                self.take()
            with Snapshotting(self._snapshot_of(kind), pause) as meanwhile:
                rate = self._rate(batches, keys)
                ready = meanwhile.done
            found.append(Window(kind, rate, ready))
            say(f"{kind}: {found[-1].rows_per_second:.0f} rows/s, {found[-1].snapshots} snapshots")
        return found

    def _rate(self, batches: int, keys: int) -> float:
        """Run so many batches, each of which changes about so many keys; return the rows in a second."""
        step = self.keys // keys
        numbers = [self._input.put(turn % step, self.keys - 1, step) for turn in range(batches + 1)]
        # From the first commit on: the time before it is that of finding the files.
        first, last = self._await(numbers[0]), self._await(numbers[-1])
        return batches * len(range(0, self.keys, step)) / (last - first)

    def _snapshot_of(self, kind: str) -> Callable[[], None] | None:
        def full() -> None:
            self.take(0.2)
            self.dispose_of_all()

        def next_one() -> None:
            self.take(0.2)

        return {FULL: full, SNAPSHOTTING: next_one}.get(kind)


class Snapshotting:
    """Does something again and again in a thread while the context lasts, at least once."""

    def __init__(self, what: Callable[[], None] | None, pause: float = 0.0) -> None:
        """Prepare; None is nothing, and ``pause`` are the seconds between two."""
        self.done = 0
        self._pause = pause
        self._what, self._over, self._error = what, threading.Event(), list[BaseException]()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        """Begin."""
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Let the last one end; raise what one raised."""
        self._over.set()
        self._thread.join(LIMIT_SECONDS)
        if self._error and error is None:
            raise self._error[0]

    def _run(self) -> None:
        try:
            while self._what is not None:
                self._what()
                self.done += 1
                if self._over.wait(self._pause):
                    return
        except BaseException as error:
            self._error.append(error)
