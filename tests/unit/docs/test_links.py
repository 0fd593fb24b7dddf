"""Links between the pages lead to files and headings that exist; architecture.md names modules that do. Reads them."""

import re
from collections.abc import Iterable
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
PAGES = (*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "charts").rglob("*.md"))
PACKAGES = (ROOT / "operator" / "tidegate", ROOT / "spark_app" / "tidegate_spark")
_LINK = re.compile(r"\]\(([^()\s]+(?:\([^()\s]*\)[^()\s]*)*)\)")
_CODE = re.compile(r"```.*?```", re.DOTALL)
_PAGE = re.compile(r"\bdocs/[a-z/-]+\.md\b")
_MODULE = re.compile(r"`([a-z_]+(?:/[a-z_]+)*)(?:\.py|/)?`")


def anchors(text: str) -> set[str]:
    """Return what the headings of a page are called in links, as GitHub calls them."""
    headings = re.findall(r"^#+ (.*)$", _CODE.sub("", text), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in headings}


def dead(pages: Iterable[Path]) -> list[str]:
    """Return each link to a file of the project, or to a heading of a page, that does not exist."""
    found = []
    for page in pages:
        for link in _LINK.findall(_CODE.sub("", page.read_text())):
            file, _, anchor = link.partition("#")
            target = (page.parent / file).resolve() if file else page
            if "://" in link or link.startswith("mailto:"):
                continue
            if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target.read_text())):
                found.append(f"{page.name}: {link}")
    return found


def named_in_code() -> set[str]:
    """Return the pages that modules, charts and builds name."""
    folders = ("operator", "spark_app", "jvm", "images", "devcluster", "charts", "crds")
    files = (path for folder in folders for path in (ROOT / folder).rglob("*"))
    texts = (path.read_text() for path in files if path.suffix in {".py", ".java", ".yaml", ".tpl", ".sh"})
    return {page for text in texts for page in _PAGE.findall(text)}


def unknown(text: str) -> set[str]:
    """Return the modules and folders that a text names and that no package has, at whatever depth, nor the project."""
    there = {path.with_suffix("") for package in PACKAGES for path in package.rglob("*")}
    names = {"/".join(path.parts[-depth:]) for path in there for depth in range(1, 5)}
    return {name for name in _MODULE.findall(_CODE.sub("", text)) if name not in names and not (ROOT / name).exists()}


def test_every_link_leads_somewhere() -> None:
    assert dead(PAGES) == [], "correct these links: the page or its heading does not exist"


def test_every_page_that_code_names_is_there() -> None:
    named = named_in_code()
    assert "docs/design/upgrades.md" in named
    assert {page for page in named if not (ROOT / page).exists()} == set(), (
        "code or a chart names these pages, which do not exist: correct their paths"
    )


def test_the_page_on_the_architecture_names_modules_that_there_are() -> None:
    assert unknown((ROOT / "docs" / "architecture.md").read_text()) == set(), (
        "docs/architecture.md has these in backquotes, in which it writes only modules and folders of the packages and "
        "folders of the project: make any other file a link"
    )


@pytest.mark.parametrize("link", ["gone.md", "here.md#gone", "#gone"])
def test_a_planted_dead_link_is_found(tmp_path: Path, link: str) -> None:
    page = tmp_path / "here.md"
    page.write_text(f"# Here\n\n[there](here.md#here) and [not]({link})\n")
    assert dead([page]) == [f"here.md: {link}"]


def test_a_planted_module_that_is_none_is_found() -> None:
    assert unknown("`rules/plan` and `rules/words`") == {"rules/words"}
