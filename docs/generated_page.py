"""Pages whose tables are generated, and whose other text is written by hand. Does file I/O."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

DOCS = Path(__file__).parent


def title_of(link: str) -> str:
    """Return the heading that a link below docs/ leads to: that of its anchor, or the page's.

    Raises:
        ValueError: the page has no such heading.
    """
    page, _, anchor = link.partition("#")
    for heading in re.finditer(r"^#+ (.+)$", (DOCS / page).read_text(), re.MULTILINE):
        title: str = heading[1]
        if not anchor or re.sub(r"[^\w -]", "", title).strip().lower().replace(" ", "-") == anchor:
            return title
    raise ValueError(f"no such heading: {link}")


def replace_between(page: str, begin: str, end: str, content: str) -> str:
    """Return the page with other content between two of its lines; pure.

    Raises:
        ValueError: one of them is missing; names both.
    """
    before, found, rest = page.partition(begin)
    _, also_found, after = rest.partition(end)
    if not found or not also_found:
        raise ValueError(f"no place for the tables: {begin} … {end}")
    return f"{before}{begin}\n\n{content}\n\n{end}{after}"


def write_or_check(path: Path, fill: Callable[[str], str], arguments: Sequence[str]) -> int:
    """Rewrite a page, or with ``--check`` say whether it differs; return the exit code: 1 if it does."""
    name = f"docs/{path.relative_to(DOCS) if path.is_relative_to(DOCS) else path.name}"
    parser = argparse.ArgumentParser(description=f"Write the tables of {name}.")
    parser.add_argument("--check", action="store_true", help="change nothing; fail if a table differs")
    check = parser.parse_args(arguments).check
    page = path.read_text()
    filled = fill(page)
    if check and filled != page:
        sys.stderr.write(f"{name} differs: run `make generate` and commit what it writes\n")
        return 1
    if not check:
        path.write_text(filled)
    return 0
