"""Spark's settings in the repartition pod, and the names of its results. Pure."""

from __future__ import annotations

import dataclasses

from tidegate_spark.contract import repartition_messages as messages
from tidegate_spark.contract.protocol import DriverConfig, Termination
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.repartition_protocol import Repartition, RepartitionEnd
from tidegate_spark.process.faults import foreign_text

_REASONS = {
    Reason.FENCED: Reason.FENCED,
    Reason.STATE_UNREADABLE: Reason.STATE_MISSING,
}
_KILLED = (-9, 137)
"""How a JVM ends that the kernel has killed. Without cgroup v2 its container is not, and nothing else reports it."""


def config_for_spark(config: DriverConfig, order: Repartition) -> DriverConfig:
    """Return the configuration by which Spark is started: that of a driver of the new lineage, without executors."""
    return dataclasses.replace(
        config,
        lineage=order.lineage,
        # What the web interface shows, nobody has asked to see, and it would be open to all who reach the pod.
        spark_conf={**order.spark_conf, "spark.ui.enabled": "false"},
        state_partitions=order.partitions,
        driver_heap_mib=order.heap_mib,
        executor=dataclasses.replace(config.executor, instances=0, template={}),
    )


def end_of(config: DriverConfig, what: Reason, message: str, reason: Reason | None = None) -> Termination:
    """Return the termination message of an attempt that made no lineage."""
    said = reason or _REASONS.get(what, Reason.APPLICATION_FAILED)
    return Termination(said, message, config.epoch, repartition=RepartitionEnd(what))


def cause_of(what: Reason, message: str, jvm_exit_code: int | None) -> tuple[Reason, str]:
    """Return what a failure comes down to, and its words: Spark does not fail because of the state if it lacks memory.

    Args:
        what: as it is known to who met it.
        message: likewise.
        jvm_exit_code: of Spark's JVM, None if it runs or there was none.
    """
    if what is not Reason.SPARK_FAILED or (
        jvm_exit_code not in _KILLED and not foreign_text.names_lack_of_heap(message)
    ):
        return what, message
    return Reason.OUT_OF_MEMORY, (messages.out_of_memory(message.rstrip(".")))
