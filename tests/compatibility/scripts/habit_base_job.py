"""Team framework in one file: an abstract base job, an INI file with a section per environment, and Spark's own log4j as the logger."""

import argparse
import configparser
import os
import sys
import tempfile
from abc import ABC, abstractmethod

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F

INI = """
[DEFAULT]
app_name = enrich-payments
shuffle_partitions = 2
trigger = 1 second

[dev]
checkpoint_root = /tmp/checkpoints

[prod]
checkpoint_root = %(base)s/checkpoints
trigger = 500 milliseconds
"""


class Log4j:
    """The JVM's logger under the application's name, as Spark's own lines are."""

    def __init__(self, spark: SparkSession):
        log4j = spark._jvm.org.apache.log4j
        conf = spark.sparkContext.getConf()
        self.logger = log4j.LogManager.getLogger(f"{conf.get('spark.app.name')}.{conf.get('spark.app.id')}")

    def info(self, message):
        self.logger.info(message)

    def warn(self, message):
        self.logger.warn(message)

    def error(self, message):
        self.logger.error(message)


class BaseStreamingJob(ABC):
    name = "base"

    def __init__(self, config: configparser.SectionProxy):
        self.config = config
        builder = SparkSession.builder.appName(config["app_name"])
        for key, value in self.spark_settings().items():
            builder = builder.config(key, value)
        self.spark = builder.getOrCreate()
        self.spark.sparkContext.setLogLevel("WARN")
        self.log = Log4j(self.spark)

    def spark_settings(self) -> dict:
        return {
            "spark.sql.shuffle.partitions": self.config.getint("shuffle_partitions"),
            "spark.streaming.stopGracefullyOnShutdown": "true",
            "spark.sql.streaming.stopTimeout": "30s",
            "spark.sql.adaptive.enabled": False,
        }

    @abstractmethod
    def extract(self) -> DataFrame: ...

    @abstractmethod
    def transform(self, df: DataFrame) -> DataFrame: ...

    @abstractmethod
    def load(self, df: DataFrame, batch_id: int) -> None: ...

    def _guarded_load(self, df: DataFrame, batch_id: int) -> None:
        context = self.spark.sparkContext
        context.setJobGroup(f"{self.name}-{batch_id}", f"batch {batch_id} of {self.name}", interruptOnCancel=True)
        context.setLocalProperty("callSite.short", self.name)
        try:
            self.load(df, batch_id)
        except Exception as error:
            self.log.error(f"batch {batch_id} failed: {error}")
            raise
        finally:
            context.setJobGroup("", "")

    def run(self) -> int:
        query = (
            self.transform(self.extract())
            .writeStream.queryName(self.name)
            .foreachBatch(self._guarded_load)
            .option("checkpointLocation", os.path.join(self.config["checkpoint_root"], self.name))
            .trigger(processingTime=self.config["trigger"])
            .start()
        )
        self.log.warn(f"{self.name} {query.id} {query.runId} is started")
        try:
            query.awaitTermination()
        except Exception as error:
            self.log.error(str(error))
            return 1
        finally:
            self.spark.stop()
        return 0


class EnrichPayments(BaseStreamingJob):
    name = "enrich-payments"

    def extract(self):
        return (
            self.spark.readStream.format("json")
            .schema("id LONG, user STRING, amount DOUBLE, ts TIMESTAMP")
            .option("maxFilesPerTrigger", 5)
            .load(self.config["source"])
        )

    def transform(self, df):
        return df.withWatermark("ts", "10 minutes").dropDuplicates(["id", "ts"]).transform(self._flag)

    @staticmethod
    def _flag(df):
        return df.withColumn("large", F.col("amount") > F.lit(10)).withColumn("day", F.to_date("ts"))

    def load(self, df, batch_id):
        df.cache()
        good, bad = df.filter("user IS NOT NULL"), df.filter("user IS NULL")
        good.write.partitionBy("day").mode("append").parquet(self.config["target"] + "/good")
        if not bad.rdd.isEmpty():
            bad.write.mode("append").json(self.config["target"] + "/dead-letters")
        df.unpersist()


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--env", choices=["dev", "prod"], default=os.getenv("ENVIRONMENT", "dev"))
    parser.add_argument("--base", required=True)
    args, unknown = parser.parse_known_args()

    with tempfile.NamedTemporaryFile("w", suffix=".ini", delete=False) as file:
        file.write(INI)
    ini = configparser.ConfigParser(defaults={"base": args.base})
    ini.read(file.name)
    section = ini[args.env]
    section["source"], section["target"] = f"{args.base}/in", f"{args.base}/out"
    sys.exit(EnrichPayments(section).run())
