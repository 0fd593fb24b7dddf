"""``python3 -m tidegate_spark.rehearse``: the entry point of a rehearsal's pod. Does I/O.

It is a module of its own so that an older runtime, which has none, ends with an error instead of running the
application with its outputs.
"""

import sys

from tidegate_spark.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
