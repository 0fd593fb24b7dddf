"""Whether an unnamed query that the script starts is the one it started before. Talks to the JVM.

Two queries on one checkpoint skip each other's input without an error. So source, plan, sink and the sink's function
must all be equal.
"""

from __future__ import annotations

import functools
import re
from dataclasses import dataclass
from types import FunctionType
from typing import Any

from pyspark.sql.streaming.readwriter import DataStreamWriter

from tidegate_spark.queries.writers import leaves_of

_NUMBERS_OF_OBJECTS = re.compile(r"#\d+L?|@[0-9a-f]+\b")
"""What Spark's words for a plan have of the objects in it: expressions, tables."""
_FUNCTION = "_tidegate_function"
_PLAIN = (str, bytes, int, float, bool, type(None))


@dataclass(frozen=True)
class Plan:
    """What an unnamed query does."""

    text: str
    """What it reads, computes and writes, in Spark's words."""
    function: object = None
    """Of ``foreachBatch`` or ``foreach``."""

    def is_same(self, other: Plan) -> bool:
        """Return whether the two cannot be distinguished."""
        return self.text == other.text and _is_same_function(self.function, other.function)


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


def _is_same_function(one: object, other: object) -> bool:
    if one is other:
        return True
    if not isinstance(one, FunctionType) or not isinstance(other, FunctionType):
        return False
    # Made again by the same ``def``: the same if it holds the same.
    pairs = list(zip(_held(one), _held(other), strict=False))
    alike = all(a is b or (type(a) is type(b) and isinstance(a, _PLAIN) and a == b) for a, b in pairs)
    return one.__code__ is other.__code__ and len(_held(one)) == len(_held(other)) and alike


def _held(function: FunctionType) -> list[object]:
    cells = [cell.cell_contents for cell in function.__closure__ or ()]
    return [*cells, *(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
