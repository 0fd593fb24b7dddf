"""Has S3A lead elsewhere for all buckets, before and after its query starts; prints what an executor makes of it.

Argument: a place in the application's own storage.
"""

import json
import sys
from typing import Any

from pyspark.sql import DataFrame, SparkSession

(place,) = sys.argv[1:]
bucket = place.split("/")[2]
spark: Any = SparkSession.builder.getOrCreate()
jvm = spark.sparkContext._jvm
hadoop = spark.sparkContext._jsc.hadoopConfiguration()
hadoop.set("fs.s3a.endpoint", "http://127.0.0.1:1")
hadoop.set("fs.s3a.impl", "org.example.NoFileSystem")
spark.conf.set("fs.s3a.impl", "org.example.NoFileSystem")
spark.conf.set("fs.s3a.acl.default", "NoSuchAcl")
hadoop.set(f"fs.s3a.bucket.{bucket}.acl.default", "NoSuchAcl")
spark.conf.set("fs.s3a.aws.credentials.provider", "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider")


def inspect_batch(rows: DataFrame, batch: int) -> None:
    """Connect to the storage as an executor does: with the settings that the query sends it, and none kept."""
    hadoop.set("fs.s3a.encryption.algorithm", "NoSuchAlgorithm")
    hadoop.set("fs.s3a.proxy.host", "127.0.0.1")
    hadoop.set("fs.s3a.proxy.port", "1")
    hadoop.set(f"fs.s3a.bucket.{bucket}.proxy.host", "127.0.0.1")
    hadoop.setInt(f"fs.s3a.bucket.{bucket}.proxy.port", 1)
    hadoop.unset(f"fs.s3a.bucket.{bucket}.endpoint")
    hadoop.set("fs.s3a.impl", "org.example.NoFileSystem")
    sent = rows.sparkSession._jsparkSession.sessionState().newHadoopConf()
    files = jvm.org.apache.hadoop.fs.FileSystem.newInstance(jvm.java.net.URI(place), sent)
    listed = files.listStatus(jvm.org.apache.hadoop.fs.Path(place))
    found = {"connected": len(listed) > 0, "inputs": sent.get("fs.s3a.endpoint")}
    files.close()
    sys.stdout.write(f"found {json.dumps(found)}\n")
    sys.stdout.flush()


ticks = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
ticks.writeStream.foreachBatch(inspect_batch).start().awaitTermination()
