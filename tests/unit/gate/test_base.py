"""The base against which a checkout counts as changed. Runs git in folders of its own."""

import subprocess
from pathlib import Path

import pytest

from tests.gate import base
from tests.gate.base import Commits, UnknownBaseError, changed_files, choose, find_base, note_passed


class Checkout:
    def __init__(self, root: Path) -> None:
        self.root = root
        root.mkdir()
        self.git("init", "--quiet", "--initial-branch=main")

    def git(self, *arguments: str) -> str:
        people = ("-c", "user.name=t", "-c", "user.email=t@example.com", "-c", "commit.gpgsign=false")
        run = subprocess.run(["git", *people, *arguments], cwd=self.root, check=True, capture_output=True, text=True)
        return run.stdout.strip()

    def commit(self, **files: str) -> str:
        for name, text in files.items():
            (self.root / name).write_text(text)
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message=x")
        return self.git("rev-parse", "HEAD")


@pytest.fixture
def checkout(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Checkout:
    monkeypatch.delenv(base.BASE_VARIABLE, raising=False)
    for name in ("GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TIDEGATE_CACHE", str(tmp_path / "cache"))
    return Checkout(tmp_path / "checkout")


@pytest.mark.parametrize(
    ("commits", "chosen"),
    [
        (Commits(None), None),
        (Commits("h"), None),
        (Commits("h", "b"), "b"),
        (Commits("h", "b", "p", passed_is_ancestor=True), "b"),
        (Commits("h", "h"), None),
        (Commits("h", "h", "p", passed_is_ancestor=False), None),
        (Commits("h", "h", "p", passed_is_ancestor=True), "p"),
    ],
)
def test_the_base_is_the_merge_base_or_on_the_default_branch_where_the_gate_passed(
    commits: Commits, chosen: str | None
) -> None:
    assert choose(commits) == chosen


def test_a_branch_is_compared_with_where_it_left_the_default_branch(checkout: Checkout) -> None:
    left = checkout.commit(a="1", b="1", c="1")
    checkout.git("checkout", "--quiet", "-b", "work")
    checkout.commit(a="2")
    (checkout.root / "b").unlink()
    (checkout.root / "new").write_text("n")
    assert find_base(root=checkout.root) == left
    assert changed_files(left, checkout.root) == ["a", "b", "new"]


def test_the_remote_default_branch_comes_first(checkout: Checkout) -> None:
    old = checkout.commit(a="1")
    checkout.git("update-ref", "refs/remotes/origin/main", old)
    checkout.commit(a="2")
    assert find_base(root=checkout.root) == old


def test_a_file_with_another_name_is_changed_under_both(checkout: Checkout) -> None:
    first = checkout.commit(old="the same text\n" * 20)
    checkout.git("mv", "old", "new")
    assert changed_files(first, checkout.root) == ["new", "old"]


def test_the_default_branch_is_compared_with_where_the_gate_passed(checkout: Checkout) -> None:
    checkout.commit(a="1")
    assert find_base(root=checkout.root) is None
    assert note_passed(checkout.root)
    passed = checkout.git("rev-parse", "HEAD")
    checkout.commit(a="2")
    assert find_base(root=checkout.root) == passed


def test_a_commit_of_another_history_is_no_base(checkout: Checkout) -> None:
    checkout.commit(a="1")
    base.passed_file().parent.mkdir(parents=True)
    base.passed_file().write_text("0" * 40)
    assert find_base(root=checkout.root) is None


def test_a_checkout_with_changes_passed_at_no_commit(checkout: Checkout) -> None:
    checkout.commit(a="1")
    (checkout.root / "a").write_text("2")
    assert not note_passed(checkout.root)
    assert not base.passed_file().exists()


def test_a_named_base_is_where_this_checkout_left_it(checkout: Checkout, monkeypatch: pytest.MonkeyPatch) -> None:
    left = checkout.commit(a="1")
    checkout.git("checkout", "--quiet", "-b", "other")
    checkout.commit(b="1")
    checkout.git("checkout", "--quiet", "-b", "work", "main")
    checkout.commit(c="1")
    assert find_base("other", checkout.root) == left
    monkeypatch.setenv(base.BASE_VARIABLE, "other")
    assert find_base(root=checkout.root) == left
    with pytest.raises(UnknownBaseError, match="nobody"):
        find_base("nobody", checkout.root)


def test_a_folder_without_git_has_no_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path))
    monkeypatch.delenv(base.BASE_VARIABLE, raising=False)
    (tmp_path / "folder").mkdir()
    assert find_base(root=tmp_path / "folder") is None
    with pytest.raises(UnknownBaseError):
        changed_files("HEAD", tmp_path / "folder")
