"""Sums of payments by minute: a class with a main(), argparse, and logging set up from a YAML file beside the script."""

import argparse
import logging
import logging.config
import os
import sys

import yaml
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.types import DoubleType, LongType, StringType, StructField, StructType, TimestampType

DEFAULT_LOGGING = """
version: 1
disable_existing_loggers: true
formatters:
  line: {format: "%(asctime)s %(levelname)s %(name)s - %(message)s"}
handlers:
  console: {class: logging.StreamHandler, formatter: line, stream: ext://sys.stdout}
root: {level: INFO, handlers: [console]}
loggers:
  py4j: {level: ERROR}
"""

SCHEMA = StructType([
    StructField("id", LongType()),
    StructField("user", StringType()),
    StructField("amount", DoubleType()),
    StructField("ts", TimestampType()),
])


class PaymentSums:
    def __init__(self, spark: SparkSession, args: argparse.Namespace) -> None:
        self.spark = spark
        self.args = args
        self.log = logging.getLogger(type(self).__name__)

    def read(self) -> DataFrame:
        return (
            self.spark.readStream.format("json")
            .schema(SCHEMA)
            .option("maxFilesPerTrigger", 1)
            .load(self.args.input)
        )

    def transform(self, df: DataFrame) -> DataFrame:
        return (
            df.withWatermark("ts", "10 seconds")
            .groupBy(F.window("ts", "1 minute"), "user")
            .agg(F.sum("amount").alias("total"), F.count("*").alias("n"))
            .select("window.start", "user", "total", "n")
        )

    def run(self) -> None:
        self.log.info("reading %s", self.args.input)
        query = (
            self.transform(self.read())
            .writeStream.queryName("payment_sums")
            .outputMode("append")
            .format("parquet")
            .option("path", self.args.output)
            .option("checkpointLocation", self.args.checkpoint)
            .trigger(processingTime=self.args.trigger)
            .start()
        )
        self.log.info("query %s is running", query.id)
        query.awaitTermination()


def parse(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--input", required=True)
    parser.add_argument("--output", required=True)
    parser.add_argument("--checkpoint", required=True)
    parser.add_argument("--trigger", default="1 second")
    parser.add_argument("--logging", default=os.path.join(os.path.dirname(os.path.abspath(__file__)), "logging.yaml"))
    return parser.parse_args(argv)


def main(argv: list[str] | None = None) -> int:
    args = parse(sys.argv[1:] if argv is None else argv)
    text = open(args.logging).read() if os.path.exists(args.logging) else DEFAULT_LOGGING
    logging.config.dictConfig(yaml.safe_load(text))
    spark = SparkSession.builder.appName("payment-sums").config("spark.sql.shuffle.partitions", "2").getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    try:
        PaymentSums(spark, args).run()
    except Exception:
        logging.exception("payment sums failed")
        return 1
    finally:
        spark.stop()
    return 0


if __name__ == "__main__":
    sys.exit(main())
