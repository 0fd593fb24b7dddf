"""Has spark-submit run this program in a child process, which has a query until a file is there; then runs its own."""

import subprocess
import sys
from pathlib import Path

from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

enough, in_child = Path(sys.argv[1]), "child" in sys.argv


def start() -> StreamingQuery:
    """Start a query in the Spark of this process."""
    rows = SparkSession.builder.getOrCreate().readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
    return rows.writeStream.format("noop").trigger(processingTime="1 second").start()


if in_child:
    spark = SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate()
    sys.stdout.write(f"rows in a child: {spark.range(40).count()}\n")
    query = start()
    while not enough.exists() and not query.awaitTermination(1):
        pass
    query.stop()
else:
    submit = Path(_find_spark_home()) / "bin" / "spark-submit"
    subprocess.run([submit, "--master", "local[1]", __file__, enough, "child"], check=True)
    start().awaitTermination()
