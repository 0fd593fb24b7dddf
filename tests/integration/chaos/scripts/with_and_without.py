"""Runs the application under chaos twice in one Spark, on the same records: as it is, and with a planted loss.

Arguments: the brokers, the topic to read. Each query writes to the topic that has its name: ``none`` and ``loss``.
"""

import sys
from argparse import Namespace

from accounting import begin  # type: ignore[import-not-found] # its folder is on the path of the process
from pyspark.sql import SparkSession

brokers, records = sys.argv[1:]
spark = SparkSession.builder.getOrCreate()
for plant in ("none", "loss"):
    reported = Namespace(brokers=brokers, records=records, accounts=plant, trigger="200 milliseconds", plant=plant)
    begin(spark, reported, plant)
spark.streams.awaitAnyTermination()
