"""What leads S3A, in Spark's JVMs, to the application's own storage, whatever a script says of S3A. Pure.

A script sets ``fs.s3a.…`` for its inputs: in its builder, in the session's settings, or by
``hadoopConfiguration().set``. What S3A has for a bucket beats what it has for all, so the path to the application's own
storage is set for its bucket: checkpoints, fence and pins stay where the spec says.
"""

from __future__ import annotations

from collections.abc import Mapping

from tidegate_spark.protocol import Storage

ENVIRONMENT_CREDENTIALS = "software.amazon.awssdk.auth.credentials.EnvironmentVariableCredentialsProvider"
DEFAULT_CREDENTIALS = "software.amazon.awssdk.auth.credentials.DefaultCredentialsProvider"
TEMPORARY_KEYS = "org.apache.hadoop.fs.s3a.TemporaryAWSCredentialsProvider"
NAMED_KEYS = "org.apache.hadoop.fs.s3a.SimpleAWSCredentialsProvider"
"""Both read ``fs.s3a.access.key`` and ``secret.key``, the first with ``session.token``."""
HADOOP, S3A = "spark.hadoop.", "fs.s3a."
PROVIDER, ENDPOINT = f"{HADOOP}{S3A}aws.credentials.provider", f"{HADOOP}{S3A}endpoint"
KEYS = tuple(f"{HADOOP}{S3A}{name}" for name in ("access.key", "secret.key", "session.token"))
ONLY_WITH = {
    f"{ENDPOINT}.region": ENDPOINT,
    f"{HADOOP}{S3A}path.style.access": ENDPOINT,
    f"{HADOOP}{S3A}connection.ssl.enabled": ENDPOINT,
    **dict.fromkeys(KEYS, PROVIDER),
}
"""Defaults that fit only that of another setting: a store elsewhere has a region of its own, and whoever names a
provider may mean the keys that Spark takes from the variables."""
FOR_ALL = frozenset(f"{HADOOP}{S3A}{name}" for name in ("endpoint", "endpoint.region", "path.style.access"))
"""Fields of the spec own them, and a script has other buckets' by them: they are no more than defaults there."""
_UNSET = {
    "endpoint": "",
    "endpoint.region": "",
    "path.style.access": "false",
    "connection.ssl.enabled": "true",
    "aws.credentials.provider": DEFAULT_CREDENTIALS,
}
"""The path, each part with what S3A takes for it if nothing is said."""


def defaults(storage: Storage, has_secret: bool) -> dict[str, str]:
    """Return what holds for all buckets, unless somebody says otherwise: inputs are in the same store, as a rule."""
    conf = {
        f"{HADOOP}{S3A}endpoint.region": storage.region,
        f"{HADOOP}{S3A}path.style.access": str(storage.path_style_access).lower(),
        # Keys that somebody names for inputs come first, as in S3A's own list. That has no web identity, as on EKS.
        PROVIDER: f"{TEMPORARY_KEYS},{NAMED_KEYS},{_provider(has_secret)}",
        # Spark takes the storage's keys for these from the variables AWS_…; a script that names two of the three for
        # its inputs would have the third of the storage. Empty, they are found by the provider behind.
        **dict.fromkeys(KEYS, ""),
        # The analytics stream prefetches whole objects, which checkpoints' small files do not repay.
        f"{HADOOP}{S3A}input.stream.type": "classic",
    }
    if storage.endpoint:
        conf[ENDPOINT] = storage.endpoint
        conf[f"{HADOOP}{S3A}connection.ssl.enabled"] = str(not storage.endpoint.startswith("http://")).lower()
    return conf


def _provider(has_secret: bool) -> str:
    return ENVIRONMENT_CREDENTIALS if has_secret else DEFAULT_CREDENTIALS


def own_path(storage: Storage, has_secret: bool, spec: Mapping[str, str]) -> dict[str, str]:
    """Return what holds for the application's own bucket.

    Args:
        storage: the application's own.
        has_secret: whether the spec names a Secret for it.
        spec: the settings in the spec, which may say how its credentials are found.
    """
    ours = defaults(storage, has_secret) | {PROVIDER: _provider(has_secret)}
    found = {}
    for name, unset in _UNSET.items():
        for_all, own = f"{HADOOP}{S3A}{name}", own_key(storage, name)
        found[own] = spec.get(own, spec.get(for_all, ours.get(for_all, unset)))
    return found


def own_key(storage: Storage, name: str) -> str:
    """Return the setting of S3A for the application's own bucket alone."""
    return f"{HADOOP}{S3A}bucket.{storage.bucket}.{name}"


def is_of_own_path(key: str, storage: Storage) -> bool:
    """Return whether a setting would lead elsewhere than to the application's own storage."""
    return any(key == own_key(storage, name) for name in _UNSET)
