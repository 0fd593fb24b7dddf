"""Every way to a session or a context: all lead to one Spark, and a query of each is looked after."""

from pyspark import SparkConf, SparkContext
from pyspark.sql import SparkSession

context = SparkContext(conf=SparkConf().setAppName("ours").set("spark.executor.memory", "3g"))
first = SparkSession(context)
assert context.parallelize(range(3)).sum() == 3
assert SparkContext.getOrCreate().applicationId == context.applicationId
built = SparkSession.builder.appName("again").getOrCreate()
assert SparkSession.getActiveSession() is not None
second = built.newSession()
second.conf.set("spark.sql.session.timeZone", "UTC")
for number, session in enumerate((first, built, second, second)):
    rows = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 5).load()
    rows.writeStream.queryName(f"q{number}").trigger(processingTime="1 second").format("noop").start()
second.streams.awaitAnyTermination()
