# Databricks notebook source
"""A notebook exported as a file: widgets with a fallback, a session that may be there already, availableNow, and a last cell that shows rows."""

# COMMAND ----------
from pyspark.sql import SparkSession
from pyspark.sql.functions import *  # noqa: F403
from pyspark.sql.types import *  # noqa: F403

try:
    spark  # noqa: B018
except NameError:
    spark = SparkSession.getActiveSession() or SparkSession.builder.getOrCreate()

try:
    dbutils.widgets.text("base", "")
    base = dbutils.widgets.get("base")
except NameError:
    import sys

    base = sys.argv[1]

# COMMAND ----------
df = (spark.readStream
      .format("json")
      .schema(StructType().add("id", "long").add("user", "string").add("amount", "double").add("ts", "timestamp"))
      .option("maxFilesPerTrigger", 1)
      .load(f"{base}/in"))

# COMMAND ----------
agg = df.groupBy("user").agg(count("*").alias("n"), sum("amount").alias("total"))
q = (agg.writeStream
     .format("memory")
     .queryName("totals")
     .outputMode("complete")
     .option("checkpointLocation", f"{base}/checkpoint-totals")
     .trigger(availableNow=True)
     .start())
raw = (df.writeStream
       .format("parquet")
       .option("checkpointLocation", f"{base}/checkpoint-raw")
       .trigger(availableNow=True)
       .start(f"{base}/raw"))
q.awaitTermination()
raw.awaitTermination()

# COMMAND ----------
spark.table("totals").orderBy("user").show()
print("rows:", spark.read.parquet(f"{base}/raw").count())
