"""The jobs of the package, found by name."""

from pyspark.sql import functions as F

JOBS = {}


def job(function):
    JOBS[function.__name__] = function
    return function


@job
def words(spark, source, target, checkpoint):
    lines = spark.readStream.text(source)
    parts = lines.select(F.explode(F.split(F.regexp_replace("value", r"[^a-z0-9 ]", " "), " +")).alias("word"))
    named = parts.where("word <> ''").select("word", F.udf(shout)("word").alias("loud"))
    return named.writeStream.format("csv").option("checkpointLocation", checkpoint).trigger(processingTime="1 second").start(target)


def shout(word):
    return word.upper() + "!"
