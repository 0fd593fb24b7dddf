"""Finds PySpark in images that have it only in Spark's own directory. Looks at files, imports nothing.

``spark-submit`` would put it on the path; our entry point runs before.
"""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import MutableMapping
from pathlib import Path

from tidegate_spark.process import start_messages as messages

DEFAULT_SPARK_HOME = "/opt/spark"


def entries_below(spark_home: str) -> list[str]:
    """Return what of ``spark_home`` must be on the path for pyspark and py4j; nothing if PySpark is not there."""
    python = Path(spark_home) / "python"
    archive = python / "lib" / "pyspark.zip"
    if (python / "pyspark" / "__init__.py").is_file():
        package = python
    elif archive.is_file():
        package = archive
    else:
        return []
    return [str(package), *(str(path) for path in sorted(python.glob("lib/py4j-*-src.zip")))]


def make_importable(variables: MutableMapping[str, str], path: list[str]) -> None:
    """See to it that pyspark and py4j can be imported, here and in child processes.

    Args:
        variables: the environment; SPARK_HOME is read, and set with PYTHONPATH if Spark's own copy is needed.
        path: ``sys.path``, extended at its end if Spark's own copy is needed.

    Raises:
        ModuleNotFoundError: neither this Python nor Spark's directory has PySpark.
    """
    if _all_found():
        return
    spark_home = variables.get("SPARK_HOME") or DEFAULT_SPARK_HOME
    entries = entries_below(spark_home)
    path.extend(entries)
    importlib.invalidate_caches()
    if not _all_found():
        version = ".".join(str(number) for number in sys.version_info[:2])
        raise ModuleNotFoundError(messages.no_pyspark(sys.executable, version, spark_home))
    variables["SPARK_HOME"] = spark_home
    variables["PYTHONPATH"] = ":".join([*filter(None, [variables.get("PYTHONPATH", "")]), *entries])


def _all_found() -> bool:
    return all(importlib.util.find_spec(name) is not None for name in ("pyspark", "py4j"))
