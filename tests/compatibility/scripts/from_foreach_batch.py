from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
started = []


def on_batch(df, batch_id):
    df.count()
    if not started:
        inner = spark.readStream.format("rate").load()
        started.append(inner.writeStream.queryName("inner").format("noop").trigger(processingTime="2 seconds").start())


outer = spark.readStream.format("rate").load().writeStream.queryName("outer").foreachBatch(on_batch)
outer.trigger(processingTime="2 seconds").start().awaitTermination()
