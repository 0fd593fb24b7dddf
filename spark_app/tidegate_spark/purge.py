"""``python3 -m tidegate_spark.purge``: the entry point of a pod that deletes an application's storage. Does I/O.

Operators of other versions start it by this name.
"""

import sys

from tidegate_spark.snapshots.purge.purge import main

if __name__ == "__main__":
    sys.exit(main())
