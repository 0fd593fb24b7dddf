"""A cluster whose application has state, and versions of which some fail: what upgrades do to it. Pure.

The driver does what the runtime does at its start: it fills a lineage from a pin, completing that first, or notes which
batches the pin is to hold. The state of a lineage is the list of versions that committed its batches.
"""

import dataclasses
from dataclasses import dataclass, field
from typing import Any

import msgspec

from tidegate.api.streaming_app import UpgradePhase
from tidegate.cache.process_state import TimedReport
from tidegate.pods.records.record import Exit, PodRecord
from tidegate_spark.contract.protocol import (
    CONFIG_VARIABLE,
    ROLE_REHEARSAL,
    AgentReport,
    DriverConfig,
    DriverState,
    QueryReport,
    StartFrom,
    from_json,
)
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.rehearsal_protocol import RehearsalEnd, RehearsalResult
from tidegate_spark.contract.snapshot_protocol import QueryPin, SnapshotOrders, SnapshotReport, SnapshotState
from tidegate_testing.cluster_simulation import DRIVER, Cluster
from tidegate_testing.observations import ended_with
from tidegate_testing.rehearsals import FAILED, PASSED, config_of, texts

BUDGET = 2
"""Failures of one pod that are answered by another start."""
State = tuple[str, ...]
"""Batch -> version that committed it."""


@dataclass
class UpgradeCluster(Cluster):
    """The world with state in it."""

    lineages: dict[int, State] = field(default_factory=dict)
    noted: dict[str, tuple[int, int]] = field(default_factory=dict)
    """Pin -> lineage and number of batches that the version before an upgrade ended with."""
    kept: dict[str, State] = field(default_factory=dict)
    """Snapshots that are complete."""
    disposed: list[str] = field(default_factory=list)
    broken: str = ""
    """A version, by its hash, that fails at its next batch."""
    unreadable: bool = False
    """No snapshot can be taken."""
    configs: list[tuple[DriverConfig, str]] = field(default_factory=list)
    """What each driver was told, and its version."""
    committed: int = 0
    """By the process that runs."""
    reports: dict[str, SnapshotReport] = field(default_factory=dict)
    """Of that process."""
    rehearsals: dict[str, DriverConfig] = field(default_factory=dict)
    """What each rehearsal's process was told, by the pod's uid."""
    places: set[str] = field(default_factory=set)
    """Snapshots on which something was rehearsed that is still in the storage."""
    trouble: list[str] = field(default_factory=list)
    """What must not be."""
    _process: tuple[str, int] = ("", 0)
    _entered: bool = False

    # --- a process begins ---

    def launched(self, pod: PodRecord, manifest: dict[str, Any]) -> None:
        """Take note of what the driver is told."""
        (container,) = manifest["spec"]["containers"]
        (text,) = (each["value"] for each in container["env"] if each["name"] == CONFIG_VARIABLE)
        config = from_json(DriverConfig, text.replace("$$", "$"))
        if config.rehearsal is not None:
            self.trouble.append("a driver that rehearses")
        self.configs.append((config, pod.spec_hash))

    def rehearsed(self, pod: PodRecord, manifest: dict[str, Any]) -> None:
        """Take note of what a rehearsal is told, and look whether it may begin."""
        assert self.app is not None
        config, upgrade = config_of(manifest), self.app.status.upgrade
        assert config.start_from is not None
        copy = config.start_from.snapshot
        if upgrade is None or upgrade.phase is not UpgradePhase.REHEARSING or upgrade.to_spec_hash != pod.spec_hash:
            self.trouble.append(f"{pod.name} rehearses what nobody recorded")
        if copy not in self.kept:
            self.trouble.append(f"{pod.name} rehearses on {copy}, which is not there")
        if config.rehearsal is None or not config.storage.uri.startswith(
            f"{config.start_from.storage.uri}/rehearsals/"
        ):
            self.trouble.append(f"{pod.name} writes where the application does")
        self.rehearsals[pod.uid] = config

    def kubelet(self) -> bool:
        """Have each node do its next thing, and a driver that runs enter its lineage."""
        ended = self._end_rehearsals()
        changed = super().kubelet() or ended
        driver = self.pods.get(DRIVER)
        if driver is None or not driver.running:
            return changed
        if self._process != (driver.uid, driver.restarts):
            self._process, self._entered, self.committed, self.reports = (driver.uid, driver.restarts), False, 0, {}
        if not self._entered:
            self._enter(self.configs[-1][0])
            return True
        return self._go_on() or changed

    def _enter(self, config: DriverConfig) -> None:
        self._entered = True
        if config.start_from is not None and config.lineage not in self.lineages:
            pin, lineage = self.beginning_of(config.start_from)
            if pin not in self.kept:
                self.kept[pin] = self._state_of_pin(pin, lineage)
            self.lineages[config.lineage] = self.kept[pin]
            if not self.kept[pin]:
                self.trouble.append(f"lineage {config.lineage} starts from {pin}, which holds no committed batch")
        if config.pin is not None:
            if not self.lineages.get(config.lineage):
                self.trouble.append(f"the pin of an empty lineage {config.lineage}")
            self._state_of_pin(config.pin.snapshot, config.lineage)
            self.reports[config.pin.snapshot] = SnapshotReport(config.pin.snapshot, SnapshotState.COPYING)
        if config.lineage not in self.lineages and config.lineage != 1 and not self.gave_up():
            self.trouble.append(f"lineage {config.lineage} starts from nothing")
        self.lineages.setdefault(config.lineage, ())

    def beginning_of(self, start: StartFrom) -> tuple[str, int]:
        """Return the pin that a driver starts from, and its lineage: not of one that no process has entered."""
        pins = [(start.snapshot, start.lineage), *((each.snapshot, each.lineage) for each in start.otherwise)]
        return next((pin for pin in pins if pin[1] in self.lineages), pins[-1])

    def gave_up(self) -> bool:
        """Return whether somebody said that state is to be given up."""
        return self.app is not None and "tidegate.dev/abandon-state" in self.app.metadata.annotations

    def _state_of_pin(self, name: str, lineage: int) -> State:
        if name in self.disposed:
            self.trouble.append(f"{name} is needed and was deleted")
        known = self.noted.setdefault(name, (lineage, len(self.lineages.get(lineage, ()))))
        return self.lineages.get(known[0], ())[: known[1]]

    def _go_on(self) -> bool:
        """Do the next thing of a copy that is under way."""
        for name, report in self.reports.items():
            if report.state is not SnapshotState.COPYING:
                continue
            config = self.configs[-1][0]
            exact = config.pin is not None and config.pin.snapshot == name
            self.kept[name] = self._state_of_pin(name, config.lineage) if exact else self.lineages[config.lineage]
            queries = {"main": QueryPin(len(self.kept[name]) - 1, "")}
            self.reports[name] = SnapshotReport(name, SnapshotState.READY, queries=queries)
            return True
        return False

    # --- rehearsals ---

    def _end_rehearsals(self) -> bool:
        """Have each rehearsal that runs come to a result; returns whether one did."""
        for pod in self._rehearsing():
            failed = pod.spec_hash == self.broken
            said = texts(FAILED) if failed else texts(PASSED, Reason.COMPLETED)
            self._end_rehearsal(pod, Exit(1 if failed else 0, "Error", said, self.now), leaves=False)
            return True
        return False

    def _rehearsing(self) -> list[PodRecord]:
        found = [pod for pod in self.pods.values() if pod.role == ROLE_REHEARSAL and pod.running]
        for pod in found:
            self.places.add(self._place(pod))
        return found

    def _place(self, pod: PodRecord) -> str:
        start = self.rehearsals[pod.uid].start_from
        assert start is not None
        return start.snapshot

    def _end_rehearsal(self, pod: PodRecord, ended: Exit | None, *, leaves: bool, **fields: Any) -> None:
        if not leaves:
            self.places.discard(self._place(pod))
        phase = "Succeeded" if ended is not None and ended.exit_code == 0 else "Failed"
        self.pods[pod.name] = dataclasses.replace(pod, phase=phase, running=False, ended=ended, **fields)

    def kill_rehearsal(self) -> None:
        """The process is killed, and leaves no words but what it had written."""
        for pod in self._rehearsing():
            self._end_rehearsal(pod, Exit(137, "Error", "", self.now), leaves=True)

    def evict_rehearsal(self) -> None:
        """The kubelet gives the pod up."""
        for pod in self._rehearsing():
            self._end_rehearsal(pod, None, leaves=True, reason="Evicted")

    def starve_rehearsal(self) -> None:
        """No input comes in time."""
        end = RehearsalEnd(RehearsalResult.INCONCLUSIVE, Reason.NO_INPUT)
        for pod in self._rehearsing():
            self._end_rehearsal(pod, Exit(143, "Error", texts(end, Reason.STOPPED), self.now), leaves=False)

    def remove_rehearsal(self) -> None:
        """Somebody deletes the pod, by force."""
        for pod in self._rehearsing():
            del self.pods[pod.name]

    def left_places(self) -> set[str]:
        """Return what of rehearsals is in the storage, and nobody will remove."""
        upgrade = self.app.status.upgrade if self.app is not None else None
        going = (
            set(upgrade.obsolete)
            | ({upgrade.rollback_snapshot.copy} if upgrade.rollback_snapshot is not None else set())
            if upgrade
            else set()
        )
        return self.places - going

    # --- orders, reports ---

    def order(self, pod: PodRecord, orders: SnapshotOrders) -> None:
        """Take orders in, as the agent does."""
        assert self.app is not None
        upgrade = self.app.status.upgrade
        for take in orders.take:
            if self.unreadable:
                reason = Reason.UNREADABLE_CHECKPOINT
                self.reports[take.id] = SnapshotReport(take.id, SnapshotState.FAILED, reason, "What is this?")
            else:
                self.reports.setdefault(take.id, SnapshotReport(take.id, SnapshotState.COPYING))
        for name in orders.dispose:
            if (
                upgrade is None
                or name not in upgrade.obsolete
                or (upgrade.rollback_snapshot and upgrade.rollback_snapshot.id == name)
            ):
                self.trouble.append(f"{name} is disposed of, and the status does not say so")
            if any(self._place(each) == name for each in self.pods.values() if each.role == ROLE_REHEARSAL):
                self.trouble.append(f"{name} is disposed of, and something rehearses on it")
            self.places.discard(name)
            self.disposed.append(name)
            self.kept.pop(name, None)
            self.reports[name] = SnapshotReport(name, SnapshotState.DISPOSED)

    def _report(self, driver: PodRecord) -> TimedReport:
        timed = super()._report(driver)
        lineage = self.configs[-1][0].lineage if self.configs else 1
        batch = len(self.lineages.get(lineage, ())) - 1
        query = QueryReport("main", batch_id=batch, committed=self.committed if self._is_up(driver) else 0)
        report = AgentReport(
            timed.report.app,
            timed.report.uid,
            timed.report.epoch,
            DriverState.RUNNING if self._is_up(driver) else DriverState.STARTING,
            queries=(query,) if self._is_up(driver) else (),
            executors_wanted=timed.report.executors_wanted,
            ready=self._is_up(driver),
            snapshots=tuple(self.reports.values()) if self._is_up(driver) else (),
        )
        return dataclasses.replace(timed, report=report)

    def _is_up(self, driver: PodRecord) -> bool:
        return self._entered and self._process == (driver.uid, driver.restarts)

    # --- what happens ---

    def commit(self, number: int = 1) -> None:
        """Let the driver commit batches; a broken version fails instead."""
        driver = self.pods.get(DRIVER)
        if driver is None or not driver.running or driver.terminating or not self._is_up(driver):
            return
        if driver.spec_hash == self.broken and driver.restarts >= BUDGET:
            self.exhaust_driver()
        elif driver.spec_hash == self.broken:
            ended = dataclasses.replace(
                ended_with(Reason.APPLICATION_FAILED, 1, "ValueError"), completion_time=self.now
            )
            self._change_driver(restarts=driver.restarts + 1, ended=ended)
        else:
            self.lineages[self.configs[-1][0].lineage] += (driver.spec_hash,) * number
            self.committed += number

    def break_version(self) -> None:
        """The version in the spec fails from now on."""
        observation = self.observe()
        self.broken = observation.spec_hash if observation is not None else ""

    def fix_version(self) -> None:
        """No version fails."""
        self.broken = ""

    def ask_for_no_pod(self, on: bool) -> None:
        """Somebody edits the spec so that no pod can be made of it, or fixes that."""
        self._edit(spark_conf={"spark.driver.memory": "64g"} if on else {})

    def change_upgrade(self, **fields: Any) -> None:
        """Somebody edits spec.upgrade."""
        if self.app is not None:
            self._edit(upgrade=msgspec.structs.replace(self.app.spec.upgrade, **fields))

    def ask_for_rollback(self) -> None:
        """Somebody names the pin of the last upgrade."""
        upgrade = self.app.status.upgrade if self.app is not None else None
        if upgrade is not None and upgrade.rollback_snapshot is not None:
            self.change_upgrade(rollback_to=upgrade.rollback_snapshot.id)

    def give_up_state(self) -> None:
        """Somebody says twice that the state is to be given up."""
        if self.app is not None:
            annotations = {"tidegate.dev/abandon-state": str(self.app.status.lineage)}
            metadata = msgspec.structs.replace(self.app.metadata, annotations=annotations)
            self.app = msgspec.structs.replace(self.app, metadata=metadata)
