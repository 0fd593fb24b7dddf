"""Writes files in the folder named by the argument through Spark's own door, as two writers would; no query."""

import sys
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.sql import SparkSession

spark = SparkSession.builder.getOrCreate()
jvm: Any = spark._jvm
folder = sys.argv[1]
package = jvm.org.apache.spark.sql.execution.streaming.checkpointing
java_session: Any = spark._jsparkSession
conf = java_session.sessionState().newHadoopConf()
LARGE = b"x" * (6 * 1024 * 1024)


def writer() -> Any:
    return package.CheckpointFileManager.create(jvm.org.apache.hadoop.fs.Path(folder), conf)


def begin(files: Any, name: str, content: bytes, overwrite: bool = False) -> Any:
    stream = files.createAtomic(jvm.org.apache.hadoop.fs.Path(folder, name), overwrite)
    stream.write(bytearray(content))
    return stream


def close(stream: Any) -> str:
    try:
        stream.close()
    except Py4JJavaError as error:
        return str(error.java_exception.getClass().getName())
    finally:
        stream.cancel()
    return "written"


one, two = writer(), writer()
one.mkdirs(jvm.org.apache.hadoop.fs.Path(folder))
print("files at first:", len(one.list(jvm.org.apache.hadoop.fs.Path(folder))))
for name, content in (("small", b"one"), ("large", LARGE)):
    first, second = begin(one, name, content), begin(two, name, b"the second" + content)
    print(f"{name}: {close(first)}, then {close(second)}")
for name, content in (("cancelled", b"small"), ("cancelled-large", LARGE)):
    stream = begin(one, name, content)
    stream.cancel()
    stream.close()
begin(one, "overwritten", b"before").close()
begin(two, "overwritten", b"after", overwrite=True).close()
