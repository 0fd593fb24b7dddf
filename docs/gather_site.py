"""Gather the pages of the site, from which ``make docs`` builds it: ``python docs/gather_site.py FOLDER``.

The pages are those of docs/ and the project's own beside the README. Links to other files of the project, which have no
page, become plain text; README pages become the index of their folder. Reads the project, writes the folder.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
OF_PROJECT = ("README", "CHANGELOG", "CONTRIBUTING", "CODE_OF_CONDUCT", "SECURITY")
"""Pages beside docs/; they are in the folder ``project`` of the site, but for the README, which is its first page."""
_LINK = re.compile(r"\[((?:[^\[\]]|\[[^\[\]]*\])*)\]\(([^()\s]+)\)")
_ITEM = re.compile(r"( *)([-*]|\d+\.)( +)(?=\S)")
_FENCE = re.compile(r"(^\s*```.*?^\s*```\s*$)", re.DOTALL | re.MULTILINE)


def places() -> dict[Path, str]:
    """Return each page of the project with its path in the site."""
    found = {path: _as_index(path.relative_to(DOCS)) for path in sorted(DOCS.rglob("*.md"))}
    found |= {ROOT / f"{name}.md": f"project/{name.lower()}.md" for name in OF_PROJECT}
    return found | {ROOT / "README.md": "index.md"}


def _as_index(path: Path) -> str:
    return (path.with_name("index.md") if path.name == "README.md" else path).as_posix()


def for_site(text: str, page: Path, pages: Mapping[Path, str]) -> str:
    """Return a page's text with links as they are in the site; pure but for asking what is a file."""

    def link(found: re.Match[str]) -> str:
        label, target = found[1], found[2]
        file, _, anchor = target.partition("#")
        if "://" in target or not file or target.startswith("mailto:"):
            return found[0]
        where = Path(os.path.normpath(page.parent / file))
        if where in pages:
            relative = os.path.relpath(pages[where], Path(pages[page]).parent)
            return f"[{label}]({relative}{'#' if anchor else ''}{anchor})"
        if where.is_file() and where.is_relative_to(DOCS) and where.suffix in {".svg", ".png"}:
            return f"[{label}]({os.path.relpath(where.relative_to(DOCS), Path(pages[page]).parent)})"
        return label

    parts = _FENCE.split(text)
    return "".join(part if number % 2 else _LINK.sub(link, part) for number, part in enumerate(parts))


def indented(text: str) -> str:
    """Return a text whose lists are indented by four spaces a level, which Python's Markdown asks for; pure.

    On the forge, what belongs to an item starts in the column of the item's text.
    """
    lines: list[str] = []
    columns: list[int] = []  # where the text of each item around this line starts
    fenced = blank = False
    for line in text.split("\n"):
        indent = len(line) - len(line.lstrip(" "))
        is_fence = line.lstrip(" ").startswith("```")
        item = None if fenced else _ITEM.match(line)
        if line.strip() and not fenced:
            while columns and indent < columns[-1] and (item or is_fence or blank):
                columns.pop()
        if not columns or not line.strip():
            lines.append(line)
        else:
            lines.append("    " * len(columns) + line[min(columns[-1], indent) :])
        if item:
            if lines[-2:-1] and lines[-2].lstrip(" ").startswith("```"):
                lines.insert(-1, "")
            columns.append(item.end())
        fenced, blank = fenced != is_fence, not line.strip()
    return "\n".join(lines)


def in_navigation(navigation: object) -> Iterator[str]:
    """Yield the pages that a navigation names, at whatever depth."""
    if isinstance(navigation, str):
        yield navigation
    elif isinstance(navigation, Mapping):
        for inner in navigation.values():
            yield from in_navigation(inner)
    elif isinstance(navigation, Sequence):
        for inner in navigation:
            yield from in_navigation(inner)


def unlisted() -> tuple[set[str], set[str]]:
    """Return the pages that the navigation lacks, and the entries of the navigation that are no page."""
    named = set(in_navigation(tomllib.loads((DOCS / "zensical.toml").read_text())["project"]["nav"]))
    there = set(places().values())
    return there - named, named - there


def main(arguments: Sequence[str]) -> int:
    """Do what the command line says and return the exit code: 1 if a page is not in the navigation."""
    missing, unknown = unlisted()
    if missing or unknown:
        sys.stderr.write(f"docs/zensical.toml: not in nav: {sorted(missing)}; no such page: {sorted(unknown)}\n")
        return 1
    folder = Path(arguments[0])
    shutil.rmtree(folder, ignore_errors=True)
    pages = places()
    for page, place in pages.items():
        target = folder / place
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(indented(for_site(page.read_text(), page, pages)))
    shutil.copytree(DOCS / "pictures", folder / "pictures")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
