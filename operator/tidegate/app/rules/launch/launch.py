"""Rules for an application without a driver pod: launch it, or report why not. No I/O.

The order of a first launch is access, Secrets, finalizer, epoch in status, pod: the finalizer says that there may have
been a launch, and one that is refused access or Secrets is none. The next observation continues a launch that was
interrupted; a recorded epoch that was never used costs nothing.
"""

from __future__ import annotations

from typing import Any

import msgspec

from tidegate.api.lost_status import may_be_lost
from tidegate.api.status.stops import stop_was_asked_for
from tidegate.api.streaming_app import Phase, RestartPolicy, StreamingApp, StreamingAppStatus, UpgradePhase
from tidegate.api.values.errors import SpecError, TooLongError
from tidegate.api.values.times import growing_pause
from tidegate.app.actions import (
    Action,
    ConfirmDriverGone,
    CreateDriver,
    DeleteLaunchSecrets,
    EnsureLaunchSecrets,
    ProvideConfiguration,
)
from tidegate.app.builders.configuration import ConfiguredPod
from tidegate.app.builders.driver import build_driver
from tidegate.app.observation import Observation, lacks_access
from tidegate.app.rules import messages
from tidegate.app.rules.origin import lineage_to_launch, with_starting_point
from tidegate.app.rules.pods.executors import target_executors
from tidegate.app.rules.verdict import Verdict
from tidegate.cache.process_state import Refusal
from tidegate.engine.rules.actions import AddFinalizer, EnsureAccess
from tidegate.engine.rules.health import Health
from tidegate.engine.rules.pauses import LONGEST_REFUSED_PAUSE, refused_for, time_left
from tidegate.pods.admission.admission_error import complaint_of, field_behind
from tidegate.pods.builders.driver_config import app_storage
from tidegate.pods.builders.executor import build_executor_to_try
from tidegate.pods.records.names import driver_pod_name
from tidegate_spark.contract.protocol import FINALIZER, ROLE_DRIVER, ROLE_EXECUTOR, ROLE_REPARTITION
from tidegate_spark.contract.reasons import Reason

FIRST_PAUSE, LONGEST_PAUSE = 10.0, 300.0
"""Seconds between launches that nobody asked for."""
MAY_COME = frozenset({Reason.REFERENCE_MISSING, Reason.STORAGE_CONFLICT})
"""Reasons why nothing can come of a spec that end without another edit."""


def refuse_overlapping_storage(o: Observation, now: float) -> Verdict | None:
    """Refuse storage that another application of the namespace has: the two would read each other's checkpoints.

    Nobody asks again after a while: who leaves a place wakes those who wait for it.
    """
    if o.driver is not None or not o.rival:
        return None
    return Verdict(
        Phase.PENDING,
        Health.STALLED,
        Reason.STORAGE_CONFLICT,
        messages.storage_conflict(o.rival),
    )


def leave_finished_alone(o: Observation, now: float) -> Verdict | None:
    """Keep a finished application finished when its pod is cleared away; a changed spec starts it again.

    Also one that was changed and changed back while the pod went: that upgrade waits for the launch.
    """
    status = o.app.status
    finished = status.phase == Phase.COMPLETED and status.applied_spec_hash == o.spec_hash
    if status.upgrade is not None and status.upgrade.phase is UpgradePhase.STOPPING:
        return None
    if o.driver is not None or not finished or o.app.spec.restart.policy is RestartPolicy.ALWAYS:
        return None
    return Verdict(Phase.COMPLETED, Health.READY, Reason.COMPLETED, messages.FINISHED)


def wait_after_refused_launch(o: Observation, now: float) -> Verdict | None:
    """Try a pod that the API server did not take again, with the same epoch and exponential back-off."""
    refusal = refusal_of(o)
    if refusal is None:
        return None
    left, message = refused_for(refusal.at, refusal.attempts, now), refusal_message(o, refusal)
    if left:
        before = _finalizer_of_launched(o)
        return Verdict(Phase.PENDING, Health.STALLED, refusal.reason, message, before=before, wake_after=left)
    if not refusal.recorded:
        return None  # no epoch was spent on it: launch as if for the first time
    access: tuple[Action, ...] = (EnsureAccess(),) if lacks_access(o) else ()
    # The epoch of the refused launch. A create without an answer, or with a fault of the API server, is not repeated in
    # its epoch: its pod may yet appear.
    create = _create(o, refusal.epoch)
    if not refusal.attempts:
        # This pod, with what a LimitRange demands, was not refused yet.
        starting = starting_message(o, refusal.epoch)
        return Verdict(
            Phase.STARTING,
            Health.RECONCILING,
            Reason.DRIVER_STARTING,
            starting,
            before=access,
            after=create,
            wake_after=0.0,
        )
    # Reconcile at once: the watch does not wake for a pod that is known from the answer to its creation.
    return Verdict(
        Phase.PENDING,
        Health.STALLED,
        refusal.reason,
        message,
        before=access,
        after=create,
        wake_after=0.0,
    )


def wait_before_relaunch(o: Observation, now: float) -> Verdict | None:
    """Pause before replacing a driver that is lost again and again."""
    if o.driver is not None or not is_unplanned(o):
        return None
    left = time_left(o.memory.launched_at, growing_pause(o.memory.quick_relaunches, FIRST_PAUSE, LONGEST_PAUSE), now)
    if not left:
        return None
    if o.memory.not_created:
        # An admission webhook that does not answer, for instance: no pod was lost, there never was one.
        message = messages.not_created(driver_pod_name(o.app.metadata.name), o.memory.not_created)
        return Verdict(Phase.PENDING, Health.STALLED, Reason.LAUNCH_REFUSED, message, unplanned=True, wake_after=left)
    return Verdict(
        Phase.STARTING,
        Health.RECONCILING,
        Reason.RELAUNCH_DELAYED,
        messages.relaunch_delayed(o.memory.quick_relaunches),
        unplanned=True,
        wake_after=left,
    )


def launch(o: Observation, now: float) -> Verdict | None:
    """Launch: there is no driver and nothing against one."""
    if o.driver is not None:
        return None
    epoch = o.app.status.epoch + 1
    why_not = why_not_built(o)
    if why_not:
        # Ask the API server again after a while: a webhook may be fixed by then.
        again = LONGEST_REFUSED_PAUSE if o.rejection is not None or o.references.missing else None
        finalizer, reason = _finalizer_of_launched(o), reason_not_built(o)
        # Where the status was lost an epoch says from now on that it was: an epoch that was never used costs nothing.
        lost = (1, 0) if may_be_lost(o.app) else (0, 0)
        return Verdict(Phase.PENDING, Health.STALLED, reason, why_not, before=finalizer, adopt=lost, wake_after=again)
    create = _create(o, epoch)
    before: tuple[Action, ...] = _finalizer_of_launched(o)
    if lacks_access(o):
        before = (*before, EnsureAccess())
    before = (*before, EnsureLaunchSecrets(epoch))
    if o.app.status.epoch > 0:
        # The first launch needs no check, because the pod's name is constant. If an earlier pod appears after all, its
        # epoch is earlier: it is stopped, and needs no Secrets for that.
        gone = ConfirmDriverGone(driver_pod_name(o.app.metadata.name), needs_name=True)
        before = (*before, gone, *(DeleteLaunchSecrets(former) for former in _former_epochs(o.app.status)))
    else:
        before = (*before, *_finalizer(o))
    return Verdict(
        Phase.STARTING,
        Health.RECONCILING,
        Reason.DRIVER_STARTING,
        starting_message(o, epoch),
        before=before,
        after=create,
        launch=epoch,
        unplanned=is_unplanned(o),
    )


def _former_epochs(status: StreamingAppStatus) -> range:
    """Return the epochs one of which is the last driver's: each attempt to repartition its state took one after it."""
    upgrade = status.upgrade
    attempts = upgrade.repartition.attempts if upgrade is not None and upgrade.repartition is not None else 0
    return range(max(1, status.epoch - attempts), status.epoch + 1)


def why_not_built(o: Observation) -> str:
    """Return why no driver pod can be built from the spec, created or placed, as text; empty if one can."""
    if o.rival:
        return messages.place_taken(o.rival)
    epoch = o.app.status.epoch + 1
    try:
        if o.rejection is None or o.rejection.role == ROLE_REPARTITION:
            _driver_pod(o, epoch)
            return _why_not_found(o)
        tried = dict(_pods(o, epoch))
    except SpecError as error:
        return messages.no_pod(error)
    role = o.rejection.role
    if o.rejection.missing:
        field = _field_of(o, role, o.rejection.missing, tried[role])
        return messages.references_missing((messages.named_in(o.rejection.missing, field),))
    complaint = complaint_of(o.rejection.server_message, o.app, role, tried[role])
    return messages.pod_invalid(role, complaint.text)


def reason_not_built(o: Observation) -> Reason:
    """Return the reason beside :func:`why_not_built`: what is missing may come without another edit."""
    if o.rival:
        return Reason.STORAGE_CONFLICT
    try:
        build_launch(o, o.app.status.epoch + 1)
    except TooLongError:
        return Reason.CONFIGURATION_TOO_LONG
    except SpecError:
        return Reason.INVALID_SPEC
    if o.rejection is not None and (o.rejection.missing or o.rejection.role != ROLE_REPARTITION):
        return Reason.REFERENCE_MISSING if o.rejection.missing else Reason.INVALID_SPEC
    return Reason.REFERENCE_MISSING if o.references.missing else Reason.INVALID_SPEC


def _why_not_found(o: Observation) -> str:
    """Return which objects are missing that the spec names, as text; empty if none are."""
    missing = tuple(messages.named_in(each.what, each.field) for each in o.references.missing)
    return messages.references_missing(missing) if missing else ""


def _field_of(o: Observation, role: str, missing: str, pod: dict[str, Any]) -> str:
    """Return the field that names an account or a class which admission misses."""
    kind = missing.partition(" ")[0]
    return field_behind(f"spec.{kind[0].lower()}{kind[1:]}Name", o.app, role, pod)


def pods_to_try(o: Observation) -> tuple[tuple[str, dict[str, Any]], ...]:
    """Return pods of a version that was not launched yet, each with its role, which the API server is to look at.

    The first driver of all is left out: nothing is stopped for it, so its creation shows as much. Of executors only
    the template can be wrong that is not in the driver's pod as well.
    """
    status, stable = o.app.status, o.app.status.last_stable
    if o.app.metadata.deletion_timestamp is not None or o.app.spec.suspend:
        return ()
    if o.spec_hash in (status.applied_spec_hash, stable.spec_hash if stable is not None else "", _rolled_back(o)):
        return ()
    epoch, has_template = status.epoch + 1, bool(o.app.spec.pod_template or o.app.spec.executor.pod_template)
    needed = {ROLE_DRIVER: status.epoch > 0, ROLE_EXECUTOR: has_template}
    if not any(needed.values()):
        return ()
    try:
        # Without a template of the user's, what executors are made of is in the driver's pod: it fails there, too.
        pods = _pods(o, epoch) if has_template else ((ROLE_DRIVER, _driver_pod(o, epoch)),)
    except SpecError:
        return ()  # known without asking the API server
    return tuple((role, pod) for role, pod in pods if needed[role])


def refusal_of(o: Observation) -> Refusal | None:
    """Return the API server's refusal of the driver's pod that is missing, None if it is there or was not refused."""
    refusal = o.memory.refusal
    return refusal if o.driver is None and _refused_this_launch(o, refusal) else None


def _rolled_back(o: Observation) -> str:
    """Return the hash of the version that is not launched again because it was rolled back, empty if there is none."""
    upgrade = o.app.status.upgrade
    return upgrade.to_spec_hash if upgrade is not None and upgrade.is_rejected else ""


def refusal_message(o: Observation, refusal: Refusal) -> str:
    """Return what is said of a driver's pod that the API server refused: which field of the spec is to be fixed."""
    if not refusal.server_message:
        return refusal.message
    try:
        manifest = _driver_pod(o, refusal.epoch)
    except SpecError:
        return refusal.message
    complaint = complaint_of(refusal.server_message, o.app, ROLE_DRIVER, manifest, o.platform.floors.unread)
    return messages.refused(refusal.pod_name, complaint.text, ", ".join(complaint.fields))


def starting_message(o: Observation, epoch: int) -> str:
    """Return what is said of a driver between its creation and its first sign of life."""
    return messages.starting(driver_pod_name(o.app.metadata.name), epoch)


def is_unplanned(o: Observation) -> bool:
    """Return whether the coming launch follows from a loss and not from somebody's wish."""
    status = o.app.status
    same = status.epoch > 0 and status.applied_spec_hash == o.spec_hash
    return same and status.phase is not Phase.SUSPENDED and not stop_was_asked_for(status)


def _create(o: Observation, epoch: int) -> tuple[Action, ...]:
    built = build_launch(o, epoch)
    create = CreateDriver(built.manifest, epoch, strict=not _may_have_run(o))
    return (create, *provide(built))


def provide(built: ConfiguredPod) -> tuple[Action, ...]:
    """Return what makes the Secret of the configuration of a pod that was just created; nothing if it has none."""
    if built.secret is None:
        return ()
    return (ProvideConfiguration(built.secret, built.manifest["metadata"]["name"]),)


def _may_have_run(o: Observation) -> bool:
    """Return whether there may have been a driver of this version: then it is launched as it was.

    It may be from before such fields were refused. A lost node must not end it for one that was never heeded.
    """
    status, stable = o.app.status, o.app.status.last_stable
    if stable is not None and stable.spec_hash == o.spec_hash:
        return True
    if status.applied_spec_hash != o.spec_hash or refusal_of(o) is not None or o.memory.not_created:
        return False
    ready = status.condition(Health.READY.value)
    return ready is None or ready.reason != Reason.LAUNCH_REFUSED


def _driver_pod(o: Observation, epoch: int) -> dict[str, Any]:
    return build_launch(o, epoch).manifest


def build_launch(o: Observation, epoch: int) -> ConfiguredPod:
    """Return the driver's pod of a launch, and the Secret of its configuration if it has one.

    Raises:
        SpecError: none can be made of the spec.
    """
    failures = _failures_before(o) if is_unplanned(o) else ()
    return build_driver(_with_target(o, with_starting_point(o)), epoch, lineage_to_launch(o), o.platform, failures)


def _pods(o: Observation, epoch: int) -> tuple[tuple[str, dict[str, Any]], ...]:
    """Return a driver's and an executor's pod of the spec, each with its role."""
    executor = build_executor_to_try(o.app, epoch, app_storage(o.app), o.platform)
    return (ROLE_DRIVER, _driver_pod(o, epoch)), (ROLE_EXECUTOR, executor)


def _with_target(o: Observation, app: StreamingApp) -> StreamingApp:
    """Return the application with as many executors to start with as it had, if the autoscaler decides that."""
    executor = msgspec.structs.replace(app.spec.executor, instances=target_executors(o))
    return msgspec.structs.replace(app, spec=msgspec.structs.replace(app.spec, executor=executor))


def _failures_before(o: Observation) -> tuple[float, ...]:
    # A driver whose pod was lost must not get a new budget with its new pod.
    known = o.app.status.restarts
    return tuple(time.timestamp() for time in known.recent_failure_times) if known else ()


def _finalizer(o: Observation) -> tuple[Action, ...]:
    return () if FINALIZER in o.app.metadata.finalizers else (AddFinalizer(),)


def _finalizer_of_launched(o: Observation) -> tuple[Action, ...]:
    """Return the finalizer of an application that was launched: on another one it would say that it was."""
    return _finalizer(o) if o.app.status.epoch else ()


def _refused_this_launch(o: Observation, refusal: Refusal | None) -> bool:
    return (
        refusal is not None
        and refusal.pod_name == driver_pod_name(o.app.metadata.name)
        and refusal.spec_hash == o.spec_hash
        and refusal.epoch == o.app.status.epoch
    )
