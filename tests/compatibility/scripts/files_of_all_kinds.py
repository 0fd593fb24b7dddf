import importlib
import json
import os
import shutil
import tempfile
import zipfile
from pathlib import Path

from pyspark import SparkFiles
from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

spark = SparkSession.builder.appName("files").getOrCreate()
sc = spark.sparkContext
folder = Path(tempfile.mkdtemp())

(folder / "limits.json").write_text(json.dumps({"low": 2}))
sc.addFile(str(folder / "limits.json"))

with zipfile.ZipFile(folder / "kinds.zip", "w") as archive:
    archive.writestr("kinds/__init__.py", "def kind(value):\n    return 'even' if value % 2 == 0 else 'odd'\n")
sc.addPyFile(str(folder / "kinds.zip"))

(folder / "words").mkdir()
(folder / "words" / "words.txt").write_text("tide\ngate\n")
sc.addArchive(shutil.make_archive(str(folder / "lexicon"), "zip", folder / "words") + "#lexicon")

LISTED = os.environ.get("LISTED")


@udf("string")
def described(value):
    from kinds import kind

    low = json.loads(Path(SparkFiles.get("limits.json")).read_text())["low"]
    words = (Path(SparkFiles.get("lexicon")) / "words.txt").read_text().split()
    listed = importlib.import_module(LISTED).NAME if LISTED else "no module listed"
    return f"{kind(value)} {value < low} {len(words)} {listed}"


rows = spark.readStream.format("rate").load().select(described("value").alias("text"))


def check(batch, number):
    found = {row.text for row in batch.distinct().collect()}
    wrong = [text for text in found if not text.endswith(f"2 {LISTED or 'no module listed'}")]
    if wrong:
        raise ValueError(f"batch {number}: {wrong}")


rows.writeStream.foreachBatch(check).trigger(processingTime="1 second").start().awaitTermination()
