"""Mistakes that could be made in a function, planted in it to see that a test notices them."""

import inspect
import textwrap
from dataclasses import dataclass
from typing import Any

import pytest


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
