"""Bronze, silver and gold in SQL: temp views over streams, spark.readStream.table, toTable and a static dimension table."""

import os

from pyspark.sql import SparkSession

landing = os.environ["LANDING"]
base = os.environ["LAKE"]

spark = (
    SparkSession.builder.appName("medallion")
    .config("spark.sql.warehouse.dir", f"{base}/warehouse")
    .config("spark.sql.shuffle.partitions", 2)
    .config("spark.sql.streaming.checkpointLocation", f"{base}/checkpoints")
    .getOrCreate()
)

spark.sql("CREATE DATABASE IF NOT EXISTS shop")
spark.sql("USE shop")
spark.sql(
    f"CREATE TABLE IF NOT EXISTS bronze (id BIGINT, user STRING, amount DOUBLE, ts TIMESTAMP) USING json LOCATION '{landing}'"
)
spark.sql("CREATE OR REPLACE TEMP VIEW people AS SELECT * FROM VALUES ('u0', 'Ann'), ('u1', 'Bob') AS t(user, name)")

spark.readStream.table("bronze").createOrReplaceTempView("bronze_stream")
silver = spark.sql(
    "SELECT b.id, b.user, coalesce(p.name, 'nobody') AS name, b.amount, b.ts "
    "FROM bronze_stream b LEFT JOIN people p ON b.user = p.user WHERE b.amount IS NOT NULL"
)
silver_query = (
    silver.writeStream.queryName("silver").option("path", f"{base}/silver").format("parquet")
    .trigger(processingTime="1 second").toTable("silver")
)

spark.readStream.table("silver").createOrReplaceTempView("silver_stream")
gold = spark.sql("SELECT name, count(*) AS n, sum(amount) AS total FROM silver_stream GROUP BY name")


def publish(df, epoch):
    df.createOrReplaceGlobalTempView("gold_now")
    spark.sql("SELECT * FROM global_temp.gold_now").coalesce(1).write.mode("overwrite").json(f"{base}/gold")


gold_query = gold.writeStream.queryName("gold").outputMode("complete").foreachBatch(publish).start()

spark.streams.awaitAnyTermination()
