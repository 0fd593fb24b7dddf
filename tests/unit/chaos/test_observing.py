"""Commits are read from the checkpoint's files, and a pod's processes are told by their cgroup."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from devcluster.processes import ProcessIdentity
from tests.chaos.run import overlaps
from tidegate_testing.commit_log import Batch, CommitLog, CommitWatch, LineageLogs, longest_gap
from tidegate_testing.pod_processes import PodProcess, belongs, container_id, is_jvm, runs_module


def checkpoint(folder: Path, planned: dict[int, float], committed: dict[int, float]) -> CommitLog:
    for name, batches in (("offsets", planned), ("commits", committed)):
        (folder / name).mkdir(exist_ok=True)
        for batch, time in batches.items():
            write(folder / name / str(batch), time)
    return CommitLog(folder)


def write(file: Path, time: float) -> None:
    file.write_text("v1\n{}\n" + json.dumps({"records": {"0": 5}}))
    os.utime(file, (time, time))


def test_a_query_that_has_not_begun_has_no_batches(tmp_path: Path) -> None:
    log = CommitLog(tmp_path / "not there")
    assert (log.planned(), log.committed(), log.running()) == ({}, {}, None)


def test_a_batch_runs_from_its_plan_to_its_commit(tmp_path: Path) -> None:
    log = checkpoint(tmp_path, planned={0: 10.0, 1: 12.0}, committed={0: 11.5})
    assert log.running() == Batch(1, 12.0)
    write(tmp_path / "commits" / "1", 13.0)
    assert log.running() is None


def test_files_on_their_way_and_folders_marks_are_no_batches(tmp_path: Path) -> None:
    log = checkpoint(tmp_path, planned={0: 10.0}, committed={0: 11.0})
    write(tmp_path / "commits" / ".1.crc", 12.0)
    write(tmp_path / "commits" / "1.tmp", 12.0)
    assert log.committed() == {0: 11.0}


def test_a_batch_tells_where_its_sources_ended(tmp_path: Path) -> None:
    log = checkpoint(tmp_path, planned={0: 10.0}, committed={})
    assert log.ends(0) == [{"records": {"0": 5}}]


def test_the_first_commit_after_a_moment_is_awaited(tmp_path: Path) -> None:
    log = checkpoint(tmp_path, planned={}, committed={3: 10.0, 4: 12.0, 5: 13.0})
    assert log.await_commit_after(11.0, timeout=1) == Batch(4, 12.0)


def test_commits_are_remembered_when_spark_has_removed_them(tmp_path: Path) -> None:
    watch = CommitWatch(checkpoint(tmp_path, planned={}, committed={0: 10.0, 1: 11.0}))
    watch.check()
    (tmp_path / "commits" / "0").unlink()
    assert watch.commits() == [Batch(0, 10.0), Batch(1, 11.0)]
    assert watch.rewritten == set()


def test_a_batch_that_is_committed_a_second_time_is_noticed(tmp_path: Path) -> None:
    watch = CommitWatch(checkpoint(tmp_path, planned={}, committed={0: 10.0, 1: 11.0}))
    watch.check()
    write(tmp_path / "commits" / "1", 15.0)
    watch.check()
    assert watch.rewritten == {1}


# --- lineages ---------------------------------------------------------------------------------------------------------


def lineage(folder: Path, number: int, batches: dict[int, float], begins: int | None) -> None:
    """One that was filled up to batch ``begins``; None: nothing says what with."""
    place = folder / str(number) / "accounts"
    place.mkdir(parents=True)
    checkpoint(place, planned=batches, committed=batches)
    if begins is not None:
        (folder / f"{number}.json").write_text(json.dumps({"snapshot": "s", "batches": {"accounts": begins}}))


def test_the_lineage_in_which_a_batch_was_run_last_is_the_current_one_and_what_it_was_filled_with_is_not_its_own(
    tmp_path: Path,
) -> None:
    logs = LineageLogs(tmp_path, "accounts")
    assert (logs.lineage, logs.committed()) == (1, {})
    lineage(tmp_path, 1, {0: 10.0, 1: 11.0}, None)
    lineage(tmp_path, 2, {1: 20.0, 2: 21.0}, 2)
    assert (logs.lineage, logs.committed()) == (1, {0: 10.0, 1: 11.0})
    for name in ("offsets", "commits"):
        write(tmp_path / "2" / "accounts" / name / "3", 22.0)
    assert (logs.lineage, logs.planned(), logs.committed()) == (2, {3: 22.0}, {3: 22.0})
    assert logs.running() is None


def test_a_lineage_that_is_being_filled_is_none_until_it_is_said_to_be_whole(tmp_path: Path) -> None:
    logs = LineageLogs(tmp_path, "accounts")
    lineage(tmp_path, 1, {0: 10.0}, None)
    lineage(tmp_path, 2, {0: 20.0, 1: 21.0, 2: 22.0}, None)
    assert [log.checkpoint.parent.name for log in logs.logs()] == ["1"]
    (tmp_path / "2.json").write_text('{"snapshot": "s", "batch')
    assert logs.lineage == 1
    (tmp_path / "2.json").write_text('{"snapshot": "s", "batches": {"accounts": 1}}')
    assert (logs.lineage, logs.committed()) == (2, {2: 22.0})


def test_a_number_that_is_committed_in_two_lineages_is_no_batch_that_was_committed_twice(tmp_path: Path) -> None:
    lineage(tmp_path, 1, {0: 10.0, 1: 11.0}, None)
    lineage(tmp_path, 2, {0: 20.0, 1: 21.0}, 0)
    watch = CommitWatch(LineageLogs(tmp_path, "accounts"))
    assert watch.commits() == [Batch(0, 10.0), Batch(1, 11.0), Batch(1, 21.0)]
    assert (watch.rewritten, overlaps(watch)) == (set(), [])


def test_a_lineage_that_is_gone_on_with_beside_a_later_one_is_noticed(tmp_path: Path) -> None:
    lineage(tmp_path, 1, {0: 10.0, 1: 20.5}, None)
    lineage(tmp_path, 2, {0: 15.0, 1: 20.0}, 0)
    lineage(tmp_path, 3, {0: 16.0}, 0)
    places = [tmp_path / number / "accounts" for number in ("1", "2")]
    assert overlaps(CommitWatch(LineageLogs(tmp_path, "accounts"))) == [(places[0], places[1])]


@pytest.mark.parametrize(
    ("start", "end", "gap"),
    [
        (10.5, 21.0, 9.0),  # from the last commit before it to the first one after it
        (1.0, 2.5, 1.0),
        (20.5, 20.7, 1.0),  # recovered before the commit that ends the gap
        (22.0, 30.0, 0.0),
    ],
)
def test_the_gap_is_the_longest_time_between_commits_around_a_fault(start: float, end: float, gap: float) -> None:
    commits = [Batch(n, time) for n, time in enumerate((1.0, 2.0, 3.0, 11.0, 20.0, 21.0))]
    assert longest_gap(commits, start, end) == gap


def test_no_commits_have_no_gap() -> None:
    assert longest_gap([], 1.0, 2.0) == 0.0


# --- processes --------------------------------------------------------------------------------------------------------

UID, CONTAINER = "0aa1-uid", "c0ffee"
CGROUP = f"0::/tidegate-chaos-12/kubepods/burstable/pod{UID}/{CONTAINER}\n"


def test_a_process_belongs_to_the_container_whose_cgroup_it_is_in() -> None:
    assert belongs(CGROUP, UID, CONTAINER)
    assert belongs("4:memory:/other\n" + CGROUP, UID, CONTAINER)
    assert not belongs(CGROUP, UID, "d00d")
    assert not belongs(CGROUP, "another", CONTAINER)
    assert not belongs("", UID, CONTAINER)


def pod(state: str) -> dict[str, Any]:
    status = {"name": "driver", "containerID": "containerd://c0ffee", "state": {state: {}}}
    return {"metadata": {"name": "accounts-driver", "uid": UID}, "status": {"containerStatuses": [status]}}


def test_only_a_container_that_runs_can_be_aimed_at() -> None:
    assert container_id(pod("running"), "driver") == CONTAINER
    with pytest.raises(AssertionError, match="driver of pod accounts-driver does not run"):
        container_id(pod("waiting"), "driver")


def process(program: str, *command: str) -> PodProcess:
    return PodProcess(ProcessIdentity(1, 1, "boot"), program, command)


def test_processes_are_told_apart_by_what_they_run() -> None:
    jvm = process("java", "/usr/bin/java", "-cp", "jars")
    driver = process("python3.11", "python3", "-m", "tidegate_spark")
    executor = process("python3.11", "python3", "-m", "tidegate_spark.executor")
    assert [is_jvm(p) for p in (jvm, driver, executor)] == [True, False, False]
    assert [runs_module("tidegate_spark")(p) for p in (jvm, driver, executor)] == [False, True, False]
