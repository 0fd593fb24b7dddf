"""Finds pieces of the product that are alike: runs of statements that differ in names and constants alone. Pure.

Two statements are alike if their syntax trees are, whatever their variables are called and whatever constants they
hold; attributes, named arguments and imports count. Docstrings do not.
"""

import ast
import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import combinations, pairwise

LEAST = 35
"""Nodes of the syntax tree, on each side, from which two pieces are worth to be one: about four lines."""


@dataclass(frozen=True)
class Piece:
    """Some lines of a file."""

    path: str
    first: int
    last: int

    def within(self, other: "Piece") -> bool:
        """Return whether these lines are among the other's."""
        return self.path == other.path and other.first <= self.first and self.last <= other.last

    def touches(self, other: "Piece") -> bool:
        """Return whether a line is of both."""
        return self.path == other.path and self.first <= other.last and other.first <= self.last

    def __str__(self) -> str:
        """Return it as compilers do."""
        return f"{self.path}:{self.first}-{self.last}"


@dataclass(frozen=True)
class Pair:
    """Two pieces that are alike."""

    weight: int
    """Nodes of each."""
    one: Piece
    other: Piece

    def within(self, pair: "Pair") -> bool:
        """Return whether another pair says this, too."""
        return (self.one.within(pair.one) and self.other.within(pair.other)) or (
            self.one.within(pair.other) and self.other.within(pair.one)
        )


@dataclass(frozen=True)
class _Statement:
    shape: str
    weight: int
    first: int
    last: int


_Body = tuple[str, list[_Statement]]


def find_pairs(sources: Mapping[str, str], least: int = LEAST) -> list[Pair]:
    """Return the pairs of alike pieces, the heaviest first.

    Args:
        sources: path -> text of a module.
        least: nodes that a piece has.
    """
    bodies = [(path, body) for path, text in sources.items() for body in _bodies(ast.parse(text))]
    found = sorted(_alike(bodies, least), key=lambda pair: (-pair.weight, pair.one.path, pair.one.first))
    pairs: list[Pair] = []
    for pair in found:
        if not any(pair.within(known) for known in pairs):
            pairs.append(pair)
    return pairs


def _bodies(tree: ast.AST) -> Iterator[list[_Statement]]:
    """Yield the statements of each function, and of each block in it."""
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                for name in ("body", "orelse", "finalbody"):
                    block = getattr(node, name, None)
                    if isinstance(block, list) and not isinstance(node, ast.ClassDef):
                        yield [_statement(each) for each in block if not _is_text(each)]


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _statement(node: ast.stmt) -> _Statement:
    shape, weight = _shape(node)
    digest = hashlib.sha256(shape.encode()).hexdigest()
    return _Statement(digest, weight, node.lineno, node.end_lineno or node.lineno)


def _shape(node: object) -> tuple[str, int]:
    """Return a text that is the same for all that is alike, and how many nodes it stands for."""
    match node:
        case ast.Name() | ast.arg():
            found = "name", 1
        case ast.Constant(value=value):
            found = type(value).__name__, 1
        case ast.JoinedStr():
            found = "str", 1
        case ast.alias(name=imported):
            found = imported, 1
        case ast.AST():
            parts = [(name, _shape(value)) for name, value in ast.iter_fields(node) if name not in _LEFT_OUT]
            inside = ",".join(f"{name}={shape}" for name, (shape, _) in parts)
            found = f"{type(node).__name__}({inside})", 1 + sum(weight for _, (_, weight) in parts)
        case list():
            items = [_shape(item) for item in node]
            found = "[" + ",".join(shape for shape, _ in items) + "]", sum(weight for _, weight in items)
        case _:
            found = repr(node), 0
    return found


_LEFT_OUT = frozenset({"ctx", "type_comment", "type_ignores", "name", "asname", "lineno", "kind"})


def _alike(bodies: list[_Body], least: int) -> Iterator[Pair]:
    """Yield each run of statements that two places have and that goes on in neither direction."""
    for (one, i), (other, j) in _seeds(bodies, least):
        first, second = bodies[one][1], bodies[other][1]
        if i > 0 and j > 0 and first[i - 1].shape == second[j - 1].shape:
            continue
        length = weight = 0
        for left, right in zip(first[i:], second[j:], strict=False):
            if left.shape != right.shape:
                break
            length, weight = length + 1, weight + left.weight
        piece = Piece(bodies[one][0], first[i].first, first[i + length - 1].last)
        like = Piece(bodies[other][0], second[j].first, second[j + length - 1].last)
        if weight >= least and not piece.touches(like):
            yield Pair(weight, piece, like)


_At = tuple[int, int]


def _seeds(bodies: list[_Body], least: int) -> Iterator[tuple[_At, _At]]:
    """Yield pairs of places where the same begins: two statements that follow each other, or one that is long."""
    places: dict[tuple[str, ...], list[_At]] = defaultdict(list)
    for number, (_, statements) in enumerate(bodies):
        for index, (each, following) in enumerate(pairwise(statements)):
            places[each.shape, following.shape].append((number, index))
        for index, each in enumerate(statements):
            if each.weight >= least:
                places[(each.shape,)].append((number, index))
    for found in places.values():
        yield from combinations(sorted(set(found)), 2)
