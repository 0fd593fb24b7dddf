import os
import shutil
import tempfile

from pyspark import SparkFiles
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

spark = SparkSession.builder.getOrCreate()
folder = tempfile.mkdtemp()
with open(os.path.join(folder, "words.txt"), "w") as f:
    f.write("tide\ngate\n")
spark.sparkContext.addArchive(shutil.make_archive(os.path.join(tempfile.mkdtemp(), "lexicon"), "zip", folder) + "#lexicon")


@udf("int")
def words(value):
    with open(os.path.join(SparkFiles.get("lexicon"), "words.txt")) as f:
        return len(f.readlines())


rows = spark.readStream.format("rate").load()
rows.select(words("value")).writeStream.format("noop").trigger(processingTime="1 second").start().awaitTermination()
