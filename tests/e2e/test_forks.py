"""Two variants of the sample go on from one snapshot of it, side by side with it, while data flow.

Each decides what an independent computation says, from the batch after the snapshot's on. The snapshot is deleted while
all of them run.
"""

import json
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from devcluster.demo.application import MANIFEST, VARIANTS, Application, build_application, committed_batches
from devcluster.demo.compare import TopicReader, compare, read_topic
from devcluster.demo.forking import SNAPSHOT
from devcluster.demo.oracle import Variant, expected_decisions
from devcluster.demo.replay import Replay, create_topics, delete_topics
from devcluster.demo.scenario import Scenario
from devcluster.demo.snapshot_cut import ends_of, is_before, read_positions
from devcluster.demo.variants import compare_variants, draw
from tidegate_testing.waiting import wait_for
from tidegate_testing.world import World

NAMESPACE = "tidegate-e2e-forks"
READINGS, SETTINGS = f"{NAMESPACE}-readings", f"{NAMESPACE}-settings"
SCENARIO = Scenario(readings=4_000, shifts=20)
RATE = 50.0
"""Readings per second: data flow while the snapshot is taken and the variants start."""
SMALL = {"requests": {"cpu": "50m", "memory": "1200Mi"}}


class Run:
    """The sample and two variants of it, each with decisions of its own."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.original, self.same, self.calm = (self._build(file) for file in (MANIFEST, *VARIANTS))
        self.apps = [self.original, self.same, self.calm]
        self.topics = {READINGS: 4, SETTINGS: 4, **{app.option("decisions"): 2 for app in self.apps}}

    def _build(self, file: Path) -> Application:
        environment = self.world.environment
        topics = {"readings": READINGS, "settings": SETTINGS, "decisions": f"{NAMESPACE}-{file.stem}"}
        app = build_application(
            image=environment.image_spark,
            endpoint=environment.s3_endpoint_pods,
            bucket=self.world.bucket,
            namespace=NAMESPACE,
            options={"brokers": environment.kafka_pods, **topics},
            file=file,
        )
        spec = app.manifest["spec"]
        for role in ("driver", "executor"):
            spec[role]["resources"] = SMALL
        # All batches are there to be looked at in the end.
        spec["state"]["minBatchesToRetain"] = 1_000
        return app

    # --- what is seen -------------------------------------------------------------------------------------------------

    def snapshot(self) -> dict[str, Any]:
        status: dict[str, Any] = (self.world.kubectl.get("snap", SNAPSHOT, NAMESPACE) or {}).get("status", {})
        return status

    def log(self, app: Application, kind: str) -> list[int]:
        """Return the batches that an application's ``offsets`` or ``commits`` hold."""
        folder = f"/lineages/1/decisions/{kind}/"
        return committed_batches(key for key in self.world.keys(app.name, NAMESPACE) if folder in key)

    def offsets(self, app: Application, batch: int) -> list[str]:
        """Return the position of each source after a batch."""
        key = f"apps/{NAMESPACE}/{app.name}/lineages/1/decisions/offsets/{batch}"
        return self.world.read(key).splitlines()[2:]

    def decisions(self, app: Application) -> list[dict[str, Any]]:
        return read_topic(self.world.environment.kafka_host, app.option("decisions"))

    def await_decisions(self, app: Application, expected: set[str]) -> None:
        reader, seen = TopicReader(self.world.environment.kafka_host, app.option("decisions")), set[str]()

        def all_there() -> bool:
            seen.update(decision["id"] for decision in reader.poll(0.2))
            return expected <= seen

        try:
            wait_for(f"the last decision of {app.name}", all_there, timeout=600, interval=0)
        finally:
            reader.close()

    # --- what is done -------------------------------------------------------------------------------------------------

    def take(self) -> None:
        metadata = {"name": SNAPSHOT, "namespace": NAMESPACE}
        spec = {"appRef": {"name": self.original.name}, "deletionPolicy": "Delete"}
        self.world.kubectl.apply(
            {"apiVersion": "tidegate.dev/v1alpha1", "kind": "StreamSnapshot", "metadata": metadata, "spec": spec}
        )

    def await_snapshot(self) -> None:
        """Return when the snapshot is complete: there are readings after it that only the variants' own state sees."""

        def ready() -> bool:
            status = self.snapshot()
            assert status.get("phase") == "Ready", status
            return True

        wait_for("the snapshot", ready, timeout=300)

    def fork(self) -> None:
        """Apply both variants: they wait for the snapshot by themselves."""
        for app in (self.same, self.calm):
            self.world.apply_sample(app.manifest)

    def dispose(self) -> None:
        """Deleted, the snapshot takes its files along, and nobody's driver notices."""
        kubectl, snapshots = self.world.kubectl, partial(self.world.snapshot_keys, self.original.name, NAMESPACE)
        assert snapshots() != []
        kubectl.delete("snap", SNAPSHOT, NAMESPACE)
        wait_for("the snapshot to be gone", lambda: kubectl.get("snap", SNAPSHOT, NAMESPACE) is None, timeout=300)
        assert snapshots() == []
        for app in self.apps:
            kubectl.run(
                "wait", f"sapp/{app.name}", "-n", NAMESPACE, "--for=condition=Ready", "--timeout=180s", timeout=190
            )

    def replay(self, at: dict[int, Callable[[], None]]) -> None:
        """Send all readings; do what is to be done as soon as so many percent of them are sent."""
        due = sorted(((percent * SCENARIO.readings // 100, do) for percent, do in at.items()), reverse=True)

        def progress(done: int) -> None:
            while due and done >= due[-1][0]:
                due.pop()[1]()

        def ready() -> None:
            wait_for("the first committed batch", lambda: self.log(self.original, "commits"), timeout=600)

        replay = Replay(self.world.environment.kafka_host, READINGS, SETTINGS)
        replay.run(SCENARIO.records(), ready=ready, progress=progress, rate=RATE)
        assert due == []


@pytest.fixture
def run(world: World) -> Iterator[Run]:
    brokers, made = world.environment.kafka_host, Run(world)
    world.make_namespace(NAMESPACE)
    delete_topics(brokers, made.topics)
    create_topics(brokers, made.topics)
    world.apply_sample(made.original.manifest)
    yield made
    world.delete_apps(NAMESPACE)
    delete_topics(brokers, made.topics)


@pytest.mark.long  # a fork beside its original is in tests/integration: test_snapshot_lifecycle.py, test_outputs.py
def test_two_variants_go_on_from_one_snapshot_and_each_decides_as_it_should(run: Run, tmp_path: Path) -> None:
    run.replay({25: run.take, 35: run.fork, 60: run.await_snapshot})
    status = run.snapshot()
    brokers, records = run.world.environment.kafka_host, list(SCENARIO.records())
    cut = partial(is_before, positions=read_positions(brokers, READINGS), ends=ends_of(status, READINGS))
    expected = {
        run.original.name: expected_decisions(records),
        run.same.name: expected_decisions(records, Variant(0.0, cut)),
        run.calm.name: expected_decisions(records, Variant(2.0, cut)),
    }
    assert 0 < len(expected[run.same.name]) < len(expected[run.original.name])
    for app in run.apps:
        run.await_decisions(app, set(expected[app.name]))

    # Each goes on with the batch after the snapshot's, from the positions that the original had there.
    batch = status["batch"]
    for app in (run.same, run.calm):
        # Read once: the application runs on, and a batch may be committed between two looks.
        commits = run.log(app, "commits")
        assert commits == list(range(batch, commits[-1] + 1))
        assert run.offsets(app, batch) == run.offsets(run.original, batch)
        began = json.loads(run.world.read(f"apps/{NAMESPACE}/{app.name}/lineages/1.json"))
        assert (began["snapshot"], began["batches"]) == (status["snapshotId"], {"decisions": batch})
    run.dispose()
    # The original never noticed.
    found = run.world.get_app(run.original.name, NAMESPACE)["status"]
    assert (found["epoch"], found.get("driver", {}).get("restarts", 0)) == (1, 0)

    # Only applications that are gone can send nothing wrong any more.
    run.world.delete_apps(NAMESPACE)
    for app in run.apps:
        comparison = compare(expected[app.name], run.decisions(app))
        assert comparison.ok, f"{app.name}: {comparison.report()}"
    same, calm = run.decisions(run.same), run.decisions(run.calm)
    together = compare_variants(same, calm)[-1]
    assert together.second < together.first, "a margin makes it switch less"
    draw(tmp_path / "variants.png", same, calm, ("as it is", "calm"))
    assert (tmp_path / "variants.png").stat().st_size > 10_000
