"""Against which commit this checkout counts as changed, and what has changed since. Runs git.

The base of a branch is where it left the default branch. The default branch itself is compared with the commit at which
the gate last passed on this machine, if that is known; without a base, everything counts as changed.
"""

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from devcluster import paths

ROOT = Path(__file__).parents[2]
DEFAULT_BRANCHES = ("origin/HEAD", "origin/main", "main")
BASE_VARIABLE = "TIDEGATE_BASE"
"""Names another base, for a whole run: ``make test-changed BASE=…`` and the tests of tools agree on it."""

Git = Callable[..., str | None]
"""What git prints for these arguments, or None if it fails."""


class UnknownBaseError(Exception):
    """The commit that somebody named as the base does not exist."""


@dataclass(frozen=True)
class Commits:
    """What git says about this checkout; a commit that does not exist is None."""

    head: str | None
    merge_base: str | None = None
    """Where HEAD left the default branch; HEAD itself on the default branch."""
    passed: str | None = None
    """The commit at which the gate last passed."""
    passed_is_ancestor: bool = False


def choose(commits: Commits) -> str | None:
    """Return the base of this checkout; None: everything counts as changed."""
    if commits.head is None or commits.merge_base is None:
        return None
    if commits.merge_base != commits.head:
        return commits.merge_base
    return commits.passed if commits.passed_is_ancestor else None


def passed_file() -> Path:
    """Return where the commit at which the gate last passed is noted."""
    return paths.cache() / "gate" / "passed"


def find_base(named: str | None = None, root: Path = ROOT) -> str | None:
    """Return the base as a commit; None: there is none.

    Args:
        named: the base that somebody asks for; otherwise the variable's, otherwise that of the branch.
        root: the checkout.

    Raises:
        UnknownBaseError: the named commit does not exist.
    """
    git, named = git_in(root), named or os.environ.get(BASE_VARIABLE)
    if not named:
        return choose(read_commits(git, passed_file()))
    # Where this checkout left it: what came to the named branch since then is no change of this checkout.
    commit = git("merge-base", "HEAD", named)
    if commit is None:
        raise UnknownBaseError(f"{named} is no commit that this checkout has in common with its own.")
    return commit


def read_commits(git: Git, passed: Path) -> Commits:
    """Ask git for what ``choose`` needs."""
    head = git("rev-parse", "--verify", "--quiet", "HEAD^{commit}")
    found = (git("rev-parse", "--verify", "--quiet", f"{name}^{{commit}}") for name in DEFAULT_BRANCHES)
    default = next((commit for commit in found if commit), None)
    noted = passed.read_text().strip() if passed.is_file() else None
    return Commits(
        head,
        git("merge-base", "HEAD", default) if head and default else None,
        noted or None,
        bool(noted) and git("merge-base", "--is-ancestor", str(noted), "HEAD") is not None,
    )


def changed_files(base: str, root: Path = ROOT) -> list[str]:
    """Return all files that differ from the base, those that are gone and those that git does not know yet included."""
    git = git_in(root)
    differing, unknown = git("diff", "--name-only", "--no-renames", "-z", base), git(*_UNKNOWN)
    if differing is None or unknown is None:
        raise UnknownBaseError(f"git cannot compare this checkout with {base}.")
    return sorted({name for name in (differing + unknown).split("\0") if name})


def note_passed(root: Path = ROOT) -> bool:
    """Note that the gate passed at HEAD; a checkout with changes of its own passed at no commit: nothing is noted."""
    git = git_in(root)
    head, changes = git("rev-parse", "HEAD"), git("status", "--porcelain")
    if head is None or changes is None or changes.strip():
        return False
    path = passed_file()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(head + "\n")
    return True


def git_in(root: Path) -> Git:
    """Return what runs git in a checkout."""

    def git(*arguments: str) -> str | None:
        try:
            run = subprocess.run(["git", *arguments], cwd=root, capture_output=True, text=True, check=False)
        except FileNotFoundError:
            return None
        return (run.stdout if "-z" in arguments else run.stdout.strip()) if run.returncode == 0 else None

    return git


_UNKNOWN = ("ls-files", "--others", "--exclude-standard", "-z")
