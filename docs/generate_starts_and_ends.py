"""Write docs/starts-and-ends.md from docs/starts-and-ends.toml and the registry; with ``--check`` say what differs.

The tables stand between two comments; the text around them is written by hand. Reads and writes one page.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from docs.generated_page import replace_between, write_or_check
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.reasons.areas import pods
from tidegate_spark.contract.reasons.entry import Entry, Place
from tidegate_spark.contract.reasons.registry import entry_of, reasons_at

DATA = Path(__file__).with_name("starts-and-ends.toml")
PAGE = Path(__file__).with_name("starts-and-ends.md")
BEGIN, END = "<!-- tables: from docs/generate_starts_and_ends.py -->", "<!-- tables: end -->"
TITLES = {"start": "A pod does not start", "end": "A pod ends"}
_NO_POD = frozenset(
    {
        Reason.INVALID_SPEC,
        Reason.CONFIGURATION_TOO_LONG,
        Reason.STORAGE_CONFLICT,
        Reason.EARLIER_DRIVER,
        Reason.RELAUNCH_DELAYED,
        Reason.RESTART_POLICY_NEVER,
    }
)
"""Of other areas: for these no driver is started, or started again."""


class Row(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A reason, and the tests that produce it."""

    reason: str
    cluster: str
    reads: tuple[str, ...]
    """Words of the message that this test asserts."""
    elsewhere: tuple[str, ...] = ()


Tables = dict[str, list[Row]]


def needed() -> set[str]:
    """Return the reasons that have to have a row: all about pods, all that a driver ends for; pure."""
    about_pods = {entry.reason for entry in pods.AREA.entries}
    return {reason.value for reason in about_pods | set(reasons_at(Place.LAST_EXIT)) | _NO_POD}


def read(text: str) -> Tables:
    """Return the rows of a data file by table; pure.

    Raises:
        ValueError: a reason that there is not.
        msgspec.ValidationError: something else is wrong.
    """
    tables = msgspec.convert(tomllib.loads(text), Tables)
    for row in (row for rows in tables.values() for row in rows):
        if row.reason not in {reason.value for reason in Reason}:
            raise ValueError(f"{row.reason} is no reason")
    return tables


def written(tables: Tables) -> str:
    """Return a section for each table; pure."""
    return "\n\n".join("\n".join(_section(TITLES[kind], tables[kind])) for kind in TITLES)


def _section(title: str, rows: Sequence[Row]) -> Iterator[str]:
    yield f"## {title}"
    yield ""
    yield "| Reason | When | What a user reads | Whose fault | Produced on a cluster by | And without one by |"
    yield "|-|-|-|-|-|-|"
    for row in rows:
        yield _line(row, entry_of(Reason(row.reason)))


def _line(row: Row, entry: Entry) -> str:
    reads = " … ".join(row.reads).replace("|", "\\|")
    elsewhere = ", ".join(_link(test) for test in row.elsewhere)
    name = f"[{row.reason}](reference/reasons.md#{row.reason.lower()})"
    return f"| {name} | {entry.meaning} | “… {reads} …” | {entry.fault.value} | {_link(row.cluster)} | {elsewhere} |"


def _link(test: str) -> str:
    file, _, function = test.partition("::")
    return f"[{Path(file).stem}::{function}](../{file})"


def fill(page: str, tables: Tables) -> str:
    """Return the page with its tables rewritten.

    Raises:
        ValueError: the place for them is missing.
    """
    return replace_between(page, BEGIN, END, written(tables))


def main(arguments: Sequence[str]) -> int:
    """Write, or check; return the exit code: 0, or 1 if something differs."""
    return write_or_check(PAGE, lambda page: fill(page, read(DATA.read_text())), arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
