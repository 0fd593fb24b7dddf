"""Write the diagram and the table of phases into docs/design/upgrades.md; with ``--check`` say whether they differ.

Both are made of the table that the operator follows. They stand between two comments; the text around them is written
by hand. Reads and writes one page.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

from docs.generated_page import replace_between, write_or_check
from tidegate.api.streaming_app import UpgradePhase
from tidegate.app.rules.upgrade.record import UNDER_TEST
from tidegate.app.rules.upgrade.table import LAUNCHES, OPEN, RECORDED, REPLACEABLE, TABLE, Rule

PAGE = Path(__file__).with_name("design") / "upgrades.md"
BEGIN, END = "<!-- phases: from docs/generate_upgrades.py -->", "<!-- phases: end -->"
_GROUPS = {
    (None, *RECORDED): "any, or no record",
    RECORDED: "any",
    UNDER_TEST: "under test: Stopping, Repartitioning, Gate, Failed",
    OPEN: "any but Completed, Withdrawn, RollingBack",
    REPLACEABLE: "no record, or any that is not under test",
}
_MOST_IN_THE_PICTURE = 2
"""Phases of a rule that is drawn as arrows; what may come in most of them is in the table alone."""


def diagram() -> str:
    """Return the states and what leads from one to the next; pure."""
    return "\n".join(("```mermaid", "stateDiagram-v2", *_arrows(), "```"))


def _arrows() -> Iterator[str]:
    causes: dict[tuple[str, str], list[str]] = {}
    for rule in TABLE:
        if rule.to is None:
            continue
        drawn = rule.phases if len(rule.phases) <= _MOST_IN_THE_PICTURE else [None] if None in rule.phases else []
        for phase in drawn:
            causes.setdefault((_state(phase), rule.to.value), []).append(rule.when.__name__.replace("_", " "))
    for before, after in LAUNCHES.items():
        if before is not after:
            causes.setdefault((before.value, after.value), []).append("the driver is launched")
    for (before_state, after_state), why in causes.items():
        yield f"    {before_state} --> {after_state}: {' / '.join(why)}"


def _state(phase: UpgradePhase | None) -> str:
    return phase.value if phase is not None else "[*]"


def table() -> str:
    """Return the rules in their order; pure."""
    head = ("| In phase | When | Then | Next phase | Reason |", "|-|-|-|-|-|")
    return "\n".join((*head, *(_line(rule) for rule in TABLE)))


def _line(rule: Rule) -> str:
    phases = _GROUPS.get(rule.phases) or ", ".join(_state(phase) for phase in rule.phases)
    module = rule.when.__module__.partition(".upgrade.")[2].replace(".", "/")
    when = f"{module}: {rule.when.__name__.replace('_', ' ')}{', and the spec is this version' * rule.of_version}"
    then = (rule.when.__doc__ or "").partition("\n")[0]
    reason = rule.reason.value if rule.reason is not None else "its own" if rule.to is not None else ""
    return f"| {phases} | {when} | {then} | {rule.to.value if rule.to is not None else ''} | {reason} |"


def fill(page: str) -> str:
    """Return the page with diagram and table rewritten.

    Raises:
        ValueError: the place for them is missing.
    """
    return replace_between(page, BEGIN, END, f"{diagram()}\n\n{table()}")


def main(arguments: Sequence[str]) -> int:
    """Write, or check; return the exit code: 0, or 1 if something differs."""
    return write_or_check(PAGE, fill, arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
