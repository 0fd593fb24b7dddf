"""Applications with snapshots in one store in memory, and several actors at work on them. No I/O.

Two applications share a bucket, a third has one of its own. Each has a query, whose batches are written and cleaned up
by actors too. What every batch consisted of is noted when it is committed; what snapshots hold is compared with that.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from tidegate_spark.snapshots import catalog, collect, manifest, restore
from tidegate_spark.snapshots import take as taking
from tidegate_spark.snapshots.catalog import Catalog, State
from tidegate_spark.snapshots.catalog_json import decode
from tidegate_spark.snapshots.copying import Copiers
from tidegate_spark.snapshots.manifest import Application, Manifest
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_spark.snapshots.restore import Origin, Target
from tidegate_spark.snapshots.take import Request
from tidegate_spark.storage.store import ObjectStore, SnapshotError
from tidegate_testing import fake_checkpoint
from tidegate_testing.fake_checkpoint import LAYOUT
from tidegate_testing.memory_store import Buckets, Call, MemoryStore
from tidegate_testing.snapshot_retention import Keep, Kept, to_release
from tidegate_testing.store_actors import Actor, KilledError, everywhere

APPS = ("orders", "variant", "abroad")
BUCKETS = {"orders": "here", "variant": "here", "abroad": "there"}
QUERY = "main"
IN_TURN = Copiers(1)

_decode = lru_cache(1000)(decode)
_parse = lru_cache(1000)(manifest.parse)


def _deletes_soon(calls: Sequence[Call], catalog_key: str) -> bool:
    """Return whether what somebody deletes next is by a look at the catalog that is over."""
    if not calls or (not calls[-1].done and (calls[-1].verb, calls[-1].key) == ("get", catalog_key)):
        return False
    if calls[-1].verb == "delete":
        return not calls[-1].done
    since = itertools.takewhile(lambda call: (call.verb, call.key) != ("get", catalog_key), reversed(calls))
    return all(call.verb != "delete" for call in since)


@dataclass(frozen=True)
class Restoring:
    """One restore that somebody asked for; each attempt at it is the same."""

    app: str
    id: str
    target: str
    lineage: int
    keep: bool

    @property
    def holder(self) -> str:
        return f"lineage {self.lineage} of {self.target}"


def _may_spoil(call: Call) -> bool:
    """Return whether a request has changed something that snapshots consist of."""
    return call.done and call.writes and "/lineages/" not in call.key


@dataclass
class World:
    """Everything there is; ``start`` makes somebody do something."""

    buckets: Buckets = field(default_factory=Buckets)
    page: int = 1000
    actors: list[Actor] = field(default_factory=list)
    requests: dict[str, list[Request]] = field(default_factory=lambda: {app: [] for app in APPS})
    restores: list[Restoring] = field(default_factory=list)
    lineages: dict[str, int] = field(default_factory=lambda: dict.fromkeys(APPS, 1))
    """The newest of each application."""
    running: dict[str, int] = field(default_factory=lambda: dict.fromkeys(APPS, 1))
    """The one that its query uses."""
    truth: dict[tuple[str, int, int], dict[str, set[bytes]]] = field(default_factory=dict)
    """Application, lineage, batch -> path -> what it may hold."""
    clock: float = 1000.0
    wrong: list[str] = field(default_factory=list)
    versions: dict[str, list[bytes]] = field(default_factory=lambda: {app: [] for app in APPS})
    """Of each application's catalog, the oldest first."""
    put_back: set[str] = field(default_factory=set)
    """Applications whose catalogs were ever put back to an earlier version."""
    completed: dict[tuple[str, str], str] = field(default_factory=dict)
    """Application and id -> digest of each snapshot that was ever complete."""
    released: set[tuple[str, str]] = field(default_factory=set)
    """Application and id of what was ever disposed of, or condemned as left by somebody."""

    def copy(self) -> "World":
        """Return another world like this one, in which everybody has ended."""
        assert not self.actors
        content = {bucket: dict(objects) for bucket, objects in self.buckets.content.items()}
        return World(
            Buckets(content, self.buckets.opaque, self.buckets.service),
            self.page,
            requests={app: list(requests) for app, requests in self.requests.items()},
            restores=list(self.restores),
            lineages=dict(self.lineages),
            running=dict(self.running),
            truth={batch: {path: set(bodies) for path, bodies in it.items()} for batch, it in self.truth.items()},
            clock=self.clock,
            versions={app: list(versions) for app, versions in self.versions.items()},
            completed=dict(self.completed),
            released=set(self.released),
        )

    # --- who is there ---

    def repository(self, app: str, store: ObjectStore | None = None) -> SnapshotRepository:
        return SnapshotRepository(store or MemoryStore(self.buckets, BUCKETS[app]), f"apps/{app}", lambda seconds: None)

    def root(self, app: str, lineage: int) -> str:
        return f"apps/{app}/lineages/{lineage}/{QUERY}"

    def catalog(self, app: str) -> Catalog:
        found = self.buckets.read(BUCKETS[app], self.repository(app).catalog_key)
        return _decode(found.body) if found else Catalog()

    def start(self, name: str, function: Callable[[SnapshotRepository], Any], app: str) -> Actor:
        """Have an actor do something to an application's bucket; it does not move yet."""
        self.clock += 1

        def act(actor: Actor) -> Any:
            return function(self.repository(app, actor.store(self.buckets, BUCKETS[app], self.page)))

        actor = Actor(name, act)
        self.actors.append(actor)
        return actor

    def step(self, actor: Actor, stops_at: Callable[[Call], bool] = everywhere) -> None:
        """Let an actor go on to its next request that is asked for, and look at what it has done."""
        call = actor.step(stops_at)
        if actor.ended:
            self.end(actor)
        elif call is not None and _may_spoil(call):
            self.check(call.key.split("/")[1])

    def run(self, actor: Actor) -> Any:
        """Let an actor finish; return what came of it."""
        while not actor.ended:
            self.step(actor, _may_spoil)
        return actor.outcome

    def kill(self, actor: Actor) -> None:
        """End an actor where it is."""
        actor.kill()
        self.end(actor)

    def end(self, actor: Actor) -> None:
        """Note what an actor came to."""
        if actor in self.actors:
            self.actors.remove(actor)
            if isinstance(actor.outcome, BaseException) and not isinstance(actor.outcome, KilledError | SnapshotError):
                self.wrong.append(f"{actor.name}: {type(actor.outcome).__name__}: {actor.outcome}")

    # --- what Spark does ---

    def batch(self, app: str) -> Actor:
        """Write a batch of the query. Of one query one batch is written at a time."""
        lineage = self.running[app]

        def note(batch: int, content: dict[str, bytes]) -> None:
            self.truth[app, lineage, batch] = {path: {body} for path, body in content.items()}

        def write(repository: SnapshotRepository) -> None:
            fake_checkpoint.write_batch(repository.store, self.root(app, lineage), note=note)

        return self.start(f"batch of {app}", write, app)

    def rewrite(self, app: str) -> None:
        """Write the newest state file once more."""
        lineage = self.running[app]
        done = fake_checkpoint.rewrite_state(self.repository(app).store, self.root(app, lineage))
        if done and (app, lineage, done[0]) in self.truth:
            self.truth[app, lineage, done[0]][f"state/{done[0]}.zip"].add(done[1])

    def clean(self, app: str, keep: int) -> Actor:
        """Clean up after the query."""
        lineage = self.running[app]
        return self.start(
            f"cleaning of {app}",
            lambda repository: fake_checkpoint.clean(repository.store, self.root(app, lineage), keep),
            app,
        )

    # --- what people and the operator do ---

    def request(self, app: str, manual: bool = False, exact: int | None = None) -> Request:
        """Ask for a snapshot of the application as it runs."""
        name = f"{app[0]}{len(self.requests[app])}"
        batches = {} if exact is None else {QUERY: exact}
        request = Request(
            name, Application("tests", app, f"uid-{app}", self.running[app]), exact=batches, manual=manual
        )
        self.requests[app].append(request)
        return request

    def take(self, app: str, request: Request) -> Actor:
        """Attempt it."""

        def act(repository: SnapshotRepository) -> Manifest:
            made = taking.take(repository, LAYOUT, request, self.clock, IN_TURN)
            for query, batch in request.exact.items():
                if made.queries[query].batch != batch:
                    self.wrong.append(f"{request.id} is not at batch {batch}")
            return made

        return self.start(f"take {request.id}", act, app)

    def dispose(self, app: str, name: str) -> Actor:
        return self.start(f"dispose {name}", lambda repository: collect.dispose(repository, name), app)

    def retain(self, app: str, keep: Keep) -> list[Actor]:
        """Have the operator dispose of what its retention releases."""
        known = self.catalog(app)
        complete = [
            Kept(name, known.snapshots[name].sequence, not known.snapshots[name].manual) for name in known.ready()
        ]
        newest = max((kept.created for kept in complete), default=0.0)
        return [self.dispose(app, name) for name in to_release(complete, keep, newest)]

    def collect(self, app: str) -> Actor:
        now = self.clock
        return self.start(f"collect {app}", lambda repository: collect.collect(repository, now), app)

    def ask_restore(self, app: str, name: str, target: str, keep: bool = False) -> Restoring:
        """Ask for a snapshot of ``app`` in a new lineage of ``target``: a rollback, a fork or an import."""
        self.lineages[target] += 1
        restoring = Restoring(app, name, target, self.lineages[target], keep)
        self.restores.append(restoring)
        return restoring

    def restore(self, asked: Restoring) -> Actor:
        """Attempt it."""
        self.clock += 1

        def act(actor: Actor) -> Manifest:
            origin = self.repository(asked.app, actor.store(self.buckets, BUCKETS[asked.app], self.page))
            target = self.repository(asked.target, actor.store(self.buckets, BUCKETS[asked.target], self.page))
            where = Target(target, asked.lineage, fork=asked.app != asked.target)
            try:
                made = restore.restore(Origin(origin, asked.id), where, asked.holder, IN_TURN)
            except (catalog.UnknownSnapshotError, catalog.NotReadyError):
                raise
            except SnapshotError as error:
                if asked.app in self.put_back and (asked.app, asked.id) in self.released:
                    raise
                # Held, it has to be whole, whatever else goes on.
                self.wrong.append(f"restore of {asked.id}: {type(error).__name__}: {error}")
                raise
            self.compare_lineage(asked, made)
            return made

        actor = Actor(asked.holder, act)
        self.actors.append(actor)
        return actor

    def is_under_way(self, asked: Restoring) -> bool:
        """Return whether somebody is at it."""
        return any(actor.name == asked.holder for actor in self.actors)

    def release(self, asked: Restoring) -> Actor:
        """Say that it is done or given up; not while somebody is at it."""
        return self.start(
            f"release {asked.id}",
            lambda repository: restore.release(Origin(repository, asked.id), asked.holder),
            asked.app,
        )

    def put_catalog_back(self, app: str, number: int) -> None:
        """Restore a version of a catalog, as people do from a bucket's versions.

        Nobody who deletes stands between its last look at the catalog and the request to delete that follows, which
        reaches the store before the next snapshot is complete; those that come after it are not sent yet.
        """
        for actor in [actor for actor in self.actors if actor.name == f"collect {app}"]:
            while not actor.ended and _deletes_soon(actor.calls, self.repository(app).catalog_key):
                self.step(actor)
        if self.versions[app]:
            body = self.versions[app][number % len(self.versions[app])]
            self.put_back.add(app)
            self.buckets.write(BUCKETS[app], self.repository(app).catalog_key, body)

    # --- what must hold ---

    def check(self, app: str) -> None:
        """Note every complete snapshot that is not whole, and a catalog that must not be.

        One that ever was complete stays whole until it is disposed of, whatever the catalog says by now.
        """
        known = self.catalog(app)
        self.wrong += [f"{app}: {wrong}" for wrong in catalog.violations(known)]
        self._remember(app, known)
        ready = {name: known.snapshots[name].digest for name in known.ready()}
        if app in self.put_back:
            ready.update((name, digest) for (of, name), digest in self.completed.items() if of == app)
            ready = {name: digest for name, digest in ready.items() if (app, name) not in self.released}
        for name, digest in ready.items():
            self._look_at(app, name, digest)

    def _remember(self, app: str, known: Catalog) -> None:
        found = self.buckets.read(BUCKETS[app], self.repository(app).catalog_key)
        if found is not None and found.body not in self.versions[app][-1:]:
            self.versions[app].append(found.body)
        gone = {name for name, it in known.snapshots.items() if it.state is State.DELETING} | known.gone.keys()
        self.released |= {(app, name) for name in gone}
        self.completed.update(((app, name), known.snapshots[name].digest) for name in known.ready())

    def _look_at(self, app: str, name: str, digest: str) -> None:
        repository = self.repository(app)
        found = self.buckets.read(BUCKETS[app], repository.manifest_key(name))
        if found is None or manifest.digest(found.body) != digest:
            self.wrong.append(f"{name} is ready and has not the manifest that was published")
            return
        made = _parse(found.body, name)
        truth = self.truth.get((app, made.application.lineage, made.queries[QUERY].batch))
        if truth is None or truth.keys() != {file.path for file in made.files}:
            self.wrong.append(f"{name} is ready and is not what batch {made.queries[QUERY].batch} consisted of")
            return
        for file in made.files:
            stored = self.buckets.read(BUCKETS[app], repository.key(file.key))
            if stored is None or stored.body not in truth[file.path]:
                self.wrong.append(f"{name} is ready and {file.key} is {'gone' if stored is None else 'another'}")
            elif stored.etag != file.etag and not self.buckets.opaque:
                self.wrong.append(f"{name} is ready and {file.key} is not what was published")

    def compare_lineage(self, asked: Restoring, made: Manifest) -> None:
        """Note what a lineage that was just filled has that its snapshot has not, or lacks."""
        root = self.root(asked.target, asked.lineage)
        prefix = f"apps/{asked.target}/lineages/{asked.lineage}/"
        bucket = BUCKETS[asked.target]
        content = {key[len(root) + 1 :]: self.buckets.read(bucket, key) for key in self.buckets.keys(bucket, prefix)}
        batch = made.queries[QUERY].batch
        truth = self.truth[asked.app, made.application.lineage, batch]
        now = {path: {stored.body} for path, stored in content.items() if stored}
        for path, bodies in now.items():
            own = path == "metadata" and asked.app != asked.target
            if not own and not bodies <= truth.get(path, set()):
                self.wrong.append(f"restore of {asked.id}: {path} is not what it was")
        if now.keys() != truth.keys():
            self.wrong.append(f"restore of {asked.id}: {sorted(now.keys() ^ truth.keys())}")
        self.truth.setdefault((asked.target, asked.lineage, batch), now)

    def settle(self) -> None:
        """Do what an operator does when everybody has ended: give up what is half done, collect, and look at the rest.

        After that every snapshot is complete and can be restored, and nothing is in the store that nothing needs.
        """
        while self.actors:
            self.run(self.actors[0])
        for asked in self.restores:
            if not asked.keep:
                self.run(self.release(asked))
        for app in APPS:
            if app in self.put_back:
                self.run(self.collect(app))
            known = self.catalog(app)
            for name in [name for name, it in known.snapshots.items() if it.state is State.TAKING]:
                self.run(self.dispose(app, name))
            self.run(self.collect(app))
            self._everything_is_there(app)
            self._can_be_taken(app)
            for name in self.catalog(app).ready():
                self.run(self.restore(self.ask_restore(app, name, app)))

    def _everything_is_there(self, app: str) -> None:
        if app not in self.put_back:
            self._nothing_is_left(app)
            return
        # What a process leaves behind of a history that nobody remembers is not known to be nobody's.
        ready = self.catalog(app).ready()
        lost = [name for of, name in self.completed.keys() - self.released if of == app and name not in ready]
        self.wrong += [f"{name} was complete, and is not in the catalog" for name in sorted(lost)]

    def _can_be_taken(self, app: str) -> None:
        if any(key[:2] == (app, self.running[app]) for key in self.truth):
            self.run(self.batch(app))
            made = self.run(self.take(app, self.request(app)))
            if not isinstance(made, Manifest):
                self.wrong.append(f"{app}: no snapshot can be taken: {made}")

    def _nothing_is_left(self, app: str) -> None:
        repository, known = self.repository(app), self.catalog(app)
        needed = {repository.catalog_key} if known.serial else set()
        for name in known.ready():
            needed.add(repository.manifest_key(name))
            found = self.buckets.read(BUCKETS[app], repository.manifest_key(name))
            if found is not None:
                needed |= {repository.key(file.key) for file in _parse(found.body, name).files}
        there = {
            key for place in ("snapshots", "objects") for key in self.buckets.keys(BUCKETS[app], f"apps/{app}/{place}/")
        }
        self.wrong += [f"{key} is left, and nothing needs it" for key in sorted(there - needed)]
        if known.condemned or len(known.ready()) != len(known.snapshots):
            self.wrong.append(f"{app}: the catalog has something that is to be deleted")
