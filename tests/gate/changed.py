"""Run the tests that a change can break: ``python -m tests.gate.changed [--base COMMIT] [--list]``.

Tests without servers run if they need a changed file, directly or not, by import or by name (tests/gate/imports.py).
Tests with servers need nearly everything in that sense: of those, a table (changed.toml) says which ones to run for a
changed file of the product; tests/ itself is followed by imports there, too. A file that neither knows runs everything.

Tests marked `long` are left out, except those of files that have changed themselves: whoever edits them wants to see
them, and for all others a test that is not long proves the same promise.
"""

import argparse
import json
import os
import re
import subprocess
import sys
import tomllib
from collections import deque
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

from tests.gate import tiers
from tests.gate.base import BASE_VARIABLE, ROOT, UnknownBaseError, changed_files, find_base, git_in
from tests.gate.imports import Needs, read_graph
from tests.gate.tools import CHANGED_VARIABLE, is_below

TABLE = Path(__file__).with_suffix(".toml")
TIERS = {tier.name: tier.folders for tier in tiers.TIERS}
EVERYTHING = "*"
PRODUCT = ("charts/", "crds/", "devcluster/", "images/", "jvm/", "operator/", "spark_app/")
"""What tests with servers are about; the table has to say which of them."""
GATE = "tests/gate/"
NO_TESTS_FOUND = 5


@dataclass(frozen=True)
class Rule:
    """These files, as patterns, are what these tests are about: files, or folders of them."""

    files: tuple[str, ...]
    tests: tuple[str, ...]


@dataclass
class Selection:
    """The test files to run, each with the changed file that leads to it, and how."""

    reasons: dict[str, str] = field(default_factory=dict)
    everything: str = ""
    """Why everything is to be run; empty: it is not."""
    changed: set[str] = field(default_factory=set)
    """The test files that have changed themselves, or what belongs to them alone."""

    def add(self, test: str, reason: str) -> None:
        self.reasons.setdefault(test, reason)

    def of_tier(self, tier: str) -> list[str]:
        """Return the test files of a tier that are to be run."""
        return sorted(test for test in self.reasons if tier_of(test) == tier)


def tier_of(file: str) -> str | None:
    """Return the tier of a file of tests; None: it is in none."""
    return next((tier for tier, folders in TIERS.items() if file.startswith(tuple(f"{f}/" for f in folders))), None)


def is_test(file: str) -> bool:
    """Return whether pytest collects a file."""
    name = Path(file).name
    return tier_of(file) is not None and name.startswith("test_") and name.endswith(".py")


@dataclass(frozen=True)
class Table:
    rules: tuple[Rule, ...]
    always: tuple[str, ...] = ()
    """Tests that read the whole checkout: they run whatever changed."""


def read_table(text: str) -> Table:
    """Read changed.toml."""
    read: dict[str, Any] = tomllib.loads(text)
    rules = (Rule(tuple(rule["files"]), tuple(rule["tests"])) for rule in read["rule"])
    return Table(tuple(rules), tuple(read["always"]))


def matches(pattern: str, file: str) -> bool:
    """Return whether a pattern is about a file: ``**`` is anything, ``*`` anything within one folder."""
    return _compiled(pattern).fullmatch(file) is not None


@cache
def _compiled(pattern: str) -> re.Pattern[str]:
    parts = (".*" if part == "**" else "[^/]*" if part == "*" else re.escape(part) for part in _WILD.split(pattern))
    return re.compile("".join(parts))


def select(changed: Sequence[str], needs: Needs, table: Table, files: Collection[str]) -> Selection:
    """Return the tests to run for the changed files.

    Args:
        changed: the files that differ, those that are gone included.
        needs: which file needs which others.
        table: each rule that is about a file counts.
        files: all files of the checkout.
    """
    tests = sorted(file for file in files if is_test(file))
    users = reverse(needs)
    selection = Selection()
    for file in changed:
        wanted = reported(file, table)
        if EVERYTHING in wanted:
            return Selection(everything=f"{file} is what everything runs on")
        own = own_tests(file, tests, needs)
        seeds = [file] if file in files else formerly_beside(file, needs)
        known = [seed for seed in seeds if seed in needs or seed in users]
        if not (wanted or own or is_test(file) or (known and not file.startswith(PRODUCT))):
            return Selection(everything=f"neither imports nor changed.toml say what {file} is for")
        selection.changed.update(own)
        for test in own:
            selection.add(test, file)
        for test in tests:
            if is_below(test, wanted):
                selection.add(test, f"{file} (table)")
        for test, way in reached(known, users).items():
            selection.add(test, file if way == file else f"{file} via {way}")
    for test in tests if changed else ():
        if is_below(test, table.always):
            selection.add(test, "whatever changed")
    return selection


def reported(file: str, table: Table) -> list[str]:
    """Return what the table says is about a file."""
    return [place for rule in table.rules if any(matches(p, file) for p in rule.files) for place in rule.tests]


def reverse(needs: Needs) -> Mapping[str, list[str]]:
    """Return for each file those that need it."""
    users: dict[str, list[str]] = {}
    for file in sorted(needs):
        for needed in needs[file]:
            users.setdefault(needed, []).append(file)
    return users


def reached(seeds: Iterable[str], users: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the tests that need one of these files, each with what it needs that for.

    Tests with servers are reached through files of the tests alone, never through the product: the table has those.
    What they use of the gate (the order of their files) has tests without servers.
    """
    found: dict[str, str] = {}
    for reached_tiers, through, never in ((("unit",), ("",), ()), (("integration", "e2e"), ("tests/",), (GATE,))):
        line = deque(seed for seed in seeds if seed.startswith(through) and not seed.startswith(never))
        seen = set(line)
        while line:
            file = line.popleft()
            for user in users.get(file, ()):
                # Fixtures that read a whole folder of programs need none of them.
                if _is_data(file) and Path(user).name == "conftest.py":
                    continue
                if user in seen or not user.startswith(through) or user.startswith(never):
                    continue
                seen.add(user)
                line.append(user)
                if is_test(user) and tier_of(user) in reached_tiers:
                    found.setdefault(user, file)
    return found


def own_tests(file: str, tests: Iterable[str], needs: Needs) -> list[str]:
    """Return the tests to which a file of a tier belongs: a test itself, or else those beside and around it.

    Of those beside a program only the ones that name it, if there are any.
    """
    if tier_of(file) is None:
        return []
    tests = list(tests)
    if file in tests or is_test(file):
        return [file] if file in tests else []
    if file.endswith(".py") and not _is_data(file):
        return []
    # A script or a golden file: those of the nearest folder that has tests.
    for folder in Path(file).parents:
        beside = [test for test in tests if Path(test).parent == folder]
        if beside:
            return [test for test in beside if file in needs.get(test, ())] or beside
    return [test for test in tests if test.startswith(file.rpartition("/")[0])]


def _is_data(file: str) -> bool:
    return "/scripts/" in file


def formerly_beside(file: str, needs: Needs) -> list[str]:
    """Return what stands for a file that is gone: the modules beside it, because who needed it is no longer known."""
    if not file.endswith(".py"):
        return []
    return [other for other in needs if Path(other).parent == Path(file).parent]


def command(tier: str, files: Sequence[str], arguments: Sequence[str] = ()) -> list[str]:
    """Return the command that runs these tests of a tier, or all of it if there are none."""
    own_cluster = not (os.environ.get("TIDEGATE_KUBECONFIG") or os.environ.get("TIDEGATE_E2E_CLUSTER"))
    given = tiers.workers(os.environ.get("WORKERS") or "2")
    workers = 1 if len(files) == 1 or (tier == "e2e" and not own_cluster) else given
    (spread,) = (each.distribution for each in tiers.TIERS if each.name == tier)
    beside = ["--numprocesses", str(workers), *spread] if workers > 1 else []
    return [
        *(sys.executable, "-m", "pytest", *(files or TIERS[tier]), "-m", "not long or changed", "-q"),
        *(*beside, *arguments),
    ]


def prepare(tier: str) -> None:
    """Build what the tests of a tier need."""
    if tier != "unit":
        subprocess.run([sys.executable, "-m", "devcluster", "tools"], check=True, stdout=subprocess.DEVNULL)
    if tier == "e2e" and not os.environ.get("TIDEGATE_KUBECONFIG"):
        subprocess.run([sys.executable, "-m", "devcluster", "images", "build"], check=True)


def choose_tests(named: str | None, root: Path = ROOT) -> Selection:
    """Return the tests to run for what differs from the base; without a base: everything."""
    base = find_base(named, root)
    if base is None:
        return Selection(everything="there is no base to compare with")
    files = tracked(root)
    return select(changed_files(base, root), read_graph(root, files), read_table(TABLE.read_text()), set(files))


def tracked(root: Path = ROOT) -> list[str]:
    """Return the files of a checkout, without those that git ignores and those that are gone."""
    listing = git_in(root)("ls-files", "--cached", "--others", "--exclude-standard", "-z") or ""
    return sorted({name for name in listing.split("\0") if name and (root / name).is_file()})


def describe(selection: Selection) -> list[str]:
    """Return what will run and why, as lines."""
    if selection.everything:
        return [f"Everything runs: {selection.everything}."]
    lines: list[str] = []
    for tier in TIERS:
        for test in selection.of_tier(tier):
            whole = ", long ones too" if test in selection.changed else ""
            lines.append(f"  {test}{whole}  <-  {selection.reasons[test]}")
    return [f"{len(lines)} files of tests:" if lines else "Nothing changed that a test is about.", *lines]


def run(selection: Selection, arguments: Sequence[str]) -> int:
    """Run the chosen tests tier by tier, whatever fails; return 0 if all passed."""
    failed = 0
    environment = {**os.environ, CHANGED_VARIABLE: json.dumps(sorted(selection.changed))}
    for tier in TIERS:
        files = selection.of_tier(tier)
        if not files and not selection.everything:
            continue
        prepare(tier)
        print(f"--- {tier}: {f'{len(files)} files' if files else 'everything'}", flush=True)
        code = subprocess.run(command(tier, files, arguments), cwd=ROOT, env=environment, check=False).returncode
        if code not in (0, NO_TESTS_FOUND):
            failed = failed or code
    return failed


def main(argv: Sequence[str] | None = None) -> int:
    """Print which tests a change can break, and run them."""
    parser = argparse.ArgumentParser(prog="python -m tests.gate.changed", description=main.__doc__)
    parser.add_argument("--base", help="compare with where this checkout left it; default: the default branch")
    parser.add_argument("--list", action="store_true", help="print what would run, and why")
    options, arguments = parser.parse_known_args(argv)
    if options.base:
        # The plugin that decides about the tests of tools compares with the same commit.
        os.environ[BASE_VARIABLE] = options.base
    try:
        tiers.workers(os.environ.get("WORKERS") or "2")
        selection = choose_tests(options.base)
    except (UnknownBaseError, ValueError) as error:
        print(f"test-changed: {error}", file=sys.stderr)
        return 2
    print("\n".join(describe(selection)), flush=True)
    return 0 if options.list else run(selection, arguments)


_WILD = re.compile(r"(\*\*|\*)")

if __name__ == "__main__":
    sys.exit(main())
