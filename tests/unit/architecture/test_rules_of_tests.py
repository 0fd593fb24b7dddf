"""No test may pass or fail by luck: what that rules out is found in the tests' source. Reads the checkout.

Each rule returns the lines that break it. `KNOWN` has the files that still do, each with what is to be done; an entry
that is no longer needed fails, so that the list only becomes shorter.
"""

import ast
import re
import subprocess
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[3]
Lines = list[int]
Function = ast.FunctionDef | ast.AsyncFunctionDef

KNOWN: dict[tuple[str, str], str] = {
    ("sleeps", "tests/e2e/test_control_channels.py"): "messages are sent over a time, and kills are spread over it",
    ("sleeps", "tests/integration/spark_runtime/test_control_channels.py"): "messages are produced over a time",
    ("sleeps", "tests/integration/spark_runtime/test_inside.py"): "three threads have to collide; a job that hangs",
    ("sleeps", "tests/integration/spark_runtime/test_rescale.py"): "a task of Spark waits for a file",
    ("sleeps", "tests/property/test_control_inbox.py"): "two names of one millisecond have no order",
    ("sleeps", "tests/unit/runtime/control_writer/test_writer.py"): "a thread is given time to write",
}
SLEEPING = {
    "tests/support/tidegate_testing/waiting.py": "the one wait, which the others call",
    "tests/support/tidegate_testing/watching.py": "a watch that broke off begins again after a pause",
    "tests/support/tidegate_testing/channel_contract.py": "its own wait, on messages that are taken one by one",
    "tests/support/tidegate_testing/channels.py": "a channel of the tests passes the time that a receiver may wait",
}
"""Modules that may sleep, each with its reason."""
REPEATING = {
    "tests/integration/test_kubectl.py": "asks again and again while connections are cut, and every answer counts",
}
"""Tests with a loop that tries nothing twice, each with its reason."""
HELD = {
    "tests/integration/test_operator_lifecycle.py": "the test plays the kubelet: pods stay where it leaves them",
    "tests/integration/test_snapshot_lifecycle.py": "the test plays kubelet and agents: nothing goes on by itself",
}
"""Tests whose world stands still until they move it: there, no state is transient."""
TRANSIENT = {
    *("Starting", "Stopping", "Repartitioning", "Deleting", "Copying", "Rehearsing", "Gate", "RollingBack"),
    *("Resuming", "Suspending", "SpecChanged", "DriverStarting", "DriverStopping", "ExecutorsStopping"),
    *("RehearsalStopping", "RepartitionStopping", "OriginReleasing", "StoragePurging", "FinalSnapshot", "Restarted"),
    *("UpgradeCopying", "UpgradeRehearsing", "UpgradeStopping", "UpgradeGate", "UpgradeRepartitioning"),
    *("UpgradeRollingBack", "NodeTainted", "PodStarting", "PodRunning", "PodReplaced", "PodStopping", "Ordered"),
    *("Offered", "Queued", "Logged", "Published", "Connecting", "Exporting", "Disposing"),
}
"""Phases and reasons through which a resource only passes: who polls for one may miss it."""
LEAVE_OUT = {
    "tests/support/tidegate_testing/own_cluster.py": "the cluster is somebody else's",
    "tests/support/tidegate_testing/previous_runtime.py": "a clone without history has no earlier release",
}
"""Modules that may leave a test out, each with its reason."""
RERUNNING = ("flaky", "pytest-rerunfailures", "pytest-retry", "pytest-repeat", "pytest-ignore-flaky")


def calls(tree: ast.AST) -> Iterator[tuple[ast.Call, str]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            yield node, ast.unparse(node.func)


def functions(tree: ast.AST, prefix: str = "") -> Iterator[Function]:
    for node in ast.walk(tree):
        if isinstance(node, Function) and node.name.startswith(prefix):
            yield node


# --- the rules --------------------------------------------------------------------------------------------------------


def skips(tree: ast.Module) -> Lines:
    """Find what leaves a test out, lets it fail, or runs it once more."""
    forbidden = re.compile(
        r"(pytest|mark|unittest)\.(skip\w*|importorskip|xfail|flaky|repeat|SkipTest)$|self\.skipTest$|flaky"
    )
    found = [n.lineno for n in ast.walk(tree) if isinstance(n, ast.Attribute) and forbidden.search(ast.unparse(n))]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            names = {alias.name for alias in node.names}
            if node.module in ("flaky", "unittest", "unittest.case", "pytest", "_pytest.outcomes") and names & LEAVING:
                found.append(node.lineno)
        elif isinstance(node, ast.Import) and any(alias.name == "flaky" for alias in node.names):
            found.append(node.lineno)
    found += [n.lineno for n in ast.walk(tree) if isinstance(n, ast.Name) and n.id.startswith("collect_ignore")]
    return sorted(set(found))


LEAVING = {"skip", "skipIf", "skipUnless", "SkipTest", "xfail", "importorskip", "flaky"}


def sleeps(tree: ast.Module) -> Lines:
    """Find real sleeps: who sleeps before looking bets on how fast the machine is."""
    names = {"time.sleep"}
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module == "time":
            names |= {alias.asname or alias.name for alias in node.names if alias.name == "sleep"}
        elif isinstance(node, ast.Import):
            names |= {f"{alias.asname}.sleep" for alias in node.names if alias.name == "time" and alias.asname}
    return [call.lineno for call, name in calls(tree) if name in names]


CLOCKS = ("time.monotonic", "time.time", "time.perf_counter", "monotonic", "perf_counter")


def stopwatches(tree: ast.Module) -> Lines:
    """Find upper bounds on time that passed: a busy machine is no failure."""
    found: set[int] = set()
    for function in functions(tree):
        elapsed, limits = _names_of_times(function)
        for node in ast.walk(function):
            if isinstance(node, ast.Assert):
                for compare in ast.walk(node.test):
                    if isinstance(compare, ast.Compare) and _bounds(compare, elapsed, limits):
                        found.add(node.lineno)
    return sorted(found)


def _names_of_times(function: Function) -> tuple[set[str], set[str]]:
    """Return the names of what passed, and of the moments until which something may take."""
    moments: set[str] = set()
    elapsed: set[str] = set()
    limits: set[str] = set()
    # Twice, because a loop may use a name before the line that gives it.
    for _ in range(2):
        for node in ast.walk(function):
            if not isinstance(node, ast.Assign | ast.AnnAssign) or node.value is None:
                continue
            targets = node.targets if isinstance(node, ast.Assign) else [node.target]
            names = {target.id for target in targets if isinstance(target, ast.Name)}
            if _differs(node.value, moments) or _uses(node.value, elapsed):
                elapsed |= names
            elif _adds(node.value, moments):
                limits |= names
            elif _reads_clock(node.value):
                moments |= names
    return elapsed, limits


def _reads_clock(node: ast.AST) -> bool:
    return any(name in CLOCKS for _, name in calls(node))


def _uses(node: ast.AST, names: set[str]) -> bool:
    return any(isinstance(each, ast.Name) and each.id in names for each in ast.walk(node))


def _differs(node: ast.AST, moments: set[str]) -> bool:
    return any(
        isinstance(each, ast.BinOp)
        and isinstance(each.op, ast.Sub)
        and (_reads_clock(each.left) or _uses(each.left, moments))
        and (_reads_clock(each.right) or isinstance(each.right, ast.Name | ast.Attribute | ast.Subscript))
        for each in ast.walk(node)
    )


def _adds(node: ast.AST, moments: set[str]) -> bool:
    return any(
        isinstance(each, ast.BinOp) and isinstance(each.op, ast.Add) and (_reads_clock(each) or _uses(each, moments))
        for each in ast.walk(node)
    )


def _bounds(compare: ast.Compare, elapsed: set[str], limits: set[str]) -> bool:
    sides = [compare.left, *compare.comparators]
    for left, operator, right in zip(sides, compare.ops, sides[1:], strict=False):
        if not isinstance(operator, ast.Lt | ast.LtE | ast.Gt | ast.GtE):
            continue
        less, more = (left, right) if isinstance(operator, ast.Lt | ast.LtE) else (right, left)
        if _uses(less, elapsed) or _differs(less, set()) or (_reads_clock(less) and _uses(more, limits)):
            return True
    return False


def transient_polls(tree: ast.Module) -> Lines:
    """Find waits for a state through which a resource only passes."""
    found: set[int] = set()
    probes = {function.name: function for function in functions(tree)}
    for call, name in calls(tree):
        short = name.rpartition(".")[2]
        if not short.startswith(("wait_for", "await_", "until")):
            continue
        arguments = [*call.args, *(keyword.value for keyword in call.keywords)]
        texts = {a.value for a in arguments if isinstance(a, ast.Constant) and isinstance(a.value, str)}
        looked_at = {value for argument in arguments for value in _compared(argument)}
        for argument in arguments:
            for node in ast.walk(argument):
                if isinstance(node, ast.Name) and node.id in probes:
                    looked_at |= set(_compared(probes[node.id]))
        # What wait_for awaits is a phrase, and what await_events awaits stays there.
        if (TRANSIENT & looked_at) or (TRANSIENT & texts and short != "await_events"):
            found.add(call.lineno)
    return sorted(found)


def _compared(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Compare):
            for side in (node.left, *node.comparators):
                yield from (n.value for n in ast.walk(side) if isinstance(n, ast.Constant) and isinstance(n.value, str))


def repetitions(tree: ast.Module) -> Lines:
    """Find loops that try a test's body until it goes well."""
    loops = [
        node for test in functions(tree, "test_") for node in ast.walk(test) if isinstance(node, ast.For | ast.While)
    ]
    again = {loop.lineno for loop in loops if isinstance(loop, ast.For) and _tries_again(loop)}
    return sorted(again | {loop.lineno for loop in loops if isinstance(loop, ast.While) and _swallows_a_failure(loop)})


def _swallows_a_failure(loop: ast.While) -> bool:
    """Return whether a loop goes on after an assertion that failed; a bare ``except`` catches it, too."""
    handlers = [each for each in ast.walk(loop) if isinstance(each, ast.ExceptHandler)]
    caught = [ast.unparse(each.type) if each.type else "BaseException" for each in handlers]
    return any(re.search(r"\b(AssertionError|Exception|BaseException)\b", name) for name in caught)


def _tries_again(node: ast.For) -> bool:
    if not ast.unparse(node.iter).startswith(("range(", "itertools.repeat(")):
        return False
    if re.search(r"TRIES|TRIALS|ATTEMPTS|RETRIES|REPEAT", ast.unparse(node.iter)):
        return True
    unused = isinstance(node.target, ast.Name) and node.target.id.startswith("_")
    swallowing = any(isinstance(each, ast.Try) and each.handlers for each in node.body)
    return unused and (swallowing or any(isinstance(each, ast.Break | ast.Return) for each in ast.walk(node)))


# --- where they hold --------------------------------------------------------------------------------------------------


@cache
def source(file: str) -> str:
    """Return a module's text, read once for all rules."""
    return (ROOT / file).read_text()


@cache
def parsed(file: str) -> ast.Module:
    """Return a module's tree, made once for all rules."""
    return ast.parse(source(file))


def modules_of(*folders: str) -> list[str]:
    """Return the modules below these folders; programs that tests run elsewhere are none of them."""
    listing = subprocess.run(["git", "ls-files", *folders], cwd=ROOT, check=True, capture_output=True, text=True)
    return [name for name in listing.stdout.split() if name.endswith(".py") and "/scripts/" not in name]


REAL_PARTS = ("tests/integration", "tests/compatibility", "tests/e2e")
ALL = ("tests/unit", "tests/property", "tests/scenario", *REAL_PARTS, "tests/support")
HERE = Path(__file__).relative_to(ROOT).as_posix()
RULES: dict[str, tuple[Callable[[ast.Module], Lines], tuple[str, ...], Iterable[str]]] = {
    "skips": (skips, ("tests",), {*LEAVE_OUT, HERE}),
    "sleeps": (sleeps, ALL, {*SLEEPING, HERE}),
    "stopwatches": (stopwatches, ALL, {"tests/support/tidegate_testing/channel_contract.py"}),
    "transient_polls": (transient_polls, (*REAL_PARTS, "tests/support"), HELD),
    "repetitions": (repetitions, REAL_PARTS, REPEATING),
}
"""Each rule, the folders in which it holds, and the modules in which it does not."""
WORDS = {
    "skips": re.compile("skip|xfail|flaky|repeat|SkipTest|collect_ignore"),
    "sleeps": re.compile("sleep"),
    "stopwatches": re.compile(r"monotonic|perf_counter|time\.time"),
    "transient_polls": re.compile("wait_for|await_|until"),
    "repetitions": re.compile(r"range\(|repeat\(|while "),
}
"""What a module that breaks a rule has in its text: only those are read closely."""


@pytest.mark.parametrize("name", RULES)
def test_the_tests_keep_the_rule(name: str) -> None:
    rule, folders, allowed = RULES[name]
    found = {
        file: lines
        for file in modules_of(*folders)
        if file not in allowed
        and (ROOT / file).exists()
        and WORDS[name].search(source(file))
        and (lines := rule(parsed(file)))
    }
    known = {file for known_rule, file in KNOWN if known_rule == name}
    assert {file: lines for file, lines in found.items() if file not in known} == {}
    assert sorted(known - set(found)) == [], "take these out of KNOWN: they keep the rule now"


def test_what_is_allowed_is_there_and_known_files_have_a_rule() -> None:
    assert [file for file in (*SLEEPING, *REPEATING, *HELD, *LEAVE_OUT) if not (ROOT / file).exists()] == []
    assert [rule for rule, _ in KNOWN if rule not in RULES] == []
    assert [file for file, why in (*SLEEPING.items(), *HELD.items()) if not why] == []


def test_nothing_is_installed_or_asked_for_that_runs_a_test_once_more() -> None:
    lock, project = (ROOT / "locks/dev.lock").read_text(), (ROOT / "pyproject.toml").read_text()
    assert [name for name in RERUNNING if re.search(rf"^{name}==", lock, re.MULTILINE)] == []
    texts = {name: (ROOT / name).read_text() for name in ("Makefile", ".ci/run", "pyproject.toml")}
    assert [name for name, text in texts.items() if "--reruns" in text or "--flaky" in text] == []
    assert "rerun" not in project


# --- and the rules of the rules ---------------------------------------------------------------------------------------


SWALLOWING = "        try:\n            look()\n        except AssertionError:\n            pass"


@pytest.mark.parametrize(
    ("name", "broken"),
    [
        ("skips", "pytest.skip('why')"),
        ("skips", "@pytest.mark.xfail\ndef test_a(): ..."),
        ("skips", "@pytest.mark.skipif(True, reason='x')\ndef test_a(): ..."),
        ("skips", "pytestmark = pytest.mark.flaky(reruns=3)"),
        ("skips", "numpy = pytest.importorskip('numpy')"),
        ("skips", "from flaky import flaky"),
        ("skips", "from pytest import skip"),
        ("skips", "from unittest import SkipTest, skipIf"),
        ("skips", "from _pytest.outcomes import skip"),
        ("skips", "collect_ignore_glob = ['test_slow*']"),
        ("sleeps", "from time import sleep as pause\ndef test_a():\n    pause(2)"),
        ("sleeps", "import time as clock\ndef test_a():\n    clock.sleep(2)"),
        ("sleeps", "def test_a():\n    time.sleep(2)\n    assert seen == 1"),
        ("sleeps", "from time import sleep\ndef test_a():\n    sleep(2)"),
        ("stopwatches", "def test_a():\n    began = time.monotonic()\n    assert time.monotonic() - began < 5"),
        ("stopwatches", "def test_a():\n    b = time.time()\n    took = time.time() - b\n    assert 3 >= took"),
        (
            "stopwatches",
            "def test_a():\n    b = time.time()\n    m = 0\n    m = max(m, time.time() - b)\n    assert m < 3",
        ),
        ("stopwatches", "def test_a():\n    end = time.monotonic() + 5\n    assert time.monotonic() < end"),
        ("stopwatches", "def test_a():\n    assert 1 < time.time() - began.at <= 3"),
        ("transient_polls", "wait_for('it', lambda: app['phase'] == 'Stopping', 60)"),
        (
            "transient_polls",
            "def probe():\n    assert phase in ('Gate', 'Completed')\n    return 1\nwait_for('it', probe, 60)",
        ),
        (
            "transient_polls",
            "def probe(app):\n    return app.r == 'NodeTainted'\nwait_for('it', partial(probe, a), 60)",
        ),
        ("transient_polls", "app.await_phase('Repartitioning')"),
        ("repetitions", "def test_a():\n    for _ in range(TRIES):\n        look()"),
        ("repetitions", "def test_a():\n    for _ in range(3):\n        if look():\n            break"),
        ("repetitions", f"def test_a():\n    for _ in range(3):\n{SWALLOWING}"),
        ("repetitions", f"def test_a():\n    while not well:\n{SWALLOWING}"),
        (
            "repetitions",
            "def test_a():\n    while True:\n        try:\n            look()\n        except:\n            pass",
        ),
    ],
)
def test_what_breaks_a_rule_is_found(name: str, broken: str) -> None:
    assert WORDS[name].search(broken)
    assert len(RULES[name][0](ast.parse(broken))) == 1


@pytest.mark.parametrize(
    ("name", "kept"),
    [
        ("skips", "own_cluster.leave_out('why')\nskipped = plan.skip(3)\nconnection.putrequest(skip_host=True)"),
        ("sleeps", "async def test_a():\n    await asyncio.sleep(0)"),
        ("stopwatches", "def test_a():\n    began = time.time()\n    assert seen.at >= began"),
        ("stopwatches", "def test_a():\n    began = time.monotonic()\n    assert time.monotonic() - began >= 5"),
        ("stopwatches", "def test_a():\n    assert first.batch - second.batch < 5"),
        ("transient_polls", "wait_for('it', lambda: app['phase'] == 'Running', 60)"),
        ("transient_polls", "world.await_events(name, NAMESPACE, 'UpgradeRollingBack')"),
        ("repetitions", "def test_a():\n    for number in range(3):\n        send(number)"),
        ("repetitions", "def test_a():\n    for _ in range(3):\n        send()"),
        ("repetitions", "def test_a():\n    while due:\n        due.pop()()"),
    ],
)
def test_what_keeps_a_rule_is_not_found(name: str, kept: str) -> None:
    assert RULES[name][0](ast.parse(kept)) == []
