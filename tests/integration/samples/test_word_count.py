"""The smallest sample on real Spark: it counts, ends, and goes on counting when it is started again."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from devcluster import paths
from tidegate_testing import class_archive

SAMPLE = paths.ROOT / "spark_app" / "samples" / "word_count.py"


def count_once(folder: Path) -> dict[str, int]:
    """Run the sample to its end; return the counts that it printed."""
    conf = {
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": 1,
        "spark.sql.streaming.checkpointLocation": folder / "checkpoint",
    }
    submit_args = class_archive.submit_args("local[1]", conf)
    done = subprocess.run(
        [sys.executable, str(SAMPLE), f"--input=file://{folder / 'texts'}", "--once"],
        env=os.environ | {"PYSPARK_SUBMIT_ARGS": submit_args, "SPARK_LOCAL_IP": "127.0.0.1"},
        cwd=folder,
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return {word: int(count) for word, count in re.findall(r"^\|(\w+)\s*\|(\d+)\s*\|$", done.stdout, re.MULTILINE)}


@pytest.mark.long
def test_it_counts_the_words_of_files_and_goes_on_where_it_ended(tmp_path: Path) -> None:
    texts = tmp_path / "texts"
    texts.mkdir()
    (texts / "one.txt").write_text("The tide, the gate.\nTide!\n")
    assert count_once(tmp_path) == {"the": 2, "tide": 2, "gate": 1}
    (texts / "two.txt").write_text("a gate\n")
    assert count_once(tmp_path) == {"a": 1, "gate": 2}
