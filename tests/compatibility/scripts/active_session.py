from pyspark.sql import SparkSession


def get_spark():
    return SparkSession.getActiveSession() or SparkSession.builder.appName("lazy").getOrCreate()


def upsert(batch_df, batch_id):
    batch_df.createOrReplaceTempView("updates")
    n = batch_df.sparkSession.sql("SELECT count(*) AS n FROM updates").first().n
    print(f"merged {n} rows of {batch_id}", flush=True)


stream = get_spark().readStream.format("rate").load()
stream.writeStream.foreachBatch(upsert).outputMode("update").start()
get_spark().streams.awaitAnyTermination()
