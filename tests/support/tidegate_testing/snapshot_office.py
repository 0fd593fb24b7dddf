"""Orders about snapshots, carried out as drivers and pods do, by several processes; and what has to come of them.

Each order is the work of an actor, which can stop at any request, be killed there, and be followed by another one that
is given the same order: the next driver, or one that a second leader of the operator started. No I/O.
"""

import threading
from collections.abc import Callable
from dataclasses import dataclass, field

from tidegate_spark.contract.protocol import StartFrom, Storage
from tidegate_spark.contract.snapshot_protocol import AdoptOrder, SnapshotOrder
from tidegate_spark.driver.starting_point import Filler
from tidegate_spark.snapshots import manifest
from tidegate_spark.snapshots.catalog import State
from tidegate_spark.snapshots.lineages import upgrade_pin
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_spark.snapshots.service.operations import Carrier
from tidegate_testing.driver_process import driver_config
from tidegate_testing.fake_checkpoint import LAYOUT
from tidegate_testing.snapshot_retention import Keep, Kept, to_release
from tidegate_testing.snapshot_world import APPS, BUCKETS, IN_TURN, QUERY, Restoring, World
from tidegate_testing.store_actors import Actor


@dataclass
class Given:
    """One snapshot that was ordered, and what is known to have come of it."""

    app: str
    lineage: int
    order: SnapshotOrder
    published: bool = False
    """Somebody was told that it is ready."""
    unwanted: bool = False
    """It was ordered to be disposed of."""
    gone: bool = False
    """Somebody was told that it is disposed of."""
    holders: set[str] = field(default_factory=set)
    """Who was told that they hold it."""
    pins: bool = False
    """An upgrade can still be rolled back to it."""
    asked: bool = True
    """There is a StreamSnapshot for it."""
    created: float = 0.0
    """When that was made."""


class Office:
    """Gives the orders of all applications of a world."""

    def __init__(self, world: World) -> None:
        """Give none yet."""
        self.world = world
        self.given: dict[str, Given] = {}
        self._adopting: list[tuple[Given, str]] = []

    # --- orders ---

    def take(self, app: str, exact: int | None = None, manual: bool = False) -> Given:
        """Order a snapshot."""
        name = f"{app}-{len(self.given)}"
        order = SnapshotOrder(name, manual=manual, exact={} if exact is None else {QUERY: exact})
        created = self.world.clock + len(self.given) / 1000  # no two at one time
        given = self.given[name] = Given(app, self.world.running[app], order, created=created)
        return given

    def carry_out(self, given: Given) -> Actor:
        """Have a process take it, whether or not others do."""

        def act(repository: SnapshotRepository) -> None:
            report = self._carrier(given, repository).take(
                given.order, lambda progress: None, pin=bool(given.order.exact)
            )
            for query, batch in given.order.exact.items():
                if report.queries[query].batch != batch:
                    self.world.wrong.append(f"{given.order.id} is not at batch {batch}")
            given.published = True

        return self.world.start(f"take {given.order.id}", act, given.app)

    def abandon(self, given: Given) -> Actor:
        """Give it up, as far as it is not complete."""
        given.unwanted = True
        return self.world.start(
            f"abandon {given.order.id}",
            lambda repository: self._carrier(given, repository).abandon(given.order),
            given.app,
        )

    def dispose(self, given: Given) -> Actor:
        """Dispose of it."""
        given.unwanted = True

        def act(repository: SnapshotRepository) -> None:
            self._carrier(given, repository).dispose(given.order.id)
            if given.holders:
                self.world.wrong.append(f"{given.order.id} was deleted, and {sorted(given.holders)} hold it")
            given.gone = True

        return self.world.start(f"dispose {given.order.id}", act, given.app)

    def retain(self, app: str, keep: Keep, stops: int | None) -> None:
        """Let the operator's retention work; whoever disposes of one for it is left there after so many stops."""
        there = [it for it in self.given.values() if it.app == app and it.asked and it.published and not it.unwanted]
        complete = {it.order.id: Kept(it.order.id, it.created, not it.order.manual) for it in there}
        gone = to_release(complete.values(), keep, self.world.clock)
        self._check_retained(complete, gone, keep)
        for name in gone:
            self.run(self.dispose(self.given[name]), stops)

    def _check_retained(self, complete: dict[str, Kept], gone: list[str], keep: Keep) -> None:
        if not complete:
            return
        newest = max(complete.values(), key=lambda kept: kept.created).id
        manual = [name for name in gone if not complete[name].scheduled]
        left = [name for name, kept in complete.items() if kept.scheduled and name not in gone]
        if newest in gone or manual:
            self.world.wrong.append(f"retention released {gone}; {newest} is the newest, a person has {manual}")
        if len(left) > keep.last > 0:
            self.world.wrong.append(f"retention left {left}, which are more than {keep.last}")

    def adopt(self, given: Given, holder: str) -> Actor:
        """Import it: look whether it is whole, and hold it."""
        self._adopting.append((given, holder))

        def act(repository: SnapshotRepository) -> None:
            self._carrier(given, repository).adopt(AdoptOrder(f"look-{holder}", given.order.id, holder))
            given.holders.add(holder)

        return self.world.start(f"adopt {given.order.id}", act, given.app)

    def release(self, given: Given, holder: str) -> Actor:
        """Forgo the import."""
        given.holders.discard(holder)
        return self.world.start(
            f"let {given.order.id} go",
            lambda repository: self._carrier(given, repository).release(given.order.id, [holder]),
            given.app,
        )

    # --- upgrades ---

    def upgrade(self, app: str, stops: int | None) -> Given | None:
        """Start a new version: its driver notes what it is to be pinned, or is killed and followed by one that does."""
        if not any(key[:2] == (app, self.world.running[app]) for key in self.world.truth):
            return None
        for earlier in self.given.values():
            earlier.pins = earlier.pins and earlier.app != app
        name, lineage, noted = f"up-{app[0]}{len(self.given)}", self.world.running[app], list[SnapshotOrder]()

        def start(repository: SnapshotRepository) -> None:
            noted.append(upgrade_pin.order_of(repository, name, lineage, layout=LAYOUT))

        self.run(self.world.start(f"start of {app}", start, app), stops, True)
        self.run(self.world.start(f"start of {app}", start, app))
        if any(order != noted[-1] for order in noted):
            self.world.wrong.append(f"{name} was to be {noted}")
        given = self.given[name] = Given(app, lineage, noted[-1], pins=True, asked=False)
        return given

    def roll_back(self, given: Given, stops: int | None) -> None:
        """Start the old version from the pin; its driver is killed after so many stops, and followed by another one."""
        asked = self.world.ask_restore(given.app, given.order.id, given.app)
        self.world.restores.remove(asked)
        self.run(self.world.start(f"rollback of {given.app}", self._filling(given, asked), given.app), stops, True)
        self.run(self.world.start(f"rollback of {given.app}", self._filling(given, asked), given.app))
        given.published = True
        self.world.running[given.app] = asked.lineage

    def _filling(self, given: Given, asked: Restoring) -> Callable[[SnapshotRepository], None]:
        def fill(repository: SnapshotRepository) -> None:
            name, place = given.order.id, Storage(f"s3://{BUCKETS[given.app]}/apps/{given.app}")
            start_from = StartFrom(place, name, f"rollback-{name}", fork=False, lineage=given.lineage)
            config = driver_config(given.app, "local:///main.py", place, lineage=asked.lineage, start_from=start_from)
            stopping, copiers = threading.Event(), IN_TURN
            Filler(config, start_from, repository, repository, stopping, lambda *_: None, copiers, LAYOUT).fill()
            own = self.world.repository(given.app)
            made = manifest.read(own, name, own.read())
            self.world.compare_lineage(asked, made)
            if made.queries[QUERY].batch != given.order.exact[QUERY]:
                self.world.wrong.append(f"{name} is not what the previous version ended with")

        return fill

    # --- processes ---

    def run(self, actor: Actor, stops: int | None = None, kill: bool = False) -> None:
        """Let an actor go on to its end, or so many stops; then leave it there, or kill it."""
        if stops is None:
            self.world.run(actor)
            return
        for _ in range(stops):
            self.world.step(actor)
        if kill and not actor.ended:
            self.world.kill(actor)

    def _carrier(self, given: Given, repository: SnapshotRepository) -> Carrier:
        place = Storage(f"s3://{BUCKETS[given.app]}/apps/{given.app}")
        config = driver_config(given.app, "local:///main.py", place, lineage=given.lineage)
        return Carrier(config, lambda: repository, layout=LAYOUT, clock=lambda: self.world.clock, copiers=IN_TURN)

    # --- what must hold ---

    def wrong(self) -> list[str]:
        """Return what is wrong now, whoever is in the middle of whatever."""
        ready = {app: set(self.world.catalog(app).ready()) for app in APPS}
        wrong = list(self.world.wrong)
        for name, given in self.given.items():
            if name not in ready[given.app] and (given.holders or (given.published and not given.unwanted)):
                wrong.append(f"{name} was published, is wanted, and is not there")
            if name in ready[given.app] and given.gone:
                wrong.append(f"{name} was deleted, and is there")
        return wrong

    def settle(self) -> list[str]:
        """Let everybody end, have done what was not, and return what is wrong then.

        Nobody orders again what was reported to be done.
        """
        while self.world.actors:
            self.world.run(self.world.actors[0])
        for given, holder in self._adopting:
            self.run(self.release(given, holder))
        for asked in self.world.restores:
            self.run(self.world.release(asked))
        self.world.restores.clear()
        for given in self.given.values():
            if not given.unwanted and not given.published:
                self.run(self.carry_out(given))
            if not given.unwanted and not given.published:
                self.run(self.abandon(given))
            if given.unwanted and not given.gone:
                self.run(self.dispose(given))
        for app in APPS:
            self.run(self.world.collect(app))
        return self.wrong() + self._left() + self._unrestorable()

    def _left(self) -> list[str]:
        wrong = []
        for app in APPS:
            wanted = {name for name, given in self.given.items() if given.app == app and not given.unwanted}
            there = self.world.catalog(app).snapshots
            wrong += [f"{name} is left, and nobody wants it" for name in sorted(there.keys() - wanted)]
            wrong += [f"{name} is not ready" for name in there if there[name].state is not State.READY]
            notes = self.world.buckets.keys(BUCKETS[app], f"apps/{app}/upgrades/")
            of = {key: key.rpartition("/")[2].removesuffix(".json") for key in notes}
            wrong += [f"{key} is left" for key, name in of.items() if name not in wanted]
        return wrong

    def _unrestorable(self) -> list[str]:
        self.world.settle()
        return self.world.wrong
