"""Which pairs of action and crash point there can be, and which of them there were."""

from collections import Counter
from collections.abc import Iterable
from typing import TYPE_CHECKING

from tests.scenario.faults import Crash, Pair

if TYPE_CHECKING:
    from tests.scenario.schedule import Result

_APP, _STATUS = "PATCH streamingapps", "PATCH streamingapps status"
_ACCESS = ("serviceaccounts", "roles", "rolebindings")

EFFECTS: dict[str, tuple[str, ...]] = {
    "AddFinalizer": (_APP,),
    "RemoveFinalizer": (_APP,),
    "EnsureAccess": tuple(f"{verb} {kind}" for verb in ("POST", "DELETE") for kind in _ACCESS),
    "EnsureLaunchSecrets": ("POST secrets",),
    "DeleteLaunchSecrets": ("DELETE secrets",),
    "ConfirmRecord": (),
    "ConfirmDriverGone": (),
    "RecordLaunch": (_STATUS,),
    "WriteStatus": (_STATUS,),
    "CreateDriver": ("POST pods",),
    "ProvideConfiguration": ("POST secrets", "DELETE secrets"),
    "DeleteDriver": ("DELETE pods",),
    "SetExecutors": ("POST agent",),
    "OrderSnapshots": ("POST agent",),
    "DeleteExecutor": ("DELETE pods",),
    "RestoreLabels": ("PATCH pods",),
    "CreatePurge": ("POST pods",),
    "DeletePurge": ("DELETE pods",),
    "CreateOriginRelease": ("POST pods",),
    "DeleteOriginRelease": ("DELETE pods",),
    "CreateRehearsal": ("POST pods",),
    "DeleteRehearsal": ("DELETE pods",),
    "CreateRepartition": ("POST pods",),
    "DeleteRepartition": ("DELETE pods",),
    "CreateSnapshot": ("POST streamsnapshots",),
    "PublishEvent": ("POST events",),
    "RememberReported": (),
    "WriteMessageStatus": ("PATCH controlmessages status",),
    "GiveMessages": ("POST agent",),
    "MakeSnapshot": ("POST streamsnapshots",),
    "MakeMessage": ("POST controlmessages",),
    "DeleteMessage": ("DELETE controlmessages",),
    "PublishMessageEvent": ("POST events",),
}
"""What each action changes outside of the process; a test compares the names with the closed unions."""


ELSEWHERE = frozenset({"ProvideConfiguration", "RestoreLabels"})
"""Actions that no ordinary schedule has; schedules of their own aim at them."""


def pairs_of(actions: Iterable[str]) -> list[Pair]:
    """Return the pairs that there can be of some actions."""
    found: list[Pair] = []
    for action in actions:
        effects = EFFECTS[action]
        found += [(action, "", Crash.BEFORE), (action, "", Crash.AFTER)]
        found += [(action, effect, point) for effect in effects for point in (Crash.LATE, Crash.DONE)]
    return found


PAIRS = pairs_of(action for action in EFFECTS if action not in ELSEWHERE)
"""All there can be in ordinary schedules."""


def add(total: "Result", one: "Result") -> None:
    """Add what came of one schedule to what came of all."""
    for name in ("crashed", "passed", "happened", "facts"):
        known: Counter[object] = getattr(total, name)
        known.update(getattr(one, name))
    total.batches += one.batches
    total.seconds += one.seconds
    total.processor_seconds += one.processor_seconds


def never_reached(total: "Result") -> list[Pair]:
    """Return the pairs at which no process died."""
    return [pair for pair in PAIRS if not total.crashed[pair]]


def report(total: "Result") -> str:
    """Return what was covered, in words."""
    known, missing = PAIRS, never_reached(total)
    unknown = sorted({f"{a}/{e}" for a, e, _ in total.passed if e and e not in EFFECTS.get(a, ())})
    lines = [
        f"{total.batches} batches committed, {total.seconds / 3600:.0f} hours simulated, "
        f"{sum(total.happened.values())} events: "
        + ", ".join(f"{name} {count}" for name, count in sorted(total.happened.items())),
        "among what came of them: " + ", ".join(f"{name} {count}" for name, count in sorted(total.facts.items())),
        f"{total.crashed.total()} crashes, at {len(known) - len(missing)} of {len(known)} pairs of action and point",
    ]
    for action in EFFECTS:
        counts = [
            f"{' '.join(filter(None, (e, p.name.lower())))} {total.crashed[action, e, p]}"
            for a, e, p in known
            if a == action
        ]
        lines.append(f"  {action}: {', '.join(counts)}")
    lines += [f"never reached: {action} {effect} {point.name.lower()}" for action, effect, point in missing]
    lines += [f"not in the table: {name}" for name in unknown]
    return "\n".join(lines)
