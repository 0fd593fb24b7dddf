"""The StreamSnapshot as one value, and its decoding. No I/O."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Any

import msgspec
from msgspec import Struct

from tidegate.api.references import LocalReference
from tidegate.api.spec import DeletionPolicy, Resources
from tidegate.api.status.bounds import within_bounds
from tidegate.api.status.status import Condition
from tidegate.api.streaming_app import Metadata, unreadable_because
from tidegate_spark.contract.protocol import ANNOTATION_APP_UID

SNAPSHOT_KIND = "StreamSnapshot"
SNAPSHOT_PLURAL = "streamsnapshots"


LABEL_SCHEDULED = "tidegate.dev/scheduled"
"""On snapshots of a schedule, which its retention may delete; whoever takes it off keeps the snapshot."""
LABEL_OF_MESSAGE = "tidegate.dev/of-message"
"""On the snapshot that a control message had taken."""
LABEL_AT_DELETION = "tidegate.dev/at-deletion"
"""On the snapshot that is taken when its application is deleted."""
VERIFIED = "Verified"
"""Type of the condition that says whether it was read back, and is whole."""
EXPORTED = "Exported"
"""Type of the condition that says whether its state was written as plain files, as spec.export asks."""
ANNOTATION_SCHEDULED_AT = "tidegate.dev/scheduled-at"
"""The time of the schedule for which it was taken."""
ANNOTATION_RELEASE_HOLDERS = "tidegate.dev/release-holders"
"""On one that is deleted: who holds it, by name, separated by commas, and will not come back for it."""
ANNOTATION_KEEP = "tidegate.dev/retention"
""":class:`Retention` as JSON: what the application's spec says, for when there is no application any more."""


class SnapshotPhase(StrEnum):
    """One word for where a snapshot is."""

    PENDING = "Pending"
    COPYING = "Copying"
    READY = "Ready"
    FAILED = "Failed"
    DELETING = "Deleting"


class ImportStorage(Struct, frozen=True, kw_only=True, rename="camel"):
    """How the storage of an imported snapshot is reached."""

    endpoint: str = ""
    region: str = "us-east-1"
    path_style_access: bool = False
    credentials_secret_ref: LocalReference | None = None


class ExportFormat(StrEnum):
    """What the files of an export are."""

    JSON_LINES = "JSONLines"
    CSV = "CSV"
    PARQUET = "Parquet"


class ExportedState(Struct, frozen=True, kw_only=True, rename="camel"):
    """Some of a snapshot's state; what is left empty takes all in."""

    query: str = ""
    operator: int | None = None
    name: str = ""


class ExportSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    """Which state is to be written as plain files, and with what."""

    nonce: int = 1
    format: ExportFormat = ExportFormat.JSON_LINES
    states: tuple[ExportedState, ...] = ()
    image: str = ""
    cores: int = 1
    resources: Resources = Resources()
    timeout_seconds: int = 3600


class StreamSnapshotSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    """What the user wants: one of ``app_ref``, to have it taken, and ``uri``, to use one that is there."""

    app_ref: LocalReference | None = None
    uri: str = ""
    storage: ImportStorage = ImportStorage()
    service_account_name: str = ""
    verify_nonce: int = 0
    export: ExportSpec | None = None
    deletion_policy: DeletionPolicy = DeletionPolicy.RETAIN


class Retention(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """How long scheduled snapshots stay; ``with_app``: not longer than the application, whose storage goes with it."""

    max_count: int | None = None
    max_age_seconds: int | None = None
    with_app: bool = False


class SnapshotApp(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Whose state it is: an application of the same name that is made later is another one.

    ``name``, with its namespace, is there if it is another cluster's, or may be.
    """

    uid: str
    lineage: int = 0
    name: str = ""


class SnapshotVersion(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Which version of the application's spec wrote the state; ``spec`` is what makes it, as JSON without secrets."""

    spec_hash: str
    spec: str = ""


class SnapshotQuery(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """One streaming query in the snapshot; ``offsets`` are its sources' after ``batch_id``, as Spark writes them."""

    name: str
    batch_id: int
    offsets: str = ""


class SnapshotProgress(Struct, frozen=True, kw_only=True, rename="camel"):
    """Copied so far, of what is to be copied."""

    files: int = 0
    of_files: int = 0
    bytes: int = 0
    of_bytes: int = 0


class SnapshotVerification(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The last time that it was read back; ``nonce`` is what asked for it."""

    nonce: int
    completion_time: datetime
    files: int = 0
    bytes: int = 0


class ExportPhase(StrEnum):
    """How far an export is."""

    RUNNING = "Running"
    COMPLETED = "Completed"
    FAILED = "Failed"


class SnapshotExport(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The last export that was asked for; ``nonce`` is what asked for it."""

    nonce: int
    phase: ExportPhase
    format: str = ""
    uri: str = ""
    digest: str = ""
    tables: int = 0
    rows: int = 0
    bytes: int = 0
    message: str = ""
    start_time: datetime | None = None
    completion_time: datetime | None = None

    @property
    def has_ended(self) -> bool:
        """Whether nothing more comes of it."""
        return self.phase is not ExportPhase.RUNNING


class SnapshotManifest(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """The object that names every file of the snapshot."""

    uri: str = ""
    digest: str = ""


class SnapshotStorage(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Where the files are and how they are reached, for when the application is gone; no secrets.

    ``uri`` is the application's own place, ``<storage.uri>/<namespace>/<app>``, ``cpu_limit`` that of its driver, which
    pods have that reach it, and ``helper_resources`` what its spec raises of theirs.
    """

    uri: str
    endpoint: str = ""
    region: str = "us-east-1"
    path_style_access: bool = False
    credentials_secret_name: str = ""
    service_account_name: str = ""
    cpu_limit: str = ""
    helper_resources: Resources = Resources()


class StreamSnapshotStatus(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """What the operator decided and what came of it.

    ``snapshot_id``, ``app``, ``image``, ``version`` and ``storage`` are written before anything is ordered, the figures
    and ``manifest`` once it is complete. ``batch``, ``size`` and ``new_size`` sum up, for the columns of ``kubectl``.
    """

    phase: SnapshotPhase | None = None
    conditions: tuple[Condition, ...] = ()
    observed_generation: int = 0
    snapshot_id: str = ""
    app: SnapshotApp | None = None
    image: str = ""
    version: SnapshotVersion | None = None
    storage: SnapshotStorage | None = None
    start_time: datetime | None = None
    ready_time: datetime | None = None
    progress: SnapshotProgress | None = None
    queries: tuple[SnapshotQuery, ...] = ()
    batch: int | None = None
    files: int = 0
    bytes: int = 0
    new_bytes: int = 0
    size: str = ""
    new_size: str = ""
    parent: str = ""
    spark_version: str = ""
    manifest: SnapshotManifest | None = None
    verification: SnapshotVerification | None = None
    export: SnapshotExport | None = None

    def condition(self, kind: str) -> Condition | None:
        """Return the condition of this type, None if there is none."""
        return next((condition for condition in self.conditions if condition.type == kind), None)


class StreamSnapshot(Struct, frozen=True, kw_only=True, rename="camel"):
    """One StreamSnapshot as the API server holds it."""

    metadata: Metadata
    spec: StreamSnapshotSpec
    status: StreamSnapshotStatus = StreamSnapshotStatus()

    @property
    def key(self) -> tuple[str, str]:
        """Namespace and name."""
        return self.metadata.namespace, self.metadata.name

    @property
    def app_key(self) -> tuple[str, str]:
        """Namespace and name of the application it is of; an imported one is of none here, and the name is empty."""
        return self.metadata.namespace, self.spec.app_ref.name if self.spec.app_ref is not None else ""

    @property
    def is_final(self) -> bool:
        """Whether it is complete or given up, and nobody deletes it: nothing around it changes it any more."""
        ended = self.status.phase in (SnapshotPhase.READY, SnapshotPhase.FAILED)
        return ended and self.metadata.deletion_timestamp is None


_json = msgspec.json.Decoder(StreamSnapshot)


def decode_snapshot(body: bytes | msgspec.Raw) -> StreamSnapshot:
    """Return the StreamSnapshot that ``body`` holds; unknown fields are ignored, missing ones have their defaults.

    Raises:
        UnreadableAppError: a field is missing or of another type.
    """
    try:
        return _json.decode(body)
    except msgspec.DecodeError as error:
        raise unreadable_because(error) from error


def encode_snapshot_status(status: StreamSnapshotStatus) -> dict[str, Any]:
    """Return the status as the API server stores it, as :func:`tidegate.api.status.status.encode_status` does."""
    encoded: dict[str, Any] = within_bounds("status", msgspec.to_builtins(status))
    return encoded


def owner_uid(snapshot: StreamSnapshot) -> str:
    """Return the uid of the application that it is of, as far as that was recorded; empty if it was not."""
    recorded = snapshot.status.app
    return recorded.uid if recorded is not None else snapshot.metadata.annotations.get(ANNOTATION_APP_UID, "")


def is_ready(snapshot: StreamSnapshot) -> bool:
    """Return whether it is complete, and nobody deletes it."""
    return snapshot.is_final and snapshot.status.phase is SnapshotPhase.READY


def is_scheduled(snapshot: StreamSnapshot) -> bool:
    """Return whether a schedule had it taken, and nobody has made it their own since."""
    return snapshot.metadata.labels.get(LABEL_SCHEDULED) == "true"


def is_at_deletion(snapshot: StreamSnapshot) -> bool:
    """Return whether it is to be taken of an application that is being deleted."""
    return snapshot.metadata.labels.get(LABEL_AT_DELETION) == "true"


def scheduled_at(snapshot: StreamSnapshot) -> float:
    """Return the time of the schedule for which it was taken, 0 if that is not known; seconds since the epoch."""
    try:
        return datetime.fromisoformat(snapshot.metadata.annotations.get(ANNOTATION_SCHEDULED_AT, "")).timestamp()
    except ValueError:
        return 0.0


def retention_of(snapshot: StreamSnapshot) -> Retention:
    """Return how long it stays as a scheduled one; what nobody can read lets nothing go."""
    try:
        return msgspec.json.decode(snapshot.metadata.annotations.get(ANNOTATION_KEEP, "{}"), type=Retention)
    except msgspec.DecodeError:
        return Retention()


def goes_with_storage(snapshot: StreamSnapshot) -> bool:
    """Return whether its resource is deleted after an application whose storage is."""
    return is_scheduled(snapshot) and retention_of(snapshot).with_app


def is_to_be_verified(snapshot: StreamSnapshot) -> bool:
    """Return whether it is complete, and somebody wants it read back who did not when it was last."""
    done = snapshot.status.verification
    asked = snapshot.spec.verify_nonce not in (0, done.nonce if done is not None else 0)
    complete = snapshot.status.phase is SnapshotPhase.READY or is_damaged(snapshot)
    return asked and snapshot.is_final and complete


def is_to_be_exported(snapshot: StreamSnapshot) -> bool:
    """Return whether it is complete, and somebody wants its state as plain files who did not when it last was."""
    asked, known = snapshot.spec.export, snapshot.status.export
    if asked is None or not is_ready(snapshot):
        return False
    return known is None or known.nonce != asked.nonce or not known.has_ended


def is_damaged(snapshot: StreamSnapshot) -> bool:
    """Return whether it was complete and is not whole any more, as far as that was found."""
    verified = snapshot.status.condition(VERIFIED)
    # An earlier operator left it Ready.
    found = verified is not None and verified.status == "False"
    return found or (snapshot.status.phase is SnapshotPhase.FAILED and snapshot.status.ready_time is not None)


def is_imported(snapshot: StreamSnapshot) -> bool:
    """Return whether it was taken elsewhere, and is only used here."""
    return bool(snapshot.spec.uri)


def import_place(uri: str) -> tuple[str, str]:
    """Return where an imported snapshot is, as ``status.storage.uri`` has it, and its id there; pure.

    Args:
        uri: of its manifest, ``s3://bucket/prefix/snapshots/<id>/manifest.json``.
    """
    place, _, name = uri.removesuffix("/manifest.json").rpartition("/snapshots/")
    return place, name


def import_holder(metadata: Metadata) -> str:
    """Return under which name an import holds the snapshot where it is."""
    return f"import-{metadata.uid}"
