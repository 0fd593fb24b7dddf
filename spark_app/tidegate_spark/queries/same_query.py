"""Whether an unnamed query that the script starts is the one it started before. Talks to the JVM.

Two queries on one checkpoint skip each other's input without an error. So source, plan, sink and the sink's function
must all be equal.
"""

from __future__ import annotations

import functools
import re
from dataclasses import InitVar, dataclass, field
from typing import Any

from pyspark.sql.streaming.readwriter import DataStreamWriter

from tidegate_spark.queries.same_objects import Held
from tidegate_spark.queries.writers import leaves_of

_NUMBERS_OF_OBJECTS = re.compile(r"#\d+L?|@[0-9a-f]+\b")
"""What Spark's words for a plan have of the objects in it: expressions, tables."""
_FUNCTION = "_tidegate_function"


@dataclass(frozen=True)
class Plan:
    """What an unnamed query does."""

    text: str
    """What it reads, computes and writes, in Spark's words."""
    function: InitVar[object] = None
    """Of ``foreachBatch`` or ``foreach``."""
    held: Held = field(init=False, repr=False, compare=False)
    """That function, and what it holds now; there may be a secret in it."""

    def __post_init__(self, function: object) -> None:
        """Read the function before the query runs, which changes what it holds."""
        object.__setattr__(self, "held", Held(function))

    def is_same(self, other: Plan) -> bool:
        """Return whether the two cannot be distinguished."""
        return self.text == other.text and self.held.is_same(other.held)


def note_functions() -> None:
    """Have writers know their function: Spark keeps it where nobody can ask for it."""
    for name in ("foreachBatch", "foreach"):
        original = getattr(DataStreamWriter, name)

        def noting(writer: DataStreamWriter, function: Any, original: Any = original) -> DataStreamWriter:
            setattr(writer, _FUNCTION, function)
            done: DataStreamWriter = original(writer, function)
            return done

        setattr(DataStreamWriter, name, functools.wraps(original)(noting))


def plan_of(writer: DataStreamWriter, output: object) -> Plan:
    """Return what ``writer``'s query does; ``output``: where it writes."""
    analyzed: Any = writer._df._jdf.queryExecution().analyzed()
    # A source of files has its options only there.
    sources = [str(leaf.productElement(0)) for leaf in leaves_of(writer)]
    message = "\n".join([analyzed.treeString(), *sources, repr(output)])
    return Plan(_NUMBERS_OF_OBJECTS.sub("", message), getattr(writer, _FUNCTION, None))
