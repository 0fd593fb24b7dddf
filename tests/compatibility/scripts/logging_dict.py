import logging
import logging.config
import os

from pyspark.sql import SparkSession

logging.config.dictConfig(
    {
        "version": 1,
        "disable_existing_loggers": True,
        "formatters": {"plain": {"format": "%(levelname)s:%(name)s:%(message)s"}},
        "handlers": {"out": {"class": "logging.StreamHandler", "formatter": "plain", "stream": "ext://sys.stdout"}},
        "root": {"level": "INFO", "handlers": ["out"]},
    }
)
os.chdir("/tmp")
spark = SparkSession.builder.getOrCreate()
logging.info("pid %s", os.getpid())
spark.readStream.format("rate").load().writeStream.format("noop").trigger(processingTime="1 second").start().awaitTermination()
