"""What must hold of starts that nobody, or somebody, asked for: looked at with each change, like the other invariants.

* An application that has used up its budget, that failed under the policy Never, or that another one took the storage
  from, is not launched again until somebody changes its spec, or takes that policy back. If an edit from before goes on
  with a repartition, and that comes to nothing, the previous version starts again, as it does after a rollback.
* A pod's processes end for good with the failure that is one too many; a pod that follows a lost one goes on counting,
  and one that follows a changed spec begins again.
* Nothing is launched that is to be suspended in that very version of the resource, nor with another spec than it has.
* What the status tells of restarts never becomes less, and of one that failed for good it tells whose turn it is.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tests.scenario.api_server import ApiServer, Body, Change
from tests.scenario.surroundings import config_of
from tidegate_spark.contract.protocol import ANNOTATION_APP_UID, ANNOTATION_SPEC_HASH, RestartSettings
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.storage.claim.fence import Holder

FOR_GOOD = (Reason.RESTART_BUDGET_EXHAUSTED, Reason.FENCED, "RestartPolicyNever")
"""Reasons of applications that wait for a person."""
_NOT_THE_APPLICATION = frozenset(
    {
        Reason.COMPLETED,
        Reason.STOPPED,
        Reason.BUCKET_NOT_FOUND,
        Reason.CREDENTIALS_MISSING,
        Reason.CREDENTIALS_REJECTED,
        Reason.STORAGE_UNAVAILABLE,
        Reason.BROKER_UNAVAILABLE,
    }
)


@dataclass
class RestartRules:
    """What is remembered to judge the next start."""

    api: ApiServer
    violated: Callable[[str], None]
    count: Callable[[str], None]
    launched: dict[str, str] = field(default_factory=dict)
    """Hash of the spec of each application's newest driver, by the application's uid."""
    failed: dict[str, tuple[str, int]] = field(default_factory=dict)
    """Applications that failed for good, by uid: with which spec, and in which version."""
    failures: dict[str, list[float]] = field(default_factory=dict)
    """When the application failed, by its pod."""

    # --- the application's resource ---

    def check_app(self, before: Body, after: Body, path: str, spec_hash: str, recorded: bool) -> None:
        """Look at a change that an operator made.

        Args:
            before: the resource before it.
            after: and after it.
            path: of the resource.
            spec_hash: of its present spec.
            recorded: whether a launch was recorded with it.
        """
        old, new = before.get("status") or {}, after.get("status") or {}
        if recorded and new.get("epoch", 0) > old.get("epoch", 0):
            self._check_launch(before, after, path, spec_hash)
        totals = [(each.get("restarts") or {}).get("total", 0) for each in (old, new)]
        if totals[1] < totals[0] and new:
            self.violated(f"{path} had {totals[0]} restarts, and has {totals[1]}")
        reason = reason_of(after)
        if reason in FOR_GOOD and reason != reason_of(before):
            self._check_failed_for_good(new, path, reason)
            self.failed[after["metadata"]["uid"]] = (spec_hash, self.api.version)
        if (new.get("upgrade") or {}).get("phase") == "Repartitioning":
            self.failed.pop(after["metadata"]["uid"], None)

    def _check_launch(self, before: Body, after: Body, path: str, spec_hash: str) -> None:
        old, new = before.get("status") or {}, after["status"]
        if before["spec"].get("suspend"):
            self.violated(f"epoch {new['epoch']} of {path} is launched, and it is to be suspended")
        if new.get("appliedSpecHash") != spec_hash:
            self.violated(f"epoch {new['epoch']} of {path} is launched with another spec than it has")
        same = old.get("appliedSpecHash") == spec_hash
        policy = before["spec"].get("restart", {}).get("policy", "OnFailure")
        withdrawn = reason_of(before) == "RestartPolicyNever" and policy != "Never"
        if same and old.get("phase") == "Failed" and reason_of(before) in FOR_GOOD and not withdrawn:
            self.violated(
                f"epoch {new['epoch']} of {path} is launched; it was {reason_of(before)}, and nothing changed"
            )

    def _check_failed_for_good(self, status: Body, path: str, reason: str) -> None:
        self.count(f"failed for good, {reason}")
        true = {each["type"]: each for each in status["conditions"] if each["status"] == "True"}
        if status.get("phase") != "Failed" or true.keys() & {"Ready", "Reconciling", "Stalled"} != {"Stalled"}:
            self.violated(f"{path} is {reason}, {status.get('phase')}, {sorted(true)}")
        elif reason == Reason.RESTART_BUDGET_EXHAUSTED and "The last: " not in true["Stalled"]["message"]:
            self.violated(f"{path} does not tell its last failure: {true['Stalled']['message']}")

    # --- pods ---

    def check_driver(self, pod: Change, app: Body | None, changed_at: int, late: bool) -> None:
        """Look at a driver pod that an operator made.

        Args:
            pod: the pod.
            app: the resource of the name, if there is one.
            changed_at: version of the resource in which its spec was changed last in a way that matters here.
            late: the operator did not lead any more; others may have heard of a failure since it asked.
        """
        notes = pod.body["metadata"]["annotations"]
        uid, spec_hash = notes[ANNOTATION_APP_UID], notes[ANNOTATION_SPEC_HASH]
        reported = config_of(pod.body).restart.failures
        failed_with, failed_at = self.failed.pop(uid, ("", 0))
        if failed_with:
            self.count("started afresh")
        if failed_with == spec_hash and changed_at <= failed_at:
            self.violated(f"{pod.place.path} is created for what failed for good, and nothing changed")
        before = self.launched.get(uid)
        self.launched[uid] = spec_hash
        if app is None or app["metadata"]["uid"] != uid:
            return
        if before not in (None, spec_hash) and reported:
            self.violated(f"{pod.place.path} follows a changed spec and is told of failures before it")
        known = ((app.get("status") or {}).get("restarts") or {}).get("recentFailureTimes", ())
        if before == spec_hash and reported:
            self.count("went on counting failures in a new pod")
        if before == spec_hash and len(reported) < len(known) and not late:
            self.violated(f"{pod.place.path} is told of {len(reported)} failures; the status knows {len(known)}")

    def wants_failed_pod_gone(self, pod: Body, policies: list[str]) -> bool:
        """Return whether a failed driver pod may be replaced; ``policies`` are those in force since it came."""
        if any(policy != "Never" for policy in policies) or pod["status"].get("reason"):
            return True
        ended = pod["status"]["containerStatuses"][0]["state"].get("terminated", {})
        return _reason_in(ended.get("message", "")) in _NOT_THE_APPLICATION

    # --- processes ---

    def taken(self, holder: Holder, rules: RestartSettings) -> None:
        """A process begins to work."""
        since = self.api.clock() - rules.window_seconds
        known = [at for at in self._failures_of(holder, rules) if at > since]
        if len(known) > rules.max_failures:
            self.violated(f"{holder.process} begins after {len(known)} failures; {rules.max_failures} are allowed")

    def ended(self, holder: Holder, rules: RestartSettings, *, counted: bool, healthy: bool) -> None:
        """A process ended."""
        known = self._failures_of(holder, rules)
        if healthy:
            known.clear()
        if counted:
            known.append(self.api.clock())

    def _failures_of(self, holder: Holder, rules: RestartSettings) -> list[float]:
        return self.failures.setdefault(holder.pod_uid, list(rules.failures))


def reason_of(app: Body) -> str:
    """Return the reason of an application's condition Ready."""
    conditions = (app.get("status") or {}).get("conditions", ())
    return next((str(each["reason"]) for each in conditions if each["type"] == "Ready"), "")


def _reason_in(message: str) -> Any:
    return json.loads(message).get("reason") if message.startswith("{") else None
