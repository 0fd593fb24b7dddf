"""A fault that the driver's report has while a check finds it. No I/O of its own."""

from __future__ import annotations

import logging

from tidegate_spark.contract.protocol import Fault
from tidegate_spark.process.progress import Progress

log = logging.getLogger("tidegate")


class HeldFault:
    """What one check finds; it leaves alone what others report."""

    def __init__(self, progress: Progress) -> None:
        """Report to ``progress``."""
        self._progress, self._reported = progress, False

    def report(self, fault: Fault | None) -> None:
        """Have the fault in the report, or no more; called at each check."""
        if fault is not None and not self._reported:
            log.warning("%s", fault.message)
        if fault is not None or self._reported:
            # Each time: the driver's next state has no fault.
            self._progress.hold(fault)
        self._reported = fault is not None
