#!/usr/bin/env python3
"""Counts rows; see --help."""
import argparse
import logging

from pyspark.sql import SparkSession
from pyspark.sql.functions import col

log = logging.getLogger(__name__)


def parse_args():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rate", type=int, default=10)
    parser.add_argument("--modulus", type=int, required=True)
    return parser.parse_args()


def main():
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(message)s")
    args = parse_args()
    spark = SparkSession.builder.appName("RateCounter").getOrCreate()
    spark.sparkContext.setLogLevel("ERROR")
    df = spark.readStream.format("rate").option("rowsPerSecond", args.rate).load()
    counts = df.groupBy((col("value") % args.modulus).alias("bucket")).count()
    query = counts.writeStream.outputMode("complete").format("console").option("truncate", "false").start()
    log.info("started %s", query.id)
    try:
        query.awaitTermination()
    finally:
        log.info("bye")


if __name__ == "__main__":
    main()
