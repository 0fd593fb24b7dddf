import json
import tempfile
from pathlib import Path

from pyspark import SparkFiles
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

spark = SparkSession.builder.getOrCreate()
limits = Path(tempfile.mkdtemp()) / "limits.json"
limits.write_text(json.dumps({"low": 2}))
spark.sparkContext.addFile(str(limits))


@udf("boolean")
def is_low(value):
    return value < json.loads(Path(SparkFiles.get("limits.json")).read_text())["low"]


rows = spark.readStream.format("rate").load()
rows.filter(is_low("value")).writeStream.format("noop").trigger(processingTime="1 second").start().awaitTermination()
