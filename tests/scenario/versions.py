"""Which version an application is to run, by its spec and its status."""

import datetime
import json
from collections.abc import Iterable

from tests.scenario.api_server import Body
from tests.scenario.restart_rules import reason_of
from tidegate.api.spec_hash import spec_hash
from tidegate.api.streaming_app import decode_app
from tidegate.app.rules.upgrade.effective_spec import ABANDON_ANNOTATION
from tidegate_spark.contract.protocol import application_uri, store_identity
from tidegate_spark.contract.reasons import Reason

UNUSABLE = {"spark.driver.memory": "64g"}
"""Spark settings of a spec of which no pod can be made: its container is smaller."""
UNDER_TEST = ("Stopping", "Repartitioning", "Gate", "Failed")
"""Phases of an upgrade in which its version is to run."""


def is_invalid_version(app: Body) -> bool:
    """Return whether no pod can be made of an application's spec."""
    return bool(UNUSABLE.items() <= (app["spec"].get("sparkConf") or {}).items())


def has_rival(app: Body, apps: Iterable[Body]) -> bool:
    """Return whether another application may have the place that an application's spec names, around it, or inside."""
    return any(_store(app) in _stores_of(other) for other in _overlapping(app, apps))


def may_have_had_rival(app: Body, apps: Iterable[Body]) -> bool:
    """Return whether another application may have had that place a moment ago: it is overlapping in some store."""
    return any(True for _ in _overlapping(app, apps))


def _overlapping(app: Body, apps: Iterable[Body]) -> Iterable[Body]:
    mine = _place_of(app)
    for other in apps:
        place = _place_of(other)
        is_other = other["metadata"]["uid"] != app["metadata"]["uid"]
        if is_other and (mine.startswith(place) or place.startswith(mine)):
            yield other


def _place_of(app: Body) -> str:
    metadata = app["metadata"]
    return f"{application_uri(app['spec']['storage']['uri'], metadata['namespace'], metadata['name'])}/"


def _stores_of(app: Body) -> set[str]:
    status = app.get("status") or {}
    stable = status.get("lastStable") or {}
    recorded = {_identity(json.loads(stable["spec"]).get("storage.endpoint"))} if stable else set[str]()
    return {_store(app), status.get("store", ""), *recorded}


def _store(app: Body) -> str:
    return _identity(app["spec"]["storage"].get("endpoint"))


def _identity(endpoint: str | None) -> str:
    return store_identity(endpoint or "", "")


def as_decided(before: Body, after: Body) -> Body:
    """Return an application after a change with the lineage before it: a launch that is recorded may begin the next."""
    lineage = (before.get("status") or {}).get("lineage", 0)
    return {**after, "status": {**(after.get("status") or {}), "lineage": lineage}}


def versions_in_force(app: Body, wanted: str, *, rival: bool) -> set[str]:
    """Return the hashes of the versions one of which an application is to run.

    Where another application has the place of an edit, the version under test goes on. Which of two has a place
    changes with the other one's status, which nobody sees at once: then both versions are right.
    """
    return {_version_in_force(app, wanted, held_back=held_back) for held_back in {False, rival and _moves(app)}}


def version_at_rest(app: Body, wanted: str, apps: Iterable[Body]) -> str:
    """Return the hash of the version that an application is to run once everybody has seen everything."""
    return _version_in_force(app, wanted, held_back=has_rival(app, apps) and _moves(app))


def _moves(app: Body) -> bool:
    """Return whether the spec names another store than the version under test."""
    under_test = ((app.get("status") or {}).get("upgrade") or {}).get("toSpec")
    return under_test is not None and _identity(json.loads(under_test).get("storage.endpoint")) != _store(app)


def _version_in_force(app: Body, wanted: str, *, held_back: bool) -> str:
    """Return the hash of the version that an application is to run, which an upgrade may hold back from its spec's."""
    status = app.get("status") or {}
    upgrade, stable = status.get("upgrade") or {}, status.get("lastStable") or {}
    under_test = upgrade.get("phase") in UNDER_TEST
    held_back = held_back or is_invalid_version(app) or _gives_up_what_nobody_gave_up(app)
    if under_test and held_back and "toSpec" in upgrade and wanted != stable.get("specHash"):
        return str(upgrade["toSpecHash"])
    held = upgrade.get("phase") in ("Copying", "Rehearsing", "Refused", "RolledBack") and (
        upgrade.get("toSpecHash") == wanted
        # The repartition of the version that an unusable edit followed is deferred, or failed: what ran before goes on.
        or (held_back and (upgrade.get("reason") == Reason.STATE_PARTITIONS_KEPT or _repartition_failed(upgrade)))
    )
    if not held and upgrade.get("phase") != "RollingBack":
        return _hash_with_kept_number(app) if _waits_for_stable(app, wanted) else wanted
    return str(stable.get("specHash") or status.get("appliedSpecHash", ""))


def _gives_up_what_nobody_gave_up(app: Body) -> bool:
    """Return whether an edit would start without the state of a lineage that nobody gave up: an older status has it."""
    status, notes = app.get("status") or {}, app["metadata"].get("annotations") or {}
    modes = app["spec"].get("upgrade", {}).get("mode"), (status.get("upgrade") or {}).get("mode")
    return modes[0] == "Stateless" != modes[1] and notes.get(ABANDON_ANNOTATION) != str(status.get("lineage", 0))


def _repartition_failed(upgrade: Body) -> bool:
    return (upgrade.get("repartition") or {}).get("result") == "Failed"


def stands_still_for_an_edit(app: Body, now: float) -> bool:
    """Return whether the status says that nothing runs for want of a usable spec, though a stable version could.

    Args:
        app: the application, as it is written.
        now: when it is; seconds since the epoch.
    """
    status = app.get("status") or {}
    reasons = [each["reason"] for each in status.get("conditions", ()) if each["type"] == "Ready"]
    if status.get("phase") != "Pending" or reasons != ["InvalidSpec"] or "lastStable" not in status:
        return False
    if not status.get("epoch"):
        return False  # somebody removed it: of what was never launched there is no upgrade
    upgrade, pin = status.get("upgrade") or {}, (status.get("upgrade") or {}).get("rollbackSnapshot") or {}
    launched = "epoch" in upgrade and upgrade["phase"] in ("Stopping", "Gate", "Failed")
    # After a launch it goes back to the pin, if there is one and people leave that to the operator, and in its time.
    by_itself = (
        app["spec"]["upgrade"].get("rollbackPolicy", "OnFailure") == "OnFailure"
        and bool(pin)
        and "lostMessage" not in pin
    )
    return (by_itself and not _may_have_outlasted(app["spec"], status, now)) or not launched


def stands_still_for_a_place(app: Body) -> bool:
    """Return whether nothing runs because another application has the place of an edit, though the own one is free."""
    spec, status = app["spec"], app.get("status") or {}
    stable, upgrade = status.get("lastStable"), status.get("upgrade") or {}
    if (reason_of(app), status.get("phase")) != ("StorageConflict", "Pending") or spec.get("suspend"):
        return False
    if stable is None or not status.get("epoch"):
        return False
    launched = "epoch" in upgrade and upgrade["phase"] in ("Stopping", "Gate", "Failed")
    own, wanted = json.loads(stable["spec"]).get("storage.endpoint"), spec["storage"].get("endpoint")
    return (own or "") != (wanted or "") and not launched


def _may_have_outlasted(spec: Body, status: Body, now: float) -> bool:
    """Return whether a launched version may have had more than the time of its test when it was found to stand still.

    When it was launched is known only of the first launch at the gate; else the beginning of the upgrade counts. Who
    wrote that may have had a clock that is behind that of who reads it.
    """
    upgrade = status["upgrade"]
    first = upgrade["phase"] == "Gate" and upgrade["reason"] == "Launched" and upgrade["epoch"] == status["epoch"]
    since = upgrade["phaseStartTime"] if first else upgrade["startTime"]
    timeout: float = spec["upgrade"].get("timeoutSeconds", 1800)
    return now - datetime.datetime.fromisoformat(since).timestamp() >= timeout


def went_on_beside_an_edit(app: Body) -> bool:
    """Return whether another version is to run because no pod can be built from the spec."""
    upgrade = (app.get("status") or {}).get("upgrade") or {}
    beside = upgrade.get("phase") == "Gate" and is_invalid_version(app)
    return beside or (upgrade.get("reason") == "InvalidSpec" and upgrade["phase"] in ("Refused", "RollingBack"))


def _waits_for_stable(app: Body, wanted: str) -> bool:
    """Return whether the spec's number of partitions waits: what runs, or is about to, was never stable."""
    status = app.get("status") or {}
    upgrade, stable = status.get("upgrade") or {}, status.get("lastStable")
    with_nothing = (upgrade.get("phase"), upgrade.get("mode")) == ("Stopping", "Stateless") and "epoch" not in upgrade
    if status.get("statePartitions", 0) in (0, decode_app(app).spec.state.partitions) or with_nothing:
        return False
    if stable is None:
        return "batch" in status and "startFrom" not in status and status.get("appliedSpecHash") != wanted
    if wanted in (upgrade.get("toSpecHash"), stable["specHash"]):
        return False
    start = status.get("startFrom") or {}
    if start.get("lineage") == status.get("lineage") and not start.get("started"):
        return True
    asked = json.loads(stable["spec"])["state.partitions"]
    if status.get("lineage") == stable.get("lineage") and asked == decode_app(app).spec.state.partitions:
        return False
    launched = "epoch" in upgrade and upgrade["phase"] in ("Stopping", "Gate", "Failed")
    return launched or (upgrade.get("phase") == "Stopping" and "repartition" not in upgrade)


def _hash_with_kept_number(app: Body) -> str:
    state = {**app["spec"].get("state", {}), "partitions": app["status"]["statePartitions"]}
    return spec_hash(decode_app({**app, "spec": {**app["spec"], "state": state}}))
