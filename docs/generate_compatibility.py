"""Write docs/compatibility.md from tests/compatibility/patterns.toml; with ``--check`` say whether it differs.

The tables stand between two comments; the text around them is written by hand. Reads and writes one page.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from docs.generated_page import replace_between, write_or_check
from tests.compatibility.patterns import RUNTIME, Outcome, Pattern, Patterns, Topic, load

PAGE = Path(__file__).with_name("compatibility.md")
BEGIN, END = "<!-- tables: from docs/generate_compatibility.py -->", "<!-- tables: end -->"
TITLES = {
    Topic.ENDS: "How a script ends",
    Topic.SIGNALS: "Signals",
    Topic.SESSIONS: "Sessions and contexts",
    Topic.QUERIES: "Queries",
    Topic.RECOVERY: "What Spark cannot continue",
    Topic.SETTINGS: "Settings",
    Topic.FILES: "Files, modules and topics",
    Topic.TRIGGERS: "Triggers",
    Topic.STATE: "State",
    Topic.NAMES: "Names and ports",
    Topic.EXAMPLES: "Spark's own streaming examples",
}


def tables(patterns: Patterns) -> str:
    """Return how many there are, and a section for each topic; pure."""
    sections = ["\n".join(_section(patterns, topic)) for topic in Topic]
    return "\n\n".join([_summary(patterns), *sections])


def _summary(patterns: Patterns) -> str:
    counts = Counter(each.outcome for each in patterns.pattern)
    return (
        f"{len(patterns.pattern)} patterns: {counts[Outcome.ENDLESS]} run until they are stopped, "
        f"{counts[Outcome.FINITE]} come to an end, {counts[Outcome.REFUSED]} are refused."
    )


def _section(patterns: Patterns, topic: Topic) -> Iterator[str]:
    yield f"## {TITLES[topic]}"
    yield ""
    yield "| Script | What happens | Shown by |"
    yield "|-|-|-|"
    for each in patterns.pattern:
        if each.topic is topic:
            yield f"| {each.name} | {_what_happens(each)} | {_script(each)} |"
    for other in patterns.elsewhere:
        if other.topic is topic:
            file = other.evidence.partition("::")[0]
            yield f"| {other.name} | {other.says} | [{Path(file).stem}](../{file}) |"


def _what_happens(pattern: Pattern) -> str:
    if pattern.outcome is Outcome.REFUSED:
        return _refused(pattern.reason)
    said = {
        Outcome.ENDLESS: "Supported; the query starts empty whenever the driver starts."
        if pattern.fresh
        else "Supported.",
        Outcome.FINITE: "Supported: the application is Completed.",
    }[pattern.outcome]
    if pattern.next_reason:
        said = f"The next version is refused: {_reason(pattern.next_reason)}."
    if pattern.events:
        said += f" Events have details: {', '.join(map(_reason, pattern.events))}."
    return said


def _refused(reason: str) -> str:
    if reason == "ApplicationFailed":
        return f"Fails as under `spark-submit`: {_reason(reason)}, and the message says why."
    return f"Refused: {_reason(reason)}, and the message says what to do."


def _reason(reason: str) -> str:
    return f"[{reason}](reference/reasons.md#{reason.lower()})"


def _script(pattern: Pattern) -> str:
    kind, _, name = pattern.script.rpartition(":")
    if kind == "spark":
        return "PySpark's package"
    folder = (
        "tests/integration/spark_runtime/scripts" if pattern.path.parent == RUNTIME else "tests/compatibility/scripts"
    )
    return f"[{Path(name).stem}](../{folder}/{name})"


def fill(page: str, patterns: Patterns) -> str:
    """Return the page with its tables rewritten.

    Raises:
        ValueError: the place for them is missing.
    """
    return replace_between(page, BEGIN, END, tables(patterns))


def main(arguments: Sequence[str]) -> int:
    """Write, or check; return the exit code: 0, or 1 if something differs."""
    return write_or_check(PAGE, lambda page: fill(page, load()), arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
