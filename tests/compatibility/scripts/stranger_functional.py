"""A functional pipeline: reduce over transforms, a broadcast table and an accumulator in UDFs, a pandas_udf, and dedup within the watermark."""

import os
from functools import reduce
from typing import Callable

import pandas as pd
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

Transform = Callable[[DataFrame], DataFrame]

spark = (
    SparkSession.builder.appName("functional")
    .config("spark.sql.shuffle.partitions", "2")
    .config("spark.sql.execution.arrow.pyspark.enabled", "true")
    .getOrCreate()
)
sc = spark.sparkContext

countries = sc.broadcast({"u0": "NL", "u1": "DE", "u2": "FR"})
unknown_users = sc.accumulator(0)


@F.udf("string")
def country(user):
    if user not in countries.value:
        unknown_users.add(1)
        return "??"
    return countries.value[user]


@F.pandas_udf("double")
def with_tax(amount: pd.Series) -> pd.Series:
    return (amount * 1.21).round(2)


def dedup(df: DataFrame) -> DataFrame:
    return df.withWatermark("ts", "1 hour").dropDuplicatesWithinWatermark(["id"])


def enrich(df: DataFrame) -> DataFrame:
    return df.withColumns({"country": country("user"), "gross": with_tax("amount")})


def only(predicate) -> Transform:
    return lambda df: df.where(predicate)


def pipe(df: DataFrame, *steps: Transform) -> DataFrame:
    return reduce(lambda frame, step: frame.transform(step), steps, df)


def write(df: DataFrame, batch_id: int) -> None:
    df.write.mode("overwrite").json(f"{os.environ['OUT_DIR']}/batch={batch_id}")
    print(f"batch {batch_id}: unknown users so far {unknown_users.value}", flush=True)


source = spark.readStream.format("json").schema("id LONG, user STRING, amount DOUBLE, ts TIMESTAMP").load(os.environ["IN_DIR"])
result = pipe(source, only(F.col("amount") > 0), dedup, enrich)
query = result.writeStream.foreachBatch(write).option("checkpointLocation", os.environ["CKPT_DIR"]).start()
query.awaitTermination()
