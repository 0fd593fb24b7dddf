"""What an edit refers to, before anything is stopped for it. No I/O."""

from __future__ import annotations

from tidegate.decide.launch import pods_to_try
from tidegate.decide.upgrades.step import version_held
from tidegate.observe.observation import Observation
from tidegate.resources.references import Reference, references_of, spared_by


def references_to_check(o: Observation) -> tuple[Reference, ...]:
    """Return what has to exist for a version that was not launched yet; nothing before the first launch of all.

    What pods can do without is left out where the stable version names it as well: that runs, whether it exists or not.
    """
    pods = pods_to_try(o) if o.app.status.epoch else ()
    if not pods:
        return ()
    held = version_held(o.app.spec, o.app.status.last_stable)
    spared = spared_by(held) if held is not None else frozenset()
    return tuple(each for each in references_of(o.app, pods) if not each.is_spared or each.name not in spared)
