"""An archive of classes for the JVMs of tests, as the Spark image has one: they start in less processor time. Does I/O.

It lies in the cache, with links to every jar beside it: it serves only the class path that it was made with.
"""

import hashlib
import os
import shlex
import subprocess
import sys
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from devcluster import paths
from devcluster.control import log_tail
from devcluster.locking import locked
from tidegate_testing import spark_jars

MAKE = paths.ROOT / "images" / "spark" / "archive"


@cache
def folder() -> Path:
    """Return the folder with ``jars/``, ``classes.jsa`` and ``conf/``; made once, by whoever comes first."""
    found = paths.cache() / "jars" / f"archive-{_digest()}"
    with locked(found / "lock"):
        if not (found / "conf").exists():
            _make(found)
    return found


def jars() -> Path:
    """Return the folder with links to Spark's jars, S3A, the Kafka connector and our own."""
    return folder() / "jars"


def options() -> str:
    """Return the options of a JVM whose class path starts with ``jars()``; it does without what it cannot use."""
    return _options(folder())


def conf() -> Path:
    """Return a SPARK_CONF_DIR that has drivers use the archive."""
    return folder() / "conf"


def settings() -> dict[str, str]:
    """Return what has a Spark of this machine use the archive; S3A and the Kafka connector come with it."""
    return {"spark.driver.extraClassPath": f"{jars()}/*", "spark.driver.defaultJavaOptions": options()}


def submit_args(master: str, conf: Mapping[str, object]) -> str:
    """Return PYSPARK_SUBMIT_ARGS of a script that uses the archive, and ``conf`` beside that."""
    pairs = [f"--conf={key}={value}" for key, value in {**settings(), **conf}.items()]
    return shlex.join(["--master", master, *pairs, "pyspark-shell"])


def _options(found: Path) -> str:
    return f"-XX:SharedArchiveFile={found / 'classes.jsa'} -Xshare:auto -Xlog:cds*=off"


def _digest() -> str:
    # Java says which options it took from there, and those of one run would make an archive of its own.
    environment = {key: value for key, value in os.environ.items() if key != "JAVA_TOOL_OPTIONS"}
    version = subprocess.run(["java", "-version"], check=True, stderr=subprocess.PIPE, env=environment).stderr
    digest = hashlib.sha256(version)
    for file in sorted(MAKE.iterdir()):
        digest.update(file.read_bytes() if file.is_file() else b"")
    for jar in _jars():
        digest.update(f"{jar} {jar.stat().st_mtime_ns}\n".encode())
    return digest.hexdigest()[:12]


def _jars() -> list[Path]:
    ours = [spark_jars.built(), *(jar for name in ("s3a", "kafka") for jar in spark_jars.fetched(name).glob("*.jar"))]
    return sorted([*ours, *(spark_jars.pyspark() / "jars").glob("*.jar")])


def _make(found: Path) -> None:
    (found / "jars").mkdir(exist_ok=True)
    for jar in _jars():
        link = found / "jars" / jar.name
        if not link.exists():
            link.symlink_to(jar)
    environment = {
        **os.environ,
        "SPARK_HOME": str(spark_jars.pyspark()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "PYSPARK_PYTHON": sys.executable,
    }
    command = [sys.executable, str(MAKE / "make.py"), str(found / "classes.jsa"), f"{found / 'jars'}/*"]
    log = found / "log"
    with log.open("wb") as output:  # Spark says a lot, and a benchmark's progress would drown in it
        done = subprocess.run(command, check=False, env=environment, stdout=output, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        raise RuntimeError(f"the archive of classes was not made:\n{log_tail(log)}")
    conf = found / "conf.new"
    conf.mkdir(exist_ok=True)
    (conf / "spark-defaults.conf").write_text(f"spark.driver.defaultJavaOptions {_options(found)}\n")
    conf.rename(found / "conf")
