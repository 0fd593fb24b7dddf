"""Mistakes that could be made, planted to see that a test notices them; and the record of what notices each of them.

To search for the one course in hundreds in which a mistake shows is long, and to try the one that showed it the last
time is short. So that is recorded, and only when it shows the mistake no longer is there a search.
"""

import fcntl
import inspect
import json
import os
import textwrap
import tomllib
import warnings
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

Course = int | str
"""What names one course: the seed of a schedule, or what hypothesis can replay."""

TESTS = Path(__file__).parents[2]
RECORD = TESTS / "planted_mistakes.toml"
COMMAND = "make mistakes"
VARIABLE, WRITE = "TIDEGATE_MISTAKES", "write"
_HEAD = f"# What shows each planted mistake: a seed, or a course that hypothesis replays. Written by `{COMMAND}`.\n"


@dataclass(frozen=True)
class Mistake:
    """One that could be made: in this function, this text instead of that one."""

    owner: Any
    function: str
    right: str
    wrong: str

    def plant(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Make it, until the test is over."""
        original = getattr(self.owner, self.function)
        source = textwrap.dedent(inspect.getsource(original))
        assert source.count(self.right) == 1, f"{self.function} does not say {self.right!r} once"
        names: dict[str, Any] = {}
        exec(source.replace(self.right, self.wrong), original.__globals__, names)
        monkeypatch.setattr(self.owner, self.function, names[self.function])


@dataclass(frozen=True)
class Planted:
    """The mistakes that one file of tests plants, and what is recorded of them.

    ``shows`` is given a course, and returns whether something is wrong in it.
    """

    file: str
    names: tuple[str, ...]
    record: Path = field(default=RECORD, kw_only=True)

    def assert_noticed_by_schedules(
        self, name: str, plant: Callable[[], object], shows: Callable[[Course], bool], count: int
    ) -> None:
        """Assert that a mistake is noticed, as :meth:`assert_noticed`; a search tries so many seeds, from 0."""
        self.assert_noticed(name, plant, shows, lambda: next((seed for seed in range(count) if shows(seed)), None))

    def assert_noticed(
        self,
        name: str,
        plant: Callable[[], object],
        shows: Callable[[Course], bool],
        search: Callable[[], Course | None],
    ) -> None:
        """Assert that a mistake is noticed: in the course that is recorded, or else in one that is searched for.

        Args:
            name: of the mistake.
            plant: makes it.
            shows: whether it shows in a course.
            search: returns a course in which it shows, None if there is none.
        """
        known = self.recorded().get(name)
        assert known is None or not shows(known), f"something is wrong in {known!r} without a mistake"
        plant()
        if known is not None and shows(known):
            return
        found = search()
        assert found is not None, f"nobody notices: {name}"
        if os.environ.get(VARIABLE) == WRITE:
            self.write(name, found)
        else:
            warnings.warn(f"{self.file}: {name}: shows in {found!r}, record it with `{COMMAND}`", stacklevel=2)

    def assert_recorded(self, name: str, plant: Callable[[], object], shows: Callable[[Course], bool]) -> None:
        """Assert that a mistake is noticed in the course that is recorded."""
        known = self.recorded().get(name)
        assert known is not None, f"no course is recorded for: {name}; `{COMMAND}` finds one"
        plant()
        assert shows(known), f"no longer shows in {known!r}: {name}; `{COMMAND}` finds another course"

    def recorded(self) -> dict[str, Course]:
        """Return what is recorded, by the names of the mistakes."""
        return self._read().get(self.file, {})

    def write(self, name: str, course: Course) -> None:
        """Record a course; what is recorded of mistakes that the file no longer plants goes."""
        folder = os.open(self.record.parent, os.O_RDONLY)
        try:
            fcntl.flock(folder, fcntl.LOCK_EX)  # several processes may search at once
            known = self._read()
            ours = {**known.get(self.file, {}), name: course}
            known[self.file] = {each: ours[each] for each in self.names if each in ours}
            new = self.record.with_suffix(".new")
            new.write_text(_HEAD + "".join(map(_section, sorted(known.items()))))
            new.replace(self.record)
        finally:
            os.close(folder)

    def _read(self) -> dict[str, dict[str, Course]]:
        return tomllib.loads(self.record.read_text()) if self.record.exists() else {}


def planted(file: str, names: Iterable[str]) -> Planted:
    """Return the mistakes that a test module (its ``__file__``) plants."""
    return Planted(Path(file).resolve().relative_to(TESTS.parent).as_posix(), tuple(names))


def _section(known: tuple[str, dict[str, Course]]) -> str:
    file, courses = known
    lines = "".join(f"{json.dumps(name)} = {json.dumps(course)}\n" for name, course in courses.items())
    return f"\n[{json.dumps(file)}]\n{lines}"
