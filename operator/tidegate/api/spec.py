"""The spec of a StreamingApp. No I/O.

Defaults are those of the CRD (a test compares them), so an object that was stored before a field existed is read with
that field's default.
"""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from msgspec import Struct, field

from tidegate.api.control_spec import ControlSpec
from tidegate.api.references import KeyReference, LocalReference
from tidegate.api.values.quantity import Quantity

DEFAULT_CPU, DEFAULT_MEMORY = "1", "2Gi"
POD_START_TIMEOUT = 120


class Runtime(StrEnum):
    """Where the runtime library in the pods comes from."""

    INJECTED = "Injected"
    IMAGE = "Image"


class DeletionPolicy(StrEnum):
    """What happens to the files of an application, or of a snapshot, when its resource is deleted."""

    RETAIN = "Retain"
    DELETE = "Delete"


class RestartPolicy(StrEnum):
    """Whether an application that ended is started again."""

    ALWAYS = "Always"
    ON_FAILURE = "OnFailure"
    NEVER = "Never"


class UpgradeMode(StrEnum):
    """What becomes of the state when the version of an application changes."""

    SNAPSHOT = "Snapshot"
    LAST_STATE = "LastState"
    STATELESS = "Stateless"


class RollbackPolicy(StrEnum):
    """What happens to a version that does not pass its gate."""

    ON_FAILURE = "OnFailure"
    NEVER = "Never"


class MainSource(Struct, frozen=True, kw_only=True, rename="camel"):
    """Where a script comes from that is not in the image."""

    config_map_key_ref: KeyReference


class Application(Struct, frozen=True, kw_only=True, rename="camel"):
    """What runs: an image, and a script or module in it, or a script from elsewhere. ``main`` or ``main_from``."""

    image: str
    main: str = ""
    main_from: MainSource | None = None
    image_pull_policy: str = "IfNotPresent"
    image_pull_secrets: tuple[LocalReference, ...] = ()
    runtime: Runtime = Runtime.INJECTED
    args: tuple[str, ...] = ()
    env: tuple[dict[str, Any], ...] = ()
    py_files: tuple[str, ...] = ()


class Resources(Struct, frozen=True, kw_only=True, rename="camel"):
    """What one container gets, as in a container of a pod. Memory is the whole container's, as request and as limit."""

    requests: dict[str, Quantity] = field(default_factory=dict)
    limits: dict[str, Quantity] = field(default_factory=dict)

    @property
    def cpu(self) -> Quantity:
        """Processors that are reserved; as in Kubernetes the limit, if nothing else is said."""
        return self.requests.get("cpu", self.limits.get("cpu", DEFAULT_CPU))

    @property
    def cpu_limit(self) -> Quantity | None:
        """Processors that it may use at most, None if there is no limit."""
        return self.limits.get("cpu")

    @property
    def memory(self) -> Quantity:
        """The whole container's memory."""
        return self.requests.get("memory", self.limits.get("memory", DEFAULT_MEMORY))

    @property
    def complete(self) -> Resources:
        """The same with what is left out: what Kubernetes is given."""
        limits: dict[str, Quantity] = {**self.limits, "memory": self.memory}
        return Resources(requests={**self.requests, "cpu": self.cpu, "memory": self.memory}, limits=limits)

    def limited(self, cpu: Quantity) -> Resources:
        """Return the same with a limit of processors."""
        return Resources(requests=self.requests, limits={**self.limits, "cpu": cpu})


class Helpers(Struct, frozen=True, kw_only=True, rename="camel"):
    """The containers beside driver and executors that have no resources of their own in the spec.

    What is left out of ``resources`` is Tidegate's: there is no default of Kubernetes or of :class:`Resources`.
    """

    resources: Resources = Resources()


class Driver(Struct, frozen=True, kw_only=True, rename="camel"):
    """The driver pod."""

    resources: Resources = Resources()
    stop_grace_period_seconds: int = 120
    pod_template: dict[str, Any] = field(default_factory=dict)


class Executor(Struct, frozen=True, kw_only=True, rename="camel"):
    """The executor pods. ``cores`` is the number of tasks one executor runs at a time."""

    instances: int = 1
    cores: int = 1
    resources: Resources = Resources()
    pod_template: dict[str, Any] = field(default_factory=dict)


class RepartitionSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    """What the pod gets that repartitions state."""

    timeout_seconds: int = 3600
    resources: Resources = Resources()


class State(Struct, frozen=True, kw_only=True, rename="camel"):
    """The keyed state of the application's queries."""

    partitions: int = 4
    min_batches_to_retain: int = 100
    repartition: RepartitionSpec = RepartitionSpec()


class ScratchVolume(Struct, frozen=True, kw_only=True, rename="camel"):
    """A writable volume that lasts as long as its pod."""

    size_limit: Quantity


class Scratch(Struct, frozen=True, kw_only=True, rename="camel"):
    """The writable volumes of every pod: /tmp, with models in it, and Spark's local directories with RocksDB."""

    tmp: ScratchVolume = ScratchVolume(size_limit="10Gi")
    work: ScratchVolume = ScratchVolume(size_limit="50Gi")


class Restart(Struct, frozen=True, kw_only=True, rename="camel"):
    """What happens when the driver ends without being asked to."""

    policy: RestartPolicy = RestartPolicy.ON_FAILURE
    max_failures: int = 10
    window_seconds: int = 3600
    healthy_seconds: int = 600
    stall_timeout_seconds: int = 600


class StorageSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    """Where checkpoints, logs and the application's record live."""

    uri: str
    endpoint: str = ""
    region: str = "us-east-1"
    path_style_access: bool = False
    credentials_secret_ref: LocalReference | None = None
    deletion_policy: DeletionPolicy = DeletionPolicy.RETAIN


class SnapshotRetention(Struct, frozen=True, kw_only=True, rename="camel", omit_defaults=True):
    """Which scheduled snapshots are retained; one beyond any of the limits is deleted. Neither: all are retained."""

    max_count: int | None = None
    max_age_seconds: int | None = None


class SnapshotsSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    """Snapshots that are taken by themselves: by cron or by an interval, and at the end."""

    schedule: str = ""
    time_zone: str = ""
    interval_seconds: int = 0
    suspend: bool = False
    retention: SnapshotRetention = SnapshotRetention(max_count=10)
    verify: bool = False
    final_snapshot: bool = False


class ForkOutputs(StrEnum):
    """Whether an application that starts from another one's snapshot may write where that writes."""

    OWN = "Own"
    TAKE_OVER = "TakeOver"


class ExportedState(Struct, frozen=True, kw_only=True, rename="camel"):
    """State that was exported, by the address of its manifest."""

    uri: str


class StartFromSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    """What the application's state starts with.

    A snapshot, which it goes on from, or an export, by the address of its manifest, which its script asks for. With
    ``adopt`` it goes on with what an earlier application of its name left in its place, whatever that began with.
    """

    snapshot_ref: LocalReference | None = None
    exported_state: ExportedState | None = None
    outputs: ForkOutputs = ForkOutputs.OWN
    adopt: bool = False
    adopt_lineage: int = 0
    starting_offsets: str = ""

    @property
    def export_uri(self) -> str:
        """The address of the export's manifest, empty if there is none."""
        return self.exported_state.uri if self.exported_state is not None else ""

    @property
    def snapshot_name(self) -> str:
        """The snapshot's name, empty if it starts from none."""
        return self.snapshot_ref.name if self.snapshot_ref is not None and not self.adopt else ""


class RehearsalSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    """What another version has to show before the one that runs is stopped, and what its pod for that gets."""

    batches: int = 3
    timeout_seconds: int = 600
    resources: Resources = Resources()


class UpgradeOffsets(Struct, frozen=True, kw_only=True, rename="camel"):
    """Offsets of topics with which the next version starts, with the state that ``lineage`` ends with.

    Of another lineage than the present one they mean nothing: so they are used once.
    """

    lineage: int = 0
    offsets: str = ""


class Upgrade(Struct, frozen=True, kw_only=True, rename="camel"):
    """How another version takes over, and when it is rolled back.

    ``rollback_to`` is the id of the pin in the status: the upgrade that it belongs to is undone.
    """

    mode: UpgradeMode = UpgradeMode.SNAPSHOT
    stable_batches: int = 5
    timeout_seconds: int = 1800
    rollback_policy: RollbackPolicy = RollbackPolicy.ON_FAILURE
    rollback_to: str = ""
    rehearsal: RehearsalSpec | None = None
    starting_offsets: UpgradeOffsets | None = None


class AutoscalingMode(StrEnum):
    """What the autoscaler does."""

    OFF = "Off"
    ADVISE = "Advise"
    ACTIVE = "Active"


class ScaleDown(Struct, frozen=True, kw_only=True, rename="camel"):
    """How executors are taken away; ``max_percent`` of them in one step."""

    interval_seconds: int = 600
    max_percent: int = 50


class ExcludedPeriodSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    """From each time of a schedule on, for so long, nothing is changed."""

    schedule: str
    duration_seconds: int
    time_zone: str = ""


class AutoscalingSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    """The number of executors by itself; the CRD has ``max_executors`` given."""

    max_executors: int = 1
    min_executors: int = 1
    mode: AutoscalingMode = AutoscalingMode.OFF
    target_utilization_percent: int = 70
    catch_up_seconds: int = 600
    metrics_window_seconds: int = 60
    stabilization_window_seconds: int = 15
    scale_down: ScaleDown = ScaleDown()
    excluded_periods: tuple[ExcludedPeriodSpec, ...] = ()

    @property
    def is_on(self) -> bool:
        """Whether the autoscaler looks at the application, be it to advise or to act."""
        return self.mode is not AutoscalingMode.OFF


class StreamingAppSpec(Struct, frozen=True, kw_only=True, rename="camel"):
    """What the user wants."""

    application: Application
    storage: StorageSpec
    spark_conf: dict[str, str] = field(default_factory=dict)
    service_account_name: str = ""
    pod_template: dict[str, Any] = field(default_factory=dict)
    pod_start_timeout_seconds: int = POD_START_TIMEOUT
    helpers: Helpers = Helpers()
    driver: Driver = Driver()
    executor: Executor = Executor()
    scratch: Scratch = Scratch()
    state: State = State()
    restart: Restart = Restart()
    upgrade: Upgrade = Upgrade()
    restart_nonce: int = 0
    suspend: bool = False
    start_from: StartFromSpec | None = None
    snapshots: SnapshotsSpec | None = None
    control: ControlSpec = ControlSpec()
    autoscaling: AutoscalingSpec | None = None
