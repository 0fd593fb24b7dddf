"""What processes that are gone left in the cache is removed, by however many at the same time. Starts processes."""

import os
import subprocess
import sys
from pathlib import Path

GONE = 4_194_305
"""No process has this number: the kernel gives none above 4,194,303."""


def test_two_that_sweep_at_the_same_time_do_not_fail_on_each_other(tmp_path: Path) -> None:
    left, own = tmp_path / "clusters" / f"bound-{GONE}-0", tmp_path / "clusters" / f"bound-{os.getpid()}-0"
    for folder in (left, own):
        folder.mkdir(parents=True)
    for number in range(4000):
        (left / str(number)).touch()
    sweeping = [
        subprocess.Popen(
            [sys.executable, "-c", "from devcluster.control import sweep; sweep()"],
            cwd=Path(__file__).parents[3],
            env={**os.environ, "TIDEGATE_CACHE": str(tmp_path)},
        )
        for _ in range(3)
    ]
    assert [process.wait(60) for process in sweeping] == [0, 0, 0]
    assert not left.exists()
    assert own.exists()
