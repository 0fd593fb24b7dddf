"""Orders about snapshots in any sequence, stopped, killed and given again: what was published stays restorable.

And in the end nothing is left that nobody wants.
"""

import re
from typing import Any

import hypothesis
import pytest
from hypothesis import HealthCheck, Phase, reproduce_failure, settings
from hypothesis import strategies as st
from hypothesis.errors import DidNotReproduce, InvalidArgument
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    multiple,
    precondition,
    rule,
    run_state_machine_as_test,
)

from tidegate.snapshots.rules import retention
from tidegate_spark.snapshots import catalog, file_copies, repository
from tidegate_spark.snapshots.lineages import upgrade_pin
from tidegate_spark.snapshots.service import operations
from tidegate_testing.examples import gate_share
from tidegate_testing.mistakes import Course, Mistake, planted
from tidegate_testing.snapshot_office import Given, Office
from tidegate_testing.snapshot_retention import Keep
from tidegate_testing.snapshot_world import APPS, World

stops = st.one_of(st.none(), st.integers(0, 50))
"""After how many stops (two for each request to the store) somebody rests or is killed; None: not before the end."""
origins = st.sampled_from(("orders", "orders", "abroad"))


class SnapshotOrders(RuleBasedStateMachine):
    """Two applications, in buckets of their own, and a third one beside the first."""

    snapshots = Bundle("snapshots")
    imports = Bundle("imports")

    @initialize(target=snapshots, page=st.sampled_from((1000, 3)), opaque=st.booleans())
    def an_application_has_a_snapshot(self, page: int, opaque: bool) -> Any:
        self.office = Office(World(page=page))
        self.world = self.office.world
        self.world.buckets.opaque = opaque
        given = []
        for app in ("orders", "abroad"):
            self.world.run(self.world.batch(app))
            given.append(self.office.take(app))
            self.office.run(self.office.carry_out(given[-1]))
        return multiple(*given)

    # --- Spark ---

    def is_written(self, app: str) -> bool:
        return any(actor.name in (f"batch of {app}", f"cleaning of {app}") for actor in self.world.actors)

    @rule(app=origins, stops=stops)
    def a_batch_is_written(self, app: str, stops: int | None) -> None:
        if not self.is_written(app):
            self.office.run(self.world.batch(app), stops)

    @rule(app=origins, keep=st.integers(1, 3), stops=stops)
    def spark_cleans_up(self, app: str, keep: int, stops: int | None) -> None:
        # Retention is raised until an upgrade's gate closes.
        if not self.is_written(app) and not any(it.pins and it.app == app for it in self.office.given.values()):
            self.office.run(self.world.clean(app, keep), stops)

    @rule(app=origins)
    def a_task_is_repeated(self, app: str) -> None:
        if not self.is_written(app):
            self.world.rewrite(app)

    # --- orders ---

    @rule(target=snapshots, app=origins, manual=st.booleans(), stops=stops)
    def a_snapshot_is_taken(self, app: str, manual: bool, stops: int | None) -> Given:
        given = self.office.take(app, manual=manual)
        self.office.run(self.office.carry_out(given), stops)
        return given

    @rule(target=snapshots, app=origins, back=st.integers(0, 2), stops=stops)
    def a_snapshot_is_taken_at_its_batch(self, app: str, back: int, stops: int | None) -> Given:
        batches = [batch for name, line, batch in self.world.truth if (name, line) == (app, self.world.running[app])]
        given = self.office.take(app, exact=batches[max(0, len(batches) - 1 - back)] if batches else None)
        self.office.run(self.office.carry_out(given), stops)
        return given

    @rule(given=snapshots, stops=stops)
    def another_process_is_given_the_order_too(self, given: Given, stops: int | None) -> None:
        if not given.unwanted:
            self.office.run(self.office.carry_out(given), stops)

    @rule(given=snapshots, stops=stops)
    def a_snapshot_is_disposed_of(self, given: Given, stops: int | None) -> None:
        if not given.pins:
            self.office.run(self.office.dispose(given), stops)

    @rule(given=snapshots, stops=stops)
    def a_snapshot_is_given_up(self, given: Given, stops: int | None) -> None:
        if not given.published and not given.pins:
            self.office.run(self.office.abandon(given), stops)

    @rule(app=origins, last=st.integers(0, 2), seconds=st.sampled_from((0, 4)), stops=stops)
    def retention_releases(self, app: str, last: int, seconds: int, stops: int | None) -> None:
        self.office.retain(app, Keep(last, seconds), stops)

    @rule(app=st.sampled_from(APPS), stops=stops)
    def somebody_collects(self, app: str, stops: int | None) -> None:
        self.office.run(self.world.collect(app), stops)

    # --- forks, imports, upgrades ---

    @rule(given=snapshots, into=st.sampled_from(APPS), keep=st.booleans(), stops=stops)
    def a_lineage_is_filled(self, given: Given, into: str, keep: bool, stops: int | None) -> None:
        asked = self.world.ask_restore(given.app, given.order.id, into, keep)
        self.office.run(self.world.restore(asked), stops)

    @precondition(lambda self: self.world.restores)
    @rule(number=st.integers(0, 20), stops=stops)
    def a_lineage_is_filled_by_another_process_too(self, number: int, stops: int | None) -> None:
        asked = self.world.restores[number % len(self.world.restores)]
        self.office.run(self.world.restore(asked), stops)

    @rule(target=imports, given=snapshots, stops=stops)
    def a_snapshot_is_imported(self, given: Given, stops: int | None) -> tuple[Given, str]:
        holder = f"import-{len(self.world.actors)}-{self.world.clock:.0f}"
        self.office.run(self.office.adopt(given, holder), stops)
        return given, holder

    @rule(imported=consumes(imports), stops=stops)
    def an_import_is_forgone(self, imported: tuple[Given, str], stops: int | None) -> None:
        given, holder = imported
        if not any(actor.name == f"adopt {given.order.id}" for actor in self.world.actors):
            self.office.run(self.office.release(given, holder), stops)

    @rule(target=snapshots, app=origins, stops=stops)
    def an_upgrade_begins(self, app: str, stops: int | None) -> Any:
        given = None if self.is_written(app) else self.office.upgrade(app, stops)
        return multiple() if given is None else given

    @rule(given=snapshots, stops=stops)
    def an_upgrade_is_rolled_back(self, given: Given, stops: int | None) -> None:
        if given.pins and not self.is_written(given.app):
            self.office.roll_back(given, stops)
            given.pins = False

    # --- whoever stopped on the way ---

    @precondition(lambda self: self.world.actors)
    @rule(number=st.integers(0, 20), stops=stops, kill=st.booleans())
    def somebody_goes_on_or_is_killed(self, number: int, stops: int | None, kill: bool) -> None:
        self.office.run(self.world.actors[number % len(self.world.actors)], stops, kill)

    # --- what must hold ---

    @invariant()
    def what_was_published_stays(self) -> None:
        wrong = self.office.wrong()
        assert not wrong, wrong

    def teardown(self) -> None:
        wrong = self.office.settle()
        assert not wrong, wrong


QUICK = settings(deadline=None, suppress_health_check=list(HealthCheck), stateful_step_count=25)
SnapshotOrders.TestCase.settings = settings(QUICK, max_examples=gate_share(100))
TestSnapshotOrders = SnapshotOrders.TestCase

MISTAKES = {
    "the catalog is written whatever it is": Mistake(
        repository.SnapshotRepository,
        "change",
        "encode(after), etag)",
        "encode(after), (self.store.get(self.catalog_key) or [None, None])[1])",
    ),
    "objects are copied before they are referred to": Mistake(
        file_copies, "_refer", "repository.change(transition)", "transition(repository.read())"
    ),
    "what others need is condemned": Mistake(
        catalog, "_release_objects", "dropped = frozenset(names) - needed", "dropped = frozenset(names)"
    ),
    "what is held is disposed of": Mistake(catalog, "dispose", "if snapshot.holders:", "if False:"),
    "what was not begun is forgotten": Mistake(
        catalog, "dispose", "name in catalog.gone or catalog.serial == 0", "True"
    ),
    # Whoever is known to be whole stays by another rule, too.
    "the newest is too old": Mistake(
        retention,
        "_judge_ready",
        "if not o.later.whole:\n        return _Judgement()  # the newest, whoever asked for it\n"
        "    if is_known_whole(o.snapshot) and not o.later.known_whole:",
        "if False:",
    ),
    "one too many is kept": Mistake(retention, "_judge_ready", ">= rule.max_count", "> rule.max_count"),
    "what an upgrade noted is left": Mistake(
        operations.Carrier, "dispose", "upgrade_pin.forget(repository, name)", "pass"
    ),
    "what an upgrade noted is noted again": Mistake(
        upgrade_pin,
        "order_of",
        "found = repository.store.get(key)\n    if found is None:",
        "repository.store.delete([key])\n    if True:",
    ),
}


PLANTED = planted(__file__, MISTAKES)


def shows(course: Course) -> bool:
    """Return whether something is wrong in a course that hypothesis has recorded."""
    return recorded(reproduce_failure(hypothesis.__version__, str(course).encode())(_of_its_own()), QUICK) is not None


def search() -> Course | None:
    """Return the shortest course in which something is wrong that is found in some time."""
    # How soon one is found depends on which modules are loaded, from whose constants values are drawn: after ten
    # stories or a thousand. What is recorded does not: it is the values themselves.
    once = settings(
        QUICK,
        max_examples=6000,
        derandomize=True,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        report_multiple_bugs=False,
        print_blob=True,
    )
    return recorded(_of_its_own(), once)


def recorded(orders: type[SnapshotOrders], once: settings) -> Course | None:
    """Return the course in which something goes wrong, None if nothing does."""
    try:
        run_state_machine_as_test(orders, settings=once)
    except (DidNotReproduce, InvalidArgument):
        return None  # the course is one of earlier orders, or of an earlier hypothesis
    except Exception as error:  # however it shows
        reported = re.search(r"@reproduce_failure\('[^']*', b'([^']*)'\)", "\n".join(getattr(error, "__notes__", ())))
        return reported[1] if reported else ""
    return None


def _of_its_own() -> type[SnapshotOrders]:
    # What is to be replayed is noted in the class.
    return type("SnapshotOrders", (SnapshotOrders,), {})


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_noticed(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    PLANTED.assert_noticed(name, lambda: MISTAKES[name].plant(monkeypatch), shows, search)


@pytest.mark.long
@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_noticed_by_what_is_recorded(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    PLANTED.assert_recorded(name, lambda: MISTAKES[name].plant(monkeypatch), shows)


def test_there_is_a_record_for_each_mistake_and_for_nothing_else() -> None:
    assert list(PLANTED.recorded()) == list(MISTAKES)
