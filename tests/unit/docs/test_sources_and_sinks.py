"""The table of sources and sinks: what it names as evidence is there, and the page is what it says."""

import pytest

from docs import generate_sources_and_sinks as generator
from tests.gate.promises import look_up

TABLE = generator.read(generator.DATA.read_text())
EVIDENCE = sorted({test for row in TABLE.rows for cell in row.cells.values() for test in cell.evidence})


@pytest.mark.parametrize("test", EVIDENCE)
def test_what_is_named_as_evidence_is_a_test(test: str) -> None:
    wrong, _ = look_up(test)
    assert wrong == ""


def test_every_row_is_in_every_section_and_what_is_not_known_is_said() -> None:
    sections = generator.tables(TABLE).split("\n## ")
    assert len(sections) == len(TABLE.situations)
    for situation, section in zip(TABLE.situations, sections, strict=True):
        # Sources first, as in the data: some names are those of a source and of a sink.
        lines = [line for line in section.splitlines() if line.startswith("| ") and "| What happens |" not in line]
        for row, line in zip(TABLE.rows, lines, strict=True):
            assert line.startswith(f"| {row.name} | ")
            assert ("Unknown." in line) == (situation.key not in row.cells)


def test_a_situation_that_there_is_not_is_refused() -> None:
    text = generator.DATA.read_text().replace("rollback = {", "rolback = {", 1)
    with pytest.raises(ValueError, match="source Kafka: rolback is no situation"):
        generator.read(text)


def test_a_page_without_a_place_for_the_tables_is_refused() -> None:
    with pytest.raises(ValueError, match="no place for the tables"):
        generator.fill("# Sources and sinks\n", TABLE)


def test_the_page_is_up_to_date() -> None:
    assert generator.main(["--check"]) == 0
