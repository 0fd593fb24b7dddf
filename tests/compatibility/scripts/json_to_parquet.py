import sys

from pyspark.sql import SparkSession
from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType, TimestampType

schema = StructType(
    [
        StructField("id", LongType()),
        StructField("item", StringType()),
        StructField("at", TimestampType()),
        StructField("price", DoubleType()),
    ]
)
spark = SparkSession.builder.appName("ingest").getOrCreate()
(
    spark.readStream.schema(schema)
    .option("maxFilesPerTrigger", 1)
    .json(sys.argv[1])
    .writeStream.format("parquet")
    .partitionBy("item")
    .option("path", sys.argv[2])
    .option("checkpointLocation", sys.argv[2] + "/_checkpoint")
    .trigger(availableNow=True)
    .start()
    .awaitTermination()
)
written = spark.read.parquet(sys.argv[2])
print("rows", written.count(), "ids", written.select("id").distinct().count(), flush=True)
