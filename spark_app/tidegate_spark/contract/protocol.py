"""The contract between the operator and the runtime. Standard library only, no I/O.

It has everything that both sides exchange: the driver's configuration, the agent's HTTP interface and report, exit
codes and the termination message, labels, mount paths and storage keys. :mod:`tidegate_spark.contract.json_form` reads
and writes its dataclasses.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tidegate_spark.contract.control_protocol import ChannelSettings, ControlReport, ControlSettings
from tidegate_spark.contract.json_form import OpenEnum
from tidegate_spark.contract.json_form import from_json as from_json  # noqa: PLC0414 - said so that importers may take it
from tidegate_spark.contract.json_form import from_order as from_order  # noqa: PLC0414 - likewise
from tidegate_spark.contract.json_form import from_report as from_report  # noqa: PLC0414 - likewise
from tidegate_spark.contract.json_form import to_json as to_json  # noqa: PLC0414 - likewise
from tidegate_spark.contract.json_form import to_order as to_order  # noqa: PLC0414 - likewise
from tidegate_spark.contract.named_offsets import topic_offsets as topic_offsets  # noqa: PLC0414 - likewise
from tidegate_spark.contract.object_paths import APP_FILE as APP_FILE  # noqa: PLC0414 - likewise
from tidegate_spark.contract.object_paths import FENCE_FILE as FENCE_FILE  # noqa: PLC0414 - likewise
from tidegate_spark.contract.object_paths import FIRST_LINEAGE as FIRST_LINEAGE  # noqa: PLC0414 - likewise
from tidegate_spark.contract.object_paths import LINEAGE_PREFIX as LINEAGE_PREFIX  # noqa: PLC0414 - likewise
from tidegate_spark.contract.object_paths import LOG_PREFIX as LOG_PREFIX  # noqa: PLC0414 - likewise
from tidegate_spark.contract.object_paths import UPGRADE_PREFIX as UPGRADE_PREFIX  # noqa: PLC0414 - likewise
from tidegate_spark.contract.object_paths import Storage as Storage  # noqa: PLC0414 - likewise
from tidegate_spark.contract.object_paths import application_uri as application_uri  # noqa: PLC0414 - likewise
from tidegate_spark.contract.object_paths import has_detour as has_detour  # noqa: PLC0414 - likewise
from tidegate_spark.contract.object_paths import store_identity as store_identity  # noqa: PLC0414 - likewise
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.rehearsal_protocol import Rehearsal, RehearsalEnd
from tidegate_spark.contract.repartition_protocol import RepartitionEnd
from tidegate_spark.contract.snapshot_protocol import SnapshotReport

# --- names in the pod ------------------------------------------------------------------------------------------------

CONFIG_VARIABLE = "TIDEGATE_CONFIG"
"""Environment variable of the driver container that holds :class:`DriverConfig` as JSON; of what is too
long for a variable, a part is elsewhere (:mod:`tidegate_spark.contract.configuration_protocol`)."""

EXECUTOR_CONFIG_VARIABLE = "TIDEGATE_EXECUTOR_CONFIG"
"""Environment variable of the executor container that holds :class:`ExecutorConfig` as JSON."""

PROCESS_VARIABLE = "TIDEGATE_PROCESS"
"""Environment variable of the executor container that names the driver process it works for; the driver sets it."""

EXPORT_VARIABLE = "TIDEGATE_EXPORT"
"""Environment variable of the driver's process that names, to the script, the manifest of the export that the
application starts with. The driver sets it."""

LINEAGE_VARIABLE = "TIDEGATE_LINEAGE"
"""Environment variable of the driver's process that shows a script which lineage its batches are of: in another lineage
the same number is another batch. The driver sets it."""

POD_IP_VARIABLE = "TIDEGATE_POD_IP"
POD_UID_VARIABLE = "TIDEGATE_POD_UID"
"""Environment variables of the driver container, filled by the kubelet's downward API."""

LOG_FORMAT_VARIABLE, LOG_FORMAT_JSON = "TIDEGATE_LOG_FORMAT", "json"
"""Environment variable for the form of the runtime's own log lines; anything else than json, or nothing: text."""

SECRET_VARIABLES = "TIDEGATE_SECRET_VARIABLES"  # noqa: S105 - a name, not a secret
"""Environment variable with the names, separated by commas, of those whose values come from Secrets."""

CREDENTIALS_DIRECTORY = "/var/run/tidegate/storage-credentials"
"""Where the storage credentials Secret is mounted (optional: its files may appear later); one file per key."""

ACCESS_KEY, SECRET_KEY, SESSION_TOKEN = "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"
"""Keys of the storage credentials Secret; also the environment variables through which S3A reads them."""

ORIGIN_CREDENTIALS_DIRECTORY = "/var/run/tidegate/origin-credentials"
"""Where the Secret of an imported snapshot is mounted that the application starts from; likewise."""
AGENT_TOKEN_FILE = "/var/run/tidegate/agent/token"  # noqa: S105 - a path, not a token
"""Where the agent's Secret of the launch is mounted: the token that looks at the command port need."""
AGENT_NUMBER_FILE = "/var/run/tidegate/agent/operator"
"""The operator's public number, beside it (:mod:`tidegate_spark.contract.agent_protocol`)."""
SPARK_SECRET_FILE = "/var/run/tidegate/spark/spark-auth"  # noqa: S105 - likewise
"""Where driver and executors find what they show each other on Spark's own ports."""
SPARK_SECRET_SETTINGS = tuple(f"spark.authenticate.secret{whose}.file" for whose in ("", ".driver", ".executor"))
"""Settings that name such a file. Spark refuses to start with one of them anywhere but on Kubernetes."""

RUNTIME_DIRECTORY = "/opt/tidegate-injected"
"""Where the init container copies the runtime for images that do not bring it: ``python/`` and ``jars/``. It is not
/opt/tidegate: the volume would hide the samples that the Spark image has there."""

MOUNTED_MAIN_DIRECTORY = "/var/run/tidegate/mounted-main"
"""Where the ConfigMap's key of spec.application.mainFrom is mounted in what runs the program."""
MAIN_DIRECTORY = "/var/run/tidegate/main"
"""An emptyDir beside it, for the text that the pod began with (:mod:`tidegate_spark.driver.mounted_main`)."""

WORK_DIRECTORY = "/var/lib/tidegate"
"""A writable emptyDir in driver and executors: Spark's local directories, RocksDB, the executor template."""

TERMINATION_LOG = "/dev/termination-log"

STATUS_PORT = 8090
"""Agent, open: GET /healthz, /readyz, /metrics."""

COMMAND_PORT = 8091
"""Agent: inspections for the holder of the token, everything for the operator, which signs; the paths are in
:mod:`tidegate_spark.driver.agent.agent`."""

# --- labels and annotations ------------------------------------------------------------------------------------------

LABEL_APP = "tidegate.dev/app"
LABEL_ROLE = "tidegate.dev/role"
LABEL_EPOCH = "tidegate.dev/epoch"
LABEL_MANAGED_BY = "app.kubernetes.io/managed-by"
MANAGED_BY = "tidegate"
ROLE_DRIVER, ROLE_EXECUTOR, ROLE_PURGE, ROLE_SNAPSHOT = "driver", "executor", "purge", "snapshot"
ROLE_REHEARSAL, ROLE_EXPORT, ROLE_REPARTITION = "rehearsal", "export", "repartition"
ANNOTATION_SPEC_HASH = "tidegate.dev/spec-hash"
LABEL_SNAPSHOT = "tidegate.dev/snapshot"
"""On a snapshot pod: the id of the snapshot that it is for."""
ANNOTATION_APP_UID = "tidegate.dev/app-uid"
FINALIZER = "tidegate.dev/streamingapp"
SNAPSHOT_FINALIZER = "tidegate.dev/streamsnapshot"
OWN_LABELS = "tidegate.dev/"
"""How Tidegate's own labels and annotations begin."""
SPARKS_LABELS = frozenset(
    {
        "spark-app-name",
        "spark-app-selector",
        "spark-exec-id",
        "spark-exec-inactive",
        "spark-exec-resourceprofile-id",
        "spark-role",
        "spark-version",
    }
)
"""By these a driver's Spark finds its executors: with another application's they would be counted there."""


def is_reserved_label(name: str) -> bool:
    """Return whether a label or annotation is one by which pods are distinguished: no spec and no script sets it."""
    return name.startswith(OWN_LABELS) or name in SPARKS_LABELS or name == LABEL_MANAGED_BY


def label_set_by(setting: str) -> str:
    """Return the label or annotation that a setting of Spark gives to pods, empty if it gives none."""
    for role in ("driver", "executor"):
        for kind in ("label", "annotation"):
            prefix = f"spark.kubernetes.{role}.{kind}."
            if setting.startswith(prefix):
                return setting.removeprefix(prefix)
    return ""


# --- configuration, operator -> runtime ------------------------------------------------------------------------------


@dataclass(frozen=True)
class ExecutorSettings:
    """What the driver needs to have executors made; memory in MiB."""

    instances: int
    image: str
    image_pull_policy: str
    service_account: str
    pod_name_prefix: str
    cores: int = 1
    cpu_request: str = "1"
    cpu_limit: str = ""
    heap_mib: int = 512
    overhead_mib: int = 512
    template: dict[str, Any] = field(default_factory=dict)
    """A whole pod; the runtime writes it to the file that spark.kubernetes.executor.podTemplateFile names."""


@dataclass(frozen=True)
class RestartSettings:
    """When failures of the application are too many, and when a query counts as stalled; seconds."""

    max_failures: int = 10
    """Failures within the window that are answered by another start."""
    window_seconds: int = 3600
    healthy_seconds: int = 600
    """A process that ran this long and committed batches clears the failures before it."""
    stall_timeout_seconds: int = 600
    """0: never."""
    failures: tuple[float, ...] = ()
    """When the application failed before, in pods that were lost; seconds since the epoch."""


@dataclass(frozen=True)
class EarlierPin:
    """A pin that a lineage was to start from, of which nobody knows whether it did."""

    snapshot: str
    """Its id."""
    holder: str
    lineage: int
    """What it is of; the next one is what that was to start with."""


@dataclass(frozen=True)
class StartFrom:
    """The snapshot that a lineage starts from."""

    storage: Storage
    """Of the application whose snapshot it is."""
    snapshot: str
    """Its id."""
    holder: str
    """Who needs the snapshot until the lineage is filled; the same for each attempt, and of nobody else."""
    fork: bool = True
    """Its queries get ids of their own: they are another application's, or another history, in which the same number is
    another batch. Some sinks know by id and number whether they have a batch already."""
    lineage: int = 0
    """Of the own storage: the snapshot is the pin of an upgrade that began in this lineage, and is completed from it
    first if it is not complete. 0: the snapshot is complete, or cannot be begun with."""
    image: str = ""
    """Of the version whose state that pin is, for the manifest."""
    credentials_secret: str = ""
    """Name of the Secret that reaches it, mounted at ORIGIN_CREDENTIALS_DIRECTORY; empty: the application's own do."""
    otherwise: tuple[EarlierPin, ...] = ()
    """What is begun with instead if nobody has filled ``lineage``, newest first: each if the one before says so too."""
    offsets: str = ""
    """Of topics, as :func:`topic_offsets` reads them: with these the first batch begins, and not with the snapshot's.
    Empty: all as in the snapshot."""


@dataclass(frozen=True)
class Pin:
    """A snapshot of exactly the batches after which a launch goes on, so that the launch can be undone."""

    snapshot: str
    """Its id; it is held under that name until it is disposed of."""
    image: str = ""
    """Of the previous version, for the manifest."""


OPENS_NOTHING, OPENS_FROM_SNAPSHOT, OPENS_REPARTITIONED, OPENS_EMPTY = "none", "snapshot", "repartition", "empty"
"""Why a launch may be in another lineage than the one that the storage names: it starts with a snapshot, its state was
repartitioned, or it is to start with nothing. With nothing of that it goes on where the application is."""

EXPECTS_NOTHING, EXPECTS_STATE, EXPECTS_BEGINNING = "", "state", "beginning"
"""What a launch has to find in the application's place, or nothing starts there: nothing; files of its lineage, because
it has run in it; or those or what that is to be filled with, because it is a later lineage, or a first one that starts
from a snapshot that the launch did not name."""


PROTOCOL = 1
"""Of what operator and runtime say to each other: one more with each change that the other side has to know of."""


def works_with(other: int) -> bool:
    """Return whether a side that speaks :data:`PROTOCOL` works with one that speaks another: the one before or after.

    Args:
        other: its number; 0 if it sends none, because it is from before there were numbers.
    """
    return abs(other - PROTOCOL) <= 1


@dataclass(frozen=True)
class DriverConfig:
    """Everything one launch of a driver needs, secrets excepted."""

    app: str
    namespace: str
    uid: str
    epoch: int
    lineage: int
    pod_name: str
    main: str
    storage: Storage
    executor: ExecutorSettings
    driver_heap_mib: int = 1024
    args: tuple[str, ...] = ()
    py_files: tuple[str, ...] = ()
    spark_conf: dict[str, str] = field(default_factory=dict)
    state_partitions: int = 4
    min_batches_to_retain: int = 100
    stop_grace_seconds: int = 120
    """From SIGTERM until the kubelet's SIGKILL; the runtime uses a little less for the batch and the rest for logs."""
    credentials_secret: str = ""
    """The Secret's name, for messages only; its content is in :data:`CREDENTIALS_DIRECTORY`."""
    injected: bool = True
    """True if the runtime came through the init container; its jars are then put on the class path."""
    restart: RestartSettings = field(default_factory=RestartSettings)
    start_from: StartFrom | None = None
    """Fill ``lineage`` from this before its first batch; nothing is done once it was filled."""
    export: str = ""
    """Address of the manifest of the export that the script starts from; empty: of none."""
    apart: bool = False
    """It began with another application's snapshot and must not write where that writes."""
    program: str = ""
    """Equal for applications that run the same program with the same arguments and settings; empty: not known."""
    pin: Pin | None = None
    """Note which batches ``lineage`` ends with before the first new one, and take this snapshot of them meanwhile."""
    rehearsal: Rehearsal | None = None
    """Rehearse, in ``storage`` alone, which is within the application's; what queries put out goes nowhere."""
    channel: ChannelSettings | None = None
    """A topic, a queue or an inbox from which control messages come, too; a rehearsal reads none."""
    protocol: int = 0
    """The operator's."""
    control: ControlSettings = field(default_factory=ControlSettings)
    """How control messages are carried out."""
    opening: str = ""
    """One of the words from :data:`OPENS_NOTHING` on; empty: the operator is from before there were any."""
    adopt: bool = False
    """Take over what an earlier application of another uid left in ``storage``."""
    adopt_lineage: int = 0
    """The lineage to go on with where neither ``app.json`` nor ``fence.json`` says which it was; 0: none is named."""
    expects: str = EXPECTS_NOTHING
    """One of the words from :data:`EXPECTS_NOTHING` on."""
    expects_batches: dict[str, int] = field(default_factory=dict)
    """The newest batch of each query in ``lineage`` that the operator knows to be committed, if it expects state."""
    expects_left: dict[str, int] = field(default_factory=dict)
    """The same of the lineage that a rollback leaves, from whose end its own starts."""
    expects_otherwise: tuple[dict[str, int], ...] = ()
    """The same of each lineage of ``start_from.otherwise``, in their order; none where no batch is known."""
    follows_epoch: int = 0
    """Of a lineage that a rollback opens, the newest launch that the operator knew of then; 0: it does not say. Where
    the storage knows of a later one, nothing is rolled back: what that one ran on may have been stable for long."""
    agent_secret: str = ""
    """Name of the Secret from which the agent's files come; its orders are signed. Empty: by an earlier operator,
    whose orders come with the token."""
    spec_hash: str = ""
    """Of the version that is launched, for the operator, which must not go by what is written on a pod; empty: by an
    earlier operator."""


@dataclass(frozen=True)
class ExecutorConfig:
    """What the wrapper around an executor needs to put its last log lines into storage."""

    app: str
    epoch: int
    storage: Storage


# --- report, runtime -> operator -------------------------------------------------------------------------------------


DEPENDENCY_REASONS = frozenset(
    {
        Reason.BUCKET_NOT_FOUND,
        Reason.CREDENTIALS_MISSING,
        Reason.CREDENTIALS_REJECTED,
        Reason.CREDENTIALS_EXPIRED,
        Reason.STORAGE_UNAVAILABLE,
        Reason.STORAGE_THROTTLED,
        Reason.BROKER_UNAVAILABLE,
        Reason.DISK_FULL,
    }
)
"""Faults outside the application: waited for and retried for ever, and not the application's failures."""


class DriverState(OpenEnum):
    """What the driver process is doing."""

    STARTING = "Starting"
    WAITING = "Waiting"
    RUNNING = "Running"
    STOPPING = "Stopping"
    ENDED = "Ended"
    UNKNOWN = "Unknown"
    """Any state of a newer runtime that is not known here."""


@dataclass(frozen=True)
class Fault:
    """Something that keeps the driver from running, for a person: what it is, and what to do."""

    reason: Reason
    message: str


@dataclass(frozen=True)
class QueryReport:
    """One streaming query; times in seconds since the epoch, rates in rows per second, sizes in bytes."""

    name: str
    batch_id: int = -1
    """The last *committed* batch; -1 before the first."""
    active: bool = True
    input_rows_per_second: float = 0.0
    processed_rows_per_second: float = 0.0
    input_rows_total: int = 0
    batch_duration_ms: int = 0
    state_rows: int = 0
    state_bytes: int = 0
    last_commit_time: float = 0.0
    lag_rows: int = -1
    """Rows at the sources that are not processed yet; -1 if the sources do not report them."""
    committed: int = 0
    """How many batches this very process has committed."""
    failed: bool = False
    """Its last run ended with an exception, and it was not started again. An earlier agent does not report it."""
    busy_ms_total: int = 0
    """Duration of all batches that this very process has committed."""
    source_partitions: int = -1
    """Of its sources that count rows; -1 if there are others that may have any number."""
    state_partitions: int = 0
    """Of its state; 0 without one."""
    continuous: bool = False
    """Its trigger is continuous: epochs are counted as batches, and there are no rows, rates and lag."""
    starts_empty: bool = False
    """Spark cannot continue it: whenever the driver starts, its batches are numbered from 0 again."""
    at_batch: bool = False
    """A batch has begun since the last one that was reported, so rates of zero do not say that there is nothing to do.

    An earlier agent does not report it.
    """
    real_time: bool = False
    """Its trigger is that of real-time mode: its tasks hold their cores as long as that says, with or without input.

    An earlier agent does not report it.
    """


@dataclass(frozen=True)
class Notice:
    """Something the user should know once; becomes a Kubernetes Event. ``sequence`` grows within an epoch."""

    sequence: int
    reason: str
    message: str
    warning: bool = False


MOST_NOTICES = 100
"""Of one driver process: an application that repeats itself must not grow the report without bound."""


@dataclass(frozen=True)
class AgentReport:
    """Answer to GET /v1/progress."""

    app: str
    uid: str
    epoch: int
    state: DriverState
    fault: Fault | None = None
    queries: tuple[QueryReport, ...] = ()
    executors_wanted: int = 0
    executors_running: int = 0
    notices: tuple[Notice, ...] = ()
    ready: bool = False
    """As /readyz says: each of its queries has finished a trigger."""
    failures: tuple[float, ...] = ()
    """When the application failed within the window; seconds since the epoch."""
    snapshots: tuple[SnapshotReport, ...] = ()
    """Orders that this process knows, the oldest first; finished ones are left out after a while."""
    control: ControlReport = ControlReport()
    task_seconds: float = -1.0
    """Duration of all tasks that had ended when a batch was committed last, since this process began; negative: it is
    not known."""
    executors_idle: int = -1
    """Executors that have not ended a task for a minute; -1: it is not known."""
    executors_leaving: int = 0
    """Executors beside those running that get no more tasks, and go when theirs have ended."""
    executors_short_since: float = 0.0
    """Since when fewer executors run than are wanted now, in seconds since the epoch; 0: there are enough."""
    executors_leaving_since: float = 0.0
    """Since when the one has been on its way out that was released first, in seconds since the epoch; 0: none is."""
    executor_leaving_longest: str = ""
    """Its id, with which its pod's name ends."""
    executors_ended: int = 0
    """Executors of this process that are gone though nobody asked for it, whatever the cause."""
    executors_held_until: float = 0.0
    """Until when no others are started in their place, in seconds since the epoch; 0: they are started."""
    protocol: int = 0
    """The runtime's."""
    lineage: int = 0
    """In which its queries run; 0: an earlier runtime does not report it, or this one has not taken the storage yet."""


@dataclass(frozen=True)
class ExecutorTarget:
    """Body of POST /v1/executors."""

    instances: int


# --- the end of a driver, runtime -> kubelet -> operator -------------------------------------------------------------


EXIT_OK = 0
EXIT_APPLICATION = 1
EXIT_DEPENDENCY = 75
"""EX_TEMPFAIL of sysexits.h: a fault of storage or broker; restarted, and not counted as the application's failure."""
EXIT_STOPPED = 143
"""128 + SIGTERM, after a boundary stop: the kubelet restarts it unless the pod is going away."""

EXIT_CODES: dict[Reason, int] = {
    Reason.COMPLETED: EXIT_OK,
    Reason.STOPPED: EXIT_STOPPED,
    Reason.APPLICATION_FAILED: EXIT_APPLICATION,
    Reason.MAIN_NOT_FOUND: EXIT_APPLICATION,
    Reason.QUERY_REFUSED: EXIT_OK,
    Reason.STATE_SCHEMA: EXIT_OK,
    Reason.SCRIPT_UNSUPPORTED: EXIT_OK,
    Reason.BUCKET_NOT_FOUND: EXIT_DEPENDENCY,
    Reason.CREDENTIALS_MISSING: EXIT_DEPENDENCY,
    Reason.CREDENTIALS_REJECTED: EXIT_DEPENDENCY,
    Reason.CREDENTIALS_EXPIRED: EXIT_DEPENDENCY,
    Reason.STORAGE_UNAVAILABLE: EXIT_DEPENDENCY,
    Reason.STORAGE_THROTTLED: EXIT_DEPENDENCY,
    Reason.DISK_FULL: EXIT_DEPENDENCY,
    Reason.CHECKPOINT_FILE_MISSING: EXIT_APPLICATION,
    Reason.SOURCE_DATA_LOST: EXIT_APPLICATION,
    Reason.STORAGE_UNSUITABLE: EXIT_OK,
    Reason.STORAGE_OWNED: EXIT_OK,
    Reason.NEWER_FORMAT: EXIT_OK,
    Reason.CLAIM_DAMAGED: EXIT_OK,
    Reason.NOTES_DAMAGED: EXIT_OK,
    Reason.NOTHING_TO_ADOPT: EXIT_OK,
    Reason.STORAGE_EMPTY: EXIT_OK,
    Reason.STORAGE_OLDER: EXIT_OK,
    Reason.LINEAGE_NOT_EMPTY: EXIT_OK,
    Reason.PROTOCOL_MISMATCH: EXIT_OK,
    Reason.CONNECTOR_MISSING: EXIT_OK,
    Reason.BROKER_UNAVAILABLE: EXIT_DEPENDENCY,
    Reason.DRIVER_CRASHED: EXIT_APPLICATION,
    Reason.STALLED: EXIT_APPLICATION,
    Reason.FENCED: EXIT_OK,
    Reason.CONFIGURATION_CHANGED: EXIT_OK,
    Reason.SNAPSHOT_UNUSABLE: EXIT_OK,
    Reason.STATE_MISSING: EXIT_OK,
    Reason.RESTART_BUDGET_EXHAUSTED: EXIT_OK,
}
"""The one table of ends. 0 means: the kubelet must not start it again (restartPolicy OnFailure); the reason in the
termination message says whether that is success or refusal."""

TERMINATION_MESSAGE_LIMIT = 4000
"""Bytes; the kubelet cuts termination messages at 4,096."""


@dataclass(frozen=True)
class Worked:
    """What a process has shown at one moment: each query that did not wait for input had committed so many batches."""

    batches: int
    since: float
    """When the process began; times in seconds since the epoch."""
    until: float
    """When one of those queries had committed last."""


MOST_WORKED = 4
"""Of one termination message."""


@dataclass(frozen=True)
class Termination:
    """The termination message."""

    reason: Reason
    message: str
    epoch: int
    exception: str = ""
    """Class of the exception that ended the application, as a person would look it up."""
    batches: dict[str, int] = field(default_factory=dict)
    """Last committed batch of each query."""
    boundary: bool = True
    """False if the driver ended inside a batch; that batch is run again by the next start."""
    failures: tuple[float, ...] = ()
    """When the application failed within the window, this time included; seconds since the epoch."""
    committed: int = -1
    """How many batches this process committed; -1 if it is not known that it committed none."""
    adopt_epoch: int = 0
    adopt_lineage: int = 0
    """What the storage knows of this application, if that differs from this driver's configuration."""
    adopt_opening: bool = False
    """That lineage did not start from what this driver was to start it from."""
    adopt_found: bool = False
    """The storage has a claim or a fence that says so; an earlier runtime never reports it."""
    adopted_from: str = ""
    """Uid of the application that the storage was taken over from just now."""
    given_up: bool = False
    """It did not wait for such a batch until the grace period ran out, for no executor was left."""
    batch_failed: bool = False
    """Every such batch has failed, or the application ended the driver in it: the grace period had no part in that."""
    rehearsal: RehearsalEnd | None = None
    """Of a rehearsal that had begun."""
    repartition: RepartitionEnd | None = None
    """Of a pod that repartitions state."""
    worked: tuple[Worked, ...] = ()
    """What the processes of its pod have shown, the most batches first; an earlier runtime does not report it."""
