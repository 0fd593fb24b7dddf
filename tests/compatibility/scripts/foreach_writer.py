from pyspark.sql import SparkSession


class ForeachWriter:
    def open(self, partition_id, epoch_id):
        self.rows = 0
        return True

    def process(self, row):
        self.rows += 1

    def close(self, error):
        print("closed after", self.rows, "error" if error else "ok")


spark = SparkSession.builder.getOrCreate()
rows = spark.readStream.format("rate").option("rowsPerSecond", 5).option("numPartitions", 1).load()
rows.writeStream.foreach(ForeachWriter()).trigger(processingTime="1 second").start().awaitTermination()
