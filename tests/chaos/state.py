"""Reads the application's state out of a checkpoint with Spark's own reader: ``python -m tests.chaos.state FOLDER``.

Prints one JSON object per key. In a process of its own, because of the JVM; on a copy, so that nothing can be touched.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from tests.chaos.records import Account
from tidegate_testing import class_archive

ROCKSDB = "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider"
SETTINGS = {
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.sql.streaming.stateStore.providerClass": ROCKSDB,
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
}


def read_state(checkpoint: Path, timeout: float = 300) -> dict[str, Account]:
    """Return each key's account as of the last committed batch.

    Raises:
        RuntimeError: the state could not be read; the text is the end of what Spark said.
    """
    with tempfile.TemporaryDirectory() as folder:
        copy = Path(folder) / "checkpoint"
        shutil.copytree(checkpoint, copy)
        move(copy)
        submit_args = class_archive.submit_args("local[2]", SETTINGS)
        variables = {"PYSPARK_SUBMIT_ARGS": submit_args, "SPARK_LOCAL_IP": "127.0.0.1"}
        done = subprocess.run(
            [sys.executable, "-m", "tests.chaos.state", str(copy)],
            env={**os.environ, **variables, "SPARK_LOCAL_DIRS": folder},
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
    if done.returncode != 0:
        # Of Spark's errors the frames fill pages, and what is wrong stands above and between them.
        said = [line for line in done.stderr.splitlines() if not line.lstrip().startswith("at ")]
        raise RuntimeError("the state could not be read:\n" + "\n".join(said)[-3000:])
    rows = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return {row["key"]: Account(row["count"], row["sum"], row["last"]) for row in rows}


def move(copy: Path) -> None:
    """Have the copy name its own files: an operator's metadata hold the full address of its state's schema."""
    for metadata in (copy / "state").glob("*/_metadata/**/*"):
        if metadata.is_file() and not metadata.name.startswith("."):
            text = metadata.read_text()
            metadata.write_text(re.sub(r'[a-z0-9]+://?[^"]*?(?=/state/\d+/)', copy.as_uri(), text))
            (metadata.parent / f".{metadata.name}.crc").unlink(missing_ok=True)


def main(folder: str) -> None:
    """Print the state of the checkpoint in ``folder``."""
    from pyspark.sql import SparkSession  # noqa: PLC0415 - the other half of this module needs no Spark

    spark = SparkSession.builder.getOrCreate()
    # The state stores of checkpoint format 2 ask a coordinator, which is made with the first use of streaming.
    assert not spark.streams.active
    state = spark.read.format("statestore").option("stateVarName", "account").load(f"file://{folder}")
    for row in state.select("key.key", "value.count", "value.sum", "value.last").collect():
        print(json.dumps(row.asDict()))
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1])
