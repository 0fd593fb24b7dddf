"""What is reported of a Spark that a child process of the script starts for itself. /proc is a folder."""

from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from tidegate_spark.contract.protocol import DriverState, Storage
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.monitoring.child_spark import INTERVAL_SECONDS, PATIENCE_SECONDS, ChildSpark, Processes
from tidegate_spark.process.progress import Progress
from tidegate_spark.queries.queries import Queries
from tidegate_testing.driver_process import driver_config

FIRST, DRIVER, SUBMIT, OWN, ORPHAN, STRANGER, BESIDE = 1, 7, 20, 21, 22, 90, 91
QUERY = "stream executio"
BATCH = ("java", "C2 CompilerThre", "dag-scheduler-e")


class Container:
    """A driver whose script has children, and a process of another container that shares the namespace."""

    def __init__(self, proc: Path, patch: pytest.MonkeyPatch) -> None:
        self._proc = proc
        (proc / "sys").mkdir()
        self.runs(FIRST, 0, "python3")
        self.runs(DRIVER, FIRST, "python3", "child-spark")
        self.runs(STRANGER, 0, "sh (its name) 7")
        self.progress = Progress(driver_config("app", "local:///main.py", Storage("s3://b/p")))
        self.queries = SimpleNamespace(entries=list, starting=False)
        patch.setattr("tidegate_spark.monitoring.child_spark.SparkContext", SimpleNamespace(_gateway=self._gateway()))
        self._watch = ChildSpark(cast(Queries, self.queries), self.progress, FIRST, Processes(proc))
        self._now = 0.0

    @staticmethod
    def _gateway() -> SimpleNamespace:
        return SimpleNamespace(proc=SimpleNamespace(pid=OWN))

    def runs(self, process: int, parent: int, *threads: str) -> None:
        """Have a process run, with these threads."""
        folder = self._proc / str(process)
        self.ends(process)
        for number, name in enumerate(threads):
            (folder / "task" / str(process + number)).mkdir(parents=True)
            (folder / "task" / str(process + number) / "comm").write_text(f"{name}\n")
        (folder / "stat").write_text(f"{process} ({threads[0]}) S {parent} {process} 0 0\n")

    def ends(self, process: int) -> None:
        """Have a process gone."""
        folder = self._proc / str(process)
        for each in sorted(folder.rglob("*"), reverse=True):
            each.unlink() if each.is_file() else each.rmdir()

    def own_query(self) -> None:
        """Have the script's own process start a query."""
        self.queries.entries = lambda: [SimpleNamespace(name="main")]

    def go_on(self, seconds: float) -> bool:
        """Have it looked at for so long; return whether it still is."""
        end = self._now + seconds
        while self._now < end:
            self._now += INTERVAL_SECONDS
            if not self._watch.check(self._now):
                return False
        return True

    @property
    def reason(self) -> Reason | None:
        fault = self.progress.report().fault
        return fault.reason if fault is not None else None


@pytest.fixture
def container(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Container:
    return Container(tmp_path, monkeypatch)


@pytest.mark.parametrize("parent", [DRIVER, SUBMIT, FIRST], ids=["child", "grandchild", "child of one that has ended"])
def test_a_childs_queries_are_reported_while_the_script_has_none(container: Container, parent: int) -> None:
    container.runs(SUBMIT, DRIVER, "bash")
    container.runs(ORPHAN, parent, *BATCH, QUERY)
    assert container.go_on(PATIENCE_SECONDS)
    assert container.reason is None
    assert container.go_on(2 * INTERVAL_SECONDS)
    assert container.reason is Reason.SCRIPT_UNSUPPORTED
    fault = container.progress.report().fault
    assert fault is not None
    assert f"process {ORPHAN}" in fault.message
    assert "the script's own process has started none" in fault.message


def test_they_are_still_reported_when_the_script_gets_a_session_without_a_query(container: Container) -> None:
    container.runs(ORPHAN, DRIVER, *BATCH, QUERY)
    container.go_on(PATIENCE_SECONDS + INTERVAL_SECONDS)
    container.progress.enter(DriverState.RUNNING)
    container.go_on(INTERVAL_SECONDS)
    assert (container.progress.report().state, container.reason) == (DriverState.RUNNING, Reason.SCRIPT_UNSUPPORTED)


def test_a_childs_batch_job_is_left_alone_however_long_it_takes(container: Container) -> None:
    container.runs(SUBMIT, DRIVER, *BATCH)
    assert container.go_on(3600)
    assert container.reason is None


def test_a_child_beside_the_scripts_own_query_is_not_looked_at(container: Container) -> None:
    container.own_query()
    container.runs(ORPHAN, DRIVER, *BATCH, QUERY)
    assert not container.go_on(3600)
    assert container.reason is None


def test_a_childs_query_that_ends_before_the_script_starts_its_own_is_no_fault(container: Container) -> None:
    for _ in range(20):
        container.runs(ORPHAN, DRIVER, *BATCH, QUERY)
        assert container.go_on(PATIENCE_SECONDS - INTERVAL_SECONDS)
        container.ends(ORPHAN)
        assert container.go_on(INTERVAL_SECONDS)
        assert container.reason is None


def test_a_start_that_is_under_way_is_waited_for(container: Container) -> None:
    container.queries.starting = True
    container.runs(ORPHAN, DRIVER, *BATCH, QUERY)
    assert container.go_on(3600)
    assert container.reason is None


@pytest.mark.parametrize("how", ["its own query", "the child's end"])
def test_the_fault_ends_with(container: Container, how: str) -> None:
    container.runs(ORPHAN, DRIVER, *BATCH, QUERY)
    container.go_on(PATIENCE_SECONDS + INTERVAL_SECONDS)
    assert container.reason is Reason.SCRIPT_UNSUPPORTED
    if how == "its own query":
        container.own_query()
    else:
        container.ends(ORPHAN)
    assert container.go_on(INTERVAL_SECONDS) == (how != "its own query")
    assert container.reason is None


def test_the_drivers_own_spark_and_other_containers_are_no_children(container: Container) -> None:
    container.runs(OWN, DRIVER, *BATCH, QUERY)
    container.runs(BESIDE, STRANGER, *BATCH, QUERY)
    assert container.go_on(3600)
    assert container.reason is None


def test_a_driver_that_stops_reports_no_fault_any_more(container: Container) -> None:
    container.runs(ORPHAN, DRIVER, *BATCH, QUERY)
    container.go_on(PATIENCE_SECONDS + INTERVAL_SECONDS)
    container.progress.enter(DriverState.STOPPING)
    container.go_on(INTERVAL_SECONDS)
    assert container.reason is None
