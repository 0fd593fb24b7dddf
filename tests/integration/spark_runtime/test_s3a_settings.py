"""No setting of S3A that there is leads away from the application's own storage; each of the connector's is known."""

import re
import zipfile
from pathlib import Path

from tidegate_spark.process.spark.s3a_settings import OF_THE_PATH, PATH

ONLY_WITH_THE_PATH = (
    *(
        "proxy.",
        "encryption.cse.",
        "http.signer.class",
        "access.grants.fallback.to.iam",
        "change.detection.version.required",
    ),
)
"""Looked at only where a setting of the path asks for it, and that one is the spec's."""
NOT_OF_CHECKPOINTS = (
    *("committer.", "select.", "create.header", "create.multipart", "create.performance.enabled", "s3guard."),
    *("metadatastore.", "failinject.", "scale.test.", "root.tests.", "capability.", "authoritative.path"),
)
"""Of other kinds of files, of single files, of former versions, of Hadoop's own tests; or an answer, not a setting."""
SLOWER_OR_FASTER = (
    *("attempts.maximum", "retry.", "connection.", "socket.", "threads.", "executor.capacity", "max.total.tasks"),
    *("paging.maximum", "multipart.", "multiobjectdelete.", "bulk.delete.", "buffer.dir", "fast.", "block.size"),
    *("readahead.", "input.", "experimental.", "prefetch.", "vectored.", "analytics.", "list.version", "io.rate."),
    *("optimized.copy.", "directory.", "etag.checksum.", "checksum.validation", "internal.", "bucket.probe"),
)
"""The same objects are read and written, by more or fewer requests, threads, attempts or bytes at a time."""
ELSEWHERE = ("audit.", "user.agent.prefix", "classloader.isolation", "downgrade.syncable.", "object.content.encoding")
"""What is written to logs, and labels that nobody here goes by."""
NOT_OF_A_BUCKET = ("bucket.", "impl", "client.", "throttled")
"""Cannot be set for a bucket, or is only the start of other names."""


def test_each_setting_of_the_connector_is_of_the_path_or_leads_nowhere_else(jars: Path) -> None:
    (connector,) = jars.glob("hadoop-aws-*.jar")
    known = ONLY_WITH_THE_PATH + NOT_OF_CHECKPOINTS + SLOWER_OR_FASTER + ELSEWHERE + NOT_OF_A_BUCKET
    names = names_in(connector)
    assert {name for name in names if name not in PATH and not name.startswith((*OF_THE_PATH, *known))} == set()
    # Made of two parts there.
    assert PATH.keys() - names == {"s3.signing-algorithm", "client.s3.custom.headers", "accesspoint.arn"}


def names_in(connector: Path) -> set[str]:
    """Return every ``fs.s3a.…`` that its classes have as a text; names of classes and packages have capitals."""
    found = set()
    with zipfile.ZipFile(connector) as archive:
        for member in archive.namelist():
            content = archive.read(member) if member.endswith(".class") else b""
            for text in re.finditer(rb"\x01(..)fs\.s3a\.", content, re.DOTALL):
                start, length = text.end(1), int.from_bytes(text[1])
                name = content[start : start + length].decode(errors="replace").removeprefix("fs.s3a.")
                if re.fullmatch(r"[a-z0-9.-]*[a-z0-9-]", name):
                    found.add(name)
    return found
