"""The patterns of scripts that run here as under ``spark-submit``, or are refused with what to do: patterns.toml, read.

Each is a script as people write it, and what is to become of it. Tests act on them on this machine (local) and on a
cluster (cluster); docs/compatibility.md is written from them. Reads files.
"""

from __future__ import annotations

import importlib.util
import tomllib
from enum import StrEnum
from pathlib import Path

import msgspec

HERE = Path(__file__).parent
DATA = HERE / "patterns.toml"
RUNTIME = HERE.parent / "integration" / "spark_runtime" / "scripts"


class Topic(StrEnum):
    """What a pattern is about."""

    ENDS = "ends"
    SIGNALS = "signals"
    SESSIONS = "sessions"
    QUERIES = "queries"
    RECOVERY = "what Spark cannot recover"
    SETTINGS = "settings"
    FILES = "files"
    TRIGGERS = "triggers"
    STATE = "state"
    NAMES = "names"
    EXAMPLES = "Spark's own examples"


class Outcome(StrEnum):
    """What becomes of a script."""

    ENDLESS = "endless"
    """It runs until it is stopped, and goes on where it was."""
    FINITE = "finite"
    """It comes to its end, once."""
    REFUSED = "refused"
    """It ends at its first start with a reason, and a message that says what to do."""


class Pattern(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A script, and what is to become of it."""

    name: str
    """A sentence that a user understands."""
    script: str
    """A file in scripts/, or ``runtime:`` and one of the runtime's tests, or ``spark:`` and an example of PySpark's."""
    topic: Topic
    outcome: Outcome
    reason: str = ""
    """Of the end, if it is refused."""
    says: tuple[str, ...] = ()
    """What the message of a refusal has in it, the remedy among it."""
    args: tuple[str, ...] = ()
    """With what the test fills in: ``{input}``, ``{output}``, ``{port}``, ``{brokers}``, ``{topic}``, and ``{folder}``,
    one of this machine in which files come into ``in``."""
    env: dict[str, str] = {}
    """Variables, filled in likewise."""
    spark_conf: dict[str, str] = {}
    queries: tuple[str, ...] = ("main",)
    """Those that commit batches, if it is endless."""
    fresh: tuple[str, ...] = ()
    """Those of them that start empty each time."""
    events: tuple[str, ...] = ()
    """Reasons of events that its first start has."""
    prints: tuple[str, ...] = ()
    """What it has printed in the end, if it is finite, or once its queries run."""
    middle: str = ""
    """What a finite script prints in its middle; empty: the first batch is there."""
    next_args: tuple[str, ...] = ()
    """Arguments of its next version; empty: the same."""
    next_reason: str = ""
    """Why that is refused; empty: it goes on. What ``says`` has is in that message then."""
    drops: bool = False
    """Its next version has not all queries of the first."""
    own_jvm: bool = False
    """It asks of Spark what the command of the JVM has to have."""
    only: str = ""
    """``local`` or ``cluster``, if it is about what the other one has not; what reads a socket or a folder is local."""
    representative: bool = False
    """It stands for the others in ``make test``."""

    @property
    def path(self) -> Path:
        """Where the script is."""
        kind, _, name = self.script.rpartition(":")
        return {"": HERE / "scripts", "runtime": RUNTIME, "spark": spark_examples()}[kind] / name

    def runs_on(self, place: str) -> bool:
        """Return whether it runs there: ``local`` or ``cluster``."""
        of_machine = any(name in text for name in ("{port}", "{folder}") for text in (*self.args, *self.env.values()))
        return place == ("local" if of_machine else self.only or place)

    def arguments(self, values: dict[str, str], *, version: int = 1) -> tuple[str, ...]:
        """Return the arguments of a version with its places filled in."""
        chosen = self.next_args if version > 1 and self.next_args else self.args
        return tuple(_filled(arg, values) for arg in chosen)

    def variables(self, values: dict[str, str]) -> dict[str, str]:
        """Return its ``env`` with its places filled in."""
        return {name: _filled(value, values) for name, value in self.env.items()}

    def settings(self, values: dict[str, str]) -> dict[str, str]:
        """Return its ``spark_conf`` with its places filled in."""
        return {key: _filled(value, values) for key, value in self.spark_conf.items()}


def _filled(text: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f"{{{name}}}", value)
    return text


class Elsewhere(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What other tests show, because no script of its own does."""

    name: str
    topic: Topic
    says: str
    """What happens, as a sentence."""
    evidence: str
    """The test that shows it."""


class Patterns(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """All of them."""

    pattern: tuple[Pattern, ...]
    elsewhere: tuple[Elsewhere, ...] = ()

    def of(self, outcome: Outcome) -> list[Pattern]:
        """Return those with an outcome."""
        return [each for each in self.pattern if each.outcome is outcome]


def spark_examples() -> Path:
    """Return the folder of the examples in the installed PySpark."""
    found = importlib.util.find_spec("pyspark")
    assert found is not None
    assert found.origin is not None
    return Path(found.origin).parent / "examples" / "src" / "main" / "python"


def read(text: str) -> Patterns:
    """Return the patterns of a data file; pure.

    Raises:
        msgspec.ValidationError: a key is unknown, or a value is none; says where.
    """
    return msgspec.convert(tomllib.loads(text), Patterns)


def load() -> Patterns:
    """Return the patterns of this checkout."""
    return read(DATA.read_text())
