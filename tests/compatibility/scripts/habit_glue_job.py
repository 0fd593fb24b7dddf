"""A streaming job as AWS Glue has it, with stand-ins for its library where that is missing, as for tests on a laptop."""

import sys
from datetime import datetime

from pyspark.context import SparkContext
from pyspark.sql import SQLContext
from pyspark.sql.functions import col, from_json, lit

try:
    from awsglue.context import GlueContext
    from awsglue.job import Job
    from awsglue.utils import getResolvedOptions
except ImportError:

    def getResolvedOptions(argv, names):
        found = {name: argv[argv.index(f"--{name}") + 1] for name in names}
        return {"JOB_RUN_ID": "local", **found}

    class GlueContext(SQLContext):
        def __init__(self, sc):
            super().__init__(sc)
            self.spark_session = self.sparkSession

        def forEachBatch(self, frame, batch_function, options):
            return (
                frame.writeStream.foreachBatch(batch_function)
                .trigger(processingTime=options["windowSize"])
                .option("checkpointLocation", options["checkpointLocation"])
                .start()
                .awaitTermination()
            )

    class Job:
        def __init__(self, glue_context):
            self.glue_context = glue_context

        def init(self, name, args):
            print(f"job {name}, run {args['JOB_RUN_ID']}", flush=True)

        def commit(self):
            print("committed", flush=True)


args = getResolvedOptions(sys.argv, ["JOB_NAME", "TempDir", "source", "target"])
sc = SparkContext()
glueContext = GlueContext(sc)
spark = glueContext.spark_session
job = Job(glueContext)
job.init(args["JOB_NAME"], args)

schema = "id LONG, user STRING, amount DOUBLE, ts STRING"
frame = spark.readStream.format("text").option("maxFilesPerTrigger", "4").load(args["source"])


def processBatch(data_frame, batchId):
    if data_frame.count() > 0:
        parsed = data_frame.select(from_json(col("value"), schema).alias("v")).select("v.*")
        now = datetime.now()
        parsed.createOrReplaceTempView("arrived")
        large = data_frame.sparkSession.sql("SELECT user, sum(amount) AS total, count(*) AS n FROM arrived GROUP BY user")
        path = f"{args['target']}/ingest_year={now.year:04}/ingest_month={now.month:02}/ingest_day={now.day:02}/"
        large.withColumn("batch", lit(batchId)).coalesce(1).write.mode("append").parquet(path)


glueContext.forEachBatch(
    frame=frame,
    batch_function=processBatch,
    options={"windowSize": "1 second", "checkpointLocation": args["TempDir"] + "/" + args["JOB_NAME"] + "/checkpoint/"},
)
job.commit()
