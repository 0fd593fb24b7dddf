"""What a plan says and does, and the world after it. Pure."""

import dataclasses

import msgspec

from tidegate.api.streaming_app import Phase, StreamingApp, StreamingAppStatus
from tidegate.app.actions import Plan, RecordLaunch, WriteStatus
from tidegate.app.observation import Observation
from tidegate.app.rules.plan import decide
from tidegate_testing.observations import NOW


def status_of(plan: Plan) -> StreamingAppStatus:
    """Return the status that a plan writes; it writes one."""
    (status,) = _statuses(plan)
    return status


def verdict_of(plan: Plan) -> tuple[Phase | None, str, str]:
    """Return phase, the condition that is true, and the reason, as a plan writes them."""
    status = status_of(plan)
    (true,) = [c.type for c in status.conditions if c.status == "True" and c.type != "Available"]
    return status.phase, true, plan.reason


def acts(plan: Plan, *kinds: type) -> bool:
    """Return whether a plan holds an action of one of these kinds."""
    return any(isinstance(action, kinds) for action in plan.actions)


def written(o: Observation, now: float = NOW) -> StreamingApp:
    """Return the application after the observation's own plan was carried out."""
    statuses = _statuses(decide(o, now))
    return msgspec.structs.replace(o.app, status=statuses[0]) if statuses else o.app


def settled(o: Observation) -> Observation:
    """Return the observation after its own plan was carried out: the status is what was written."""
    memory = dataclasses.replace(o.memory, status_written_at=NOW)
    return dataclasses.replace(o, app=written(o), memory=memory)


def _statuses(plan: Plan) -> list[StreamingAppStatus]:
    return [action.status for action in plan.actions if isinstance(action, WriteStatus | RecordLaunch)]
