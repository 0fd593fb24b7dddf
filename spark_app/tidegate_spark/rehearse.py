"""``python3 -m tidegate_spark.rehearse``: the entry point of a rehearsal's pod. Does I/O.

It is that of a driver; the configuration says what is different. A module of its own, so that a runtime which knows of
no rehearsals ends with an error: it would run the application with all its outputs.
"""

import sys

from tidegate_spark.__main__ import main

if __name__ == "__main__":
    sys.exit(main())
