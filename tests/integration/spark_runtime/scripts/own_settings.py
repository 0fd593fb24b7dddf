"""Sets what a builder can set, as under spark-submit, and prints what is in force; then a query runs.

Arguments: a jar, and how it goes on: ``elsewhere`` has S3A lead to another store than the application's own.
"""

import json
import os
import sys
from typing import Any

from pyspark.sql import SparkSession

jar, how = sys.argv[1:]
os.environ["AWS_ACCESS_KEY_ID"] = "of-the-script"
spark: Any = (
    SparkSession.builder.appName("own settings")
    .master("local[*]")
    .config("spark.serializer", "org.apache.spark.serializer.KryoSerializer")
    .config("spark.sql.extensions", "org.example.Nope")
    .config("spark.jars", jar)
    .config("spark.driver.extraJavaOptions", "-Dasked.by=script")
    .config("spark.sql.catalog.mine", "org.example.Catalog")
    .config("spark.sql.session.timeZone", "Asia/Tokyo")
    .config("spark.sql.streaming.stopTimeout", "7s")
    .config("spark.kubernetes.driverEnv.A", "b")
    .config("spark.app.id", "mine")
    .config("spark.api.mode", "classic")
    .config("spark.my.password", "hunter2-of-the-script")
    .getOrCreate()
)
context = spark.sparkContext
loader = context._jvm.Thread.currentThread().getContextClassLoader()
found = {
    "name": context.appName,
    "serializer": context._jsc.sc().env().serializer().getClass().getSimpleName(),
    "jars": context._jsc.sc().listJars().mkString(","),
    "java": context._jvm.System.getProperty("asked.by"),
    "resource": loader.getResource("asked/for.txt") is not None,
    "hidden": context.getConf().get("spark.my.password") == "hunter2-of-the-script",
    "id": context.applicationId == "mine",
    "variable": os.environ["AWS_ACCESS_KEY_ID"],
    **{
        key: spark.conf.get(f"spark.sql.{key}")
        for key in ("extensions", "catalog.mine", "session.timeZone", "streaming.stopTimeout")
    },
}
sys.stdout.write(f"found {json.dumps(found)}\n")
sys.stdout.flush()
if how == "elsewhere":
    bucket = spark.conf.get("spark.sql.streaming.checkpointLocation").split("/")[2]
    hadoop = context._jsc.hadoopConfiguration()
    hadoop.set("fs.s3a.endpoint", "http://127.0.0.1:1")
    hadoop.set("fs.s3a.path.style.access", "false")
    hadoop.set("fs.s3a.aws.credentials.provider", "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider")
    hadoop.set("fs.s3a.proxy.host", "127.0.0.1")
    hadoop.set("fs.s3a.proxy.port", "1")
    hadoop.set("fs.s3a.server-side-encryption-algorithm", "SSE-C")
    hadoop.set(f"fs.s3a.bucket.{bucket}.endpoint", "http://127.0.0.1:2")
    hadoop.set(f"fs.s3a.bucket.{bucket}.server-side-encryption-algorithm", "SSE-KMS")
    spark.conf.set(f"fs.s3a.bucket.{bucket}.path.style.access", "false")
    # Hadoop keeps the connection that is made first.
    place = context._jvm.java.net.URI(f"s3a://{bucket}/")
    context._jvm.org.apache.hadoop.fs.FileSystem.get(place, hadoop)
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
counts = rows.groupBy((rows.value % 5).alias("k")).count()
counts.writeStream.outputMode("update").format("noop").start().awaitTermination()
