"""Whether the API server would accept the repartition pod; asked before anything is stopped. No I/O.

LimitRanges count, because they check one pod alone. Quotas do not: they count what runs now.
"""

from __future__ import annotations

from typing import Any

from msgspec.structs import replace

from tidegate.api.streaming_app import RepartitionStatus, UpgradePhase
from tidegate.api.values.errors import SpecError
from tidegate.app.builders.repartition_pod import build_attempt
from tidegate.app.observation import Observation
from tidegate.app.rules.launch.launch import pods_to_try, why_not_built
from tidegate.app.rules.upgrade import record
from tidegate.app.rules.upgrade.repartition import messages as texts
from tidegate.app.rules.upgrade.repartition.deferred import is_deferred
from tidegate.app.rules.upgrade.repartition.phase import state_of_newer, wanted_repartition
from tidegate.app.rules.upgrade.repartition.pod import find_pod
from tidegate.pods.admission.admission_error import complaint_of
from tidegate.pods.records.names import repartition_pod_name
from tidegate_spark.contract.protocol import ROLE_REPARTITION

_NOT_LAUNCHED = (*record.OLD_RUNS, *record.BEFORE_A_LAUNCH)
_BEGUN = (*record.OLD_RUNS, *record.UNDER_TEST, UpgradePhase.ROLLING_BACK)


def all_pods_to_try(o: Observation) -> tuple[tuple[str, dict[str, Any]], ...]:
    """Return the pods of a version that was not launched yet, each with its role, with that which divides its state."""
    return with_repartition_pod(o, pods_to_try(o))


def with_repartition_pod(
    o: Observation, pods: tuple[tuple[str, dict[str, Any]], ...]
) -> tuple[tuple[str, dict[str, Any]], ...]:
    """Return pods of a version that was not launched yet, with that which divides its state.

    Once the previous version has stopped that pod is created, and its creation shows it.
    """
    attempt, upgrade = _attempt_to_come(o), o.app.status.upgrade
    stops = upgrade is not None and upgrade.phase in record.BEFORE_A_LAUNCH and upgrade.to_spec_hash == o.spec_hash
    if not pods or attempt is None or stops or is_deferred(o):
        return pods
    try:
        return (*pods, (ROLE_REPARTITION, build_attempt(o.app, attempt, o.spec_hash, o.platform)))
    except SpecError:
        return pods  # that is said without asking anybody


def why_not_launchable(o: Observation) -> str:
    """Return as text why the spec's version cannot be launched, empty if it can be launched."""
    return why_not_built(o) or why_not_repartitioned(o)


def why_not_repartitioned(o: Observation) -> str:
    """Return as text why there can be no repartition pod, and what to do; empty if none is needed."""
    attempt = _attempt_to_come(o)
    if attempt is None:
        return ""
    try:
        pod = build_attempt(o.app, attempt, o.spec_hash, o.platform)
    except SpecError as error:
        return texts.pod_not_built(error)
    name, refusal, message = repartition_pod_name(o.app.metadata.name, attempt.epoch), o.memory.refusal, ""
    if o.rejection is not None and o.rejection.role == ROLE_REPARTITION:
        message = o.rejection.server_message
    elif refusal is not None and refusal.pod_name == name:
        message = refusal.server_message
    if not message:
        return ""
    complaint = complaint_of(message, o.app, ROLE_REPARTITION, pod, o.platform.floors.unread)
    fields = ", ".join(complaint.fields)
    return texts.pod_refused(complaint.text, fields, by_limit_range=complaint.by_limit_range)


def _attempt_to_come(o: Observation) -> RepartitionStatus | None:
    """Return the attempt whose pod has to be made before the spec's version is launched, None if there is none."""
    known = _repartition_to_come(o)
    if known is None or record.version_held(o.app.spec, o.app.status.last_stable) is None:
        return None  # or nothing is known of what wrote the state: that is said elsewhere
    if not known.epoch:
        return replace(known, epoch=o.app.status.epoch + 1, lineage=record.next_lineage(o))
    return known if not known.pod_uid and find_pod(o, known) is None else None


def _repartition_to_come(o: Observation) -> RepartitionStatus | None:
    upgrade = o.app.status.upgrade
    if upgrade is None or upgrade.phase not in _BEGUN:
        return wanted_repartition(o)
    if upgrade.to_spec_hash == o.spec_hash:
        return upgrade.repartition if upgrade.phase in _NOT_LAUNCHED and record.is_pending(upgrade) else None
    if upgrade.phase not in record.BEFORE_A_LAUNCH:
        return wanted_repartition(o)
    known = state_of_newer(o, upgrade)[0]
    return known if known is not None and not known.result else None
