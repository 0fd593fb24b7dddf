"""boto3's client for the application's storage: credentials, conditional writes, faults. Does I/O.

boto3 is imported on use: an executor needs it only at its end.
"""

from __future__ import annotations

import functools
import hashlib
import re
import time
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidegate_spark.contract.protocol import ACCESS_KEY, SECRET_KEY, SESSION_TOKEN, Fault, Storage
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.process.faults.store_codes import (
    ARCHIVED_OR_ENCRYPTED_CODES,
    EXPIRED_CODES,
    MISSING_BUCKET_CODES,
    REGION_CODES,
    REJECTED_CODES,
    THROTTLING_CODES,
    UNSUITABLE_CODES,
)
from tidegate_spark.storage import start_variables
from tidegate_spark.storage import storage_messages as messages

if TYPE_CHECKING:
    from botocore.loaders import Loader
    from mypy_boto3_s3 import S3Client

_READS, _BETWEEN_READS = 5, 0.05
_MD5 = re.compile("[0-9a-f]{32}")
LARGEST_DOUBTED = 16 << 20
"""Bytes of an object that is read a second time because its ETag may be no checksum."""


class FaultError(Exception):
    """A fault that keeps the driver from running, on its way to whoever reports it."""

    def __init__(self, fault: Fault) -> None:
        """Carry ``fault``."""
        super().__init__(f"{fault.reason}: {fault.message}")
        self.fault = fault


class EndpointError(ValueError):
    """No client can be made: the endpoint is no URL, or the region no name of one."""


@dataclass(frozen=True)
class Credentials:
    """Static credentials of an S3 store; ``repr`` does not show them."""

    access_key: str
    secret_key: str
    session_token: str = ""

    def __repr__(self) -> str:
        """Hide the values: dataclasses get printed in tracebacks and logs."""
        return "Credentials(...)"

    def variables(self) -> dict[str, str]:
        """Return them as the environment variables that S3A's and botocore's environment providers read."""
        named = {ACCESS_KEY: self.access_key, SECRET_KEY: self.secret_key, SESSION_TOKEN: self.session_token}
        return {name: value for name, value in named.items() if value}

    @property
    def secrets(self) -> tuple[str, ...]:
        """The values that must not be shown anywhere; an access key's id is a name, not a secret."""
        return tuple(value for value in (self.secret_key, self.session_token) if value)


def read_credentials(directory: str, secret_name: str) -> Credentials | None:
    """Return the credentials mounted at ``directory``, or None if the application names no Secret.

    Raises:
        FaultError: CREDENTIALS_MISSING if a Secret is named and the Secret, or a key of it, is not there (yet).
    """
    if not secret_name:
        return None
    credentials = mounted_credentials(directory)
    if credentials is None:
        missing = [key for key in (ACCESS_KEY, SECRET_KEY) if not _read_value(Path(directory) / key)]
        raise FaultError(
            Fault(
                Reason.CREDENTIALS_MISSING,
                messages.secret_incomplete(secret_name, " and no ".join(missing)),
            )
        )
    return credentials


def mounted_credentials(directory: str) -> Credentials | None:
    """Return the credentials mounted at ``directory``, None if there are none: the environment's own are used then."""
    access, secret, session = (_read_value(Path(directory) / key) for key in (ACCESS_KEY, SECRET_KEY, SESSION_TOKEN))
    return Credentials(access, secret, session) if access and secret else None


def _read_value(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8").strip()
    except OSError:
        return ""


def connect(
    storage: Storage, credentials: Credentials | None, timeout_seconds: float = 10.0, connections: int = 10
) -> S3Client:
    """Return an S3 client for ``storage``; without ``credentials`` botocore's default chain looks for some.

    It keeps so many ``connections`` for requests at the same time.

    Raises:
        EndpointError: if the endpoint is not a URL, or the region cannot be one.
    """
    import boto3  # noqa: PLC0415 - see the module's docstring
    from botocore.config import Config  # noqa: PLC0415 - likewise

    core = start_variables.new_session()
    core.get_component("response_parser_factory").set_parser_defaults(timestamp_parser=moment_of)
    descriptions = _descriptions(core.get_config_variable("data_path"))
    # boto3 adds its own folder for each client.
    descriptions.search_paths[:] = dict.fromkeys(descriptions.search_paths)
    core.register_component("data_loader", descriptions)
    identity: dict[str, Any] = {}
    if credentials:
        identity = {"aws_access_key_id": credentials.access_key, "aws_secret_access_key": credentials.secret_key}
        if credentials.session_token:
            identity["aws_session_token"] = credentials.session_token
    try:
        return boto3.session.Session(botocore_session=core).client(
            "s3",
            region_name=storage.region,
            endpoint_url=storage.endpoint or None,
            config=Config(
                connect_timeout=min(5.0, timeout_seconds),
                read_timeout=timeout_seconds,
                max_pool_connections=connections,
                # The callers repeat, visibly and with back-off; botocore's own repetition would only hide the fault
                # longer.
                retries={"total_max_attempts": 2, "mode": "standard"},
                s3={"addressing_style": "path" if storage.path_style_access else "auto"},
                # Newer checksum defaults are refused by many S3-compatible stores.
                request_checksum_calculation="when_required",
                response_checksum_validation="when_required",
            ),
            **identity,
        )
    except ValueError as error:
        # Other invalid values are reported by whoever reads them: this one can come only from the spec.
        raise EndpointError(str(error)) from error


@functools.cache
def _descriptions(further_folders: str | None) -> Loader:
    """Return what reads botocore's descriptions of services, once: nine tenths of making a client are that."""
    from botocore.loaders import create_loader  # noqa: PLC0415 - see the module's docstring

    return create_loader(further_folders)


def moment_of(said: Any) -> datetime:
    """Return the time that an answer names; botocore's own way takes longer than all the rest of a listing."""
    from botocore.utils import parse_timestamp  # noqa: PLC0415 - see the module's docstring

    try:
        return datetime.fromisoformat(said.replace("Z", "+00:00"))
    except (AttributeError, ValueError):
        return parse_timestamp(said)  # headers have the form of e-mails


def create_object(client: S3Client, storage: Storage, key: str, body: bytes) -> bool:
    """Create ``key`` if it does not exist; return False if it does. Other faults raise botocore's exceptions."""
    return write_object_if(client, storage, key, body, None) is not None


def replace_object(client: S3Client, storage: Storage, key: str, body: bytes, etag: str) -> bool:
    """Replace ``key`` if it still has ``etag``; return False if it changed meanwhile."""
    return write_object_if(client, storage, key, body, etag) is not None


def read_object(client: S3Client, storage: Storage, key: str, most: int | None = None) -> tuple[bytes, str] | None:
    """Return an object's content and its ETag, None if there is none. Other faults raise botocore's exceptions.

    A store that keeps the two in different files may answer with an old content and a new ETag while somebody writes;
    whoever writes on that condition undoes what was written. So a pair is believed if the ETag is the content's MD5, as
    it is of objects put in one piece in most stores, or if it is read twice. What is large would be in memory twice: it
    is read once if its ETag cannot be an MD5.

    Args:
        client: of the store.
        storage: names the bucket.
        key: of the object.
        most: so many bytes are read of it, and no more; None: all.
    """
    before: tuple[bytes, str] | None = None
    for _ in range(_READS):
        found = _read_once(client, storage, key, most)
        if found is None or found == before or is_md5_of(*found):
            return found
        if len(found[0]) > LARGEST_DOUBTED and not _MD5.fullmatch(found[1].strip('"')):
            return found
        before = found
        time.sleep(_BETWEEN_READS)
    return before


def is_md5_of(body: bytes, etag: str) -> bool:
    """Return whether the ETag is the content's MD5: then the two belong together."""
    return etag.strip('"') == hashlib.md5(body, usedforsecurity=False).hexdigest()


def _read_once(client: S3Client, storage: Storage, key: str, most: int | None) -> tuple[bytes, str] | None:
    from botocore.exceptions import ClientError  # noqa: PLC0415 - see the module's docstring

    try:
        answer = client.get_object(Bucket=storage.bucket, Key=key)
        return answer["Body"].read(most), answer["ETag"]
    except ClientError as error:
        # A bucket that is gone answers 404, too, and that is another fault.
        if status_of(error) == 404 and error.response.get("Error", {}).get("Code") in ("NoSuchKey", "404"):
            return None
        raise


def write_object_if(client: S3Client, storage: Storage, key: str, body: bytes, etag: str | None) -> str | None:
    """Write ``key`` if it still has ``etag`` (None: if it does not exist); return the new ETag, None if refused."""
    from botocore.exceptions import ClientError  # noqa: PLC0415 - see the module's docstring

    try:
        if etag is None:
            answer = client.put_object(Bucket=storage.bucket, Key=key, Body=body, IfNoneMatch="*")
        else:
            answer = client.put_object(Bucket=storage.bucket, Key=key, Body=body, IfMatch=etag)
    except ClientError as error:
        if status_of(error) in (409, 412):
            return None
        raise
    return answer["ETag"]


def status_of(error: Any) -> int:
    """Return the HTTP status of a botocore ClientError, or 0."""
    return int(error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def code_of(error: Exception) -> str:
    """Return the error code of a store's answer, empty if the error is no such answer."""
    from botocore.exceptions import ClientError  # noqa: PLC0415 - see the module's docstring

    return str(error.response.get("Error", {}).get("Code", "")) if isinstance(error, ClientError) else ""


def is_of_object(error: Exception) -> bool:
    """Return whether a store does not give out this one object, whoever asks for it however often."""
    return code_of(error) in ARCHIVED_OR_ENCRYPTED_CODES


def is_of_key(error: Exception) -> bool:
    """Return whether a store refuses to write under this one key, as some do with a long one, or one below another."""
    code, known = code_of(error), (*REJECTED_CODES, *EXPIRED_CODES, *THROTTLING_CODES, *REGION_CODES)
    return bool(code) and status_of(error) in (400, 405, 414) and code not in (*known, "RequestTimeout")


def fault_of(error: Exception, storage: Storage, secret_name: str) -> Fault | None:
    """Return what ``error``, raised by boto3, means; None if it is not the storage's fault.

    The message says what is wrong; what to do about it is said by the operator, by the reason.
    """
    from botocore import exceptions as known  # noqa: PLC0415 - see the module's docstring

    secret = f"Secret {secret_name!r} (spec.storage.credentialsSecretRef.name)" if secret_name else "the pod itself"
    place = f"bucket {storage.bucket!r} (spec.storage.uri)"
    if isinstance(error, known.ClientError):
        return _fault_of_answer(error, storage, place, secret)
    if isinstance(error, (known.NoCredentialsError, known.PartialCredentialsError)):
        return Fault(
            Reason.CREDENTIALS_MISSING,
            messages.no_credentials(place),
        )
    where = storage.endpoint or f"S3 in region {storage.region}"
    field = "spec.storage.endpoint" if storage.endpoint else "spec.storage.region"
    if isinstance(error, EndpointError):
        return Fault(Reason.STORAGE_UNAVAILABLE, messages.not_reached(where, field, error))
    # A request that botocore does not even send is ours, and so is any other value that cannot be read.
    if isinstance(error, known.BotoCoreError) and not isinstance(error, known.ParamValidationError):
        return Fault(Reason.STORAGE_UNAVAILABLE, messages.no_answer(where, field, type(error).__name__, error))
    return None


def _fault_of_answer(error: Any, storage: Storage, place: str, secret: str) -> Fault:
    code, status = code_of(error), status_of(error)
    said = f"{code} (HTTP {status})" if code and code != str(status) else f"HTTP {status}"
    if code in MISSING_BUCKET_CODES:
        return Fault(Reason.BUCKET_NOT_FOUND, messages.no_bucket(place, said))
    if code in REGION_CODES or status == 301:
        return Fault(
            Reason.STORAGE_UNAVAILABLE,
            messages.other_region(place, storage.region, said),
        )
    if code in EXPIRED_CODES or code in REJECTED_CODES or status in (401, 403):
        expired = code in EXPIRED_CODES
        what = "no longer accepts the session token" if expired else "rejects the credentials"
        reason = Reason.CREDENTIALS_EXPIRED if expired else Reason.CREDENTIALS_REJECTED
        return Fault(reason, messages.credentials_refused(place, what, secret, said))
    if code in UNSUITABLE_CODES or status == 501:
        return Fault(
            Reason.STORAGE_UNSUITABLE,
            messages.operation_missing(place, said),
        )
    throttles = code in THROTTLING_CODES or status == 429
    return Fault(
        Reason.STORAGE_THROTTLED if throttles else Reason.STORAGE_UNAVAILABLE, messages.store_answers(place, said)
    )
