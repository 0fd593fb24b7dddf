"""Stories of applications with snapshots, told by chance: what happens next, who stops on the way, who is killed."""

from collections.abc import Callable
from typing import Any

from tidegate_testing.snapshot_retention import Keep
from tidegate_testing.snapshot_world import APPS, World
from tidegate_testing.store_actors import Actor


class Choices:
    """Numbers that decide everything: ``number(low, high)`` gives one of them, both ends included."""

    def __init__(self, number: Callable[[int, int], int]) -> None:
        self.number = number

    def pick(self, of: Any) -> Any:
        return of[self.number(0, len(of) - 1)]

    def late(self, of: Any) -> Any:
        """Return one of the last few."""
        return self.pick(of[-3:])


class Story:
    """What happens in a world. Each has its own kinds of events: few that meet find more than many that do not."""

    def __init__(self, choices: Choices, put_back: bool = False) -> None:
        self.choices = choices
        self.world = world = World(page=choices.pick((1000, 3)))
        world.buckets.opaque = choices.number(0, 3) == 0
        self.apps = choices.pick((APPS[:1], APPS[:1], APPS[:2], APPS))
        self.kinds = [self._batch, self._take, self._take]
        others = [self._clean, self._rewrite, self._take_again, self._take_again, self._take_exactly, self._dispose]
        others += [self._retain, self._collect, self._restore, self._restore_again, self._release, self._roll_back]
        self.kinds += [kind for kind in others if choices.number(0, 2)]
        if put_back:
            # Few kinds, of one application: what a catalog that is put back meets.
            self.apps = APPS[:1]
            self.kinds = [self._batch, self._take, self._take_again, self._dispose, self._collect, self._put_back]
            self.kinds += [kind for kind in (self._clean, self._restore, self._collect) if choices.number(0, 1)]

    def go_on(self) -> None:
        """Let something happen: most is done at once, now and then somebody stops on the way and is overtaken."""
        choices, live = self.choices, self.world.actors
        what = choices.pick(("start", "start", "start", "start", "start", "step", "finish", "kill"))
        if not live or (what == "start" and len(live) < 4):
            before = len(live)
            choices.pick(self.kinds)(choices.pick(self.apps))
            if len(live) > before and choices.number(0, 2):
                self.world.run(live[-1])
            elif len(live) > before:
                self._move(live[-1], choices.number(0, 60))
        elif what == "kill":
            self.world.kill(choices.pick(live))
        elif what == "finish":
            self.world.run(choices.pick(live))
        else:
            self._move(choices.pick(live), choices.number(1, 20))

    def _move(self, actor: Actor, steps: int) -> None:
        for _ in range(steps):
            self.world.step(actor)

    def _is_written(self, app: str) -> bool:
        return any(actor.name in (f"batch of {app}", f"cleaning of {app}") for actor in self.world.actors)

    def _batch(self, app: str) -> None:
        if not self._is_written(app):
            self.world.batch(app)

    def _rewrite(self, app: str) -> None:
        if not self._is_written(app):
            self.world.rewrite(app)

    def _clean(self, app: str) -> None:
        self.world.clean(app, self.choices.number(1, 3))

    def _take(self, app: str) -> None:
        self.world.take(app, self.world.request(app, manual=self.choices.number(0, 3) == 0))

    def _take_exactly(self, app: str) -> None:
        batches = [
            batch for name, lineage, batch in self.world.truth if (name, lineage) == (app, self.world.running[app])
        ]
        if batches:
            self.world.take(app, self.world.request(app, exact=self.choices.late(batches)))

    def _take_again(self, app: str) -> None:
        if self.world.requests[app]:
            self.world.take(app, self.choices.late(self.world.requests[app]))

    def _dispose(self, app: str) -> None:
        if self.world.requests[app]:
            self.world.dispose(app, self.choices.late(self.world.requests[app]).id)

    def _retain(self, app: str) -> None:
        self.world.retain(app, Keep(self.choices.number(0, 3), self.choices.number(0, 1) * 3))

    def _collect(self, app: str) -> None:
        self.world.collect(app)

    def _put_back(self, app: str) -> None:
        self.world.put_catalog_back(app, -self.choices.number(1, 8))

    def _restore(self, app: str) -> None:
        if self.world.requests[app]:
            name, keep = self.choices.late(self.world.requests[app]).id, self.choices.number(0, 3) == 0
            self.world.restore(self.world.ask_restore(app, name, self.choices.pick(APPS), keep))

    def _restore_again(self, app: str) -> None:
        if self.world.restores:
            self.world.restore(self.choices.late(self.world.restores))

    def _release(self, app: str) -> None:
        done = [asked for asked in self.world.restores if not asked.keep and not self.world.is_under_way(asked)]
        if done:
            asked = self.choices.late(done)
            self.world.restores.remove(asked)
            self.world.release(asked)

    def _roll_back(self, app: str) -> None:
        """Go on with a lineage that was restored."""
        world = self.world
        lineages = [lineage for name, lineage, _ in world.truth if name == app and lineage > world.running[app]]
        busy = any(asked.target == app and world.is_under_way(asked) for asked in world.restores)
        if lineages and not busy and not self._is_written(app):
            world.running[app] = self.choices.pick(lineages)
            for asked in [it for it in world.restores if (it.target, it.lineage) == (app, world.running[app])]:
                world.restores.remove(asked)
                world.release(asked)
