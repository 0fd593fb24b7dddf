"""Builds the configuration of a launch, which the runtime reads. No I/O."""

from __future__ import annotations

import json

from tidegate.api.spec_hash import program_hash, recorded_values, spec_hash
from tidegate.api.streaming_app import (
    ForkOutputs,
    RepartitionResult,
    SnapshotBatch,
    StableSpec,
    StartedFrom,
    StreamingApp,
    UpgradeMode,
    UpgradePhase,
)
from tidegate.api.values.errors import SpecError
from tidegate.pods.builders.control_channel import channel_settings, control_settings
from tidegate.pods.builders.executor import build_executor_template
from tidegate.pods.builders.mounted_main import main_reference
from tidegate.pods.builders.pod_parts import is_injected
from tidegate.pods.records.names import EXECUTOR_CONTAINER, driver_pod_name, executor_prefix
from tidegate.pods.records.platform import Platform
from tidegate.pods.reserved.accounts import service_account
from tidegate.pods.reserved.exec_limits import refuse_long_settings
from tidegate.pods.reserved.reserved_labels import refuse_in_settings
from tidegate.pods.spark.memory import split_memory
from tidegate.pods.spark.settings import spark_settings
from tidegate_spark.contract.protocol import (
    EXPECTS_BEGINNING,
    EXPECTS_NOTHING,
    EXPECTS_STATE,
    FIRST_LINEAGE,
    OPENS_EMPTY,
    OPENS_FROM_SNAPSHOT,
    OPENS_NOTHING,
    OPENS_REPARTITIONED,
    PROTOCOL,
    DriverConfig,
    EarlierPin,
    ExecutorSettings,
    Pin,
    RestartSettings,
    StartFrom,
    Storage,
    application_uri,
    topic_offsets,
)

_LAUNCHED = frozenset({UpgradePhase.GATE, UpgradePhase.COMPLETED, UpgradePhase.FAILED})
BATCHES_BEYOND = 20
"""So many batches more than the gate needs are retained while it is open, if the spec says fewer."""


def app_storage(app: StreamingApp) -> Storage:
    """Return the application's own place in its bucket."""
    spec = app.spec.storage
    return Storage(
        uri=application_uri(spec.uri, app.metadata.namespace, app.metadata.name),
        endpoint=spec.endpoint,
        region=spec.region,
        path_style_access=spec.path_style_access,
    )


def build_driver_config(
    app: StreamingApp, epoch: int, lineage: int, platform: Platform, failures: tuple[float, ...] = ()
) -> DriverConfig:
    """Return everything one launch needs, secrets excepted; ``failures`` as in :func:`build_driver_pod`.

    Raises:
        SpecError: memory does not fit, the executors' template cannot be merged, or a setting labels pods as another's.
        TooLongError: no JVM can be started with a setting.
    """
    spec = app.spec
    refuse_in_settings(spec.spark_conf)
    refuse_long_settings(spec.spark_conf)
    return DriverConfig(
        app=app.metadata.name,
        namespace=app.metadata.namespace,
        uid=app.metadata.uid,
        epoch=epoch,
        lineage=lineage,
        pod_name=driver_pod_name(app.metadata.name),
        main=main_reference(spec.application),
        storage=app_storage(app),
        executor=_executor_settings(app, epoch, platform),
        driver_heap_mib=split_memory("driver", spec.driver.resources.memory, spec.spark_conf).heap_mib,
        args=spec.application.args,
        py_files=spec.application.py_files,
        spark_conf=spark_settings(spec.spark_conf, EXECUTOR_CONTAINER),
        state_partitions=spec.state.partitions,
        min_batches_to_retain=_batches_to_retain(app, lineage),
        stop_grace_seconds=spec.driver.stop_grace_period_seconds,
        credentials_secret=spec.storage.credentials_secret_ref.name if spec.storage.credentials_secret_ref else "",
        injected=is_injected(app),
        restart=RestartSettings(
            max_failures=spec.restart.max_failures,
            window_seconds=spec.restart.window_seconds,
            healthy_seconds=spec.restart.healthy_seconds,
            stall_timeout_seconds=spec.restart.stall_timeout_seconds,
            failures=failures,
        ),
        start_from=_start_from(app, lineage),
        apart=_is_apart(app),
        program=program_hash(spec),
        pin=_pin(app, lineage),
        export=spec.start_from.export_uri if spec.start_from is not None else "",
        channel=channel_settings(app),
        protocol=PROTOCOL,
        spec_hash=spec_hash(app),
        control=control_settings(app, app_storage(app)),
        opening=_opening(app, lineage),
        expects=_expects(app, lineage),
        expects_batches=_expected_batches(app, lineage),
        expects_left=_batches_left(app, lineage),
        expects_otherwise=_batches_left_before(app, lineage),
        follows_epoch=_followed_launch(app, lineage),
        adopt=spec.start_from is not None and spec.start_from.adopt,
        adopt_lineage=spec.start_from.adopt_lineage if spec.start_from is not None else 0,
    )


def _opening(app: StreamingApp, lineage: int) -> str:
    """Return why the launch may be in another lineage than the storage names: what is recorded of this one."""
    began, upgrade = app.status.start_from, app.status.upgrade
    if began is not None and began.lineage == lineage:
        return OPENS_FROM_SNAPSHOT
    if upgrade is None or upgrade.lineage != lineage:
        return OPENS_NOTHING
    repartition = upgrade.repartition
    if repartition is not None and repartition.lineage == lineage and repartition.result == RepartitionResult.COMPLETED:
        return OPENS_REPARTITIONED
    # A record of one that was refused, or not launched, names the lineage that there was.
    launched = upgrade.phase in _LAUNCHED or (upgrade.phase is UpgradePhase.WITHDRAWN and upgrade.epoch > 0)
    return OPENS_EMPTY if upgrade.mode is UpgradeMode.STATELESS and launched else OPENS_NOTHING


def _expects(app: StreamingApp, lineage: int) -> str:
    """Return what there has to be in the application's place: it never starts empty without a record of that."""
    start, began, opening = app.spec.start_from, app.status.start_from, _opening(app, lineage)
    if _has_run(app, lineage, opening):
        return EXPECTS_STATE
    if lineage > FIRST_LINEAGE:
        return EXPECTS_NOTHING if opening == OPENS_EMPTY else EXPECTS_BEGINNING
    from_snapshot = start is not None and bool(start.snapshot_name)
    return EXPECTS_BEGINNING if from_snapshot and began is None else EXPECTS_NOTHING


def _expected_batches(app: StreamingApp, lineage: int) -> dict[str, int]:
    """Return the newest batch of each query in a lineage that is known to be committed."""
    if app.status.lineage != lineage or _expects(app, lineage) != EXPECTS_STATE:
        return {}
    return app.status.known_batches()


def _batches_left(app: StreamingApp, lineage: int) -> dict[str, int]:
    """Return the newest batch of each query that is known of the lineage that a rollback leaves."""
    began = _rollback_to(app, lineage)
    return _by_query(began.batches) if began is not None else {}


def _batches_left_before(app: StreamingApp, lineage: int) -> tuple[dict[str, int], ...]:
    """Return the same of each lineage whose rollback snapshot is a fallback."""
    began = _rollback_to(app, lineage)
    return tuple(_by_query(earlier.batches) for earlier in began.fallbacks) if began is not None else ()


def _followed_launch(app: StreamingApp, lineage: int) -> int:
    """Return the newest launch that was known when a rollback was to open a lineage, 0 of any other lineage."""
    began = _rollback_to(app, lineage)
    return began.follows_epoch if began is not None else 0


def _rollback_to(app: StreamingApp, lineage: int) -> StartedFrom | None:
    """Return what a lineage starts from that a rollback opens, None of any other."""
    began = app.status.start_from
    return began if began is not None and began.lineage == lineage and began.undone_lineage else None


def _by_query(batches: tuple[SnapshotBatch, ...]) -> dict[str, int]:
    return {query.name: query.batch_id for query in batches}


def _has_run(app: StreamingApp, lineage: int, opening: str) -> bool:
    """Return whether the status says that the application has committed batches in a lineage, be its number lost."""
    status, began = app.status, app.status.start_from
    if status.lineage not in (0, lineage):
        return False
    stable = status.last_stable is not None and status.last_stable.lineage == lineage
    filled = began is not None and began.lineage == lineage and began.has_started
    # Of a lineage that is made of another one the status has a batch before anything is in it.
    own_batch = status.batch is not None and (lineage == FIRST_LINEAGE or _began_empty(app, opening))
    # The status lists those of its own lineage alone: for a repartition's lineage, its driver reported them.
    repartitioned = opening == OPENS_REPARTITIONED and status.lineage == lineage and bool(status.batches)
    return own_batch or stable or filled or repartitioned


def _began_empty(app: StreamingApp, opening: str) -> bool:
    """Return whether the lineage was launched with nothing before, and not only is to be now.

    Where the number of the lineage before it was lost, the batch in the status is that one's.
    """
    upgrade = app.status.upgrade
    return opening == OPENS_EMPTY and upgrade is not None and upgrade.epoch > 0


def _is_apart(app: StreamingApp) -> bool:
    start = app.spec.start_from
    return start is not None and start.snapshot_ref is not None and start.outputs is ForkOutputs.OWN


def _pin(app: StreamingApp, lineage: int) -> Pin | None:
    """Return what a new version has to keep: only if it continues where the previous one ended.

    Also once it is stable, or was given up on, until that is complete: somebody may take it back by hand.
    """
    upgrade = app.status.upgrade
    if upgrade is None or upgrade.rollback_snapshot is None or upgrade.rollback_snapshot.lineage != lineage:
        return None  # the lineage of the pin is nobody's any more, and stays as it is
    settled = upgrade.rollback_snapshot.batches or upgrade.rollback_snapshot.loss
    if upgrade.previous is not None and not settled:
        return Pin(upgrade.rollback_snapshot.id, image=_image_of(upgrade.previous))
    if upgrade.phase is UpgradePhase.GATE or (upgrade.phase is UpgradePhase.FAILED and not settled):
        return Pin(upgrade.rollback_snapshot.id, image=_stable_image(app))
    return None


def _stable_image(app: StreamingApp) -> str:
    return _image_of(app.status.last_stable)


def _image_of(version: StableSpec | None) -> str:
    # One that cannot be read cannot be rolled back to either, and the rest goes on.
    return str(recorded_values(version).get("application.image", "")) if version is not None else ""


def _batches_to_retain(app: StreamingApp, lineage: int) -> int:
    # While the pin is copied Spark leaves state alone, but not its logs, which are read first of all.
    few = app.spec.state.min_batches_to_retain
    return few if _pin(app, lineage) is None else max(few, app.spec.upgrade.stable_batches + BATCHES_BEYOND)


def fork_holder(app: StreamingApp) -> str:
    """Return under which name an application holds the snapshot that it starts from.

    The uid: one of the same name that is made later is another one, and must not release what this one holds.
    """
    return f"fork-{app.metadata.uid}"


def _rollback_holder(pin: str) -> str:
    return f"rollback-{pin}"


def _start_from(app: StreamingApp, lineage: int) -> StartFrom | None:
    began = app.status.start_from
    if began is None or began.lineage != lineage:
        return None
    place = Storage(
        uri=began.uri, endpoint=began.endpoint, region=began.region, path_style_access=began.path_style_access
    )
    if began.undone_lineage:
        return StartFrom(
            place,
            began.id,
            _rollback_holder(began.id),
            lineage=began.undone_lineage,
            image=_stable_image(app),
            otherwise=tuple(EarlierPin(pin.id, _rollback_holder(pin.id), pin.lineage) for pin in began.fallbacks),
            offsets=_compact(began.offsets, "status.startFrom.offsets"),
        )
    fork = began.app_uid != app.metadata.uid
    secret, start = began.credentials_secret_name, app.spec.start_from
    offsets = _compact(start.starting_offsets, "spec.startFrom.startingOffsets") if start is not None else ""
    return StartFrom(place, began.id, fork_holder(app), fork=fork, credentials_secret=secret, offsets=offsets)


def _compact(offsets: str, field: str) -> str:
    # It stands in app.json, whose length has a bound.
    try:
        named = topic_offsets(offsets)
    except ValueError as error:
        raise SpecError(field, str(error)) from error
    return json.dumps(named, separators=(",", ":")) if named else ""


def _executor_settings(app: StreamingApp, epoch: int, platform: Platform) -> ExecutorSettings:
    executor = app.spec.executor
    memory = split_memory("executor", executor.resources.memory, app.spec.spark_conf)
    return ExecutorSettings(
        instances=executor.instances,
        image=app.spec.application.image,
        image_pull_policy=app.spec.application.image_pull_policy,
        service_account=service_account(app),
        pod_name_prefix=executor_prefix(app.metadata.name, epoch),
        cores=executor.cores,
        cpu_request=str(executor.resources.cpu),
        cpu_limit="" if executor.resources.cpu_limit is None else str(executor.resources.cpu_limit),
        heap_mib=memory.heap_mib,
        overhead_mib=memory.overhead_mib,
        template=build_executor_template(app, epoch, app_storage(app), platform),
    )
