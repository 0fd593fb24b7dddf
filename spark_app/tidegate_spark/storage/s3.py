"""The object store's port on S3, through boto3. Does I/O.

Transient failures are retried with back-off, so that one of ten thousand requests does not fail a snapshot.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tidegate_spark.contract.protocol import Storage, store_identity
from tidegate_spark.process.faults.store_codes import THROTTLING_CODES
from tidegate_spark.storage.s3_client import Credentials, connect, read_object, status_of, write_object_if
from tidegate_spark.storage.store import (
    PART_BYTES,
    Digest,
    Digester,
    Entry,
    Found,
    MismatchError,
    NotDeletedError,
    Place,
    VanishedError,
    agree,
)

if TYPE_CHECKING:
    from boto3.s3.transfer import TransferConfig
    from mypy_boto3_s3 import S3Client
    from mypy_boto3_s3.type_defs import CopySourceTypeDef, DeleteTypeDef, HeadObjectOutputTypeDef

T = TypeVar("T")
ATTEMPTS = 6
LONGEST_PAUSE_SECONDS = 10.0
PAGE = 1000
"""Keys per request to delete; the service's own limit."""
MIB = 1 << 20
PARTS_FROM_BYTES = 128 * MIB
"""From this size on an object is copied in parts, several at a time; it is far below the 5 GiB of one copy."""
PARTS_AT_ONCE = 4
TIMEOUT_SECONDS = 60.0
"""For an answer: a store on plain disks takes its time to copy a large object."""

_MOMENTARY_STATUS = frozenset({429, 500, 502, 503, 504})
_MOMENTARY_CODES = THROTTLING_CODES | {"InternalError", "RequestTimeout", "RequestTimeTooSkewed", "ServiceUnavailable"}
_MISSING_CODES = frozenset({"NoSuchKey", "404", "NotFound"})
_CHECKSUMS = ("CRC64NVME", "CRC32C", "CRC32", "SHA256", "SHA1")


def reach(storage: Storage, credentials: Credentials | None, copiers: int, *, apart: bool = False) -> S3Store:
    """Return the bucket of ``storage``, with connections for so many copiers.

    ``apart``: it counts as a store of its own, between which and others nothing is copied in the store.

    Raises:
        EndpointError: if the endpoint is not a URL.
    """
    connections = copiers * (1 + PARTS_AT_ONCE)
    client = connect(storage, credentials, TIMEOUT_SECONDS, connections)
    return S3Store(client, storage.bucket, apart=apart)


class S3Store:
    """One bucket."""

    def __init__(
        self,
        client: S3Client,
        bucket: str,
        parts_from: int = PARTS_FROM_BYTES,
        pause: Callable[[float], None] = time.sleep,
        *,
        apart: bool = False,
    ) -> None:
        """Reach ``bucket`` through ``client``.

        Args:
            client: :func:`reach` makes one that fits.
            bucket: the bucket.
            parts_from: the size from which on objects are copied in parts; 5 MiB is the least that S3 takes.
            pause: waits for so many seconds, between two attempts at a request.
            apart: it is reached with credentials of its own, and counts as another store.
        """
        self._apart = apart
        self._client, self._bucket, self._parts_from, self._pause = client, bucket, parts_from, pause
        self._place = Storage(f"s3://{bucket}")

    @property
    def bucket(self) -> str:
        """The bucket's name."""
        return self._bucket

    @property
    def service(self) -> str:
        """The endpoint; each partition of AWS is one, since it copies between its regions."""
        name = store_identity(self._client.meta.endpoint_url, self._client.meta.region_name)
        return f"{name} (reached by itself)" if self._apart else name

    def get(self, key: str, most: int | None = None) -> tuple[bytes, str] | None:
        """Return content and ETag, None if there is no such object; of the content so many bytes, if that is said."""
        found = self._patiently(lambda: read_object(self._client, self._place, key, most))
        return (found[0], _quoted(found[1])) if found is not None else None

    def get_head(self, key: str, size: int) -> bytes | None:
        """Return the first ``size`` bytes of an object, all of a shorter one; None if there is no such object."""
        from botocore.exceptions import ClientError  # noqa: PLC0415 - likewise

        def read() -> bytes:
            answer = self._client.get_object(Bucket=self._bucket, Key=key, Range=f"bytes=0-{size - 1}")
            return answer["Body"].read(size)  # the store may give all of it

        try:
            return self._patiently(read)
        except ClientError as error:
            if status_of(error) == 416:
                return b""  # it is empty, and has no such range
            if _is_missing(error):
                return None
            raise

    def head(self, key: str) -> Found | None:
        """Return size, ETag and checksum, None if there is no such object."""
        return self._head(Place(self._bucket, key))

    def digest(self, key: str) -> Digest | None:
        """Read an object to its end; None if there is no such object.

        Raises:
            MismatchError: it is not what the store's own checksum says.
        """
        from botocore.exceptions import ClientError, FlexibleChecksumError  # noqa: PLC0415 - likewise

        try:
            return self._patiently(lambda: self._digest(key))
        except FlexibleChecksumError as error:
            raise MismatchError(f"{key} is not what the store's checksum says: {error}") from error
        except ClientError as error:
            if _is_missing(error):
                return None
            raise

    def get_file(self, key: str, path: Path) -> int | None:
        """Write an object's content into a file, as it comes; return its size, None if there is no such object."""
        from botocore.exceptions import ClientError  # noqa: PLC0415 - likewise

        def download() -> int:
            body = self._client.get_object(Bucket=self._bucket, Key=key)["Body"]
            with path.open("wb") as file:
                return sum(file.write(piece) for piece in body.iter_chunks(MIB))

        try:
            return self._patiently(download)
        except ClientError as error:
            if _is_missing(error):
                return None
            raise

    def _digest(self, key: str) -> Digest:
        digester = Digester()
        body = self._client.get_object(Bucket=self._bucket, Key=key, ChecksumMode="ENABLED")["Body"]
        for piece in body.iter_chunks(MIB):
            digester.take(piece)
        return digester.digest()

    def list(self, prefix: str) -> Iterator[Entry]:
        """Yield the objects below ``prefix``, without markers of directories."""
        more: dict[str, Any] = {"Bucket": self._bucket, "Prefix": prefix}
        while True:
            page = self._patiently(lambda: self._client.list_objects_v2(**more))
            for item in page.get("Contents", []):
                if not item["Key"].endswith("/"):
                    yield Entry(item["Key"], item["Size"], _quoted(item["ETag"]), item["LastModified"].timestamp())
            if not page.get("IsTruncated"):
                return
            more["ContinuationToken"] = page["NextContinuationToken"]

    def put(self, key: str, body: bytes) -> None:
        """Write an object, whether or not there is one."""
        self._patiently(lambda: self._client.put_object(Bucket=self._bucket, Key=key, Body=body))

    def put_file(self, key: str, path: Path) -> None:
        """Write an object with the content of a file, of whatever size, whether or not there is one."""

        def upload() -> None:
            with path.open("rb") as content:
                self._client.upload_fileobj(content, self._bucket, key, Config=self._in_parts())

        self._patiently(upload)

    def put_if(self, key: str, body: bytes, etag: str | None) -> str | None:
        """Write an object if it still has this ETag (None: if there is none); return the new ETag, None if refused."""
        from botocore.exceptions import ClientError  # noqa: PLC0415 - loaded where it is used, as in storage

        try:
            return self._patiently(lambda: write_object_if(self._client, self._place, key, body, etag))
        except ClientError as error:
            if etag is not None and _is_missing(error):
                return None  # what is gone does not have this ETag
            raise

    def copy(self, source: Place, key: str, size: int, etag: str) -> Found:
        """Copy ``source`` to ``key`` inside the store, if it still has this size and ETag.

        Raises:
            VanishedError: ``source`` is gone or has changed.
            MismatchError: the copy is not what was to be copied.
        """
        from botocore.exceptions import ClientError  # noqa: PLC0415 - likewise

        try:
            if size < self._parts_from:
                found = Found(size, self._patiently(lambda: self._copy_whole(source, key, etag)))
            else:
                found = self._patiently(lambda: self._copy_parts(source, key, etag))
        except ClientError as error:
            if _is_missing(error):
                raise VanishedError(f"{source.key} is gone") from error
            if status_of(error) == 412:
                raise VanishedError(f"{source.key} has changed") from error
            raise
        return found if found.etag == etag else self._compared(source, key, Found(size, etag), found)

    def delete(self, keys: Iterable[str]) -> None:
        """Delete objects; those that are missing are fine.

        Raises:
            NotDeletedError: something is left.
        """
        left = iter(keys)
        while True:
            page = list(islice(left, PAGE))
            if not page:
                return
            self._delete_page(page)

    def _delete_page(self, keys: Sequence[str]) -> None:
        for attempt in range(ATTEMPTS):
            request: DeleteTypeDef = {"Objects": [{"Key": key} for key in keys], "Quiet": True}
            answer = self._patiently(partial(self._client.delete_objects, Bucket=self._bucket, Delete=request))
            errors = [error for error in answer.get("Errors", []) if error.get("Code") not in _MISSING_CODES]
            if not errors:
                return
            # A busy store answers 200, and names each object that it did not get to.
            final = [error for error in errors if error.get("Code") not in _MOMENTARY_CODES or "Key" not in error]
            if final or attempt == ATTEMPTS - 1:
                first = (*final, *errors)[0]
                said = f"{first.get('Code')}: {first.get('Message')}"
                raise NotDeletedError(f"{len(errors)} objects are not deleted; {first.get('Key')}: {said}")
            keys = [error["Key"] for error in errors]
            self._wait(attempt)

    # --- copies ---

    def _copy_whole(self, source: Place, key: str, etag: str) -> str:
        answer = self._client.copy_object(
            Bucket=self._bucket,
            Key=key,
            CopySource={"Bucket": source.bucket, "Key": source.key},
            CopySourceIfMatch=etag,
        )
        return _quoted(answer["CopyObjectResult"]["ETag"])

    def _copy_parts(self, source: Place, key: str, etag: str) -> Found:
        copied_from: CopySourceTypeDef = {"Bucket": source.bucket, "Key": source.key}
        # boto3's own copy in parts looks at the source first and ends what it began if a part fails.
        self._client.copy(
            copied_from, self._bucket, key, ExtraArgs={"CopySourceIfMatch": etag}, Config=self._in_parts()
        )
        found = self.head(key)
        if found is None:
            raise MismatchError(f"{key} was copied and is not there")
        return found

    def _in_parts(self) -> TransferConfig:
        from boto3.s3.transfer import TransferConfig  # noqa: PLC0415 - likewise

        return TransferConfig(
            multipart_threshold=self._parts_from,
            multipart_chunksize=min(PART_BYTES, self._parts_from),
            max_concurrency=PARTS_AT_ONCE,
        )

    def _compared(self, source: Place, key: str, expected: Found, copy: Found) -> Found:
        """Return what the copy is, by size and checksum; an ETag of parts, or of something encrypted, says nothing."""
        original, now = self._head(source), self.head(key)
        if now is None or now.etag != copy.etag:
            raise MismatchError(f"{key} was copied and is another object now")
        if original is not None and original.etag != expected.etag:
            # What was copied, the store was to see to; one that ignores the condition does not.
            raise VanishedError(f"{source.key} has changed")
        expected = original or expected
        if not agree(expected, now):
            raise MismatchError(f"{key} is not what {source.key} is: {now} and {expected}")
        return now

    def _head(self, place: Place) -> Found | None:
        from botocore.exceptions import ClientError  # noqa: PLC0415 - likewise

        def ask() -> HeadObjectOutputTypeDef:
            return self._client.head_object(Bucket=place.bucket, Key=place.key, ChecksumMode="ENABLED")

        try:
            answer = self._patiently(ask)
        except ClientError as error:
            if _is_missing(error):
                return None
            raise
        return _found(dict(answer))

    def _patiently(self, request: Callable[[], T]) -> T:
        for attempt in range(ATTEMPTS):
            try:
                return request()
            except Exception as error:
                if attempt == ATTEMPTS - 1 or not _is_momentary(error):
                    raise
            self._wait(attempt)
        raise AssertionError("the last attempt returns or raises")

    def _wait(self, attempt: int) -> None:
        self._pause(random.uniform(0.5, 1.0) * min(LONGEST_PAUSE_SECONDS, 0.2 * 2**attempt))  # noqa: S311 - no secret


def _quoted(etag: str) -> str:
    """Return an ETag as a header has it: in the bodies of their answers, some stores leave the quotation marks out."""
    return etag if '"' in etag else f'"{etag}"'


def _is_missing(error: Any) -> bool:
    # A bucket that is gone answers 404, too, and that is another fault. To a HEAD there is no code but the status.
    return status_of(error) == 404 and error.response.get("Error", {}).get("Code") in _MISSING_CODES


def _is_momentary(error: Exception) -> bool:
    from botocore import exceptions as known  # noqa: PLC0415 - likewise

    if isinstance(error, known.ClientError):
        return status_of(error) in _MOMENTARY_STATUS or error.response.get("Error", {}).get("Code") in _MOMENTARY_CODES
    # A body that ends early, or whose connection breaks, is a moment's fault as well.
    interrupted = (known.IncompleteReadError, known.ReadTimeoutError, known.ResponseStreamingError)
    return isinstance(error, (known.HTTPClientError, known.ConnectionError, *interrupted))


def _found(answer: dict[str, Any]) -> Found:
    """Return what the answer to a HEAD says."""
    etag = _quoted(str(answer["ETag"]))
    encrypted = "kms" in str(answer.get("ServerSideEncryption", "")) or answer.get("SSECustomerAlgorithm")
    plain = len(etag.strip('"')) == 32 and not encrypted
    return Found(answer["ContentLength"], etag, _checksum(answer), plain)


def _checksum(answer: dict[str, Any]) -> str:
    """Return the checksum of the whole object, empty if there is none."""
    if answer.get("ChecksumType") == "COMPOSITE":
        return ""
    found = ((algorithm, answer.get(f"Checksum{algorithm}")) for algorithm in _CHECKSUMS)
    return next((f"{algorithm.lower()}:{value}" for algorithm, value in found if value and "-" not in value), "")
