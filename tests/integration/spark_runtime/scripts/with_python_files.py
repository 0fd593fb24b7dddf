"""Computes with modules that spec.application.pyFiles brings: a file, an archive and a directory with a package."""

import of_archive  # type: ignore[import-not-found] # pyFiles brings it
import of_file  # type: ignore[import-not-found] # likewise
from of_directory import rules  # type: ignore[import-not-found] # likewise
from pyspark.sql import SparkSession
from pyspark.sql import functions as f


def with_all(value: int) -> int:
    import of_file_too  # type: ignore[import-not-found] # noqa: PLC0415 - only workers need it

    found: int = of_archive.tripled(of_file.doubled(rules.increased(value))) + of_file_too.ZERO
    return found


spark = SparkSession.builder.getOrCreate()
print("in the driver:", with_all(0))
print("in workers:", [row[0] for row in spark.range(3).select(f.udf(with_all, "long")("id")).collect()])
