"""How long each file of tests takes: the committed record, and a run held against it. Reads and writes files.

``python -m tests.gate.durations REPORTS`` renews the record from the JUnit files of a run (``make durations``).
"""

import argparse
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.gate import junit
from tests.gate.tiers import GATE, TIERS
from tests.gate.tools import is_below, long_tests

ROOT = Path(__file__).parents[2]
RECORD = ROOT / "tests" / "durations.json"
SLOWER = 1.5
"""A file that takes so many times as long as it is recorded is named at the end of a run."""
NOTICED_SECONDS = 20.0
"""Below this, half as much again is what any machine gives by chance."""


@dataclass
class Durations:
    """The record.

    Attributes:
        machine: what it was measured on, in words.
        budgets: minutes that each tier of ``make test`` may take.
        gate: seconds of each file in ``make test``; 0 if all its tests are long.
        whole: seconds of each file in ``make test-all``, as far as they are known.
    """

    machine: str = ""
    budgets: dict[str, float] = field(default_factory=dict)
    gate: dict[str, float] = field(default_factory=dict)
    whole: dict[str, float] = field(default_factory=dict)

    @classmethod
    def load(cls, path: Path = RECORD) -> "Durations":
        """Read the record; raise ValueError with the remedy if it is not one."""
        try:
            return cls(**json.loads(path.read_text()))
        except (ValueError, TypeError) as broken:
            raise ValueError(f"{path} is not a record of durations ({broken}): take it from version control") from None

    def save(self, path: Path = RECORD) -> None:
        """Write the record, so that a file that changed is a line that changed."""
        text = json.dumps(vars(self), indent=2, sort_keys=True)
        path.write_text(text + "\n")

    def seconds(self, file: str, selection: str = GATE) -> float:
        """Return what a file is known to take in a selection; one that is not known takes a second."""
        if selection == GATE:
            return self.gate.get(file, 1.0)
        return max(self.whole.get(file, 0.0), self.gate.get(file, 0.0)) or 1.0


def files(root: Path = ROOT) -> list[str]:
    """Return the files of all tiers' tests, relative to the checkout."""
    folders = [folder for tier in TIERS for folder in tier.folders]
    return sorted(str(path.relative_to(root)) for folder in folders for path in (root / folder).rglob("test_*.py"))


def renewed(
    old: Durations, ran: Mapping[str, float], selection: str, there: Iterable[str], whole_tiers: Iterable[str] = ()
) -> Durations:
    """Return the record with what a run took; files that are gone are left out, those that did not run stay.

    Args:
        old: the record so far.
        ran: seconds of each file that ran.
        selection: what of the files ran, GATE or EVERYTHING.
        there: the files that exist.
        whole_tiers: tiers that ran whole: of their files that did not run all tests are long.
    """
    prefixes = tuple(f"{folder}/" for tier in TIERS if tier.name in whole_tiers for folder in tier.folders)
    new = Durations(old.machine, dict(old.budgets))
    for file in sorted(there):
        gate, whole = old.gate.get(file, 0.0), old.whole.get(file)
        if file in ran and selection == GATE:
            gate = round(ran[file], 1)
        elif file in ran:
            whole = round(ran[file], 1)
        elif selection == GATE and file.startswith(prefixes):
            gate = 0.0
        new.gate[file] = gate
        if whole is not None:
            new.whole[file] = whole
    return new


def not_run(record: Durations, ran: Mapping[str, float], tier_folders: Iterable[str]) -> list[str]:
    """Return the files of some folders that took time when they were recorded, and of which no test ran."""
    prefixes = tuple(f"{folder}/" for folder in tier_folders)
    return sorted(f for f, seconds in record.gate.items() if seconds and f.startswith(prefixes) and f not in ran)


def slower(record: Durations, ran: Mapping[str, float], selection: str = GATE) -> list[str]:
    """Return a line for each file that took much longer than recorded: the machine's noise, or a mistake."""
    found = []
    for file, seconds in sorted(ran.items(), key=lambda item: -item[1]):
        known = record.seconds(file, selection)
        if seconds > NOTICED_SECONDS and seconds > SLOWER * known:
            found.append(f"{file}: {seconds:.0f} s, recorded {known:.0f} s")
    return found


def main() -> None:
    """Renew the record."""
    parser = argparse.ArgumentParser(prog="python -m tests.gate.durations", description=__doc__)
    parser.add_argument("reports", type=Path, help="folder of a run's JUnit files")
    options = parser.parse_args()
    summary = options.reports / "run.json"
    noted: dict[str, Any] = {"selection": GATE, "whole": False, "tiers": {}}
    if summary.is_file():
        noted = json.loads(summary.read_text())
    passed = [name for name, tier in noted["tiers"].items() if noted["whole"] and tier["result"] == "passed"]
    cases = [case for tier in TIERS for case in junit.read(options.reports / f"{tier.name}.xml")]
    record = Durations.load() if RECORD.exists() else Durations()
    ran = junit.by_file(cases)
    # Tests of tools that did not change were left out; what they take is as it was.
    left_out = {file: record.gate[file] for file in record.gate if file not in ran and is_below(file, long_tests())}
    renewed(record, {**left_out, **ran}, noted["selection"], files(), passed).save()
    print(f"{RECORD.relative_to(ROOT)}: {len({case.file for case in cases})} files renewed")


if __name__ == "__main__":
    main()
