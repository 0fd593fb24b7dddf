"""Restarts are counted once, from what the stored status says and what is written next. A table of worlds."""

import dataclasses
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from tidegate.api.status.status import Condition, DriverStatus, LastExit, Phase, StreamingAppStatus
from tidegate.app.metrics.lifecycle import Restart, restarts_between

STARTED = datetime(2026, 1, 1, tzinfo=UTC)


def status(
    epoch: int = 1,
    restarts: int | None = 0,
    *,
    spec: str = "a",
    exit_reason: str = "",
    after: float = 60,
    **fields: object,
) -> StreamingAppStatus:
    """Return a status; ``after`` is when the last exit was, in seconds after the start of the present process."""
    driver = None if restarts is None else DriverStatus(pod_name="d", restarts=restarts, start_time=STARTED)
    last = LastExit(reason=exit_reason, completion_time=STARTED + timedelta(seconds=after)) if exit_reason else None
    made = StreamingAppStatus(phase=Phase.RUNNING, epoch=epoch, driver=driver, last_exit=last, applied_spec_hash=spec)
    return msgspec.structs.replace(made, **fields)


def waits(epoch: int, phase: Phase, reason: str, driver: DriverStatus | None = None) -> StreamingAppStatus:
    """Return the status of a launch that has come to no process; the last word is of an epoch before it."""
    ready = Condition(type="Ready", status="False", reason=reason, last_transition_time=STARTED)
    old = status(epoch, exit_reason="Evicted", phase=phase, driver=driver)
    return msgspec.structs.replace(old, conditions=(ready,))


@dataclasses.dataclass(frozen=True)
class Case:
    """Two versions of a status and what happened between them."""

    old: StreamingAppStatus
    new: StreamingAppStatus
    restarts: tuple[Restart, ...]


CASES = {
    "nothing happened": Case(status(), status(), ()),
    "the first launch follows nothing": Case(StreamingAppStatus(), status(), ()),
    "the kubelet started the process again": Case(
        status(), status(restarts=1, exit_reason="ApplicationFailed"), (Restart("ApplicationFailed", 1),)
    ),
    "it did so three times while there was no operator": Case(
        status(), status(restarts=3, exit_reason="OOMKilled"), (Restart("OutOfMemory", 3),)
    ),
    "an operator that comes later finds it in the status": Case(
        status(restarts=3, exit_reason="OOMKilled"), status(restarts=3, exit_reason="OOMKilled"), ()
    ),
    "a process ended without a word": Case(status(), status(restarts=1), (Restart("DriverCrashed", 1),)),
    "the pod is gone and nothing follows yet": Case(status(restarts=2), status(restarts=None), ()),
    "the spec was changed": Case(
        status(exit_reason="Stopped"), status(2, spec="b", exit_reason="Stopped"), (Restart("SpecChanged", 1),)
    ),
    "the pod was evicted": Case(
        status(exit_reason="Evicted"), status(2, exit_reason="Evicted"), (Restart("DriverLost", 1),)
    ),
    "the pod was lost, and the last word is of an earlier process": Case(
        status(restarts=1, exit_reason="OOMKilled", after=-5),
        status(2, exit_reason="OOMKilled", after=-5),
        (Restart("DriverLost", 1),),
    ),
    "the pod was stopped by somebody and told so": Case(
        status(exit_reason="Stopped"), status(2, exit_reason="Stopped"), (Restart("Stopped", 1),)
    ),
    "the pod was lost without any word": Case(status(), status(2), (Restart("DriverLost", 1),)),
    "a restart of the earlier pod is not counted again with the new one": Case(
        status(restarts=4, exit_reason="Error"),
        status(2, restarts=0, exit_reason="Error"),
        (Restart("DriverCrashed", 1),),
    ),
    "a launch was recorded and its pod never made": Case(
        waits(2, Phase.STARTING, "DriverStarting", DriverStatus(pod_name="d")),
        waits(3, Phase.STARTING, "DriverStarting", DriverStatus(pod_name="d")),
        (),
    ),
    "a pod was refused, and the next launch is tried": Case(
        waits(2, Phase.PENDING, "LaunchRefused"), status(3, exit_reason="Evicted"), ()
    ),
    "the pod was lost while its process started": Case(
        waits(2, Phase.STARTING, "DriverStarting", DriverStatus(pod_name="d", restarts=0, start_time=STARTED)),
        status(3, exit_reason="Evicted"),
        (Restart("DriverLost", 1),),
    ),
    "the pod was lost, and its replacement had to wait": Case(
        waits(2, Phase.STARTING, "RelaunchDelayed"), status(3, exit_reason="Evicted"), (Restart("DriverLost", 1),)
    ),
    "a status from before is no restart": Case(status(3), status(2), ()),
}


@pytest.mark.parametrize("case", CASES.values(), ids=CASES.keys())
def test_restarts_between_two_versions_of_a_status(case: Case) -> None:
    assert restarts_between(case.old, case.new) == case.restarts


def test_a_resumed_application_was_not_restarted_for_what_its_last_process_said() -> None:
    suspended = msgspec.structs.replace(status(restarts=None, exit_reason="Stopped"), phase=Phase.SUSPENDED)
    assert restarts_between(suspended, status(2, exit_reason="Stopped")) == (Restart("Resumed", 1),)
