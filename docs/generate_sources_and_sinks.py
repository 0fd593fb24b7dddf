"""Write docs/sources-and-sinks.md from docs/sources-and-sinks.toml; with ``--check`` say what differs.

The tables stand between two comments; the text around them is written by hand. Reads and writes one page.
"""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec

from docs.generated_page import replace_between, write_or_check

DATA = Path(__file__).with_name("sources-and-sinks.toml")
PAGE = Path(__file__).with_name("sources-and-sinks.md")
BEGIN, END = "<!-- tables: from docs/generate_sources_and_sinks.py -->", "<!-- tables: end -->"


class Cell(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What happens, and the tests that show it."""

    says: str
    evidence: tuple[str, ...] = ()


class Situation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Something that an application goes through."""

    key: str
    title: str
    about: str


class Row(msgspec.Struct, frozen=True):
    """A source or a sink."""

    kind: str
    name: str
    cells: dict[str, Cell]
    """By the key of the situation; what is not there is unknown."""


class Table(msgspec.Struct, frozen=True):
    """All that is known."""

    situations: tuple[Situation, ...]
    rows: tuple[Row, ...]


def read(text: str) -> Table:
    """Return the table of a data file; pure.

    Raises:
        ValueError: a row has a situation that is none; names both.
        msgspec.ValidationError: something else is wrong.
    """
    data: dict[str, Any] = tomllib.loads(text)
    situations = tuple(msgspec.convert(data["situation"], list[Situation]))
    known = {situation.key for situation in situations}
    rows = []
    for kind in ("source", "sink"):
        for fields in data[kind]:
            cells = {key: value for key, value in fields.items() if key != "name"}
            if unknown := cells.keys() - known:
                raise ValueError(f"{kind} {fields['name']}: {', '.join(sorted(unknown))} is no situation")
            rows.append(Row(kind, fields["name"], msgspec.convert(cells, dict[str, Cell])))
    return Table(situations, tuple(rows))


def tables(table: Table) -> str:
    """Return a section for each situation; pure."""
    return "\n\n".join("\n".join(_section(table, situation)) for situation in table.situations)


def _section(table: Table, situation: Situation) -> Iterator[str]:
    yield f"## {situation.title}"
    yield ""
    yield situation.about
    for kind in ("source", "sink"):
        yield ""
        yield f"| {kind.capitalize()} | What happens | Shown by |"
        yield "|-|-|-|"
        for row in table.rows:
            if row.kind == kind:
                yield _line(row.name, row.cells.get(situation.key))


def _line(name: str, cell: Cell | None) -> str:
    if cell is None:
        return f"| {name} | Unknown. | |"
    shown = ", ".join(_link(test) for test in cell.evidence) or "not tested"
    return f"| {name} | {cell.says} | {shown} |"


def _link(test: str) -> str:
    file = test.partition("::")[0]
    return f"[{Path(file).stem}](../{file})"


def fill(page: str, table: Table) -> str:
    """Return the page with its tables rewritten.

    Raises:
        ValueError: the place for them is missing.
    """
    return replace_between(page, BEGIN, END, tables(table))


def main(arguments: Sequence[str]) -> int:
    """Write, or check; return the exit code: 0, or 1 if something differs."""
    return write_or_check(PAGE, lambda page: fill(page, read(DATA.read_text())), arguments)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
