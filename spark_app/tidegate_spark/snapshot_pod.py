"""``python3 -m tidegate_spark.snapshot_pod``: the entry point of a pod for snapshots and exports. Does I/O.

Operators of other versions start it by this name. Its first act is to hold a stop.
"""

# ruff: noqa: E402 - a stop is held before anything else is imported
from tidegate_spark.process.held_signals import hold_stops

hold_stops()

import sys

from tidegate_spark.exports.order_execution import carry_out
from tidegate_spark.snapshots.service.pod import main

if __name__ == "__main__":
    sys.exit(main(carry_out))
