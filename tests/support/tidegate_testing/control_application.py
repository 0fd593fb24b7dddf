"""An application with one query, for tests of its control desk: checkpoint, storage, a process that may be killed."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from tidegate.pods.records.record import PodRecord
from tidegate_spark.contract.protocol import DriverState, Storage
from tidegate_spark.control.messages.accounts import Account
from tidegate_spark.control.messages.handlers import Declared
from tidegate_spark.control.service.message_service import MessageService
from tidegate_spark.control_log.entries import Entry
from tidegate_spark.control_log.reducer import State
from tidegate_spark.process.progress import Progress
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_testing.control_log import BUCKET, PREFIX, Clock, opened
from tidegate_testing.control_observations import APP
from tidegate_testing.driver_process import driver_config
from tidegate_testing.memory_store import Buckets, Call, MemoryStore
from tidegate_testing.observations import UID, running_driver
from tidegate_testing.store_actors import Actor, KilledError

Draw = Callable[[int, int], int]


@dataclass
class Application:
    """One application with one query, and the driver around the desk of the process that runs now."""

    draw: Draw
    clock: Clock
    buckets: Buckets = field(default_factory=Buckets)
    lineage: int = 1
    planned: list[int] = field(default_factory=list)
    """The position of each batch, as the offset log has it."""
    seen: dict[int, list[str]] = field(default_factory=dict)
    """Batch -> ids of the messages that come into force with it."""
    committed: int = 0
    runs: bool = True
    pods: int = 1
    restarts: int = 0
    faulty: dict[int, str] = field(default_factory=dict)
    """Sequence -> what a handler fails with."""
    actor: Actor | None = None

    def __post_init__(self) -> None:
        self.progress = Progress(driver_config("orders", "local:///main.py", Storage("s3://b/p"), uid=UID))
        self.progress.enter(DriverState.RUNNING)
        self.declared = Declared(types={"note": None})
        self.begin_process()

    def begin_process(self) -> None:
        """Begin another process, on checkpoint and storage as they are."""
        self.service = MessageService(self._repository, self, self.declared, self.clock)
        self.progress.control = self.service.report
        self.restarts += 1
        # Which workers a batch had, and what they said, goes with the process that they told.
        self.faulty.clear()
        if self.committed:
            self.service.begins("main", self.planned[self.committed - 1])

    @property
    def pod(self) -> PodRecord:
        """The driver's pod, as the watch shows it."""
        return running_driver(APP, uid=f"pod-{self.pods}", ip="127.0.0.1", restarts=self.restarts)

    def _repository(self) -> SnapshotRepository:
        return SnapshotRepository(MemoryStore(self.buckets, BUCKET, self._watch), PREFIX, lambda seconds: None)

    def _watch(self, call: Call) -> None:
        assert self.actor is not None
        self.actor.store(self.buckets, BUCKET).watch(call)

    # --- the driver around the desk ---

    def is_open(self) -> bool:
        return True

    def inspection(self, entry: Entry) -> None:
        return None

    def asking(self) -> frozenset[str]:
        return frozenset({"main"})

    def pause(self, wanted: bool) -> None:
        """Nothing is held."""

    def carry_out(self, repository: SnapshotRepository, entry: Entry, account: Account, state: State) -> Account | None:
        return replace(account, done=True)

    def awaits_batch(self, entry: Entry, account: Account, state: State) -> bool:
        return False

    def begin(self, state: State) -> None:
        """Nothing is from before."""

    def batch_of(self, repository: SnapshotRepository, query: str, sequence: int) -> int | None:
        batches = (batch for batch in range(self.committed) if self.planned[batch] >= sequence)
        return next(batches, None)

    def oldest(self, repository: SnapshotRepository) -> int | None:
        return self.planned[0] if self.planned else None

    # --- what happens ---

    def act(self, work: Callable[[], Any], may_die: bool) -> Any:
        """Let the process do something; it may be killed at any request meanwhile, and another one begins: None."""
        self.actor = Actor("driver", lambda actor: work())
        dies = may_die and self.draw(0, 7) == 0
        for _ in range(self.draw(0, 10)) if dies else ():
            self.actor.step()
        if dies and not self.actor.ended:
            self.actor.kill()
            self.begin_process()
            return None
        outcome = self.actor.run()
        if isinstance(outcome, BaseException):
            assert not isinstance(outcome, KilledError)
            raise outcome
        return outcome

    def check(self, may_die: bool = True) -> Any:
        """Have the desk look once."""
        return self.act(self.service.check, may_die)

    def batch(self, may_die: bool = True) -> None:
        """Plan a batch, or take the one that was planned, run it, and commit it."""
        if self.check(may_die) is None:
            return
        if len(self.planned) == self.committed:
            position = self.act(self.service.position, may_die)
            if position is None:
                return
            self.planned.append(position)
        batch, position = self.committed, self.planned[self.committed]
        before = self.planned[batch - 1] if batch else 0
        found = self.act(lambda: self.service.messages(before, position), may_die)
        if found is None:
            return
        ids = [entry.id for entry in found]
        # A batch that is run again has what it had.
        assert self.seen.setdefault(batch, ids) == ids
        for worker in ("w1", "w2")[: self.draw(0, 2)]:
            self.service.workers.asks("main", batch, worker)
            errors = {entry.sequence: "ValueError: no" for entry in found if entry.type == "note"}
            self.faulty.update(errors)
            self.service.workers.applied("main", batch, worker, errors)
        if may_die and self.draw(0, 7) == 0:
            self.begin_process()
            return
        self.committed += 1
        self.service.committed("main", batch, position)

    def rest_or_run(self) -> None:
        """Be suspended, or run again with another pod."""
        self.runs = not self.runs
        self.pods += self.runs
        self.begin_process()

    def roll_back(self) -> None:
        """Go back to an earlier batch, in a new lineage; the process that fills it is another one."""
        if self.committed < 2:
            return
        pinned = self.draw(1, self.committed - 1)
        log = opened(self.buckets, self.clock)
        self.lineage += 1
        log.roll_back(log.state_at(self.planned[pinned - 1]), (), self.lineage)
        del self.planned[pinned:]
        self.committed = pinned
        self.seen = {batch: ids for batch, ids in self.seen.items() if batch < pinned}
        self.begin_process()
