"""The patterns of tests/compatibility on a cluster: what runs for ever goes through all that an application can.

It is killed, suspended, resumed, edited through the gate, snapshotted and forked. What has an end is killed on its way
and Completed; what does not run here says so in Ready. These tests have a slice of their own: make compatibility.
"""

from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import Any

import pytest
import yaml

from devcluster import tools
from devcluster.demo.kubernetes import CommandError, Kubernetes
from tests.compatibility.inputs import files_put, put_files, records_of
from tests.compatibility.patterns import HERE, RUNTIME, Outcome, Pattern, load
from tests.compatibility.selection import cluster_cases
from tidegate_testing.apps import SCRIPTS_PATH, scripts, with_scripts
from tidegate_testing.waiting import CannotComeError, wait_for
from tidegate_testing.world import PREFIX, World

pytestmark = pytest.mark.long  # tests/compatibility has them for one process, without a container

NAMESPACE = f"{PREFIX}-compatibility"
NUMBERS = {pattern.name: number for number, pattern in enumerate(load().pattern)}
GENEROUS = 900.0
STABLE_SOON = {"stableBatches": 1}
FILES = "files_of_all_kinds.py"
MODULE = {"listed_rules.py": 'NAME = "listed_rules"\n'}
"""One that spec.application.pyFiles lists."""
EDIT = {"name": "EDITED", "value": "yes"}


@dataclass(frozen=True)
class Stage:
    """A pattern as an application."""

    world: World
    pattern: Pattern
    values: dict[str, str]

    @property
    def name(self) -> str:
        """The name of the application."""
        return f"pattern-{NUMBERS[self.pattern.name]}"

    def apply(self, name: str, **groups: Any) -> None:
        """Apply the application."""
        spec = {"upgrade": STABLE_SOON, "sparkConf": self.pattern.settings(self.values), **groups}
        # As in an image, executors have what is beside the script, too.
        spec["executor"] = {"podTemplate": with_scripts("executor"), **groups.get("executor", {})}
        main, args = f"script:{self.pattern.path.name}", self.pattern.arguments(self.values)
        self.world.kubectl.apply(self.world.app(name, NAMESPACE, main=main, args=args, spec=spec))

    def patch(self, spec: dict[str, Any]) -> None:
        """Edit its spec."""
        self.world.kubectl.patch("sapp", self.name, NAMESPACE, {"spec": spec})

    def status(self) -> dict[str, Any]:
        """Return its status, whatever its phase is."""
        found: dict[str, Any] = self.world.get_app(self.name, NAMESPACE).get("status", {})
        return found

    def await_work(self, name: str, after: dict[str, int]) -> dict[str, int]:
        """Wait until it is Ready and each query has a batch above a known one; return the last of each."""

        def works() -> dict[str, int]:
            status = self.world.status(name, NAMESPACE)
            found = {query["name"]: query.get("batchId", -1) for query in status.get("queries", [])}
            assert status.get("phase") == "Running", status
            assert self.ready(name).get("status") == "True", status
            for query in self.pattern.queries:
                before = -1 if query in self.pattern.fresh else after.get(query, -1)
                assert found.get(query, -1) > before, (query, before, status)
            return found

        return wait_for(f"batches above {after} of {name}", works, GENEROUS, 1)

    def ready(self, name: str) -> dict[str, Any]:
        """Return the condition Ready."""
        found: dict[str, Any] = self.world.kubectl.condition(self.world.get_app(name, NAMESPACE), "Ready")
        return found

    def kill(self) -> None:
        """Send SIGKILL to the driver's JVM."""
        kubectl = self.world.kubectl
        kubernetes = Kubernetes(kubectl.binary, tools.program("helm"), kubectl.kubeconfig)
        kubernetes.kill_process(f"{self.name}-driver", NAMESPACE, "driver", "java")

    def suspend(self) -> None:
        """Suspend it, at a batch boundary."""
        self.patch({"suspend": True})
        wait_for("the suspension", lambda: self.phase_is("Suspended"), GENEROUS, 1)

    def phase_is(self, phase: str) -> bool:
        """Return whether it is in a phase.

        Raises:
            CannotComeError: it has come to an end of another kind.
        """
        status = self.status()
        if status.get("phase") in {"Completed", "Failed"} - {phase}:
            raise CannotComeError(f"not {phase}: {status}")
        return bool(status.get("phase") == phase)

    def edit(self) -> None:
        """Edit it; its next version passes the gate, or is rolled back if that is what the pattern says."""
        wait_for("a stable version", lambda: "lastStable" in self.status(), GENEROUS, 1)
        changed = self.pattern.arguments(self.values, version=2)
        application: dict[str, Any] = {"args": list(changed)} if self.pattern.next_args else {"env": [EDIT]}
        # Nobody knows before that time whether a query that is not there was dropped, or comes later.
        upgrade = {**STABLE_SOON, "timeoutSeconds": 240} if self.pattern.drops else STABLE_SOON
        self.patch({"application": application, "upgrade": upgrade})
        expected = "RolledBack" if self.pattern.next_reason else "Completed"

        def ended() -> bool:
            upgrade = self.status().get("upgrade", {})
            if upgrade.get("phase") in {"Completed", "RolledBack", "Refused", "Failed"} - {expected}:
                raise CannotComeError(f"not {expected}: {self.status()}")
            return bool(upgrade.get("phase") == expected)

        wait_for(f"the upgrade to be {expected}", ended, GENEROUS, 1)
        if self.pattern.next_reason:
            self.revert(list(self.pattern.arguments(self.values)))

    def revert(self, args: list[str]) -> None:
        """Read why the next version was rolled back, and have the specification say again what runs."""

        def named() -> bool:
            condition = self.ready(self.name)
            assert (condition.get("status"), condition.get("reason")) == ("False", "UpgradeRolledBack"), condition
            assert [text for text in self.pattern.says if text not in condition["message"]] == [], condition
            return True

        wait_for("the reason of the rollback", named, GENEROUS, 1)
        self.patch({"application": {"args": args}})

    def snapshot(self) -> str:
        """Have a snapshot; return its name."""
        metadata = {"name": self.name, "namespace": NAMESPACE}
        spec = {"appRef": {"name": self.name}, "deletionPolicy": "Delete"}
        made = {"apiVersion": "tidegate.dev/v1alpha1", "kind": "StreamSnapshot", "metadata": metadata, "spec": spec}
        self.world.kubectl.apply(made)
        wait = ("wait", f"snap/{self.name}", "-n", NAMESPACE, "--for=condition=Ready", "--timeout=600s")
        self.world.kubectl.run(*wait, timeout=610)
        return self.name

    def fork(self, snapshot: str, after: dict[str, int]) -> None:
        """Have another application go on from a snapshot, in the place of this one, which is deleted."""
        self.world.kubectl.delete("sapp", self.name, NAMESPACE)
        gone = ("wait", f"sapp/{self.name}", "-n", NAMESPACE, "--for=delete", "--timeout=600s")
        self.world.kubectl.run(*gone, timeout=610)
        start = {"snapshotRef": {"name": snapshot}, "outputs": "TakeOver"}
        self.apply(f"{self.name}-fork", startFrom=start)
        self.await_work(f"{self.name}-fork", after)


@pytest.fixture
def stage(world: World, pattern: Pattern) -> Iterator[Stage]:
    """The pattern, and what it reads; nothing is applied yet."""
    world.make_namespace(NAMESPACE)
    paths = [*(HERE / "scripts").glob("*.py"), *RUNTIME.glob("*.py"), pattern.path]
    world.kubectl.apply(scripts(NAMESPACE, MODULE | {path.name: path.read_text() for path in paths}))
    folder = f"compatibility/{NUMBERS[pattern.name]}"
    values = {name: f"s3a://{world.bucket}/{folder}/{name}" for name in ("input", "output")}
    asked = " ".join(pattern.args)
    with ExitStack() as feeds:
        if "{input}" in asked and pattern.outcome is Outcome.ENDLESS:
            feeds.enter_context(files_put(world.s3, world.bucket, f"{folder}/input"))
        elif "{input}" in asked:
            put_files(world.s3, world.bucket, f"{folder}/input")
        if "{brokers}" in asked:
            values |= {"brokers": world.environment.kafka_pods, "topic": f"{NAMESPACE}-{NUMBERS[pattern.name]}"}
            feeds.enter_context(records_of(world.environment.kafka_host, values["topic"]))
        yield Stage(world, pattern, values)
        world.delete_apps(NAMESPACE)


@pytest.mark.parametrize("pattern", cluster_cases(Outcome.ENDLESS))
def test_what_runs_for_ever_is_killed_suspended_edited_snapshotted_and_forked_and_goes_on(stage: Stage) -> None:
    stage.apply(stage.name)
    batches = stage.await_work(stage.name, {})
    stage.world.await_events(stage.name, NAMESPACE, *stage.pattern.events)
    stage.kill()
    batches = stage.await_work(stage.name, batches)
    stage.suspend()
    stage.patch({"suspend": False})
    batches = stage.await_work(stage.name, batches)
    stage.edit()
    if set(stage.pattern.fresh) >= set(stage.pattern.queries):
        return  # nothing of it lasts that a snapshot could have
    batches = stage.await_work(stage.name, batches if not stage.pattern.next_reason else {})
    stage.fork(stage.snapshot(), batches)


@pytest.mark.parametrize("pattern", cluster_cases(Outcome.FINITE))
def test_what_has_an_end_is_completed_after_a_kill_and_after_an_edit(stage: Stage) -> None:
    stage.apply(stage.name)
    wait_for("its start", lambda: stage.status().get("phase") in {"Running", "Completed"}, GENEROUS, 0.5)
    with suppress(CommandError):  # it may have come to its end meanwhile
        stage.kill()
    wait_for("its end", lambda: stage.phase_is("Completed"), GENEROUS, 1)
    epoch = stage.status()["epoch"]
    stage.patch({"application": {"env": [EDIT]}})

    def completed_again() -> bool:
        return stage.status()["epoch"] > epoch and stage.phase_is("Completed")

    wait_for("its next end", completed_again, GENEROUS, 1)


@pytest.mark.parametrize("pattern", cluster_cases(Outcome.REFUSED))
def test_what_does_not_run_here_says_at_its_first_start_why_and_what_to_do(stage: Stage) -> None:
    stage.apply(stage.name)

    def named() -> bool:
        condition = stage.ready(stage.name)
        assert (condition.get("status"), condition.get("reason")) == ("False", stage.pattern.reason), condition
        assert [text for text in stage.pattern.says if text not in condition["message"]] == [], condition
        return True

    wait_for("the refusal", named, GENEROUS, 1)


@pytest.mark.parametrize("pattern", [load().of(Outcome.ENDLESS)[0]], ids=["floor"])
def test_in_a_namespace_with_a_floor_a_stock_image_runs_is_suspended_and_snapshotted(stage: Stage) -> None:
    floor = yaml.safe_load((HERE / "scripts" / "floor.yaml").read_text())
    stage.world.kubectl.apply({**floor, "metadata": {**floor["metadata"], "namespace": NAMESPACE}})
    try:
        resources = {"resources": {"requests": {"cpu": "150m", "memory": "1200Mi"}}}
        stock = {"image": stage.world.environment.image_stock, "runtime": "Injected"}
        stage.apply(stage.name, application=stock, driver=resources, executor=resources)
        stage.await_work(stage.name, {})
        stage.suspend()
        stage.snapshot()
        stage.world.delete_apps(NAMESPACE)
    finally:
        stage.world.kubectl.delete("limitrange", "floor", NAMESPACE)


@pytest.mark.parametrize("pattern", [p for p in load().pattern if p.script == FILES], ids=["files"])
def test_on_a_stock_image_executors_have_the_files_that_spec_and_script_name(stage: Stage) -> None:
    listed = f"local://{SCRIPTS_PATH}/listed_rules.py"
    stock = {"image": stage.world.environment.image_stock, "runtime": "Injected", "pyFiles": [listed]}
    env = [{"name": "LISTED", "value": "listed_rules"}]
    # Executors have no folder of scripts here, as where the image has none: what is beside ``main`` is the driver's.
    stage.apply(stage.name, application={**stock, "env": env}, executor={"podTemplate": {}})
    batches = stage.await_work(stage.name, {})
    stage.kill()
    stage.await_work(stage.name, batches)
