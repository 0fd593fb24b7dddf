"""Word count: the smallest useful application. Counts the words of text files as files arrive in a directory.

Plain PySpark. Each batch prints the counts that it changed; they are kept in state, so that a restart goes on counting.
With --once it counts what is there and ends.
"""

import argparse

from pyspark.sql import SparkSession
from pyspark.sql import functions as f

parser = argparse.ArgumentParser(description="Count the words of text files as they arrive in a directory.")
parser.add_argument("--input", required=True, help="directory, e.g. s3a://bucket/texts or file:///opt/spark/licenses")
parser.add_argument("--once", action="store_true", help="count what is there and end")
options = parser.parse_args()

spark = SparkSession.builder.appName("word-count").getOrCreate()
lines = spark.readStream.text(options.input)
words = lines.select(f.explode(f.split(f.lower("value"), r"\W+")).alias("word")).where("word != ''")
counts = words.groupBy("word").count()
writer = counts.writeStream.queryName("words").outputMode("update").format("console").option("truncate", False)
trigger = {"availableNow": True} if options.once else {"processingTime": "5 seconds"}
writer.trigger(**trigger).start().awaitTermination()
