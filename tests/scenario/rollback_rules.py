"""What must hold of rollbacks: checked with each change, like the other invariants.

* Each answers one failure, or one wish. What an upgrade's rollback snapshot was to undo is undone once: after the
  application has run on in the lineage that was made from it, nothing is rolled back to there again, whatever status
  comes back from before. Unless that was the start of another version under test, which may fail as well.
* A version that was recorded as stable is rolled back by a person alone, once another launch has followed it: before
  that, nobody can know how old a status is that comes back.

A launch that is recorded undoes nothing yet: its driver asks the storage, and does when it fills the lineage.
"""

from collections.abc import Callable
from dataclasses import dataclass, field

from tests.scenario.api_server import Body
from tidegate_spark.contract.reasons import Reason

_STABLE, _UNDONE = "Completed", "RolledBack"


@dataclass(frozen=True)
class _Ended:
    """How the upgrade ended that made a rollback snapshot."""

    phase: str = ""
    lineage: int = 0
    epoch: int = 0


@dataclass(frozen=True)
class _Opened:
    """What a lineage is to start from, by a rollback."""

    path: str
    snapshot: str
    wished: bool


@dataclass
class RollbackRules:
    """What is remembered to judge the next rollback."""

    violated: Callable[[str], None]
    count: Callable[[str], None]
    has_run: Callable[[str, int], bool]
    """Whether batches of an application, by its uid, were committed in a lineage."""
    epoch_before: Callable[[str], int]
    """The epoch of an application, by its uid, in which a driver took the fence before the newest one that did."""
    ended: dict[tuple[str, str], _Ended] = field(default_factory=dict)
    """By uid and rollback snapshot."""
    opened: dict[tuple[str, int], _Opened] = field(default_factory=dict)
    """By uid and lineage."""

    def check_app(self, after: Body, path: str, *, recorded: bool) -> None:
        """Check a resource as an operator has changed it; ``recorded``: a launch was recorded with it."""
        status, uid = after.get("status") or {}, after["metadata"]["uid"]
        upgrade, began, lineage = status.get("upgrade") or {}, status.get("startFrom") or {}, status.get("lineage", 0)
        if recorded:
            self.opened.pop((uid, lineage), None)
        # A version that is to read from elsewhere starts from a snapshot, too, in a lineage that it then continues in.
        undone = recorded and upgrade.get("phase") == "RollingBack" and began.get("snapshotLineage")
        if undone and began.get("lineage") == lineage:
            wished = upgrade.get("reason") == Reason.ROLLBACK_REQUESTED
            self.opened[uid, lineage] = _Opened(path, began["id"], wished)
        snapshot = (upgrade.get("rollbackSnapshot") or {}).get("id", "")
        if upgrade.get("phase") == _UNDONE and began.get("lineage") == lineage:
            snapshot = began.get("id", "")
        if snapshot and upgrade.get("phase") in (_STABLE, _UNDONE):
            self.ended[uid, snapshot] = _Ended(upgrade["phase"], lineage, status.get("epoch", 0))

    def filled(self, uid: str, lineage: int) -> None:
        """A driver fills a lineage, and so rolls the application back if that is a rollback's."""
        known = self.opened.pop((uid, lineage), None)
        if known is None:
            return
        self.count("rolled back")
        end = self.ended.get((uid, known.snapshot), _Ended())
        what = f"{known.path} is rolled back to {known.snapshot}"
        if end.phase == _UNDONE and end.lineage != lineage and self.has_run(uid, end.lineage):
            self.violated(f"{what} once more, and has run on in lineage {end.lineage}")
        if end.phase == _STABLE and not known.wished and self.epoch_before(uid) > end.epoch:
            self.violated(f"{what}, and what it undoes was stable")
