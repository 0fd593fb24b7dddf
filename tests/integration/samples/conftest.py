"""A Kafka broker of the tests' own on 127.0.0.1, and the Spark image's jars with which Spark talks to it."""

import hashlib
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from devcluster import kafka, paths
from devcluster.site import LocalSite

JARS = paths.ROOT / "images" / "jars"


@pytest.fixture(scope="session")
def connector_jars() -> Sequence[Path]:
    sums = (JARS / "kafka" / "SHA256SUMS").read_bytes()
    folder = paths.cache() / "jars" / f"connector-{hashlib.sha256(sums).hexdigest()[:12]}"
    if not folder.exists():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as work:
            subprocess.run([JARS / "fetch.sh", "kafka", f"{work}/jars"], check=True)
            Path(work, "jars").rename(folder)
    return sorted(folder.glob("*.jar"))


@pytest.fixture(scope="session")
def broker() -> Iterator[str]:
    with LocalSite() as site:
        kafka.up(site)
        yield site.kafka_host
