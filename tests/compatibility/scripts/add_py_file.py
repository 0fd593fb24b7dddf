import tempfile
import zipfile
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

spark = SparkSession.builder.getOrCreate()
package = Path(tempfile.mkdtemp()) / "rules.zip"
with zipfile.ZipFile(package, "w") as archive:
    archive.writestr("rules/__init__.py", "")
    archive.writestr("rules/prices.py", "def dear(value):\n    return value > 3\n")
spark.sparkContext.addPyFile(str(package))

from rules.prices import dear  # noqa: E402

is_dear = udf(dear, "boolean")
rows = spark.readStream.format("rate").load()
rows.select(is_dear("value").alias("dear")).writeStream.format("noop").trigger(processingTime="1 second").start().awaitTermination()
