"""``python3 -m tidegate_spark.purge``: the entry point of a pod that deletes an application's storage. Does I/O.

Operators of other versions start it by this name. Its first act is to hold a stop.
"""

# ruff: noqa: E402 - a stop is held before anything else is imported
from tidegate_spark.process.held_signals import hold_stops

hold_stops()

import sys

from tidegate_spark.snapshots.purge.purge import main

if __name__ == "__main__":
    sys.exit(main())
