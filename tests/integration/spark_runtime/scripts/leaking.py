"""Tells its secrets to everybody: on both outputs, through the JVM, in a notice, and as it fails. Argument: a file."""

import os
import sys
import time
from pathlib import Path

from pyspark.sql import SparkSession

token = Path(os.environ["TIDEGATE_AGENT_TOKEN_FILE"]).read_text().strip()
imports = (Path(os.environ["TIDEGATE_ORIGIN_CREDENTIALS_DIRECTORY"]) / "AWS_SECRET_ACCESS_KEY").read_text()
secrets = (os.environ["DATABASE"], os.environ["AWS_SECRET_ACCESS_KEY"], token, imports)
for secret in secrets:
    print("told:", secret)
    for piece in ("in pieces: ", secret[:5], secret[5:], "\n"):
        sys.stderr.write(piece)
        sys.stderr.flush()
        time.sleep(0.05)

spark = SparkSession.builder.getOrCreate()
jvm = spark.sparkContext._jvm
assert jvm is not None
jvm.java.lang.System.err.println(f"told by the JVM: {secrets}")
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
query = rows.writeStream.format("noop").start(checkpointLocation=f"s3a://bucket/{'/'.join(secrets)}")
while not os.path.exists(sys.argv[1]):
    time.sleep(0.1)
raise PermissionError(f"the database does not let us in with {secrets}")
