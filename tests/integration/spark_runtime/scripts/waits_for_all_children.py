"""Supervises children as a shell does: whoever ends is collected, until none is left."""

import os
import signal
import sys

from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
children = [os.posix_spawnp("sh", ["sh", "-c", f"exit {code}"], os.environ) for code in range(3)]
ended = []
while True:
    try:
        child, status = os.wait()
    except ChildProcessError:
        break
    ended.append(os.waitstatus_to_exitcode(status))
print("children ended with", sorted(ended))
# The usual way to have no children left that nobody collects.
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
rows = spark.readStream.schema("value STRING").text(sys.argv[1])
query = rows.writeStream.queryName("copied").trigger(availableNow=True).format("noop").start()
query.awaitTermination()
print("all is read")
