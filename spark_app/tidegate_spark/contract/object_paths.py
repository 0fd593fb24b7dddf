"""The contract about where an application's objects are in the storage. No I/O."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

_AWS = re.compile(r"(?:^|\.)amazonaws\.com(\.cn)?$")
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}
_START = re.compile("[0-9a-f]{1,16}")
_DETOUR = re.compile(r"(?:^|/)\.\.?(?:/|$)")


@dataclass(frozen=True)
class Storage:
    """Where the application keeps its checkpoints; no secrets.

    ``uri`` is ``s3://bucket/prefix`` of the application itself, that is ``<spec.storage.uri>/<namespace>/<app>``,
    without a slash at the end. ``endpoint`` is empty for the provider's own.
    """

    uri: str
    endpoint: str = ""
    region: str = "us-east-1"
    path_style_access: bool = False

    @property
    def bucket(self) -> str:
        """The bucket's name."""
        return self.uri.removeprefix("s3://").partition("/")[0]

    @property
    def prefix(self) -> str:
        """The key prefix inside the bucket, without slashes at its ends."""
        return self.uri.removeprefix("s3://").partition("/")[2].strip("/")

    def key(self, *parts: str) -> str:
        """Return the object key of ``parts`` below the application's prefix."""
        return "/".join(p for p in (self.prefix, *parts) if p)

    @property
    def hadoop_uri(self) -> str:
        """The same place in the spelling of Hadoop's S3A connector."""
        return "s3a://" + self.uri.removeprefix("s3://")

    def is_same_place(self, other: Storage) -> bool:
        """Return whether both are one place of one store: stores of two clusters may have buckets of the same name."""
        mine, others = (store_identity(place.endpoint, place.region) for place in (self, other))
        return (mine, self.bucket, self.prefix) == (others, other.bucket, other.prefix)


def store_identity(endpoint: str, region: str) -> str:
    """Return one spelling for a store, whichever of several its address is written in.

    All regions of AWS in one partition are one store: no two buckets there have the same name. An endpoint that is left
    out is AWS's own, also in what was stored by earlier versions, which have always stored endpoints.

    Args:
        endpoint: as in a spec; empty for AWS's own.
        region: the region's name, which shows the AWS partition where there is no endpoint.
    """
    if not endpoint:
        return _partition_of(region)
    scheme, _, rest = endpoint.rpartition("://")
    authority, slash, path = rest.partition("/")
    # Without a user and a password, should somebody have written them there: an identity is shown.
    host = authority.rpartition("@")[2].lower().removesuffix(_DEFAULT_PORTS.get(scheme.lower(), ":"))
    found = _AWS.search(host.partition(":")[0])
    if found is not None:
        return "amazonaws.com.cn" if found[1] else _partition_of("us-gov-" if "us-gov-" in host else "")
    return (host + slash + path).rstrip("/")


def _partition_of(region: str) -> str:
    if region.startswith("cn-"):
        return "amazonaws.com.cn"
    return "amazonaws.com (us-gov)" if region.startswith("us-gov-") else "amazonaws.com"


FENCE_FILE = "fence.json"
"""Object below the application's prefix that says which driver process may write: ``{"epoch", "lineage", …}``."""

APP_FILE = "app.json"
"""Object below the application's prefix that says whose storage this is: ``{"uid", "epoch", "lineage", …}``."""

LOG_PREFIX = "logs"
"""``logs/<process>/driver.log`` and ``logs/<process>/executor-<id>.log``: the last lines, put there at exit.

A driver process is named by the time it began and its epoch, so that names sort by time. A launch (a pod, an epoch) may
see several, one after the other."""

FIRST_LINEAGE = 1
LINEAGE_PREFIX = "lineages"
"""``lineages/<n>/<query>``: the checkpoint of one query in lineage n."""

NAMES_PREFIX = "names"
"""``names/<directory>``: the name of the query whose checkpoint is in directories called so, if that is another.

``names/unnamed-<lineage>.json``: which location each query of a lineage has, those without a name and the others."""

SNAPSHOT_PREFIX, MANIFEST_FILE = "snapshots", "manifest.json"
"""``snapshots/<id>/manifest.json``: what belongs to a snapshot; one without it is not complete."""

UPGRADE_PREFIX = "upgrades"
"""``upgrades/<id of the pin>.json``: the last batches that the previous version of an upgrade committed."""


INBOX_PREFIX, REPLIES_PREFIX = "control/inbox", "control/replies"
"""Where those who have access only to the storage put control messages, and find replies."""


def has_detour(path: str) -> bool:
    """Return whether a path or an address has a segment ``.`` or ``..``.

    S3 takes it as a name like any other, Hadoop and some HTTP clients as a step within or out of the folder: so what is
    one place to who allows it is another one to who reads it.
    """
    return _DETOUR.search(path) is not None


def is_below(path: str) -> bool:
    """Return whether a relative path leads to a file below where it begins, whoever reads it."""
    return "" not in path.split("/") and not has_detour(path)


def application_uri(base_uri: str, namespace: str, name: str) -> str:
    """Return the place of one application below the ``storage.uri`` of its spec."""
    return f"{base_uri.rstrip('/')}/{namespace}/{name}"


_MOST_DIGITS = 18
"""Of a number in a name: as many as each of Spark's integers of 64 bits holds."""


def is_number(name: str) -> bool:
    """Return whether Spark takes ``name`` for the number of a batch, a version, a partition or an operator.

    Whoever may write to the storage can give an object any name. Python has more digits than Spark, and takes some of
    them, such as ``²``, for digits and for no number.
    """
    return name.isascii() and name.isdigit() and len(name) <= _MOST_DIGITS


EMPTY_START = ".empty-start-"
"""Behind a query's directory and before a word of one start: the checkpoint of a query that starts empty each time."""


def checkpoint_directory(name: str) -> str:
    """Return the directory's name for query ``name``: itself if it is a plain word, else made plain and kept unique.

    The name of such a directory, also of one of :func:`start_directory`, is returned as it is.
    """
    if re.fullmatch(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}(\.empty-start-[0-9a-f]+)?", name):
        return name
    plain = re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip("-._")[:80] or "query"
    return f"{plain}-{hashlib.sha256(name.encode()).hexdigest()[:8]}"


def start_directory(name: str, start: int) -> str:
    """Return the directory's name of one start of a query that starts empty each time; ``start``: no two are equal."""
    return f"{checkpoint_directory(name)}{EMPTY_START}{start:x}"


def number_of_start(directory: str) -> int:
    """Return the number of the start that a directory is of; -1: it is of none."""
    start = directory.partition(EMPTY_START)[2]
    return int(start, 16) if _START.fullmatch(start) else -1


def directory_of_query(directory: str) -> str:
    """Return what :func:`checkpoint_directory` returns for the query that has its checkpoint in ``directory``."""
    return directory.partition(EMPTY_START)[0]


LEFT_AFTER = "left-after"
"""``lineages/<n>/<query>/left-after/<batch>``: after that batch the query was started empty, and began to be each time.

The checkpoint is of its history that is over, which ends with that batch; one with later batches continues again.
"""


def left_after(paths: Iterable[str]) -> int:
    """Return after which batch a checkpoint was left, -1 if it was not; ``paths``: its files."""
    found = (path.removeprefix(f"{LEFT_AFTER}/") for path in paths if path.startswith(f"{LEFT_AFTER}/"))
    return max((int(batch) for batch in found if is_number(batch)), default=-1)


def of_queries_that_continue(batches: Mapping[str, int], left: Mapping[str, int]) -> dict[str, int]:
    """Return what is worth a snapshot of the last batches in a lineage, by directory.

    Nothing continues from the checkpoint of a query that starts empty. It counts only where there is no other, with its
    latest start: so that such an application can be upgraded, and its snapshots come to an end.

    What was left stays with the others: whoever lets the query continue again finds it in a later lineage, too. Alone,
    beside a query's latest empty start, it is of a history that is over.

    Args:
        batches: the last committed one of each checkpoint.
        left: as :func:`left_after`, of those that were.
    """
    whole = {at: batch for at, batch in batches.items() if EMPTY_START not in at}
    if any(batch > left.get(at, -1) for at, batch in whole.items()):
        return whole
    latest: dict[str, str] = {}
    for at in sorted(batches, key=number_of_start):
        latest[directory_of_query(at)] = at
    return {at: batches[at] for at in latest.values()}
