"""Which version an application is to run, by its spec and its status."""

import json

from tests.scenario.api_server import Body
from tidegate.decide.spec_hash import spec_hash
from tidegate.model.streaming_app import decode_app


def version_in_force(app: Body, wanted: str) -> str:
    """Return the hash of the version that an application is to run, which an upgrade may hold back from its spec's."""
    status = app.get("status") or {}
    upgrade, stable = status.get("upgrade") or {}, status.get("lastStable") or {}
    held = (
        upgrade.get("phase") in ("Copying", "Rehearsing", "Refused", "RolledBack")
        and upgrade.get("toSpecHash") == wanted
    )
    if not held and upgrade.get("phase") != "RollingBack":
        return _hash_with_kept_number(app) if _waits_for_stable(app, wanted) else wanted
    return str(stable.get("specHash") or status.get("appliedSpecHash", ""))


def _waits_for_stable(app: Body, wanted: str) -> bool:
    """Return whether the spec's number of partitions waits: what runs, or is about to, was never stable."""
    status = app.get("status") or {}
    upgrade, stable = status.get("upgrade") or {}, status.get("lastStable")
    if status.get("statePartitions", 0) in (0, decode_app(app).spec.state.partitions):
        return False
    if stable is None:
        return "batch" in status and "startFrom" not in status and status.get("appliedSpecHash") != wanted
    if wanted in (upgrade.get("toSpecHash"), stable["specHash"]):
        return False
    start = status.get("startFrom") or {}
    if start.get("lineage") == status.get("lineage") and not start.get("begun"):
        return True
    asked = json.loads(stable["spec"])["state.partitions"]
    if status.get("lineage") == stable.get("lineage") and asked == decode_app(app).spec.state.partitions:
        return False
    launched = "epoch" in upgrade and upgrade["phase"] in ("Stopping", "Gate", "Failed")
    return launched or (upgrade.get("phase") == "Stopping" and "repartition" not in upgrade)


def _hash_with_kept_number(app: Body) -> str:
    state = {**app["spec"].get("state", {}), "partitions": app["status"]["statePartitions"]}
    return spec_hash(decode_app({**app, "spec": {**app["spec"], "state": state}}))
