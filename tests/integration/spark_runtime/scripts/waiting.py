"""One query has read all files of a folder, the other's next trigger is decades away.

Spark fires at multiples of the interval since 1970, not that long after the start: an hour would end at the full hour,
also one that comes a second after the first batch.
"""

import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
rows.writeStream.format("console").trigger(processingTime="36500 days").queryName("sleeping").start()
message = spark.readStream.schema("value STRING").text(sys.argv[1])
counts = message.groupBy("value").count()
counts.writeStream.outputMode("update").format("noop").queryName("idle").start().awaitTermination()
