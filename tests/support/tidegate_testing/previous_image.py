"""An image with this checkout's Spark and the runtime of the last landing, as one's own image has it after an upgrade.

It is built by the Spark image's own Dockerfile, so all of its layers but those of the runtime come from the cache: the
first build takes seconds, unless the jar has changed since. Copies files, and runs git.
"""

import dataclasses
import hashlib
import shutil
from pathlib import Path

from devcluster import paths
from devcluster.images import SPARK, Image
from tidegate_testing import previous_runtime

OF_THE_RUNTIME = (previous_runtime.PACKAGE, "jvm", "images/spark/entrypoint.sh")
"""What of the Spark image is Tidegate's part of the contract with the operator, and not Spark."""
DIGEST = (
    "import hashlib, pathlib, tidegate_spark; "
    "files = sorted(pathlib.Path(tidegate_spark.__file__).parent.rglob('*.py')); "
    "print(hashlib.sha256(b''.join(file.read_bytes() for file in files)).hexdigest())"
)
"""A program that prints :func:`digest` of the runtime that it finds."""


def image_in(folder: Path) -> Image:
    """Return the image, which is built of files in an empty folder; leaves the test out where there is no history."""
    for path in (SPARK.dockerfile, ".dockerignore", *SPARK.reads):
        if path not in OF_THE_RUNTIME:
            _copy(paths.ROOT / path, folder / path)
    previous_runtime.unpack_paths(folder, *OF_THE_RUNTIME)
    return dataclasses.replace(SPARK, name="localhost/tidegate-spark-last-landing:test", root=folder)


def digest(root: Path) -> str:
    """Return what tells the runtime of a checkout from another one."""
    files = sorted((root / previous_runtime.PACKAGE).rglob("*.py"))
    return hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest()


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.is_dir():
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__"))
    else:
        shutil.copy2(source, target)
