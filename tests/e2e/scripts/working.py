"""Works on each row for a while: as long as its argument says, or else the setting ``work``.

Arguments: rows a second, seconds of work for each.
"""

import sys
import time

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

from tidegate_spark import control

rate, work = int(sys.argv[1]), float(sys.argv[2])


@f.udf("long")
def worked(value: int) -> int:
    """Return the value, later."""
    time.sleep(control.current().get("work", work, float))
    return value


spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate").option("rowsPerSecond", rate).option("numPartitions", 4).load()
counts = control.controlled(rows).select((worked("value") % 10).alias("key")).groupBy("key").count()
query = counts.writeStream.format("noop").outputMode("update").queryName("working")
query.trigger(processingTime="5 seconds").start().awaitTermination()
