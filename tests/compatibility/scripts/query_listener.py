from pyspark.sql import SparkSession
from pyspark.sql.streaming import StreamingQueryListener

spark = SparkSession.builder.getOrCreate()


class Logger(StreamingQueryListener):
    def onQueryStarted(self, event):
        print("listener: started", event.name, flush=True)

    def onQueryProgress(self, event):
        print("listener: batch", event.progress.batchId, "rows", event.progress.numInputRows, flush=True)

    def onQueryIdle(self, event):
        pass

    def onQueryTerminated(self, event):
        print("listener: terminated", event.id, flush=True)


spark.streams.addListener(Logger())
query = spark.readStream.format("rate").load().writeStream.queryName("heard").format("noop").trigger(processingTime="1 second").start()
query.awaitTermination()
