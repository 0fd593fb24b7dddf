from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate").load()
rows.writeStream.start(format="noop", queryName="by_keyword", processingTime="1 second")
rows.writeStream.option("queryName", "by_option").format("noop").trigger(processingTime="1 second").start()
spark.streams.awaitAnyTermination()
