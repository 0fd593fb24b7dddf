"""Records in the wire format of a schema registry (a zero byte, four bytes of id, the payload), parsed by hand; no library for Avro."""

import json
import struct
from typing import Iterator

import pandas as pd
from pyspark.sql import SparkSession, functions as F
from pyspark.sql.functions import pandas_udf, udf
from pyspark.sql.types import *

spark = (
    SparkSession.builder.appName("registry")
    .config("spark.sql.execution.arrow.pyspark.enabled", "true")
    .config("spark.sql.execution.arrow.maxRecordsPerBatch", "500")
    .config("spark.sql.session.timeZone", "UTC")
    .config("spark.sql.streaming.noDataMicroBatches.enabled", "false")
    .getOrCreate()
)

payload = StructType().add("sensor", StringType()).add("reading", DoubleType()).add("seq", LongType())
SCHEMAS = spark.sparkContext.broadcast({1: payload.json(), 2: payload.json()})


def zigzag(n: int) -> bytes:
    n = (n << 1) ^ (n >> 63)
    out = b""
    while n & ~0x7F:
        out += bytes([n & 0x7F | 0x80])
        n >>= 7
    return out + bytes([n])


@udf(returnType=BinaryType())
def encode(value):
    name = f"s{value % 3}".encode()
    return struct.pack(">bI", 0, 1 + value % 2) + zigzag(len(name)) + name + struct.pack("<d", value / 2) + zigzag(value)


@pandas_udf(payload)
def decode(batches: Iterator[pd.Series]) -> Iterator[pd.DataFrame]:
    known = {key: json.loads(text) for key, text in SCHEMAS.value.items()}

    def long_of(data, at):
        shift = result = 0
        while True:
            byte = data[at]
            at += 1
            result |= (byte & 0x7F) << shift
            shift += 7
            if not byte & 0x80:
                return (result >> 1) ^ -(result & 1), at

    def one(data):
        magic, schema_id = struct.unpack_from(">bI", data)
        if magic != 0 or schema_id not in known:
            return None, None, None
        size, at = long_of(data, 5)
        name = bytes(data[at : at + size]).decode()
        (reading,) = struct.unpack_from("<d", data, at + size)
        return name, reading, long_of(data, at + size + 8)[0]

    for series in batches:
        yield pd.DataFrame([one(data) for data in series], columns=["sensor", "reading", "seq"])


raw = (
    spark.readStream.format("rate-micro-batch")
    .option("rowsPerBatch", 20)
    .option("numPartitions", 2)
    .option("startTimestamp", 1767225600000)
    .option("advanceMillisPerBatch", 5000)
    .load()
)
kafka_like = raw.select(encode("value").alias("value"), F.col("timestamp"))
readings = kafka_like.select(decode("value").alias("r"), "timestamp").select("r.*", "timestamp").where(F.expr("sensor IS NOT NULL"))
summary = (
    readings.withWatermark("timestamp", "10 seconds")
    .groupBy(F.window("timestamp", "20 seconds", "5 seconds").alias("w"), "sensor")
    .agg(F.avg("reading").alias("mean"), F.max_by("reading", "seq").alias("last"), F.approx_count_distinct("seq").alias("n"))
)

query = (
    summary.selectExpr("to_json(struct(w.start, w.end, sensor, mean, last, n)) AS value")
    .writeStream.outputMode("update").format("console").option("truncate", "false").option("numRows", 5)
    .trigger(processingTime="1 second").start()
)
while query.isActive:
    print(json.dumps(query.status), flush=True)
    if query.lastProgress:
        print(query.lastProgress["sources"][0]["endOffset"], flush=True)
    query.awaitTermination(2)
