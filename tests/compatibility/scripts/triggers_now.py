import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
how = {"once": True} if sys.argv[2] == "once" else {"availableNow": True}
counts = spark.readStream.option("maxFilesPerTrigger", 1).text(sys.argv[1]).groupBy().count()
query = counts.writeStream.outputMode("complete").format("console").trigger(**how).start()
query.awaitTermination()
print("done", query.exception(), flush=True)
