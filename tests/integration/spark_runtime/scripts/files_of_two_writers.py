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


def read(files: Any, name: str) -> str:
    try:
        stream = files.open(jvm.org.apache.hadoop.fs.Path(folder, name))
        return bytes(stream.readAllBytes()).decode()
    except Py4JJavaError as error:
        return str(error.java_exception.getClass().getName())


def exists(files: Any, name: str = "") -> bool:
    path = jvm.org.apache.hadoop.fs.Path(folder, name) if name else jvm.org.apache.hadoop.fs.Path(folder)
    return bool(files.exists(path))


print("there:", exists(writer()), exists(one, "small"), exists(one, "missing"), read(one, "missing"))
begin(one, "seen", b"first").close()
one.list(jvm.org.apache.hadoop.fs.Path(folder))
print("listed:", read(one, "seen"))
one.list(jvm.org.apache.hadoop.fs.Path(folder))
begin(two, "seen", b"second", overwrite=True).close()
print("listed, then written here:", read(one, "seen"))
exists(one, "seen")
store = jvm.org.apache.hadoop.fs.Path(folder).getFileSystem(conf)
elsewhere = store.create(jvm.org.apache.hadoop.fs.Path(folder, "seen"), True)
elsewhere.write(bytearray(b"third"))
elsewhere.close()
print("seen, then written elsewhere:", read(one, "seen"), read(one, "seen"))
one.delete(jvm.org.apache.hadoop.fs.Path(folder, "seen"))
print("deleted:", exists(one, "seen"), read(one, "seen"))
