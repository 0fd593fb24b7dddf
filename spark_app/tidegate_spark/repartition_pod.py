"""``python3 -m tidegate_spark.repartition_pod``: the entry point of a pod that repartitions state. Does I/O.

Operators of other versions start it by this name.
"""

import sys

from tidegate_spark.repartition.pod import main

if __name__ == "__main__":
    sys.exit(main())
