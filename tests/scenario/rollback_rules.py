"""What must hold of rollbacks: looked at with each change, like the other invariants.

* Each answers one failure, or one wish. What an upgrade's rollback snapshot was to undo is undone once: after the
  application has run on in the lineage that was made from it, nothing is taken back to there again, whatever status
  comes back from before. Unless that was the start of another version under test, which may fail as well.
* A version that was recorded as stable is taken back by a person alone.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.scenario.api_server import Body
from tidegate_spark.contract.reasons import Reason

_STABLE, _UNDONE = "Completed", "RolledBack"


@dataclass
class RollbackRules:
    """What is remembered to judge the next rollback."""

    violated: Callable[[str], None]
    count: Callable[[str], None]
    has_run: Callable[[str, int], bool]
    """Whether batches of an application, by its uid, were committed in a lineage."""
    ended: dict[tuple[str, str], tuple[str, int]] = field(default_factory=dict)
    """Uid and rollback snapshot -> how the upgrade ended that made it, and in which lineage."""

    def check_app(self, before: Body, after: Body, path: str, *, recorded: bool) -> None:
        """Look at a change that an operator made.

        Args:
            before: the resource before it.
            after: and after it.
            path: of the resource.
            recorded: whether a launch was recorded with it.
        """
        status, uid = after.get("status") or {}, after["metadata"]["uid"]
        upgrade, began = status.get("upgrade") or {}, status.get("startFrom") or {}
        earlier = (before.get("status") or {}).get("startFrom") or {}
        # A version that is to read from elsewhere starts from a snapshot, too, in a lineage that it then continues in.
        undone = recorded and upgrade.get("phase") == "RollingBack"
        opened = undone and began.get("snapshotLineage") and began.get("lineage") == status.get("lineage")
        if opened and began != earlier:
            self._check_rollback(uid, path, began, wished=upgrade.get("reason") == Reason.ROLLBACK_REQUESTED)
        self._note_end(uid, upgrade, began, status.get("lineage", 0))

    def _check_rollback(self, uid: str, path: str, began: Body, *, wished: bool) -> None:
        self.count("rolled back")
        end, lineage = self.ended.get((uid, began["id"]), ("", 0))
        if end == _UNDONE and lineage != began["lineage"] and self.has_run(uid, lineage):
            self.violated(f"{path} is rolled back to {began['id']} once more, and has run on in lineage {lineage}")
        if end == _STABLE and not wished:
            self.violated(f"{path} is rolled back to {began['id']}, and what it undoes was stable")

    def _note_end(self, uid: str, upgrade: Body, began: Body, lineage: int) -> None:
        snapshot = (upgrade.get("rollbackSnapshot") or {}).get("id", "")
        if upgrade.get("phase") == _UNDONE and began.get("lineage") == lineage:
            snapshot = began.get("id", "")
        if snapshot and upgrade.get("phase") in (_STABLE, _UNDONE):
            self.ended[(uid, snapshot)] = (upgrade["phase"], lineage)
