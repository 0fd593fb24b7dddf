"""A watch gives each version once and in order, and says what kubectl said if it ends."""

import sys
from pathlib import Path

import pytest

from tidegate_testing.kubectl import Kubectl
from tidegate_testing.watching import Watch


def kubectl(folder: Path, script: str) -> Kubectl:
    """Return a program in kubectl's place that does what ``script`` says, whatever it is asked."""
    program = folder / "kubectl"
    program.write_text(f"#!{sys.executable}\nimport json, sys\n{script}\n")
    program.chmod(0o700)
    return Kubectl(program, folder / "kubeconfig")


EVENTS = """
for kind, phase, indent in [("ADDED", "A", None), ("MODIFIED", "B", 2), ("DELETED", "B", None), ("MODIFIED", "C", 2)]:
    print(json.dumps({"type": kind, "object": {"status": {"phase": phase}}}, indent=indent), flush=True)
print("the server is gone", file=sys.stderr)
"""


def test_each_version_is_seen_once_and_in_order(tmp_path: Path) -> None:
    with Watch(kubectl(tmp_path, EVENTS), "pods", "here", name="one") as watch:
        found = [watch.until("a version", lambda version: str(version["status"]["phase"]), 60) for _ in "ABC"]
    assert found == ["A", "B", "C"]


def test_a_watch_that_ends_says_why_and_what_was_seen_last(tmp_path: Path) -> None:
    with (
        Watch(kubectl(tmp_path, EVENTS), "pods", "here", name="one") as watch,
        pytest.raises(AssertionError, match=r"pods one in here ended before D: the server is gone; last seen: .*C"),
    ):
        watch.until("D", lambda version: version["status"]["phase"] == "D", 60)


def test_no_version_in_time_is_said_with_what_was_awaited(tmp_path: Path) -> None:
    with (
        Watch(kubectl(tmp_path, "sys.stdin.read(); import time; time.sleep(600)"), "pods", "here", name="one") as watch,
        pytest.raises(AssertionError, match="waited 0 s for anything"),
    ):
        watch.until("anything", lambda version: True, 0.05)
