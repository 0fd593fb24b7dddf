"""What must hold at every moment, looked at with each change of the API server and of the object store.

* One writer: a batch is committed only by the process that had the fence when it began.
* An application never goes back to an earlier lineage. It goes on to a later one from the one that it runs in, or from
  one that nobody came to run in: whatever becomes of its status. A process that lost the fence in the middle of a batch
  may end that one in the lineage in which it was begun, and begins no other one.
* An application that starts from a snapshot, or has run, never starts empty, wherever its storage is. In a lineage, its
  batch never falls, be its storage an older copy, unless a person accepts that.
* State is repartitioned once for each wish, and never into a lineage in which the application ran.
* An epoch belongs to one pod, and is recorded before there is a pod of it; recorded epochs never go back.
* It goes on from other offsets only if somebody has asked for them, once for each time, and never with those that its
  manifest had before it began.
* A driver is declared lost only if it is not there.
* An application that has a stable version does not stand still for an edit of which no pod can be made,
  nor for one into a place that another application has.
* A driver runs with the configuration that the operator gave its pod.
* Nothing is deleted that no intent covers; people's objects are never touched; the operator changes no spec.
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise

from tests.scenario.api_server import APPS, MESSAGES, PODS, SECRETS, ApiServer, Body, Change, Place
from tests.scenario.restart_rules import RestartRules, reason_of
from tests.scenario.rollback_rules import RollbackRules
from tests.scenario.versions import (
    as_decided,
    may_have_had_rival,
    stands_still_for_a_place,
    stands_still_for_an_edit,
    versions_in_force,
    went_on_beside_an_edit,
)
from tidegate.api.spec_hash import spec_hash
from tidegate.api.streaming_app import decode_app
from tidegate.app.rules.upgrade.effective_spec import ABANDON_ANNOTATION
from tidegate_spark.contract.configuration_protocol import REST_KEY
from tidegate_spark.contract.protocol import (
    ANNOTATION_APP_UID,
    ANNOTATION_SPEC_HASH,
    LABEL_APP,
    LABEL_EPOCH,
    LABEL_MANAGED_BY,
    LABEL_ROLE,
    MANAGED_BY,
    ROLE_DRIVER,
    ROLE_EXECUTOR,
    ROLE_PURGE,
    ROLE_REHEARSAL,
    ROLE_REPARTITION,
    DriverConfig,
    RestartSettings,
)
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.storage.claim.fence import Holder

_RETRIED = tuple(
    f'"reason":"{reason.value}"'
    for reason in (
        Reason.STORAGE_OWNED,
        Reason.CLAIM_DAMAGED,
        Reason.NOTES_DAMAGED,
        Reason.NOTHING_TO_ADOPT,
        Reason.STORAGE_EMPTY,
        Reason.STORAGE_OLDER,
        Reason.LINEAGE_NOT_EMPTY,
        Reason.STORAGE_UNSUITABLE,
        Reason.FENCED,
        Reason.CONFIGURATION_CHANGED,
    )
)
"""In the termination message of a driver whose replacement needs no other intent."""
_WAITS_FOR_SNAPSHOT = (Reason.SNAPSHOT_NOT_FOUND, Reason.SNAPSHOT_NOT_READY)
_COMPLETED = f'"reason":"{Reason.COMPLETED}"'
"""In that of a driver whose replacement needs the policy Always."""


@dataclass(frozen=True)
class _Begun:
    """How things were when a process began its batch, while it had the fence."""

    fenced_by: Holder | None
    emptied: int
    """How often the storage had been emptied."""
    runs_in: int
    """Lineage in which a batch had been committed last."""
    ran: int
    """The last lineage in which the application had committed batches, wherever its storage was."""


@dataclass
class Wishes:
    """What people wanted of one application, ever."""

    hashes: list[tuple[int, str]] = field(default_factory=list)
    """Version from which the spec had this hash, in order."""
    deleted: bool = False
    suspended: list[int] = field(default_factory=list)
    """Versions in which it was to be suspended."""
    policies: list[tuple[int, str]] = field(default_factory=list)
    """Version from which it had this restart policy, in order."""
    from_snapshot: bool = False
    """It is to start from one."""
    offsets: dict[str, int] = field(default_factory=dict)
    """Other offsets that it was to go on from -> the lineage that they were for."""
    older_offsets: set[str] = field(default_factory=set)
    """Those that its manifest had when it was created."""
    emptied: bool = False
    """It was deleted while its storage was to go with it."""
    was_emptied: bool = False
    """So it was before a backup brought it back."""
    knows_batches: bool = False
    """A backup brought it back, with what is known of its batches."""
    recorded: int = 0
    """The highest epoch that a status has had: a pod of it may come by a request under way when that is lost."""
    status_lost: bool = False
    ever_lost: bool = False
    ever_restored: bool = False
    """Likewise, and another status took its place: an earlier one, or one that somebody edited."""


@dataclass
class Invariants:
    """Everything that is remembered to judge the next change."""

    api: ApiServer
    violated: Callable[[str], None]
    action: Callable[[], str]
    """The operator's action that the present request belongs to."""
    decided_at: Callable[[str, str], int]
    """Version of the API server's objects when the present plan for an application was begun."""
    count: Callable[[str], None]
    """Counts something that should happen now and then."""
    late: Callable[[], bool]
    """The present request is of a process that has lost the lease since it asked whether it may."""
    wishes: dict[str, Wishes] = field(default_factory=dict)
    epochs: dict[tuple[str, int], str] = field(default_factory=dict)
    fences: dict[str, list[Holder]] = field(default_factory=dict)
    takers: dict[tuple[str, int], str] = field(default_factory=dict)
    committed_batches: dict[tuple[str, int], int] = field(default_factory=dict)
    runs_in: dict[str, int] = field(default_factory=dict)
    """Prefix -> lineage in which a batch was committed last."""
    written_over: dict[tuple[str, int], set[int]] = field(default_factory=dict)
    """Uid and a lineage that somebody wrote into the status -> what stood there."""
    opened_after: dict[tuple[str, int], set[int]] = field(default_factory=dict)
    """Uid and lineage of each that a launch was recorded to open -> those that were left for it, by the status."""
    ran: dict[str, dict[str, int]] = field(default_factory=dict)
    """Uid -> prefix of each storage in which batches were committed -> the last lineage."""
    reached: dict[tuple[str, int], int] = field(default_factory=dict)
    """Uid and lineage of each in which batches were committed -> the newest one, wherever the storage was."""
    run_in: set[tuple[str, int]] = field(default_factory=set)
    """Prefix and lineage of each in which a batch was begun."""
    blank: set[str] = field(default_factory=set)
    """Those whose status had lost its epoch at the last write, and has one since."""
    partitions: dict[tuple[str, int], int] = field(default_factory=dict)
    """Prefix and lineage of each whose state was repartitioned -> the number of its partitions."""
    used_offsets: dict[tuple[str, str], int] = field(default_factory=dict)
    """Uid and offsets -> the lineage that was opened with them."""
    writes: int = 0
    """Changes that operators made."""
    last: str = ""
    """The last one."""
    batches: int = 0
    rules: RestartRules = field(init=False)
    rollbacks: RollbackRules = field(init=False)
    _begun: dict[str, _Begun] = field(default_factory=dict)
    _strays: set[tuple[str, int, int]] = field(default_factory=set)
    """Prefix, lineage and number of batches that were committed into a storage that had been emptied."""
    _given: dict[str, Body] = field(default_factory=dict)
    """Name of each Secret that an operator made -> what was in it."""
    labels: dict[str, dict[str, str]] = field(default_factory=dict)
    """Uid of each pod -> the labels that it was made with."""
    pods_put_back: set[str] = field(default_factory=set)
    """Uids of those that a backup brought back after they were gone."""
    _times_emptied: Counter[str] = field(default_factory=Counter)
    _purged_of: dict[str, set[str]] = field(default_factory=dict)
    """Uid -> prefixes of storages that it ran in, and that are emptied."""

    def __post_init__(self) -> None:
        self.rules = RestartRules(self.api, self.violated, self.count)
        self.rollbacks = RollbackRules(self.violated, self.count, self._has_run, self._epoch_before)

    def notice(self, change: Change) -> None:
        """Look at one change of the API server's objects."""
        ours = self.api.by.startswith("operator")
        if ours:
            self.writes += 1
            self.last = f"{change.type} {change.place.path} {change.place.part} by {self.action()}"
        if change.place.plural == APPS:
            self._note_wishes(change)
            if ours:
                self._check_app(change)
        elif change.place.plural == PODS and change.type == "ADDED":
            self._note_created(change, ours=ours)
        elif change.place.plural == SECRETS and change.type == "ADDED" and ours:
            self._given[change.place.name] = change.body["data"]
        if ours and change.place.plural == MESSAGES:
            self._check_message(change)
        elif ours and change.place.plural != APPS:
            if change.type == "DELETED" or _newly_terminating(change):
                self._check_deleted(change)
            elif change.type == "MODIFIED" and not self._restores_labels(change):
                self.violated(f"the operator changes {change.place.path}")

    # --- applications ---

    def _note_wishes(self, change: Change) -> None:
        metadata, spec = change.body["metadata"], change.body["spec"]
        wishes = self.wishes.setdefault(metadata["uid"], Wishes())
        if change.before is None or change.before["metadata"]["generation"] != metadata["generation"]:
            wishes.hashes.append((change.version, spec_hash(decode_app(change.body))))
            wishes.policies.append((change.version, spec.get("restart", {}).get("policy", "OnFailure")))
            if spec.get("suspend"):
                wishes.suspended.append(change.version)
            self._note_offsets(wishes, change)
        start = spec.get("startFrom") or {}
        wishes.from_snapshot = "snapshotRef" in start and not start.get("adopt")
        if "deletionTimestamp" in metadata:
            wishes.deleted = True
            wishes.emptied = wishes.emptied or spec["storage"].get("deletionPolicy") == "Delete"

    def _note_offsets(self, wishes: Wishes, change: Change) -> None:
        asked = change.body["spec"].get("upgrade", {}).get("startingOffsets")
        if asked is not None:
            wishes.offsets.setdefault(asked["offsets"], asked["lineage"])
            if change.before is None:
                wishes.older_offsets.add(asked["offsets"])

    def hash_of(self, app: Body) -> str:
        """Return the hash of an application's present spec."""
        return self.wishes[app["metadata"]["uid"]].hashes[-1][1]

    def lose_status(self, uid: str, *, restored: bool) -> None:
        """Somebody or something removed an application's status, or put another one in its place."""
        wishes = self.wishes[uid]
        wishes.status_lost = wishes.ever_lost = True
        wishes.ever_restored = wishes.ever_restored or restored

    def come_back(self, uid: str, *, knows_batches: bool) -> None:
        """A backup brings an application back that was deleted; for a moment operators go by that."""
        wishes = self.wishes[uid]
        wishes.was_emptied = wishes.was_emptied or wishes.emptied
        wishes.knows_batches = knows_batches

    def note_deletion(self, path: str, uid: str) -> None:
        """Everybody has noticed by now that an application is there again."""
        app = self.api.find(path)
        if app is not None and app["metadata"]["uid"] == uid and "deletionTimestamp" not in app["metadata"]:
            self.wishes[uid].deleted = self.wishes[uid].emptied = False

    def write_lineage(self, uid: str, before: int, after: int) -> None:
        """Somebody wrote another lineage into a status; where they had removed the number, it is that of before."""
        stood = {before} if before else {0, *self.written_over.get((uid, 0), ())}
        self.written_over.setdefault((uid, after), set()).update(stood)

    def _check_app(self, change: Change) -> None:
        before, after, place = change.before or {}, change.body, change.place
        if before.get("spec") != after.get("spec"):
            self.violated(f"the operator changes the spec of {place.path}")
        old, new = _epoch_in(before), _epoch_in(after)
        wishes = self.wishes[after["metadata"]["uid"]]
        if new < old:
            self.violated(f"the epoch of {place.path} goes back from {old} to {new}")
        if new > 0:
            wishes.status_lost = False
        wishes.recorded = max(wishes.recorded, old, new)
        self._note_opening(before, after)
        if change.type != "DELETED":
            recorded = self.action() == "RecordLaunch"
            either = self._in_force(as_decided(before, after), wishes.hashes[-1][1])
            applied = str((after.get("status") or {}).get("appliedSpecHash", ""))
            wanted = applied if applied in either else min(either)
            self.rules.check_app(before, after, place.path, wanted, recorded)
            self.rollbacks.check_app(after, place.path, recorded=recorded)
        self._check_standstill(place.path, before, after)
        self._check_refused(place, before, after)
        if self.action() == "RecordLaunch" and went_on_beside_an_edit(after):
            self.count("went on beside an edit of which no pod can be made")
        if self.action() == "RecordLaunch" and 0 < old < new:
            driver = self.api.find(_driver_path(place.namespace, place.name))
            # What came up after the decision is settled by the creation, which then meets a pod of that name.
            if driver is not None and self._born(driver) <= self.decided_at(place.namespace, place.name):
                self.violated(f"epoch {new} of {place.path} is recorded, but the driver of epoch {old} is there")

        suspended = reason_of(before) != reason_of(after) == "Suspended"
        if (suspended or change.type == "DELETED") and self._has_driver(change, place.name, after["metadata"]["uid"]):
            self.violated(
                f"{place.path} is {'said to be suspended' if suspended else 'released'}, and its driver is there"
            )

    def _in_force(self, app: Body, wanted: str) -> set[str]:
        """Return the hashes of the versions one of which an application is to run."""
        return versions_in_force(app, wanted, rival=may_have_had_rival(app, self.api.all(APPS)))

    def _check_standstill(self, path: str, before: Body, after: Body) -> None:
        """Look whether an application stands still now for what it does not need."""
        uid = after["metadata"]["uid"]
        if _epoch_in(after) > 0 == _epoch_in(before):
            self.blank.add(uid)  # nothing is known of it but what is written now; the next look goes on with that
            return
        if reason_of(before) == reason_of(after) and uid not in self.blank:
            return
        self.blank.discard(uid)
        if reason_of(after) in _WAITS_FOR_SNAPSHOT and self.ran.get(after["metadata"]["uid"]):
            self.violated(f"{path} waits for the snapshot that it has long started from")
        if stands_still_for_an_edit(after, self.api.clock()):
            self.violated(f"{path} stands still for an edit of which no pod can be made")
        if stands_still_for_a_place(after):
            self.violated(f"{path} stands still for a place that another application has")

    def _check_refused(self, place: Place, before: Body, after: Body) -> None:
        """Look whether a version is refused now that runs: its driver would be stopped for a former one."""
        upgrade, driver = _upgrade_in(after), self.api.find(_driver_path(place.namespace, place.name))
        if upgrade.get("phase") != "Refused" or upgrade == _upgrade_in(before) or driver is None:
            return
        metadata, phase = driver["metadata"], driver.get("status", {}).get("phase")
        notes = metadata.get("annotations", {})
        shown = (notes.get(ANNOTATION_APP_UID), notes.get(ANNOTATION_SPEC_HASH))
        is_new = self._born(driver) > self.decided_at(place.namespace, place.name)
        if phase != "Running" or "deletionTimestamp" in metadata or is_new:
            return
        if shown == (after["metadata"]["uid"], upgrade.get("toSpecHash")):
            self.violated(f"{place.path} refuses the version that runs")

    def _note_opening(self, before: Body, after: Body) -> None:
        """Note the launch of a lineage, and which one is left for it."""
        old, new = _lineage_in(before), _lineage_in(after)
        upgrade = (after.get("status") or {}).get("upgrade") or {}
        # Somebody may have written the number into the status that the upgrade under way was to open.
        foreseen = upgrade.get("phase") == "Gate" and upgrade.get("lineage") == new
        if self.action() == "RecordLaunch" and (old != new or foreseen):
            uid = after["metadata"]["uid"]
            # Of a status that was lost or written over it is what had stood there; also where somebody writes another
            # number over it once the state is given up, and the version only has to be launched.
            decided = foreseen and upgrade.get("mode") == "Stateless"
            stood = self.written_over.get((uid, old), ()) if decided or old in {0, new} else ()
            left = {old, *stood}
            self.opened_after.setdefault((uid, new), set()).update(left)

    def _has_driver(self, change: Change, app: str, uid: str) -> bool:
        """Return whether there is a driver of an application that was there when this was decided."""
        place = change.place
        driver = self.api.find(_driver_path(place.namespace, app))
        if driver is None or uid not in _owners(driver):
            return False
        return self._born(driver) <= self.decided_at(place.namespace, app)

    def _born(self, body: Body) -> int:
        return self.api.born[body["metadata"]["uid"]]

    def configured(self, path: str, mounted: dict[str, Body], config: DriverConfig) -> None:
        """A driver comes up with a configuration; these Secrets are mounted in its pod."""
        for name, secret in mounted.items():
            if REST_KEY not in secret.get("data", {}):
                continue
            self.count("ran with a long configuration")
            if secret["data"] != self._given.get(name):
                self.violated(f"{path} runs with what somebody put into {name}")
            if secret["metadata"]["labels"][LABEL_EPOCH] != str(config.epoch):
                self.violated(f"{path} of epoch {config.epoch} runs with the configuration of {name}")

    # --- messages ---

    def _check_message(self, change: Change) -> None:
        before, after = change.before or {}, change.body
        phase = (before.get("status") or {}).get("phase", "")
        ended = phase in ("Applied", "Failed", "Expired")
        if change.type == "DELETED":
            self.count("removed a message that had ended")
            if not ended:
                self.violated(f"the operator removes {change.place.path}, which is {phase or 'new'}")
        elif ended or before.get("spec") != after.get("spec"):
            self.violated(f"the operator changes {change.place.path}, which is {phase or 'new'}")

    # --- pods come ---

    def _note_created(self, change: Change, *, ours: bool) -> None:
        self.labels[change.body["metadata"]["uid"]] = change.labels
        if ours:
            self._check_created(change)

    def _check_created(self, change: Change) -> None:
        labels, notes = change.labels, change.body["metadata"].get("annotations", {})
        uid = notes.get(ANNOTATION_APP_UID, "")
        wishes = self.wishes.get(uid, Wishes())
        if labels.get(LABEL_ROLE) == ROLE_PURGE and not wishes.emptied:
            self.violated(f"{change.place.path} is created, but nobody wants that storage emptied")
        if labels.get(LABEL_ROLE) == ROLE_PURGE and self._has_driver(change, labels[LABEL_APP], uid):
            self.violated(f"{change.place.path} is created, and the driver is there")
        if labels.get(LABEL_ROLE) == ROLE_REHEARSAL:
            self._check_rehearsal(change, wishes)
        if labels.get(LABEL_ROLE) == ROLE_REPARTITION:
            self._check_repartition(change, wishes)
        if labels.get(LABEL_ROLE) != ROLE_DRIVER:
            return
        epoch, pod = int(labels[LABEL_EPOCH]), change.body["metadata"]["uid"]
        app = self.api.find(_app_path(change.place.namespace, labels[LABEL_APP]))
        known = max(wishes.recorded, _epoch_in(app or {}))
        if app is not None and app["metadata"]["uid"] == uid and not wishes.status_lost and epoch > known:
            self.violated(f"{change.place.path} of epoch {epoch} is created, but status knows only {known}")
        if self.epochs.setdefault((uid, epoch), pod) != pod and not wishes.ever_lost:
            self.violated(f"epoch {epoch} is used by two pods: {self.epochs[uid, epoch]} and {pod}")
        if not wishes.ever_lost:
            self.rules.check_driver(change, app, _last_change(wishes), self.late())

    def _check_rehearsal(self, change: Change, wishes: Wishes) -> None:
        app = self.api.find(_app_path(change.place.namespace, change.labels[LABEL_APP]))
        notes = change.body["metadata"]["annotations"]
        if app is None or wishes.ever_lost or app["metadata"]["uid"] != notes[ANNOTATION_APP_UID]:
            return
        upgrade = (app.get("status") or {}).get("upgrade") or {}
        reported = (upgrade.get("phase"), upgrade.get("toSpecHash"), "result" in upgrade.get("rehearsal", {}))
        if reported != ("Rehearsing", notes[ANNOTATION_SPEC_HASH], False) and self.late():
            self.count("a rehearsal begun by a former leader")  # it harms nobody, and goes when the leader sees it
        elif reported != ("Rehearsing", notes[ANNOTATION_SPEC_HASH], False):
            self.violated(f"{change.place.path} is created, and the status says {reported}")
        if {LABEL_EPOCH} & change.labels.keys():
            self.violated(f"{change.place.path} has an epoch")

    def _check_repartition(self, change: Change, wishes: Wishes) -> None:
        name, notes = change.labels[LABEL_APP], change.body["metadata"]["annotations"]
        app = self.api.find(_app_path(change.place.namespace, name))
        if app is None or wishes.ever_lost or app["metadata"]["uid"] != notes[ANNOTATION_APP_UID]:
            return
        status = app.get("status") or {}
        upgrade = status.get("upgrade") or {}
        reported = (upgrade.get("phase"), upgrade.get("repartition", {}).get("epoch"))
        if reported != ("Repartitioning", int(change.labels[LABEL_EPOCH])) and not self.late():
            self.violated(f"{change.place.path} is created, and the status says {reported}")
        elif reported != ("Repartitioning", int(change.labels[LABEL_EPOCH])):
            self.count("a repartition begun by a former leader")  # it has no fence, or loses it, and writes elsewhere
        if self._has_driver(change, name, notes[ANNOTATION_APP_UID]) and not self.late():
            self.violated(f"{change.place.path} is created, and the driver is there")

    def _restores_labels(self, change: Change) -> bool:
        """Return whether a pod is as it was, but for labels that it was made with."""
        before, after = change.before or {}, change.body
        given = self.labels.get(after["metadata"]["uid"], {})
        if change.place.plural != PODS or before["spec"] != after["spec"] or not _owners(after):
            return False
        self.count("restored labels")
        return all(given.get(name) == value for name, value in change.labels.items() - _labels(before).items())

    # --- objects go ---

    def _check_deleted(self, change: Change) -> None:
        labels = self._labels_of(change)
        if labels.get(LABEL_MANAGED_BY) != MANAGED_BY:
            self.violated(f"the operator deletes {change.place.path}, which is not its own")
        elif change.place.plural == PODS and not _owners(change.body):
            self.violated(f"the operator deletes {change.place.path}, which only has its labels")
        elif change.place.plural == PODS and not self._is_covered(change):
            self.violated(f"the operator deletes {change.place.path}, and nothing wants that")

    def _labels_of(self, change: Change) -> dict[str, str]:
        """Return the labels that a pod was made with, whatever was written on it since; of others the present ones."""
        return self.labels.get(change.body["metadata"]["uid"], change.labels)

    def _is_covered(self, change: Change) -> bool:
        labels, notes = self._labels_of(change), change.body["metadata"].get("annotations", {})
        wishes = self.wishes.get(notes.get(ANNOTATION_APP_UID, ""), Wishes())
        if wishes.deleted or labels.get(LABEL_ROLE) in (ROLE_PURGE, ROLE_REHEARSAL, ROLE_REPARTITION):
            return True
        if labels.get(LABEL_ROLE) == ROLE_EXECUTOR:
            return self._is_leftover(change)
        if self._wants_driver_gone(change, wishes, notes.get(ANNOTATION_SPEC_HASH, "")):
            return True
        if wishes.ever_restored:
            # It says what was in force then, another number of partitions for instance: a restart, and no more.
            self.count("a driver replaced by what a restored status said")
        return wishes.ever_restored

    def _wants_driver_gone(self, change: Change, wishes: Wishes, known: str) -> bool:
        born, status = self._born(change.body), change.body.get("status", {})
        app = self.api.find(_app_path(change.place.namespace, self._labels_of(change)[LABEL_APP]))
        if app is not None and wishes.hashes and self._in_force(app, wishes.hashes[-1][1]) != {known}:
            return True
        in_force = [spec for version, spec in wishes.hashes if version <= born][-1:]
        in_force += [spec for version, spec in wishes.hashes if version > born]
        text = str(status.get("containerStatuses", ""))
        return (
            any(spec != known for spec in in_force)
            or any(version > 0 for version in wishes.suspended)
            or (status.get("phase") == "Failed" and self._may_be_replaced(change, wishes))
            or any(word in text for word in _RETRIED)
            or (_COMPLETED in text and "Always" in self._policies_since(born, wishes))
            or not in_force
            or ("ContainerCreating" in text and self._lacks_configuration(change))
        )

    def _lacks_configuration(self, change: Change) -> bool:
        """Return whether a pod waits for the Secret of its configuration, which is not there."""
        wanted = [each.get("secret", {}).get("secretName", "") for each in change.body["spec"].get("volumes", ())]
        secrets = f"/api/v1/namespaces/{change.place.namespace}/secrets"
        lacks = any("-config-" in name and self.api.find(f"{secrets}/{name}") is None for name in wanted)
        if lacks:
            self.count("replaced a driver without its configuration")
        return lacks

    def _may_be_replaced(self, change: Change, wishes: Wishes) -> bool:
        return self.rules.wants_failed_pod_gone(change.body, self._policies_since(self._born(change.body), wishes))

    def _policies_since(self, version: int, wishes: Wishes) -> list[str]:
        before = [policy for since, policy in wishes.policies if since <= version]
        return before[-1:] + [policy for since, policy in wishes.policies if since > version]

    def _is_leftover(self, change: Change) -> bool:
        driver = self.api.find(_driver_path(change.place.namespace, self._labels_of(change)[LABEL_APP]))
        if driver is None or driver["metadata"]["uid"] not in _owners(change.body):
            return True
        return change.body.get("status", {}).get("phase") in ("Failed", "Succeeded")

    # --- storage ---

    def taken(self, prefix: str, holder: Holder, rules: RestartSettings) -> None:
        """A process took the fence."""
        self.rules.taken(holder, rules)
        first = self.takers.setdefault((holder.uid, holder.epoch), holder.pod_uid)
        if first != holder.pod_uid:
            self.violated(f"epoch {holder.epoch} takes the fence of {prefix} in two pods: {first}, {holder.pod_uid}")
        known = self.fences.setdefault(prefix, [])
        if known and known[-1].uid == holder.uid and known[-1].epoch > holder.epoch:
            self.violated(f"epoch {holder.epoch} takes the fence of {prefix} from epoch {known[-1].epoch}")
        known.append(holder)

    def begun(self, prefix: str, holder: Holder) -> None:
        """A process begins a batch: remember who has the fence."""
        known = self.fences.get(prefix)
        self._check_emptied(prefix, holder)
        self.run_in.add((prefix, holder.lineage))
        self._begun[holder.process] = self._now(prefix, holder, known[-1] if known else None)

    def _check_emptied(self, prefix: str, holder: Holder) -> None:
        """Look whether one that knows of batches starts where its storage was emptied, and nobody said that it may."""
        if not self.wishes[holder.uid].knows_batches or prefix not in self._purged_of.get(holder.uid, ()):
            return
        if holder.pod_uid in self.pods_put_back:
            return  # it was told what it goes by before there was a batch, and its kubelet starts it
        app = next((it for it in self.api.all(APPS) if it["metadata"]["uid"] == holder.uid), None)
        if app is None or (prefix, holder.lineage) in self.committed_batches:
            return
        given_up = ABANDON_ANNOTATION in app["metadata"].get("annotations", {}) or "startFrom" in app["spec"]
        if not given_up:
            self.violated(f"{holder.process} starts with nothing in {prefix}, which was emptied after it came back")

    def _now(self, prefix: str, holder: Holder, fenced_by: Holder | None) -> _Begun:
        ran = max(self.ran.get(holder.uid, {}).values(), default=0)
        return _Begun(fenced_by, self._times_emptied[prefix], self.runs_in.get(prefix, 0), ran)

    def committed(self, prefix: str, holder: Holder, batch: int) -> None:
        """A process commits the batch that it began."""
        begun = self._begun[holder.process]
        if begun.fenced_by != holder:
            self.violated(
                f"{holder.process} commits batch {batch} of {prefix}; when it began, {begun.fenced_by} had the fence"
            )
        self.batches += 1
        at = (prefix, holder.lineage)
        if begun.emptied != self._times_emptied[prefix]:
            # The one batch that a zombie may have had under way when the storage was emptied. The next one finds it.
            self._strays.add((*at, batch))
            return
        # So the one of a process that lost the fence since is judged by what was there when it had it: whoever took
        # the fence may have run in a later lineage by now.
        has_fence = self.fences.get(prefix, [])[-1:] == [holder]
        then = self._now(prefix, holder, holder) if has_fence else begun
        if holder.lineage < self.runs_in.get(prefix, 0) and not has_fence:
            self.count("ended a batch in a lineage that had been left")
        self._check_lineage(prefix, holder, then.runs_in)
        self._check_start(prefix, holder, then.ran)
        if (*at, batch - 1) not in self._strays and batch != self.committed_batches.get(at, -1) + 1:
            self.violated(f"batch {batch} of {prefix} is committed after {self.committed_batches.get(at, -1)}")
        self.committed_batches[at] = batch
        reached = self.reached.setdefault((holder.uid, holder.lineage), batch - 1)
        if batch <= reached:
            self.violated(
                f"batch {batch} of lineage {holder.lineage} in {prefix} is committed after {reached} elsewhere"
            )
        self.reached[holder.uid, holder.lineage] = max(batch, reached)

    def _check_lineage(self, prefix: str, holder: Holder, before: int) -> None:
        if holder.lineage < before:
            self.violated(f"{holder.process} runs in lineage {holder.lineage} of {prefix}, after lineage {before}")
        left = {holder.lineage}
        while before and left and before not in left:
            left = {old for new in left for old in self._left_for(holder, new) if before <= old < new}
        if before and not left:
            self.violated(
                f"lineage {holder.lineage} of {prefix} does not follow {before}, and the application ran there"
            )
        self.runs_in[prefix] = max(holder.lineage, self.runs_in.get(prefix, 0))

    def _check_start(self, prefix: str, holder: Holder, before: int) -> None:
        """Look whether a batch is the first one of an application that was not to start empty there."""
        places = self.ran.setdefault(holder.uid, {})
        began = (prefix, holder.lineage) in self.committed_batches  # it goes on, or was filled
        if not began and self.wishes[holder.uid].from_snapshot and holder.lineage == 1:
            self.violated(f"{holder.process} starts empty in {prefix}, and is to start from a snapshot")
        if not began and before >= holder.lineage:
            self.violated(f"{holder.process} starts empty in lineage {holder.lineage} of {prefix}; it ran in {places}")
        places[prefix] = max(holder.lineage, places.get(prefix, 0))

    def _has_run(self, uid: str, lineage: int) -> bool:
        return (uid, lineage) in self.reached

    def _epoch_before(self, uid: str) -> int:
        return sorted([0, 0, *(epoch for taker, epoch in self.takers if taker == uid)])[-2]

    def _left_for(self, holder: Holder, lineage: int) -> set[int]:
        """Return the lineages that were left for another one; what people wrote in between is none that was run in."""
        left = self.opened_after.get((holder.uid, lineage), set())
        written = self.written_over.get((holder.uid, lineage), set()) if lineage != holder.lineage else set()
        return left | written

    def filled(self, prefix: str, holder: Holder, of_lineage: int, batch: int) -> None:
        """The lineage of a process starts from what another one was after a batch."""
        self.rollbacks.filled(holder.uid, holder.lineage)
        before = self.committed_batches.get((prefix, of_lineage))
        if before is not None and batch > before:
            self.violated(f"lineage {holder.lineage} of {prefix} begins after batch {batch}; there were {before}")
        self.committed_batches[prefix, holder.lineage] = batch
        # What was in a lineage of that number may have gone with an older copy of the storage.
        self.partitions.pop((prefix, holder.lineage), None)
        if (prefix, of_lineage) in self.partitions:
            self.partitions[prefix, holder.lineage] = self.partitions[prefix, of_lineage]

    def started_elsewhere(self, uid: str, holder: Holder, of_lineage: int, offsets: str) -> None:
        """The lineage of a process starts with what another one was, and with other offsets."""
        wishes, where = self.wishes[uid], f"lineage {holder.lineage} of {uid} goes on from {offsets}"
        asked = wishes.offsets.get(offsets, of_lineage + 1)
        # One that a rollback opened is the one before it, in another number.
        if asked > of_lineage or offsets in wishes.older_offsets:
            self.violated(f"{where}, and nobody has asked for that")
        if self.used_offsets.setdefault((uid, offsets), holder.lineage) != holder.lineage:
            self.violated(f"{where}, and another one did")
        self.count("went on from other offsets")

    def noted(self, prefix: str, holder: Holder, of_lineage: int, batch: int) -> None:
        """A process writes down after which batch of a lineage an upgrade can be rolled back to."""
        reached = self.reached.get((holder.uid, of_lineage), -1)
        if batch < reached:
            self.violated(
                f"{prefix} could be rolled back to batch {batch} of lineage {of_lineage}, which has had {reached}"
            )

    def repartitioned(self, prefix: str, holder: Holder, of_lineage: int, batch: int, partitions: int) -> None:
        """The state of a lineage was repartitioned into another one, in a batch of its own."""
        at, what = (prefix, holder.lineage), f"the state of lineage {of_lineage} of {prefix} is repartitioned"
        if at in self.run_in:
            self.violated(f"{what} into lineage {holder.lineage}, in which the application ran")
        if self.partitions.get((prefix, of_lineage)) == partitions:
            self.violated(f"{what} twice, into {partitions} partitions")
        self.partitions[at] = partitions
        self.committed_batches[at] = batch

    def cleared(self, prefix: str, lineage: int) -> None:
        """What a repartition made in a lineage is removed, for a process that is to start with nothing there."""
        self.count("started with nothing where a repartition had left something")
        if (prefix, lineage) in self.run_in:
            self.violated(f"lineage {lineage} of {prefix} is removed, in which the application ran")
        self.committed_batches.pop((prefix, lineage), None)
        self.partitions.pop((prefix, lineage), None)

    def not_whole(self, prefix: str, holder: Holder) -> None:
        """A driver begins on a lineage that is not whole."""
        self.violated(f"{holder.process} begins on lineage {holder.lineage} of {prefix}, which is not whole")

    def ended(self, holder: Holder, rules: RestartSettings, *, counted: bool, healthy: bool) -> None:
        """A process ended."""
        self.rules.ended(holder, rules, counted=counted, healthy=healthy)

    def removed(self, key: str, by: DriverConfig | None) -> None:
        """An object of the store is removed, by the purge of an application."""
        wishes = self.wishes.get(by.uid, Wishes()) if by is not None else Wishes()
        if by is None or not (wishes.emptied or wishes.was_emptied):
            self.violated(f"{key} is removed, and nobody wants that")
        elif not key.startswith(f"{by.storage.bucket}/{by.storage.prefix}/"):
            self.violated(f"{key} is removed by the purge of {by.storage.uri}")

    def emptied(self, prefix: str) -> None:
        """The storage is empty: whoever comes next begins again."""
        self._times_emptied[prefix] += 1
        held = {(holder.uid, holder.epoch) for holder in self.fences.pop(prefix, ())}
        self.takers = {at: pod for at, pod in self.takers.items() if at not in held}
        self.runs_in.pop(prefix, None)
        gone = {uid for uid, places in self.ran.items() if prefix in places}
        for uid in gone:
            self._purged_of.setdefault(uid, set()).add(prefix)
        self.reached = {at: batch for at, batch in self.reached.items() if at[0] not in gone}
        for places in self.ran.values():
            places.pop(prefix, None)
        self.run_in = {at for at in self.run_in if at[0] != prefix}
        self.partitions = {at: number for at, number in self.partitions.items() if at[0] != prefix}
        for at in [at for at in self.committed_batches if at[0] == prefix]:
            del self.committed_batches[at]

    def copied(self, source: str, target: str) -> None:
        """Somebody copied a storage to another place, in which there is nothing else."""
        there = {lineage: batch for (prefix, lineage), batch in self.committed_batches.items() if prefix == source}
        self._hold(target, there)
        self.runs_in[target] = self.runs_in.get(source, 0)

    def _hold(self, prefix: str, batches: dict[int, int]) -> None:
        for at in [at for at in self.committed_batches if at[0] == prefix]:
            del self.committed_batches[at]
        self.committed_batches |= {(prefix, lineage): batch for lineage, batch in batches.items()}

    def put_back(self, prefix: str, uid: str, epoch: int) -> None:
        """Claim, fence and status of an application do not know any more of epochs after one."""
        self.fences[prefix] = [holder for holder in self.fences.get(prefix, []) if holder.epoch <= epoch]
        self.takers = {at: pod for at, pod in self.takers.items() if at[0] != uid or at[1] <= epoch}

    def accepted(self, uid: str, prefix: str, lineage: int, batches: dict[int, int]) -> None:
        """A person accepts an older copy, which is in a lineage and has these batches, by their lineages."""
        self._hold(prefix, batches)
        self.run_in = {at for at in self.run_in if at[0] != prefix or at[1] <= lineage}
        self.reached = {at: batch for at, batch in self.reached.items() if at[0] != uid}
        self.runs_in[prefix] = lineage
        self.ran.get(uid, {}).pop(prefix, None)


def _last_change(wishes: Wishes) -> int:
    """Return the version in which an application's spec became another one for starts of its driver."""
    versions = [new[0] for of in (wishes.hashes, wishes.policies) for old, new in pairwise(of) if old[1] != new[1]]
    return max(versions, default=0)


def _newly_terminating(change: Change) -> bool:
    before = change.before or {"metadata": {}}
    return "deletionTimestamp" in change.body["metadata"] and "deletionTimestamp" not in before["metadata"]


def _owners(body: Body) -> set[str]:
    return {owner["uid"] for owner in body["metadata"].get("ownerReferences", ())}


def _labels(body: Body) -> dict[str, str]:
    found: dict[str, str] = body["metadata"].get("labels", {})
    return found


def _upgrade_in(body: Body) -> Body:
    return (body.get("status") or {}).get("upgrade") or {}


def _epoch_in(body: Body) -> int:
    return int((body.get("status") or {}).get("epoch", 0))


def _lineage_in(body: Body) -> int:
    return int((body.get("status") or {}).get("lineage", 0))


def _driver_path(namespace: str, app: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods/{app}-driver"


def _app_path(namespace: str, app: str) -> str:
    return f"/apis/tidegate.dev/v1alpha1/namespaces/{namespace}/streamingapps/{app}"
