"""A cluster small enough to be a value: messages to one application, its driver with its log, and an operator. Pure.

Plans are carried out on it by :mod:`tidegate_testing.plan_interpreter`. What the operator sees of the resources comes
late, and its answers get lost. The driver does what the runtime promises: its log takes an id once, in the order in
which it is given, and a process that is new knows the log and not what was asked.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

import msgspec

from tidegate.api.control_message import ControlMessage, ControlMessageStatus, MessagePhase
from tidegate.api.streaming_app import Phase, StreamingApp
from tidegate.control.actions import ControlPlan
from tidegate.control.index import ControlIndex
from tidegate.control.observation import ControlMemory, ControlObservation
from tidegate.control.rules.plan import decide_control
from tidegate.pods.records.record import PodRecord, process_of
from tidegate_spark.contract.control_protocol import ControlOrders, ControlReport, MessageReport, MessageState
from tidegate_spark.contract.protocol import AgentReport, DriverState
from tidegate_testing.control_observations import message
from tidegate_testing.observations import NOW, app_with, launched, running_driver
from tidegate_testing.plan_interpreter import PlanInterpreter

ENDS = (MessageState.DONE, MessageState.FAILED, MessageState.REJECTED, MessageState.ROLLED_BACK)


@dataclass
class Driver:
    """The driver of one application: its log outlives its processes."""

    log: list[str] = field(default_factory=list)
    """Ids; a sequence is a place in it."""
    states: dict[str, MessageState] = field(default_factory=dict)
    expires: dict[str, float] = field(default_factory=dict)
    asked: list[str] = field(default_factory=list)
    """What this process was given and has not appended yet."""
    reported: list[str] = field(default_factory=list)
    """Of what this process reports."""

    def take(self, orders: ControlOrders) -> None:
        """Take orders in."""
        for order in orders.messages:
            self.expires[order.id] = order.expires
            self.asked += [order.id] if order.id not in self.asked else []
        self.reported = [name for name in self.reported if name not in orders.forget]

    def append(self, now: float, most: int) -> None:
        """Append to the log what was asked for, or some of it."""
        for name in self.asked[:most]:
            if name not in self.log:
                self.log.append(name)
                late = 0 < self.expires[name] <= now
                self.states[name] = MessageState.EXPIRED if late else MessageState.LOGGED
            self.reported += [name] if name not in self.reported else []
        del self.asked[:most]

    def end(self, which: int) -> None:
        """Have the oldest message that is in the log come to its end."""
        for name in self.log:
            if self.states[name] in (MessageState.LOGGED, MessageState.IN_FORCE):
                self.states[name] = ENDS[which % len(ENDS)]
                return

    def restart(self) -> None:
        """Another process, which was not asked for anything."""
        self.asked, self.reported = [], []

    def report(self) -> ControlReport:
        """Return what the process tells."""
        reports = (MessageReport(name, self.states[name], self.log.index(name) + 1) for name in self.reported)
        return ControlReport(last=len(self.log), messages=tuple(reports))


@dataclass
class ControlWorld(PlanInterpreter):
    """The world; methods are what happens in it."""

    now: float = NOW
    version: int = 100
    stored: dict[str, ControlMessage] = field(default_factory=dict)
    """What the API server holds, by name."""
    unseen: list[tuple[bool, ControlMessage]] = field(default_factory=list)
    """What the watch has not told yet: whether it is gone, and the version."""
    sent: list[str] = field(default_factory=list)
    """Uids in the order in which they were created."""
    app: StreamingApp | None = None
    drivers: dict[str, Driver] = field(default_factory=dict)
    """By the application's uid."""
    restarts: int = 0
    heard: AgentReport | None = None
    """The newest answer of the process that runs."""
    under_way: list[tuple[str, int, ControlOrders]] = field(default_factory=list)
    """Orders on the network: to the driver of which application, of which process, and what."""
    deaf: bool = False
    """The agent takes nothing."""
    index: ControlIndex = field(default_factory=ControlIndex)
    memory: ControlMemory = field(default_factory=ControlMemory)
    ends: dict[str, ControlMessageStatus] = field(default_factory=dict)
    """What was written of the end of each, by uid."""
    apps: int = 0

    # --- the operator ---

    def observe(self) -> ControlObservation:
        """Return what the operator would observe now."""
        driver = running_driver(self.app, restarts=self.restarts) if self.runs and self.app is not None else None
        return ControlObservation(
            namespace="shop",
            app_name="orders",
            messages=self.index.in_order(("shop", "orders")),
            app=self.app,
            driver=driver,
            agent=self.heard if driver is not None else None,
            memory=self.memory,
        )

    def check(self, crash_after: int | None = None) -> ControlPlan:
        """Have the operator look at the messages once; it may die in between, and another one leads then."""
        plan = decide_control(self.observe(), self.now)
        if self.carry_out(plan, crash_after) and crash_after is not None and crash_after >= len(plan.actions):
            self.lose_process()
        return plan

    def give_messages(self, pod: PodRecord, orders: ControlOrders) -> bool:
        """Give messages to the driver's agent; returns whether it took them."""
        self._check_offered(orders)
        given = frozenset(order.id for order in orders.messages)
        self.remember(
            ordered_at=self.now,
            ordered_to=process_of(pod),
            ordered=given,
            forgotten=frozenset(orders.forget),
            not_taken="deaf" if self.deaf else "",
        )
        if not self.deaf and self.app is not None:
            self.under_way.append((self.app.metadata.uid, self.restarts, orders))
        return not self.deaf

    def delete_message(self, message: ControlMessage) -> None:
        """Delete the resource of a message, of which the watch will tell."""
        assert message.is_final, "removed before its end"
        self._remove(message.metadata.name)
        self.index.remove(message.key, message.metadata.uid)

    def _check_offered(self, orders: ControlOrders) -> None:
        by_uid = {each.metadata.uid: each for each in self.stored.values()}
        for order in orders.messages:
            of = by_uid.get(order.id)
            if of is not None:
                assert of.status.offered_time is not None, "given before the resource says so"
        for name in orders.forget:
            of = by_uid.get(name)
            assert of is None or of.is_final, "forgotten before its end is written down"

    def write_message_status(self, message: ControlMessage, status: ControlMessageStatus) -> bool:
        """Give a message a status; returns whether it was as it was observed."""
        known = self.stored.get(message.metadata.name)
        if known is None or known.metadata.uid != message.metadata.uid:
            self.index.remove(message.key, message.metadata.uid)
            return False
        if known.metadata.resource_version != message.metadata.resource_version:
            self.index.put(known)
            return False
        assert not known.is_final, "written after its end"
        if status.phase in (MessagePhase.APPLIED, MessagePhase.FAILED, MessagePhase.EXPIRED):
            self.ends[message.metadata.uid] = status
        self.index.put(self._store(msgspec.structs.replace(known, status=status)))
        return True

    def lose_process(self) -> None:
        """The operator's process ends, and another one leads."""
        self.change_leader()

    def change_leader(self) -> None:
        """Another process leads: it lists everything, and remembers nothing."""
        self.index, self.memory, self.unseen = ControlIndex(), ControlMemory(), []
        self.index.replace(list(self.stored.values()), "", str(self.version))
        self.heard = None

    def see(self) -> None:
        """The watch tells the next news."""
        if self.unseen:
            gone, of = self.unseen.pop(0)
            if gone:
                self.index.remove(of.key, of.metadata.uid)
            else:
                self.index.put(of)

    def hear(self) -> None:
        """The agent is asked."""
        if self.runs and self.app is not None:
            control = self.drivers[self.app.metadata.uid].report()
            self.heard = AgentReport(
                "orders", self.app.metadata.uid, 1, DriverState.RUNNING, ready=True, control=control
            )

    # --- people ---

    def send(self, name: str, ttl: int = 0, payload: object = None) -> None:
        """Somebody sends a message, unless there is one of that name."""
        if name in self.stored:
            return
        uid = f"uid-{len(self.sent)}"
        self.sent.append(uid)
        self._store(message(name, sent=float(int(self.now)), ttl=ttl, payload=payload, uid=uid), news=True)

    def delete(self, name: str) -> None:
        """Somebody deletes a message."""
        if name in self.stored:
            self._remove(name)

    # --- the application ---

    @property
    def runs(self) -> bool:
        """Whether its driver runs."""
        return self.app is not None and self.app.status.phase is Phase.RUNNING

    @property
    def driver(self) -> Driver | None:
        """Its driver, whether it runs or not."""
        return self.drivers[self.app.metadata.uid] if self.app is not None else None

    def app_is_made(self) -> None:
        """There is an application of the name, which runs; another one if there was one before."""
        if self.app is None:
            self.apps += 1
            uid = f"app-{self.apps}"
            self.drivers[uid] = Driver()
            self.app = app_with(uid=uid)
        self._set_phase(Phase.RUNNING)

    def app_rests(self) -> None:
        """It is suspended."""
        if self.app is not None:
            self._set_phase(Phase.SUSPENDED)

    def app_goes(self) -> None:
        """It is deleted."""
        self.app, self.heard = None, None

    def restart_driver(self) -> None:
        """Its process ends, and another one begins."""
        if self.runs:
            self._set_phase(Phase.RUNNING)

    def deliver(self, lost: bool = False) -> None:
        """The oldest orders on the network arrive, or get lost."""
        if self.under_way:
            uid, restarts, orders = self.under_way.pop(0)
            if (
                not lost
                and self.runs
                and self.app is not None
                and (uid, restarts) == (self.app.metadata.uid, self.restarts)
            ):
                self.drivers[uid].take(orders)

    def append(self, most: int) -> None:
        """The driver writes its log."""
        if self.runs and self.driver is not None:
            self.driver.append(self.now, most)

    def end(self, which: int) -> None:
        """Something comes of the oldest message in the log."""
        if self.runs and self.driver is not None:
            self.driver.end(which)

    def logged(self) -> Sequence[str]:
        """Return what is in the logs, of all applications."""
        return [name for driver in self.drivers.values() for name in driver.log]

    def _set_phase(self, phase: Phase) -> None:
        assert self.app is not None
        self.app = launched(self.app, phase=phase)
        self.drivers[self.app.metadata.uid].restart()
        self.restarts += 1
        self.heard = None

    def _store(self, of: ControlMessage, *, news: bool = False) -> ControlMessage:
        self.version += 1
        stored = msgspec.structs.replace(
            of, metadata=msgspec.structs.replace(of.metadata, resource_version=str(self.version))
        )
        self.stored[of.metadata.name] = stored
        self.unseen += [(False, stored)] if news else []
        return stored

    def _remove(self, name: str) -> None:
        self.version += 1
        self.unseen.append((True, self.stored.pop(name)))
