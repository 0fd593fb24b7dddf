"""The temperature sample, another version of it: the first argument is its file, `--bug` makes the third batch raise.

It decides as the sample does, from the same state. What the third batch of the version with the bug decides is sent
before it raises: what a rollback has to cope with.
"""

import importlib.util
import sys
from typing import Any

from pyspark import cloudpickle
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as f

place = sys.argv.pop(1)
spec = importlib.util.spec_from_file_location("temperature_sample", place)
assert spec is not None
assert spec.loader is not None
sample: Any = importlib.util.module_from_spec(spec)
sys.modules["temperature_sample"] = sample
spec.loader.exec_module(sample)
# Executors do not have a module of this name.
cloudpickle.register_pickle_by_value(sample)  # type: ignore[no-untyped-call] # PySpark's copy has no types

bug = "--bug" in sys.argv
options = sample.parse([argument for argument in sys.argv[1:] if argument != "--bug"])
batches: list[int] = []


def send(decisions: DataFrame, number: int) -> None:
    """Send a batch's decisions."""
    batches.append(number)
    kafka = {"kafka.bootstrap.servers": options.brokers, "topic": options.decisions}
    decisions.write.format("kafka").options(**kafka).save()
    if bug and len(batches) == 3:
        raise ValueError(f"batch {number} is my third one, and that is where the bug is")


spark = SparkSession.builder.appName("temperature-control").getOrCreate()
spark.conf.set("spark.sql.session.timeZone", "UTC")
output = sample.decisions(spark, options).select(f.col("sensor").alias("key"), f.to_json(f.struct("*")).alias("value"))
writer = output.writeStream.queryName("decisions").foreachBatch(send).outputMode("append")
writer.trigger(processingTime=options.trigger).start().awaitTermination()
