"""Two finite queries, the first not awaited, in three styles of naming and options; one writes outside S3."""

import sys

import pyspark
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
source = sys.argv[1]
rows = spark.readStream.schema("value STRING").text(source)
noop = rows.writeStream.option("queryName", "by option").trigger(availableNow=True).format("noop").start()
table = rows.writeStream.trigger(availableNow=True).toTable("rows_of_the_input", queryName="by_table", format="parquet")
MANAGER = "spark.sql.streaming.checkpointFileManagerClass"
chosen = [query._jsq.streamingQuery().sparkSessionForStream().conf().get(MANAGER, None) for query in (noop, table)]
print(f"checkpoint files: {chosen[0]} and {chosen[1]}")
table.awaitTermination()
print("rows read back:", spark.read.table("rows_of_the_input").count())
print("PySpark is in", pyspark.__file__)
print("arguments:", sys.argv[1:])
