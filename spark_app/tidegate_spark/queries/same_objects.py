"""Whether two objects of a script stand for the same: what a query's function is, and what it holds. Does no I/O.

A script that starts a failed query again makes much of it again: a closure, a ``functools.partial``, an object whose
method the function is, a writer for ``foreach``. Two of these are the same if they are of the same code and hold the
same. What they hold is read when the query starts, since it changes while the query runs.
"""

from __future__ import annotations

import _thread
import functools
import itertools
import weakref
from collections import deque
from collections.abc import Callable, Iterator
from types import (
    BuiltinMethodType,
    CellType,
    FunctionType,
    GetSetDescriptorType,
    MemberDescriptorType,
    MethodType,
    ModuleType,
)
from typing import Any

_PLAIN = (str, bytes, int, float, complex, bool, type(None))
_LOCKS = (_thread.LockType, _thread.RLock)
"""One is as good as another."""
_OF_SPARK = frozenset({"pyspark", "py4j"})
"""Where objects come from that stand for what is in the JVM."""
_OF_EACH_CLASS = (GetSetDescriptorType, MemberDescriptorType)
"""What makes instances' attributes work."""
_MOST = 2000
"""Objects that are compared; those beyond may differ."""


_KindAndParts = tuple[tuple[Any, ...], Iterator[Any]]


class _Only:
    """Equal to itself alone: by identity, whatever the object's own ``==`` says."""

    def __init__(self, value: object = None) -> None:
        self._value = self if value is None else value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Only) and self._value is other._value

    def __hash__(self) -> int:
        return id(self._value)


class Held:
    """An object as it was when this was made."""

    def __init__(self, value: object) -> None:
        """Read an object, and what it holds, what is nearest first: of what is far away, all may be too much."""
        visit = _Visit()
        waiting = deque([(self, value)])
        while waiting:
            held, its = waiting.popleft()
            held._reference = _reference(its)
            held._kind, parts = visit.at(its)
            held._parts = [Held.__new__(Held) for _ in parts]
            waiting.extend(zip(held._parts, parts, strict=True))

    _reference: Callable[[], object]
    _kind: tuple[Any, ...]
    """What must be equal."""
    _parts: list[Held]
    """Which must be the same."""

    def is_same(self, other: Held) -> bool:
        """Return whether the two cannot be distinguished; objects of the script may be asked whether they are equal."""
        try:
            return self._is_same(other)
        except Exception:  # foreign code, of their ``==``; or they hold one another too deep
            return False

    def _is_same(self, other: Held) -> bool:
        mine = self._reference()
        if mine is not None and mine is other._reference():
            return True
        pairs = zip(self._parts, other._parts, strict=False)
        alike = self._kind == other._kind and len(self._parts) == len(other._parts)
        return alike and all(one._is_same(another) for one, another in pairs)


def _reference(value: object) -> Callable[[], object]:
    try:
        # What the script needs no more is not to be kept for this.
        return weakref.ref(value)
    except TypeError:
        return lambda: value


class _Visit:
    """One visit to an object and all that it holds."""

    def __init__(self) -> None:
        self._seen: dict[int, int] = {}
        self._kept: list[object] = []
        """Until it is over, so that no other object has the number of one."""

    def at(self, value: object) -> tuple[tuple[Any, ...], list[object]]:
        """Return what must be equal of an object, and its parts, which must be the same."""
        if type(value) in _PLAIN:
            return (type(value), value), []
        if id(value) in self._seen:
            return ("seen before", self._seen[id(value)]), []
        if len(self._kept) >= _MOST:
            return (_Only(),), []
        self._seen[id(value)] = len(self._seen)
        self._kept.append(value)
        try:
            kind, parts = _kind_and_parts(value)
            taken = list(itertools.islice(parts, _MOST + 1))
        except Exception:  # foreign code: an object may answer with anything
            return (_Only(),), []
        return (kind, taken) if len(taken) <= _MOST else ((_Only(),), [])


@functools.singledispatch
def _kind_and_parts(value: Any) -> _KindAndParts:
    """Return what must be equal of an object, and its parts; of one that no other function here is for."""
    kind: Any = type(value)
    if isinstance(value, _LOCKS):
        return ("of a class",), iter((kind,))
    if kind.__module__.partition(".")[0] in _OF_SPARK:
        # What of the JVM's it stands for, nobody sees: another table, or another broadcast, may be in its place.
        return (_Only(value),), iter(())
    if kind.__eq__ is not object.__eq__ and kind.__hash__ is not None:
        return ("value", value), iter((kind,))  # a path, a date, a number: it does not change
    if not kind.__dictoffset__ and not any("__slots__" in vars(each) for each in kind.__mro__):
        return (_Only(),), iter(())  # a connection of a library in C: nobody sees to what
    return ("object",), itertools.chain((kind,), _attributes(value))


@_kind_and_parts.register
def _of_function(value: FunctionType) -> _KindAndParts:
    cells = value.__closure__ or ()
    return (FunctionType, _Only(value.__code__)), iter(
        (*cells, value.__defaults__, value.__kwdefaults__, value.__dict__)
    )


@_kind_and_parts.register
def _of_cell(value: CellType) -> _KindAndParts:
    try:
        return (CellType,), iter((value.cell_contents,))
    except ValueError:
        return ("empty cell",), iter(())


@_kind_and_parts.register
def _of_method(value: MethodType) -> _KindAndParts:
    return (MethodType,), iter((value.__func__, value.__self__))


@_kind_and_parts.register
def _of_builtin(value: BuiltinMethodType) -> _KindAndParts:
    return (BuiltinMethodType, value.__name__), iter((value.__self__,))


@_kind_and_parts.register
def _of_partial(value: functools.partial) -> _KindAndParts:  # type: ignore[type-arg] # registered by this class
    return (functools.partial,), iter((type(value), value.func, value.args, value.keywords))


@_kind_and_parts.register
def _of_module(value: ModuleType) -> _KindAndParts:
    return (_Only(value),), iter(())


@_kind_and_parts.register
def _of_class(value: type) -> _KindAndParts:
    if "<locals>" not in value.__qualname__:
        return (_Only(value),), iter(())
    # One of a function's body is made again whenever that is called.
    own = [
        (name, each)
        for name, each in list(vars(value).items())
        if not isinstance(each, _OF_EACH_CLASS) and name != "_abc_impl"
    ]
    return (type, value.__module__, value.__qualname__), iter((*value.__bases__, *own))


@_kind_and_parts.register(staticmethod)
@_kind_and_parts.register(classmethod)
def _of_wrapped(value: Any) -> _KindAndParts:
    return (type(value),), iter((value.__func__,))


@_kind_and_parts.register
def _of_property(value: property) -> _KindAndParts:
    return (property,), iter((value.fget, value.fset, value.fdel))


@_kind_and_parts.register
def _of_dict(value: dict) -> _KindAndParts:  # type: ignore[type-arg] # likewise
    pairs = itertools.chain.from_iterable(value.items())
    return ("dict",), itertools.chain((type(value),), pairs, _attributes(value))


@_kind_and_parts.register(list)
@_kind_and_parts.register(tuple)
@_kind_and_parts.register(deque)
def _of_sequence(value: Any) -> _KindAndParts:
    return ("sequence",), itertools.chain((type(value),), value, _attributes(value))


@_kind_and_parts.register(set)
@_kind_and_parts.register(frozenset)
def _of_set(value: Any) -> _KindAndParts:
    return ("set", frozenset(value)), itertools.chain((type(value),), _attributes(value))


def _attributes(value: Any) -> Iterator[object]:
    """Return names and values of an object's attributes; no code of the script is called for them."""
    for kind in type(value).__mro__:
        slots = vars(kind).get("__slots__", ())
        for name in (slots,) if isinstance(slots, str) else slots:
            member: Any = vars(kind).get(name)
            if hasattr(member, "__objclass__"):
                try:
                    yield from (name, member.__get__(value))
                except AttributeError:
                    continue  # not set
    try:
        own = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return
    for name, held in list(own.items()):
        yield from (name, held)
