"""A few snapshots under attack, on real Spark and a real S3 server: ``make attack`` takes hundreds."""

import pytest

from tests.attack.__main__ import OK, exit_code
from tests.attack.report import table
from tests.attack.run import Settings, run


@pytest.mark.parametrize("layout", ["rocksdb", "rocksdb-changelog"])
def test_snapshots_are_what_their_batch_was_though_spark_cleans_up_all_the_time(layout: str) -> None:
    result = run(Settings(snapshots=4, resume=1, layout=layout, seconds=400.0), print)
    assert exit_code(result) == OK, table(result)
