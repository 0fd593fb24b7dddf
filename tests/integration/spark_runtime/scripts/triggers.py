"""Starts a query with each of the triggers that its arguments name, which is the query's name as well."""

import sys
from typing import Any

from pyspark.sql import SparkSession

TRIGGERS: dict[str, dict[str, Any]] = {
    "once": {"once": True},
    "available": {"availableNow": True},
    "time": {"processingTime": "1 second"},
    "continuous": {"continuous": "1 second"},
}
spark = SparkSession.builder.getOrCreate()
for name in sys.argv[1:]:
    kind = "rate" if name == "continuous" else "rate-micro-batch"
    source = spark.readStream.format(kind)
    rows = source.option("rowsPerSecond", 20).option("rowsPerBatch", 20).option("numPartitions", 1).load()
    writer = rows.writeStream.queryName(name).format("noop")
    (writer.trigger(**TRIGGERS[name]) if name in TRIGGERS else writer).start()
