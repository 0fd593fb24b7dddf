"""A cluster whose state is repartitioned, by pods that may die at any step: what comes of the lineages. Pure.

The pod does what the runtime's does: it takes the fence, begins a lineage of its own, fills it from the pin, and says
that it is whole. A pod that was removed by force goes on as long as nobody else has the fence.
"""

import dataclasses
from dataclasses import dataclass, field
from typing import Any

import msgspec

from tidegate.cache.process_state import TimedReport
from tidegate.pods.records.record import Exit, PodRecord
from tidegate_spark.contract.protocol import DriverConfig, Termination, from_json, to_json
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.repartition_protocol import (
    REPARTITION_VARIABLE,
    Repartition,
    RepartitionedQuery,
    RepartitionEnd,
)
from tidegate_spark.contract.snapshot_protocol import QueryPin, SnapshotState, StateFacts
from tidegate_testing.cluster_simulation import DRIVER
from tidegate_testing.plan_interpreter import AnyPlan
from tidegate_testing.upgrade_simulation import UpgradeCluster

FIRST = 4
"""Partitions of what the simulation starts with."""


@dataclass
class RepartitionCluster(UpgradeCluster):
    """The world with state in partitions."""

    divisions: dict[int, int] = field(default_factory=dict)
    """Lineage -> partitions of its state."""
    unfinished: dict[int, str] = field(default_factory=dict)
    """Lineage that is being made -> uid of the pod that does."""
    waiting: set[int] = field(default_factory=set)
    """Lineages that are whole and that no driver has run in: the next one in another lineage removes them."""
    orders: dict[str, tuple[Repartition, int]] = field(default_factory=dict)
    """What each pod was told, and its epoch, by uid."""
    fence: tuple[int, str] = (0, "")
    """The highest epoch that took it, and the uid of its pod."""
    seen: set[int] = field(default_factory=set)
    """Lineages of whose attempts the status has named a pod."""
    provider: str = "RocksDB"
    wrong: Reason = Reason.NONE
    """How each attempt ends."""
    zombies: list[PodRecord] = field(default_factory=list)
    """Pods that are gone from the API and go on."""

    def repartitions(self, pod: PodRecord, manifest: dict[str, Any]) -> None:
        """Take note of what the pod is told, and look whether it may begin."""
        (container,) = manifest["spec"]["containers"]
        (text,) = (each["value"] for each in container["env"] if each["name"] == REPARTITION_VARIABLE)
        order = from_json(Repartition, text)
        if DRIVER in self.pods:
            self.trouble.append(f"{pod.name} begins beside a driver")
        # A pod that went before any operator could write down that it was there is, to them, one that never came.
        if order.lineage in self.seen:
            self.trouble.append(f"{pod.name} makes lineage {order.lineage}, which was begun before")
        upgrade = self.app.status.upgrade if self.app is not None else None
        if upgrade is None or upgrade.epoch:
            self.trouble.append(f"{pod.name} divides what a version has written that was never stable")
        self.orders[pod.uid] = (order, pod.epoch)

    def carry_out(self, plan: AnyPlan, crash_after: int | None = None) -> bool:
        """Carry out a plan, and look which attempt's pod the status names by then."""
        to_its_end = super().carry_out(plan, crash_after)
        upgrade = self.app.status.upgrade if self.app is not None else None
        if upgrade is not None and upgrade.repartition is not None and upgrade.repartition.pod_uid:
            self.seen.add(upgrade.repartition.lineage)
        return to_its_end

    def kubelet(self) -> bool:
        """Have each node do its next thing, and pods that divide state theirs."""
        worked = sum(self._work(pod) for pod in (*self._repartitioning(), *self.zombies)) > 0
        changed = super().kubelet() or worked
        driver = self.pods.get(DRIVER)
        if driver is not None and driver.running:
            self.fence = max(self.fence, (driver.epoch, driver.uid), key=lambda held: held[0])
        return changed

    def _repartitioning(self) -> list[PodRecord]:
        return [pod for pod in self.pods.values() if pod.role == "repartition" and pod.running]

    def _work(self, pod: PodRecord) -> bool:
        """Do the next thing: begin the lineage, or finish it."""
        order, epoch = self.orders[pod.uid]
        if self.fence[0] > epoch or (self.fence[0] == epoch and self.fence[1] != pod.uid):
            return self._end(pod, Reason.FENCED)
        self.fence = (epoch, pod.uid)
        if order.lineage not in self.unfinished:
            self._clear([number for number in self.waiting if number < order.lineage and number != order.of_lineage])
            self.unfinished[order.lineage] = pod.uid
            return True
        if self.unfinished[order.lineage] != pod.uid:
            self.trouble.append(f"two pods make lineage {order.lineage}")
        if self.wrong:
            return self._end(pod, self.wrong)
        return self._finish(pod, order)

    def _finish(self, pod: PodRecord, order: Repartition) -> bool:
        if order.pin not in self.kept:
            self.kept[order.pin] = self._state_of_pin(order.pin, order.of_lineage)
        if self.kept[order.pin] != self.lineages.get(order.of_lineage):
            self.trouble.append(f"lineage {order.lineage} is not made of all that lineage {order.of_lineage} has")
        self.lineages[order.lineage] = self.kept[order.pin]
        self.divisions[order.lineage] = order.partitions
        self.waiting.add(order.lineage)
        del self.unfinished[order.lineage]
        return self._end(pod, Reason.NONE, order.lineage)

    def _end(self, pod: PodRecord, what: Reason, lineage: int = 0) -> bool:
        if pod in self.zombies:
            self.zombies.remove(pod)
            return True
        done = what is Reason.NONE
        reason = Reason.COMPLETED if done else Reason.APPLICATION_FAILED
        queries = {"main": RepartitionedQuery(len(self.lineages[lineage]) - 1, 5, FIRST)} if done else {}
        termination = to_json(
            Termination(reason, "words", pod.epoch, repartition=RepartitionEnd(what, lineage, 5, queries))
        )
        self._end_pod(pod, Exit(0 if done else 1, "Completed" if done else "Error", termination, self.now))
        return True

    def _end_pod(self, pod: PodRecord, ended: Exit | None, **fields: Any) -> None:
        phase = "Succeeded" if ended is not None and ended.exit_code == 0 else "Failed"
        self.pods[pod.name] = dataclasses.replace(pod, phase=phase, running=False, ended=ended, **fields)

    # --- what drivers make of it ---

    def _enter(self, config: DriverConfig) -> None:
        if config.lineage in self.unfinished:
            self.trouble.append(f"a driver begins on lineage {config.lineage}, which is not whole")
        # Without a batch there is no state that has a number.
        known = self.divisions.get(config.lineage) if self.lineages.get(config.lineage) else None
        start = config.start_from
        if known is None and start is not None and start.lineage:
            known = self.divisions[self.beginning_of(start)[1]]
        self.divisions[config.lineage] = known or config.state_partitions
        self.waiting.discard(config.lineage)
        super()._enter(config)

    def _go_on(self) -> bool:
        changed = super()._go_on()
        facts = StateFacts(self.provider, self.divisions[self.configs[-1][0].lineage], ("stateStoreSave",))
        for name, report in self.reports.items():
            if report.state is SnapshotState.READY:
                queries = {query: QueryPin(pin.batch, "", facts) for query, pin in report.queries.items()}
                self.reports[name] = dataclasses.replace(report, queries=queries)
        return changed

    def _report(self, driver: PodRecord) -> TimedReport:
        timed = super()._report(driver)
        partitions = self.divisions.get(self.configs[-1][0].lineage, 0) if self.configs else 0
        reported = [
            dataclasses.replace(query, state_partitions=partitions if query.committed else 0)
            for query in timed.report.queries
        ]
        return dataclasses.replace(timed, report=dataclasses.replace(timed.report, queries=tuple(reported)))

    def _clear(self, lineages: list[int]) -> None:
        """Remove what attempts have left; who begins there nevertheless starts with nothing."""
        for number in lineages:
            self.waiting.discard(number)
            del self.lineages[number]
            del self.divisions[number]

    # --- what happens ---

    def commit(self, number: int = 1) -> None:
        """Have the driver commit batches, and then remove what attempts have left in other lineages."""
        before = self.committed
        super().commit(number)
        if self.committed > before:
            self._clear([lineage for lineage in self.waiting if lineage != self.configs[-1][0].lineage])

    def repartition(self, partitions: int) -> None:
        """Somebody edits the number of partitions."""
        if self.app is not None:
            self._edit(state=msgspec.structs.replace(self.app.spec.state, partitions=partitions))

    def kill_repartition(self) -> None:
        """The process is killed, and leaves no words."""
        for pod in self._repartitioning():
            self._end_pod(pod, Exit(137, "Error", "", self.now))

    def evict_repartition(self) -> None:
        """The kubelet gives the pod up."""
        for pod in self._repartitioning():
            self._end_pod(pod, None, reason="Evicted")

    def remove_repartition(self) -> None:
        """Somebody deletes the pod by force; its process goes on."""
        for pod in self._repartitioning():
            self.zombies.append(pod)
            del self.pods[pod.name]
