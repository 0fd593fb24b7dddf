"""The site has every page, and links that lead where they lead in the project. Reads the pages; builds nothing."""

from pathlib import Path

import pytest

from docs import gather_site as site

GUIDE = site.DOCS / "guide" / "watch.md"


def test_every_page_is_in_the_navigation_and_every_entry_is_a_page() -> None:
    unlisted, without_page = site.unlisted()
    assert (unlisted, without_page) == (set(), set()), (
        f"in `nav` of docs/zensical.toml, add {sorted(unlisted)} and remove {sorted(without_page)}"
    )


@pytest.mark.parametrize(
    ("page", "link", "there"),
    [
        (GUIDE, "[a](../guide/README.md)", "[a](index.md)"),
        (GUIDE, "[a](../metrics.md#alerts)", "[a](../metrics.md#alerts)"),
        (GUIDE, "[a](#phases)", "[a](#phases)"),
        (site.ROOT / "README.md", "[a](docs/guide/watch.md)", "[a](guide/watch.md)"),
        (site.DOCS / "versions.md", "[a](../SECURITY.md#x)", "[a](project/security.md#x)"),
        (site.DOCS / "metrics.md", "[a `b`](../pyproject.toml)", "a `b`"),
        (GUIDE, "[a](https://spark.apache.org)", "[a](https://spark.apache.org)"),
        (GUIDE, "```\n[a](../pyproject.toml)\n```", "```\n[a](../pyproject.toml)\n```"),
    ],
)
def test_a_link_leads_to_the_page_of_the_site_or_becomes_text(page: Path, link: str, there: str) -> None:
    assert site.for_site(link, page, site.places()) == there


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("- a\n  b\n\n  c\n\nd", "- a\n    b\n\n    c\n\nd"),
        ("1. a\n   - b\n2. c", "1. a\n    - b\n2. c"),
        ("1. a\n\n   ```\n   x\n     y\n   ```\n2. b", "1. a\n\n    ```\n    x\n      y\n    ```\n\n2. b"),
        ("```\n- a\n  b\n```", "```\n- a\n  b\n```"),
        ("- a\ncontinued\n- b", "- a\n    continued\n- b"),
    ],
)
def test_what_belongs_to_an_item_is_indented_by_four(written: str, shown: str) -> None:
    assert site.indented(written) == shown
