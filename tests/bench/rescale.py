"""What a repartition of state costs beside Spark's own call, and a further executor beside a plain application's.

The first on this machine with a real S3 server: each trial has a fresh copy of the same state, and copying is not part
of what is measured, because the store does it. The second on a development cluster; needs root.
"""

import dataclasses
import json
import os
import statistics
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.bench.executors import starts
from tests.bench.options import bench_options
from tests.bench.report import print_report
from tests.bench.reporting import say
from tests.bench.turns import turns
from tidegate_spark.contract.protocol import DriverConfig
from tidegate_spark.contract.rehearsal_protocol import MASTER_VARIABLE
from tidegate_spark.contract.repartition_protocol import Repartition
from tidegate_spark.contract.snapshot_protocol import SnapshotState
from tidegate_spark.exports import state_reader
from tidegate_spark.process.environment import Environment, inherited_variables
from tidegate_spark.process.progress import Progress
from tidegate_spark.repartition import job
from tidegate_spark.repartition.pod_settings import config_for_spark
from tidegate_spark.snapshots import manifest, restore
from tidegate_spark.snapshots.lineages import attempts, lineage_mark
from tidegate_spark.snapshots.restore import Origin, Target
from tidegate_spark.storage import readiness
from tidegate_spark.storage.claim import fencing
from tidegate_testing.local_apps import LocalApps, until_committed

SCRIPT = Path(__file__).parent / "scripts" / "many_keys.py"
APP, PIN = "keys", "up-bench"
WAYS = SPARK, UNTRACKED, TIDEGATE = "spark", "untracked", "tidegate"
"""Spark's call as it is; the same with the setting under which Tidegate makes it (``job.session_for``); Tidegate."""
FEW, MANY = 4, 8
LIMIT_SECONDS = 900.0


@dataclass(frozen=True)
class Trial:
    """One repartition; ``unverified`` is what Spark's part of it took."""

    way: str
    seconds: float
    unverified: float


def main(arguments: Sequence[str]) -> int:
    """Divide the state of many keys again, over Spark's own call; start one more executor, over a plain Spark's."""
    parser = bench_options("rescale", main.__doc__, on_cluster=True)
    parser.add_argument("--keys", type=int, default=1_000_000, help="with state")
    parser.add_argument("--trials", type=int, default=5, help="of each way")
    parser.add_argument("--cores", type=int, default=2, help="of the Spark that divides the state")
    parser.add_argument("--without-cluster", action="store_true", help="leave the executors out")
    options = parser.parse_args(arguments)
    with LocalApps() as apps:
        trials = Divisions(apps, options.keys, options.cores).trials(options.trials)
    found = results(trials)
    samples: dict[str, Any] = {"repartitions": [vars(trial) for trial in trials]}
    if not options.without_cluster:
        of_executors = starts(options.cluster, options.trials)
        found |= of_executors.results
        samples |= of_executors.samples
    print_report("rescale", found, {**vars(options), "samples": samples})
    return 0


def results(trials: Sequence[Trial]) -> dict[str, float]:
    """Return the medians of both ways and their ratios; pure."""
    medians = {way: statistics.median(t.seconds for t in trials if t.way == way) for way in WAYS}
    unverified = statistics.median(t.unverified for t in trials if t.way == TIDEGATE)
    return {
        "repartition_ratio": medians[TIDEGATE] / medians[SPARK],
        "repartition_ratio_untracked": medians[TIDEGATE] / medians[UNTRACKED],
        "repartition_ratio_unverified": unverified / medians[SPARK],
        **{f"repartition_seconds_{way}": median for way, median in medians.items()},
    }


class Divisions:
    """One state, divided again and again, each time in another lineage."""

    def __init__(self, apps: LocalApps, keys: int, cores: int) -> None:
        """Have the state made, and start the Spark that divides it."""
        self._apps, self._own = apps, apps.repository(APP)
        driver = apps.start(APP, SCRIPT, (str(keys),), driver_heap_mib=1536, state_partitions=FEW)
        say(f"building the state of {keys} keys")
        until_committed(apps.commit_log(APP), 0, LIMIT_SECONDS, driver)
        driver.terminate()
        driver.exit_code()
        # As the pod has it: the storage is the driver's, whose epoch it was, until a later one takes it over.
        self._config: DriverConfig = dataclasses.replace(driver.config, epoch=driver.config.epoch + 1)
        self._variables = {**driver._variables(), MASTER_VARIABLE: f"local[{cores}]"}
        self._lineage = 1
        self._session: Any = None
        self._start_spark()

    def trials(self, number: int) -> list[Trial]:
        """Make so many trials of each way, after one of each that does not count."""
        for way in WAYS:
            self._trial(way)
        found: list[Trial] = []
        for way in turns(WAYS, number):
            found.append(self._trial(way))
            say(f"{way}: {found[-1].seconds:.2f} s")
        return found

    def _trial(self, way: str) -> Trial:
        self._lineage += 1
        seconds = self._by_tidegate() if way == TIDEGATE else self._by_spark(way)
        attempts.clear(self._own, self._lineage)
        return Trial(way, *seconds)

    def _by_tidegate(self) -> tuple[float, float]:
        order = Repartition(MANY, PIN, 1, self._lineage)
        nothing: Callable[[], None] = lambda: None  # noqa: E731 - nobody else is there
        maker = job.Repartitioner(self._config, order, self._own, lambda: self._session, self._version, nothing)
        maker.run()
        parts = maker.seconds
        return parts["spark"] + parts["verify"], parts["spark"]

    def _by_spark(self, way: str) -> tuple[float, float]:
        made = manifest.read(self._own, PIN, self._own.read())
        attempts.begin(self._own, Repartition(MANY, PIN, 1, self._lineage))
        restore.restore(Origin(self._own, PIN), Target(self._own, self._lineage), "bench")
        (query,) = made.queries
        place = f"s3a://{self._own.store.bucket}/{self._own.lineage_key(self._lineage, query)}"
        session_for = job.session_for if way == UNTRACKED else state_reader.session_at
        session = session_for(self._session, made.queries[query])
        began = time.monotonic()
        job._repartition(session, place, MANY)
        seconds = time.monotonic() - began
        lineage_mark.put(self._own, self._lineage, {"snapshot": PIN})
        return seconds, seconds

    def _start_spark(self) -> None:
        import pyspark  # noqa: PLC0415 - only now is it needed

        from tidegate_spark.jvm import session as spark_session  # noqa: PLC0415 - imports PySpark

        self._version = pyspark.__version__
        os.environ.update({key: value for key, value in self._variables.items() if key != "PYTHONPATH"})
        environment = Environment.read(os.environ)
        credentials = readiness.check_storage(self._config, environment.credentials_directory)
        os.environ.update(credentials.variables() if credentials else {})
        config = config_for_spark(self._config, Repartition(MANY, PIN, 1, 1, heap_mib=1536))
        os.environ.update(inherited_variables(config, os.environ, sys.executable))
        held = fencing.take(config, credentials, fencing.holder_of(config, "bench"))
        process = spark_session.Process("bench", held, lambda: None)
        self._session = spark_session.start_session(config, environment, Progress(config), process)
        # The pin is taken once; every trial finds it.
        order = Repartition(FEW, PIN, 1, 0)
        maker = job.Repartitioner(self._config, order, self._own, lambda: self._session, self._version, lambda: None)
        made = maker._pinned()
        say(f"{SnapshotState.READY.value}: {json.dumps({name: at.batch for name, at in made.queries.items()})}")
