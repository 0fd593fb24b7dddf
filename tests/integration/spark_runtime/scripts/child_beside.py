"""Has spark-submit run this program in a child process, which writes a file; then is the script evolving.py."""

import runpy
import subprocess
import sys
from pathlib import Path

from pyspark.find_spark_home import _find_spark_home
from pyspark.sql import SparkSession

if "child" in sys.argv:
    spark = SparkSession.builder.config("spark.ui.enabled", "false").getOrCreate()
    spark.range(40).write.csv(sys.argv[1])
else:
    submit = Path(_find_spark_home()) / "bin" / "spark-submit"
    subprocess.run([submit, "--master", "local[1]", __file__, sys.argv[-1], "child"], check=False)
    runpy.run_path(str(Path(__file__).with_name("evolving.py")), run_name="__main__")
