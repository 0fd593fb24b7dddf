"""The same Java code by the same compiler makes the same bytes: a jar can be compared with its sources."""

import os
import shutil
import subprocess
from pathlib import Path

from tidegate_testing.spark_jars import JVM, fetched, pyspark


def test_another_folder_and_other_times_of_the_files_make_the_same_bytes(tmp_path: Path) -> None:
    class_path = f"{pyspark() / 'jars'}/*:{fetched('s3a')}/*:{fetched('kafka')}/*"
    copy = shutil.copytree(JVM, tmp_path / "elsewhere")
    for file in copy.rglob("*.java"):
        os.utime(file, (1_000_000_000, 1_000_000_000))
    jars = [tmp_path / "one.jar", tmp_path / "other.jar"]
    for folder, jar, zone in zip((JVM, copy), jars, ("UTC", "Asia/Tokyo"), strict=True):
        command = ["sh", str(folder / "build.sh"), str(jar), class_path]
        subprocess.run(command, check=True, env={**os.environ, "TZ": zone})
    assert jars[0].read_bytes() == jars[1].read_bytes()
