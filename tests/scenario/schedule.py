"""One schedule: a world from a seed, misfortune for a while, then fair weather, in which all must come to rest."""

import asyncio
import json
import random
import secrets
import traceback
from collections import Counter
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from unittest import mock

from tests.scenario import events
from tests.scenario.api_server import APPS, Body
from tests.scenario.desired import NO_PLACE, NO_STATE, NOTHING_THERE, OWNED, UNCLAIMED, UNREACHABLE, differences
from tests.scenario.events.copies import put_newest_back
from tests.scenario.events.people import create_app, make_usable_again
from tests.scenario.events.places import put_back
from tests.scenario.events.registry import Event
from tests.scenario.faults import Pair
from tests.scenario.loop import StuckError, VirtualLoop
from tests.scenario.restart_rules import FOR_GOOD, reason_of
from tests.scenario.versions import UNDER_TEST, has_rival, is_invalid_version
from tests.scenario.world import NAMESPACE, World
from tidegate.engine.rules.pauses import METRICS_INTERVAL
from tidegate_spark.contract import agent_protocol
from tidegate_spark.contract.protocol import APP_FILE, FENCE_FILE

Note = Callable[[float, str, str], None]

GAPS = (0.0, 0.2, 1.0, 3.0, 10.0, 30.0, 60.0, 200.0)
"""Longest seconds between two events."""
PATIENCE = 600.0
"""Seconds of fair weather after which people have fixed every application that fails."""
LONGEST_SETTLING, CHECK_EVERY, CALM, WATCHED = 1800.0, 20.0, 130.0, 60.0


@dataclass
class Result:
    """What came of a schedule."""

    seed: int
    violations: list[str] = field(default_factory=list)
    crashed: Counter[Pair] = field(default_factory=Counter)
    passed: Counter[Pair] = field(default_factory=Counter)
    happened: Counter[str] = field(default_factory=Counter)
    facts: Counter[str] = field(default_factory=Counter)
    batches: int = 0
    seconds: float = 0.0
    """Of simulated time."""
    processor_seconds: float = 0.0
    """That it took, where many are run."""


Course = Callable[[World, Result], Awaitable[None]]
"""What happens in a world; it notes what may not have happened with the world."""


def run(seed: int, note: Note | None = None) -> Result:
    """Run a schedule.

    Args:
        seed: everything random follows from it.
        note: is told everything that happens, with time and name.
    """
    return run_course(seed, misfortune(events.choose), note)


def run_course(seed: int, course: Course, note: Note | None = None) -> Result:
    """Run what happens in a world.

    Args:
        seed: everything random follows from it.
        course: what happens.
        note: is told everything that happens, with time and name.
    """
    random.seed(seed)  # the client's pauses between two attempts are random too
    loop = VirtualLoop()
    asyncio.set_event_loop(loop)
    try:
        # In a group of numbers that are short: nobody listens who would find the key.
        with (
            mock.patch.object(secrets, "token_urlsafe", _token),
            mock.patch.object(agent_protocol, "PRIME", 2**255 - 19),
        ):
            return loop.run_until_complete(_run(seed, course, note))
    except StuckError:
        return Result(seed, ["nothing will ever happen again"])
    except Exception:
        return Result(seed, [f"the simulation itself failed: {traceback.format_exc()}"])
    finally:
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        asyncio.set_event_loop(None)
        loop.close()


def _token(length: int) -> str:
    # The kernel's chance would be another one each time, and to ask for it is slow.
    return random.randbytes(length).hex()


async def _run(seed: int, course: Course, note: Note | None) -> Result:
    world, result = World(seed, note), Result(seed)
    asyncio.get_running_loop().set_exception_handler(lambda loop, context: world.violated(f"unexpected: {context}"))
    await course(world, result)
    result.violations = world.violations
    result.crashed, result.passed = world.faults.crashed, world.faults.passed
    result.facts = world.facts
    result.batches, result.seconds = world.check.batches, world.loop.time()
    return result


def misfortune(choose: Callable[[World], Event]) -> Course:
    """Return what happens in a world where one thing after the other comes, and then everything comes to rest.

    Args:
        choose: returns what comes next.
    """

    async def happens(world: World, result: Result) -> None:
        await _misfortune(world, result, choose)
        if not world.violations:
            await _rest(world)

    return happens


async def _misfortune(world: World, result: Result, choose: Callable[[World], Event]) -> None:
    for _ in range(world.replicas):
        world.start_operator()
    world.faults.crashes = world.rng.choice((0.0, 0.0, 0.01, 0.05))
    for number in range(world.rng.randint(5, 20)):
        function = create_app if number == 0 else choose(world)
        what = function(world)
        if what:
            world.trace("***", what)
            result.happened[function.__name__] += 1
        if await _passes(world, world.rng.choice(GAPS) * world.rng.random()):
            return


async def _rest(world: World) -> None:
    world.trace("***", "the misfortune has ended")
    end_misfortune(world)
    began = world.loop.time()
    while not await _settles(world, began) and not world.violations:
        pass  # what was under way when the weather became fair has made a difference after all
    if world.violations:
        return
    writes = world.check.writes
    if await _passes(world, WATCHED):
        return
    if world.check.writes != writes:
        world.violated(
            f"{world.check.writes - writes} writes though there is nothing to do; the last: {world.check.last}"
        )
    found = differences(world)
    if found:
        world.violated(f"rest did not last: {'; '.join(found)}")


async def _settles(world: World, began: float) -> bool:
    """Wait until everything is as it should be; returns whether it still is after a while."""
    while found := differences(world):
        if world.loop.time() - began > PATIENCE:
            world.bugs.clear()
        if world.loop.time() - began > LONGEST_SETTLING:
            world.violated(f"no rest after {LONGEST_SETTLING:.0f} s: {'; '.join(found)}")
            return False
        fix(world)
        if await _passes(world, CHECK_EVERY):
            return False
    return not await _passes(world, CALM + _lateness(world)) and not differences(world)


def _lateness(world: World) -> float:
    """Return for how long some process does not see how things are, or takes figures for newer than they are."""
    late = [until - world.now() for each in world.operators for until in each.stalled_until.values()]
    set_back = METRICS_INTERVAL if any(each.skew < 0 for each in world.operators) else 0.0
    return max([0.0, *late]) + set_back


async def _passes(world: World, seconds: float) -> bool:
    """Let time pass; returns whether something happened that never may."""
    try:
        async with asyncio.timeout(seconds):
            await world.violation_found.wait()
    except TimeoutError:
        return False
    return True


def end_misfortune(world: World) -> None:
    """Have fair weather, nodes, storage and at least one operator."""
    world.faults.clear()
    world.input = False
    world.bugs = {uid: bug for uid, bug in world.bugs.items() if world.rng.random() < 0.5}
    world.quota = world.cluster.image_missing = world.store.down = False
    for name in world.cluster.nodes:
        world.cluster.heal(name)
    for process in list(world.operators):
        process.go_on.set()
        if process.cut_off:
            world.crash(process, "could not renew its lease")
    for app in world.api.all(APPS):
        if is_invalid_version(app) and "deletionTimestamp" not in app["metadata"] and world.rng.random() < 0.5:
            make_usable_again(world, app["metadata"]["name"])  # else the stable version is to run
    if not world.operators:
        world.start_operator()
    elif world.leader is None:
        world.elect()


def fix(world: World) -> None:
    """Do what only people can do."""
    for app in world.api.all(APPS):
        name = app["metadata"]["name"]
        stays = reason_of(app) in FOR_GOOD or reason_of(app) in NO_STATE
        if reason_of(app) == "InvalidSpec" or (stays and is_invalid_version(app)):
            world.trace("people", make_usable_again(world, name))
        if has_rival(app, world.api.all(APPS)):
            _revert_store(world, app)
        if reason_of(app) in (OWNED, UNCLAIMED):
            _hand_over(world, app)
        if reason_of(app) == NOTHING_THERE:
            # The earlier one had committed nothing, and its claim was lost: as the message says.
            world.trace("people", f"have {name} start without state")
            world.api.patch(world.app_path(name), {"spec": {"startFrom": None}})
        if reason_of(app) == UNREACHABLE and not world.reaches(name):
            nonce = app["spec"].get("restartNonce", 0) + 1
            world.trace("people", f"have {name} launched with the operator's new key")
            world.api.patch(world.app_path(name), {"spec": {"restartNonce": nonce}})
        helped = reason_of(app) in NO_PLACE and (put_newest_back(world, app) or put_back(world, app))
        if reason_of(app) in NO_STATE or (reason_of(app) in NO_PLACE and not helped):
            _give_state_up(world, app)
        if reason_of(app) in FOR_GOOD and "deletionTimestamp" not in app["metadata"]:
            nonce = app["spec"].get("restartNonce", 0) + 1
            world.trace("people", f"fix {name}, which is {reason_of(app)}")
            world.api.patch(world.app_path(name), {"spec": {"restartNonce": nonce}})


def _revert_store(world: World, app: Body) -> None:
    """Revert an edit whose place another application has, beside which the version under test goes on."""
    name, upgrade = app["metadata"]["name"], (app.get("status") or {}).get("upgrade") or {}
    if upgrade.get("phase") not in UNDER_TEST or "toSpec" not in upgrade:
        return
    endpoint = json.loads(upgrade["toSpec"]).get("storage.endpoint") or None
    if endpoint != app["spec"]["storage"].get("endpoint"):
        world.trace("people", f"have {name} use the store again in which it is under test")
        world.api.patch(world.app_path(name), {"spec": {"storage": {"endpoint": endpoint}}})


def _give_state_up(world: World, app: Body) -> None:
    """Say twice that the application may start with nothing: what it is to go on with is gone."""
    name, lineage = app["metadata"]["name"], (app.get("status") or {}).get("lineage", 0)
    if not lineage and world.api.find(world.driver_path(name)) is not None:
        # Its status was lost, and what the driver was told with it: another one asks the storage, as the message says.
        world.trace("people", f"delete the driver of {name}, which is {reason_of(app)}")
        world.api.delete(world.driver_path(name))
        return
    world.trace("people", f"give up lineage {lineage} of {name}, which is {reason_of(app)}")
    notes = {"annotations": {"tidegate.dev/abandon-state": str(lineage)}}
    world.api.patch(world.app_path(name), {"metadata": notes})
    if reason_of(app) != "UpgradeRefused":
        nonce = app["spec"].get("restartNonce", 0) + 1
        world.api.patch(world.app_path(name), {"spec": {"restartNonce": nonce, "upgrade": {"mode": "Stateless"}}})


def _hand_over(world: World, app: Body) -> None:
    """Have an application take over what the earlier one left, or remove that; sometimes its claim is lost before."""
    name, uri = app["metadata"]["name"], app["spec"]["storage"]["uri"]
    prefix = f"{uri.removeprefix('s3://')}/{NAMESPACE}/{name}"
    claim, fence = (f"{prefix}/{each}" for each in (APP_FILE, FENCE_FILE))
    adopts = (app["spec"].get("startFrom") or {}).get("adopt", False)
    if adopts or (claim not in world.store.objects and fence not in world.store.objects) or world.rng.random() < 0.3:
        world.trace("people", f"remove everything below {prefix}")
        for key in world.store.keys(f"{prefix}/"):
            del world.store.objects[key]
        world.check.emptied(prefix)
        world.api.patch(world.app_path(name), {"spec": {"startFrom": None}})
        return
    if fence in world.store.objects and world.rng.random() < 0.3:
        world.trace("people", f"lose {claim}")
        world.store.objects.pop(claim, None)
    world.trace("people", f"{name} adopts what is below {prefix}")
    world.count("adopted what an earlier application left")
    world.api.patch(world.app_path(name), {"spec": {"startFrom": {"adopt": True}}})
