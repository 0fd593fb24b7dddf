"""Takes the fence for this process and notices its loss. Does I/O through boto3.

The JVM checks the fence before each batch (``jvm/``, ``Fence.java``). The thread here checks after each committed batch
and now and then otherwise, for idle queries and for those whose checkpoint our class does not write.
"""

from __future__ import annotations

import logging
import threading
import time
import uuid
from collections.abc import Callable
from typing import TYPE_CHECKING

from tidegate_spark.contract.json_form import DamagedFormError, NewerFormatError
from tidegate_spark.contract.protocol import FENCE_FILE, DriverConfig, Fault, Storage
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.process.outcome import Outcome
from tidegate_spark.storage import s3_client
from tidegate_spark.storage.claim import claim_messages as messages
from tidegate_spark.storage.claim import fence
from tidegate_spark.storage.claim.claimed import Known
from tidegate_spark.storage.claim.claiming import BehindError, faults_of, refusal_of
from tidegate_spark.storage.claim.fence import FenceContendedError, Fenced, Held, Holder
from tidegate_spark.storage.s3_client import Credentials, FaultError

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

IDLE_SECONDS = 10.0
"""Between two looks while no batch is committed: a driver that commits nothing does no harm."""

POLL_SECONDS = 0.2
"""Between two looks at the count of commits, which is in memory."""

log = logging.getLogger("tidegate")


class FenceObject:
    """``fence.json`` in an S3 bucket."""

    def __init__(self, client: S3Client, place: Storage) -> None:
        """Reach it through ``client``, below the application's prefix."""
        self._client, self._place, self._key = client, place, place.key(FENCE_FILE)

    def get(self) -> tuple[bytes, str] | None:
        """Return content and ETag, None if there is no such object."""
        return s3_client.read_object(self._client, self._place, self._key)

    def put_if(self, body: bytes, etag: str | None) -> str | None:
        """Write it if it still has this ETag (None: if there is none); return the new ETag, None if refused."""
        return s3_client.write_object_if(self._client, self._place, self._key, body, etag)


def holder_of(config: DriverConfig, pod_uid: str) -> Holder:
    """Return this process as a holder of the fence."""
    return Holder(config.uid, config.epoch, config.lineage, pod_uid, uuid.uuid4().hex)


def take(config: DriverConfig, credentials: Credentials | None, me: Holder) -> Held:
    """Take the fence for this process. Try once.

    Raises:
        BehindError: a later epoch of this application has it, or one that ran in a later lineage.
        FaultError: the storage does not answer as it should, a newer Tidegate wrote the fence, or it is damaged.
    """
    with faults_of(config):
        port = FenceObject(s3_client.connect(config.storage, credentials), config.storage)
        try:
            taken = fence.take(port, me)
        except (NewerFormatError, DamagedFormError) as error:
            raise refusal_of(config.storage, FENCE_FILE, error) from error
        except FenceContendedError as error:
            raise FaultError(
                Fault(Reason.STORAGE_UNAVAILABLE, f"{config.storage.uri}/{FENCE_FILE}: {error}")
            ) from error
    if isinstance(taken, Fenced):
        raise BehindError(f"{config.storage.uri}/{FENCE_FILE}", config, Known(taken.epoch, taken.lineage))
    return taken


def lost_while_running(found: Fenced, config: DriverConfig) -> Outcome:
    """Return the end of a driver that another one took the fence from."""
    message = messages.fence_lost(found.epoch, config.storage.uri, FENCE_FILE, config.epoch)
    return Outcome(Reason.FENCED, message)


class FenceMonitor:
    """Looks after the fence while queries run."""

    def __init__(
        self,
        connect: Callable[[], FenceObject],
        held: Held,
        commits: Callable[[], int],
        on_loss: Callable[[Fenced], None],
        idle_seconds: float = IDLE_SECONDS,
    ) -> None:
        """Prepare; nothing is looked at yet.

        Args:
            connect: makes a client with the credentials of the moment.
            held: what :func:`take` returned.
            commits: how many batches were committed so far.
            on_loss: called once, with the new holder of the fence.
            idle_seconds: between two looks while nothing is committed.
        """
        self._connect, self._held, self._commits, self._on_loss = connect, held, commits, on_loss
        self._idle = idle_seconds
        self._answers = True

    @property
    def storage_answers(self) -> bool:
        """Whether the last look found the storage there."""
        return self._answers

    def check(self) -> Fenced | None:
        """Return the other holder of the fence now, None if it is ours or the storage does not say."""
        try:
            return fence.check(self._connect(), self._held)
        except Exception as error:  # whatever boto3 raises: whose the fence is, is not known now
            log.warning("the fence cannot be looked at: %s", error)
            return None

    def is_held(self) -> bool:
        """Return whether the fence is ours; raises what boto3 raises if the storage does not say."""
        return fence.check(self._connect(), self._held) is None

    def start(self) -> None:
        """Begin to look."""
        threading.Thread(target=self._run, name="fence", daemon=True).start()

    def _run(self) -> None:
        port: FenceObject | None = None
        while True:
            self._await_commit()
            try:
                port = port or self._connect()
                found = fence.check(port, self._held)
            except Exception as error:  # whatever boto3 raises: whose the fence is, is not known now
                if self._answers:
                    log.warning("the fence cannot be looked at: %s", error)
                # The credentials may have been renewed.
                port, self._answers = None, False
                continue
            self._answers = True
            if found is not None:
                self._on_loss(found)
                return

    def _await_commit(self) -> None:
        before, until = self._commits(), time.monotonic() + self._idle
        while time.monotonic() < until:
            time.sleep(POLL_SECONDS)
            if self._commits() != before:
                return
