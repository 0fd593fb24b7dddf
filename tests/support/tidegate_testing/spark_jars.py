"""The jars that the images put beside Spark: fetched and built by the images' own scripts into the cache. Does I/O."""

import hashlib
import subprocess
from importlib.util import find_spec
from pathlib import Path

from devcluster import paths
from devcluster.locking import locked

IMAGES_JARS = paths.ROOT / "images" / "jars"
JVM = paths.ROOT / "jvm"


def fetched(name: str) -> Path:
    """Return the folder with the set ``name`` of ``images/jars``, fetched by Maven unless the cache has it."""
    digest = hashlib.sha256((IMAGES_JARS / name / "SHA256SUMS").read_bytes()).hexdigest()[:12]
    folder = paths.cache() / "jars" / f"{name}-{digest}"
    complete = folder / ".complete"
    with locked(folder.with_suffix(".lock")):  # two that fetch into one folder would each see the other's halves
        if not complete.exists():
            subprocess.run(["sh", str(IMAGES_JARS / "fetch.sh"), name, str(folder)], check=True)
            complete.touch()
    return folder


def built() -> Path:
    """Return the jar of our own Java code, compiled against PySpark's jars unless the cache has it."""
    digest = hashlib.sha256()
    for source in sorted(path for path in JVM.rglob("*") if path.is_file()):
        digest.update(f"{source.relative_to(JVM)}\n".encode() + source.read_bytes())
    jar = paths.cache() / "jars" / f"own-{digest.hexdigest()[:12]}" / "tidegate-spark.jar"
    with locked(jar.parent.with_suffix(".lock")):  # the archive of classes is named after the time of the one jar
        if not jar.exists():
            class_path = f"{pyspark() / 'jars'}/*:{fetched('s3a')}/*:{fetched('kafka')}/*"
            subprocess.run(["sh", str(JVM / "build.sh"), str(jar), class_path], check=True)
    return jar


def pyspark() -> Path:
    """Return the folder of PySpark."""
    found = find_spec("pyspark")
    assert found is not None, "no PySpark here"
    return Path(str(found.origin)).parent
