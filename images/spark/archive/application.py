"""Does in short what applications do, so that a JVM that is looked at meanwhile has loaded what theirs will load.

Nothing outside this machine is spoken to: the clients of S3, Kafka and Kubernetes get an address where nobody listens.
"""

import tempfile
import time
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

NOWHERE = "127.0.0.1:9"
STATE_STORES = "org.apache.spark.sql.execution.streaming.state."
FOUND_BY_NAME = (
    "org.apache.spark.executor.CoarseGrainedExecutorBackend",
    "org.apache.spark.scheduler.cluster.k8s.KubernetesClusterManager",
    "org.apache.spark.scheduler.cluster.k8s.KubernetesClusterSchedulerBackend",
    "org.apache.spark.scheduler.cluster.k8s.KubernetesExecutorBackend",
    "org.apache.spark.scheduler.cluster.k8s.ExecutorPodsAllocator",
)
PATIENCE = 240.0


def stream(spark: SparkSession, place: Path, provider: str) -> None:
    """Run a stateful query for some batches, and once more from its checkpoint."""
    spark.conf.set("spark.sql.streaming.stateStore.providerClass", STATE_STORES + provider)
    rates = spark.readStream.format("rate").option("rowsPerSecond", 50).load().withWatermark("timestamp", "1 minute")
    counts = rates.groupBy(f.window("timestamp", "10 seconds"), (f.col("value") % 5).alias("key")).agg(f.count("*"))
    for batches in (3, 2):
        writer = counts.select(f.to_json(f.struct("*")).alias("value")).writeStream.outputMode("update")
        query = writer.option("checkpointLocation", str(place)).foreachBatch(show).start()
        until = time.monotonic() + PATIENCE
        while sum(1 for _ in query.recentProgress) < batches and query.isActive and time.monotonic() < until:
            time.sleep(0.2)
        query.stop()


def show(frame: DataFrame, number: int) -> None:
    """Look at a batch, through Python workers, too."""
    frame.rdd.map(len).count()
    frame.selectExpr("from_json(value, 'key INT') AS it", f"{number} AS batch").collect()


def reach_for_clients(jvm: Any, spark: SparkSession) -> None:
    """Make the clients of Kubernetes, S3 and Kafka; none gets an answer."""
    for name in FOUND_BY_NAME:
        attempt(lambda name=name: jvm.java.lang.Class.forName(name))
    attempt(lambda: kubernetes(jvm))
    attempt(lambda: spark.read.text("s3a://nowhere/nothing").collect())
    kafka = {"kafka.bootstrap.servers": NOWHERE, "subscribe": "nothing", "kafka.default.api.timeout.ms": "1500"}
    kafka |= {"kafka.request.timeout.ms": "1000", "startingOffsets": "earliest", "fetchOffset.numRetries": "1"}
    attempt(lambda: spark.read.format("kafka").options(**kafka).load().collect())
    properties = jvm.java.util.Properties()
    for part in ("key", "value"):
        properties.put(f"{part}.serializer", "org.apache.kafka.common.serialization.ByteArraySerializer")
        properties.put(f"{part}.deserializer", "org.apache.kafka.common.serialization.ByteArrayDeserializer")
    properties.put("bootstrap.servers", NOWHERE)
    attempt(lambda: jvm.org.apache.kafka.clients.consumer.KafkaConsumer(properties).close())
    attempt(lambda: jvm.org.apache.kafka.clients.producer.KafkaProducer(properties).close())


def kubernetes(jvm: Any) -> None:
    """Make a client of Kubernetes and ask it for pods."""
    client = jvm.io.fabric8.kubernetes.client
    settings = client.ConfigBuilder(client.Config.empty()).withMasterUrl(f"http://{NOWHERE}").withNamespace("none")
    made = client.KubernetesClientBuilder().withConfig(settings.withRequestRetryBackoffLimit(0).build()).build()
    attempt(lambda: made.pods().list())
    made.close()


def attempt(do: Any) -> None:
    """Do what loads classes, however it ends."""
    try:
        do()
    except Exception as error:
        print("as far as", str(error).splitlines()[0][:150], flush=True)


def main() -> None:
    """Run everything."""
    builder = SparkSession.builder.config("spark.ui.enabled", "true").config("spark.sql.shuffle.partitions", "2")
    hadoop = {
        "endpoint": f"http://{NOWHERE}",
        "path.style.access": "true",
        "access.key": "none",
        "secret.key": "none",
        "attempts.maximum": "1",
        "retry.limit": "0",
        "connection.establish.timeout": "1s",
        "aws.credentials.provider": "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider",
    }
    for key, value in hadoop.items():
        builder = builder.config(f"spark.hadoop.fs.s3a.{key}", value)
    spark = builder.getOrCreate()
    with tempfile.TemporaryDirectory() as place:
        stream(spark, Path(place) / "memory", "HDFSBackedStateStoreProvider")
        stream(spark, Path(place) / "rocksdb", "RocksDBStateStoreProvider")
    reach_for_clients(spark._jvm, spark)
    spark.stop()


main()
