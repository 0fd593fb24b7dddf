"""Metrics of a channel. No I/O."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from tidegate_spark.contract.control_protocol import ChannelReport
from tidegate_spark.contract.protocol import DriverConfig

LABELS = ("namespace", "app", "epoch")


class ChannelMetrics(Collector):
    """Made of the newest report, at each scrape; nothing where there are ControlMessages alone."""

    def __init__(self, config: DriverConfig, report: Callable[[], ChannelReport | None]) -> None:
        """Label everything with the application and epoch of ``config``."""
        self._labels, self._report = (config.namespace, config.app, str(config.epoch)), report

    def collect(self) -> Iterator[Metric]:
        """Yield each metric family."""
        found = self._report()
        if found is None:
            return
        connected = GaugeMetricFamily(
            "tidegate_control_channel_connected",
            "1 while control messages are read from the broker or the inbox.",
            labels=(*LABELS, "kind"),
        )
        connected.add_metric((*self._labels, found.kind), float(found.connected))
        yield connected
        waiting = GaugeMetricFamily(
            "tidegate_control_channel_waiting_messages",
            "Control messages in the broker or the inbox that are not read yet, when it was looked last.",
            labels=LABELS,
        )
        if found.waiting >= 0:
            waiting.add_metric(self._labels, found.waiting)
        yield waiting
        received = CounterMetricFamily(
            "tidegate_control_channel_received",
            "Control messages that came from the broker or the inbox into the log, since the application began.",
            labels=LABELS,
        )
        received.add_metric(self._labels, found.received)
        yield received
        ended = CounterMetricFamily(
            "tidegate_control_channel_ended",
            "What became of them: Done, Failed, Rejected, Expired, RolledBack.",
            labels=(*LABELS, "state"),
        )
        for state, number in sorted(found.ended.items()):
            ended.add_metric((*self._labels, state), number)
        yield ended
