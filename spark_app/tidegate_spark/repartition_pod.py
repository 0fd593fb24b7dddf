"""``python3 -m tidegate_spark.repartition_pod``: the entry point of a pod that repartitions state. Does I/O.

Operators of other versions start it by this name. Its first act is to hold a stop.
"""

# ruff: noqa: E402 - a stop is held before anything else is imported
from tidegate_spark.process.held_signals import hold_stops

hold_stops()

import sys

from tidegate_spark.repartition.pod import main

if __name__ == "__main__":
    sys.exit(main())
