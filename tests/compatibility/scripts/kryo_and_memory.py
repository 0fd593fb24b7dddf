from pyspark.sql import SparkSession

spark = (
    SparkSession.builder.appName("etl")
    .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
    .config("spark.kryoserializer.buffer.max", "128m")
    .config("spark.executor.extraJavaOptions", "-Dteam=orders")
    .config("spark.sql.shuffle.partitions", "8")
    .config("spark.streaming.stopGracefullyOnShutdown", "true")
    .config("spark.sql.streaming.schemaInference", "true")
    .getOrCreate()
)
print("serializer", spark.sparkContext._jsc.sc().env().serializer().getClass().getSimpleName(), flush=True)
spark.readStream.format("rate").load().writeStream.format("noop").start().awaitTermination()
