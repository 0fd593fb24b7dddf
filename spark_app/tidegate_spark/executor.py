"""``python3 -m tidegate_spark.executor``: the entry point of an executor's container. Does I/O.

Operators of other versions start it by this name.
"""

import sys

from tidegate_spark.executors.entry_point import main

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
