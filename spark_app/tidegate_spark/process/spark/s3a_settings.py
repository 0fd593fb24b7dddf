"""S3A settings that lead to the application's own storage, whatever a script sets. Pure.

S3A's settings for one bucket beat those for all buckets, so they are set for the storage's bucket.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from tidegate_spark.contract.protocol import Storage

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
PATH = {
    # Where the store is, and how a request comes there.
    "endpoint": "",
    "endpoint.region": "",
    "endpoint.fips": "false",
    "path.style.access": "false",
    "cross.region.access.enabled": "true",
    "connection.ssl.enabled": "true",
    "ssl.channel.mode": "default_jsse",
    "accesspoint.arn": "",
    "accesspoint.required": "false",
    "proxy.host": "",
    "proxy.port": "-1",
    "s3.client.factory.impl": "org.apache.hadoop.fs.s3a.DefaultS3ClientFactory",
    # As whom, and how it is signed.
    "aws.credentials.provider": DEFAULT_CREDENTIALS,
    "aws.credentials.provider.mapping": "",
    "security.credential.provider.path": "",
    "delegation.token.binding": "",
    "access.grants.enabled": "false",
    "s3express.create.session": "true",
    "signing-algorithm": "",
    "s3.signing-algorithm": "",
    "custom.signers": "",
    "http.signer.enabled": "false",
    "requester.pays.enabled": "false",
    "client.s3.custom.headers": "",
    # What an object is when it is there: who can read it, also without S3A as Tidegate's own reads are.
    "encryption.algorithm": "",
    "encryption.key": "",
    "encryption.context": "",
    "acl.default": "",
    "create.storage.class": "",
    "create.checksum.algorithm": "",
    "checksum.generation": "false",
    "request.md5.header": "true",
    # Whether two writers of a file are distinguished, and nobody's uploads are ended.
    "create.conditional.enabled": "true",
    "create.performance": "false",
    "performance.flags": "",
    "change.detection.mode": "server",
    "change.detection.source": "etag",
    "multipart.purge": "false",
}
"""What could lead elsewhere, each with what S3A takes for it if nothing is said. The other settings of S3A only make it
slower or faster (``tests/integration/spark_runtime/test_s3a_settings.py`` has all of them)."""
IMPLEMENTATION, S3A_FILES = f"{S3A}impl", "org.apache.hadoop.fs.s3a.S3AFileSystem"
"""The class of every ``s3a://…``, and Hadoop's own: a bucket cannot have another one, so a script's would be that of
the application's own storage as well."""
OF_THE_PATH = ("access.key", "secret.key", "session.token", "assumed.role.", "auth.profile.", "server-side-encryption")
"""What else starts so belongs to it: keys that other providers read, and former names. It has no value by itself."""

FORMER = {
    "encryption.algorithm": "server-side-encryption-algorithm",
    "encryption.key": "server-side-encryption.key",
}
"""What an image may still call them: S3A takes these where nothing is said under the names of today."""
_OF_ENCRYPTION = "encryption."
"""What starts so S3A looks up in Hadoop's credential stores as well, which no setting shows."""
_CREDENTIAL_STORES = "security.credential.provider.path"


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


def own_path(storage: Storage, has_secret: bool, spec: Mapping[str, str], script: Mapping[str, str]) -> dict[str, str]:
    """Return what has to be said of the application's own bucket.

    Of what nobody names nothing is said: an image may have a configuration of Hadoop's, with a proxy or a key.

    Args:
        storage: the application's own.
        has_secret: whether the spec names a Secret for it.
        spec: the settings in the spec, which may say how the storage is reached: for its bucket, or for all.
        script: those of the script, which may say for all buckets what is meant for its inputs.
    """
    ours = defaults(storage, has_secret) | {PROVIDER: _provider(has_secret)}
    if not storage.endpoint:
        ours |= {ENDPOINT: PATH["endpoint"], f"{HADOOP}{S3A}connection.ssl.enabled": PATH["connection.ssl.enabled"]}
    path = {name: value for name, value in PATH.items() if f"{HADOOP}{S3A}{name}" in script}
    path |= {name: ours[key] for name in PATH if (key := f"{HADOOP}{S3A}{name}") in ours}
    for_all = _names(spec, f"{HADOOP}{S3A}")
    path |= {name: value for name, value in for_all.items() if name in PATH or name.startswith(OF_THE_PATH)}
    path |= _names(spec, own_key(storage, ""))
    return {own_key(storage, name): value for name, value in path.items()}


def _names(conf: Mapping[str, str], start: str) -> dict[str, str]:
    return {key.removeprefix(start): value for key, value in conf.items() if key.startswith(start)}


def own_key(storage: Storage, name: str) -> str:
    """Return the setting of S3A for the application's own bucket alone."""
    return f"{HADOOP}{own_start(storage)}{name}"


def own_start(storage: Storage) -> str:
    """Return what the settings for the application's own bucket start with, as S3A has them."""
    return f"{S3A}bucket.{storage.bucket}."


def rest_of_path(storage: Storage, get: Callable[[str], str | None]) -> dict[str, str]:
    """Return what is still to be said of the own bucket once Spark has started.

    Then it holds for that bucket, whatever is said for all from then on: in Hadoop's configuration or a session's,
    before a query starts or while it runs.

    Args:
        storage: the application's own.
        get: a setting of S3A as Hadoop has it, with what the image says; None if nobody has named it.
    """
    own = own_start(storage)
    stores = (f"hadoop.{_CREDENTIAL_STORES}", f"{S3A}{_CREDENTIAL_STORES}", f"{own}{_CREDENTIAL_STORES}")
    has_store = any(map(get, stores))
    rest = {}
    for name, default in PATH.items():
        if get(f"{own}{name}") is not None:
            continue
        former = FORMER.get(name)
        places = (f"{own}{former}", f"{S3A}{name}", f"{S3A}{former}") if former else (f"{S3A}{name}",)
        found = next((found for key in places if (found := get(key)) is not None), None)
        if found is None and has_store and name.startswith(_OF_ENCRYPTION):
            continue  # S3A asks no store for what has a value, be it empty: objects would have the bucket's usual key
        rest[f"{own}{name}"] = default if found is None else found
    return rest


def is_another_implementation(key: str, value: str) -> bool:
    """Return whether a setting, of Spark's or of a session, has another class than Hadoop's read all of S3."""
    return key.removeprefix(HADOOP) == IMPLEMENTATION and value.strip() != S3A_FILES


def is_of_own_path(key: str, storage: Storage) -> bool:
    """Return whether a setting would lead elsewhere than to the application's own storage; of Spark's, or of a session.

    What a session has under S3A's own name goes to its queries as it is.
    """
    name = key.removeprefix(HADOOP)
    start = own_start(storage)
    return name.startswith(start) and (name[len(start) :] in PATH or name[len(start) :].startswith(OF_THE_PATH))
