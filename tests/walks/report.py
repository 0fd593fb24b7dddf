"""What the walks came to: text for people, one object for programs. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any

from tests.walks.count import Act, Part, Walk

_SHORT = {"tidegate.": "", "tidegate_spark.": "spark:"}


def text(walks: Sequence[Walk], quiet: Act, frames: Mapping[str, frozenset[str]]) -> str:
    """Return each walk with its modules, the frame, and a table of counts."""
    lines = [line for walk in walks for line in (*_of_walk(walk), "")]
    lines += [f"frame: what is called in {quiet.seconds:.0f} s in which nothing is to do"]
    lines += [f"  {side} ({len(modules)}): {_names(sorted(modules))}" for side, modules in frames.items()]
    lines += ["", f"{'walk':<24}{'modules':>8}{'limit':>7}{'operator':>10}{'runtime':>9}{'seconds':>9}"]
    lines += [_row(walk) for walk in walks]
    late = [walk.name for walk in walks if walk.seconds > quiet.seconds]
    if late:
        lines.append(
            f"longer than the quiet time, so with too many modules: {', '.join(late)}; give --quiet more seconds"
        )
    return "\n".join(lines)


def summary(walks: Sequence[Walk], quiet: Act, frames: Mapping[str, frozenset[str]]) -> dict[str, Any]:
    """Return the object that is printed last."""
    return {
        "frame": {side: len(modules) for side, modules in frames.items()},
        "quiet_seconds": round(quiet.seconds),
        "rounds": len(walks[0].acts),
        "walks": {
            walk.name: {
                "modules": len(walk.modules),
                "limit": walk.limit,
                **{side: len(modules) for side, modules in walk.sides.items()},
                "seconds": round(walk.seconds, 1),
            }
            for walk in walks
        },
        "over": [walk.name for walk in walks if walk.is_over],
    }


def _of_walk(walk: Walk) -> list[str]:
    limit = "no limit" if walk.limit is None else f"limit {walk.limit}"
    return [f"{walk.name}: {len(walk.modules)} modules ({limit})", *map(_of_part, walk.parts)]


def _of_part(part: Part) -> str:
    return f"  {part.program} [{part.pid}] ({len(part.modules)}): {_names(part.modules)}"


def _names(modules: Sequence[str]) -> str:
    return " ".join(_short(module) for module in modules)


def _short(module: str) -> str:
    package = next((package for package in _SHORT if module.startswith(package)), "")
    return f"{_SHORT.get(package, '')}{module.removeprefix(package)}"


def _row(walk: Walk) -> str:
    sides = [str(len(walk.sides[side])) if side in walk.sides else "" for side in ("operator", "runtime")]
    limit = "" if walk.limit is None else str(walk.limit)
    return f"{walk.name:<24}{len(walk.modules):>8}{limit:>7}{sides[0]:>10}{sides[1]:>9}{walk.seconds:>9.1f}"
