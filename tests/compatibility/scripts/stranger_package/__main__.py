"""Runs one job of the package: JOB SOURCE TARGET CHECKPOINT."""

import sys

from pyspark.sql import SparkSession

from .jobs import JOBS


def main():
    name, *places = sys.argv[1:]
    spark = SparkSession.builder.getOrCreate()
    query = JOBS[name](spark, *places)
    query.awaitTermination()


if __name__ == "__main__":
    main()
