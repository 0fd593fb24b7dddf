"""The tiers of tests and the steps of a run: which commands, in which order, with which workers. Pure."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

CHECK, UNIT, INTEGRATION, E2E = "check", "unit", "integration", "e2e"
GATE, EVERYTHING = "not long", ""
"""Selections of tests as pytest's ``-m`` takes them."""


@dataclass(frozen=True)
class Tier:
    """One tier of tests.

    Attributes:
        name: as the table and the reports call it.
        folders: where its tests are, relative to the checkout.
        distribution: how pytest-xdist spreads its tests over the workers.
    """

    name: str
    folders: tuple[str, ...]
    distribution: tuple[str, ...]


# A file's tests stay together where they share servers; its place in the order is its tests' own (longest first).
_BY_FILE = ("--dist", "loadfile", "--no-loadscope-reorder")
TIERS = (
    Tier(UNIT, ("tests/unit", "tests/property", "tests/scenario"), ("--dist", "worksteal")),
    Tier(INTEGRATION, ("tests/integration", "tests/compatibility"), _BY_FILE),
    Tier(E2E, ("tests/e2e",), _BY_FILE),
)


@dataclass(frozen=True)
class Step:
    """One command of a run.

    Attributes:
        name: prefixes each line that it prints.
        command: program and arguments.
        after: names of the steps that have to succeed before it starts.
        follows: names of the steps that have to be over, whatever came of them.
        environment: variables beside those of this process.
        ends_the_run: whether the others are ended when it fails, because their results would be worth nothing.
    """

    name: str
    command: tuple[str, ...]
    after: tuple[str, ...] = ()
    follows: tuple[str, ...] = ()
    environment: tuple[tuple[str, str], ...] = ()
    ends_the_run: bool = True


@dataclass(frozen=True)
class Request:
    """What a run is asked for.

    Attributes:
        tiers: names of the tiers that run; ``check`` is one of them.
        selection: GATE or EVERYTHING.
        workers: processes for each tier.
        reports: folder of the JUnit files.
        files: for each tier the only files to run; a tier that is not named runs whole.
        arguments: more arguments for pytest.
        foreign_cluster: whether the end-to-end tests run on a cluster that is given: it has room for one worker.
    """

    tiers: tuple[str, ...]
    selection: str
    workers: int
    reports: Path
    files: Mapping[str, Sequence[str]]
    arguments: tuple[str, ...] = ()
    foreign_cluster: bool = False


def steps(request: Request) -> list[Step]:
    """Return the steps of a run: what tests with servers need is built beside the tests without.

    The tiers run one after the other. Spark gives a Python process of a query 10 s to connect (PythonWorkerFactory),
    and we know of no setting for it: with integration and end-to-end tests together two cores do not keep to it.
    """
    wanted = [tier for tier in TIERS if tier.name in request.tiers and request.files.get(tier.name) != ()]
    names = {tier.name for tier in wanted}
    made = [Step(CHECK, ("make", "--no-print-directory", "lint"))] if CHECK in request.tiers else []
    if names & {INTEGRATION, E2E}:
        made.append(Step("tools", ("nice", *_devcluster("tools"))))
    if E2E in names and not request.foreign_cluster:
        made.append(Step("images", ("nice", *_devcluster("images", "build"))))
        # Needed by one test, which waits for it if need be: nothing else does.
        made.append(
            Step("images-tests", ("nice", "--adjustment=19", *_devcluster("images", "build", "--tests")), ("images",))
        )
    return made + [_step(tier, request, names) for tier in wanted]


def workers(text: str) -> int:
    """Read a number of processes; raise ValueError with the remedy for anything else."""
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise ValueError(f"WORKERS={text}: use the number of processes for each tier, such as 2")
    return int(text)


def _devcluster(*arguments: str) -> tuple[str, ...]:
    return (sys.executable, "-m", "devcluster", *arguments)


def _step(tier: Tier, request: Request, names: set[str]) -> Step:
    built = {INTEGRATION: ("tools",), E2E: ("tools",) if request.foreign_cluster else ("tools", "images")}
    # The cheap one fails first.
    first = (UNIT,) if tier.name != UNIT and UNIT in names else ()
    follows = (INTEGRATION,) if tier.name == E2E and INTEGRATION in names else ()
    alone = tier.name == E2E and request.foreign_cluster
    spread = () if alone else ("--numprocesses", str(request.workers), *tier.distribution)
    chosen = ("-m", request.selection) if request.selection else ()
    # Names of tests show the progress where there are minutes between them.
    shown = ("--quiet",) if tier.name == UNIT else ("--verbose",)
    report = (f"--junitxml={request.reports / tier.name}.xml",)
    paths = request.files.get(tier.name, tier.folders)
    command = (sys.executable, "-m", "pytest", *paths, *chosen, *spread, *shown, *report, *request.arguments)
    return Step(tier.name, command, first + built.get(tier.name, ()), follows, ends_the_run=tier.name == UNIT)
