"""Settings of a script, and of the spec, are in force as under spark-submit; what Tidegate needs stays as it is."""

import pytest

from tidegate_spark import sparkconf

from .conftest import StartDriver


@pytest.mark.parametrize(
    ("settings", "arguments"),
    [
        ({sparkconf.STATE_STORE: sparkconf.HDFS_BACKED_CLASS}, ()),
        pytest.param({}, ("session",), marks=pytest.mark.long),
    ],
    ids=["of the spec", "of the script"],
)
def test_the_state_store_that_spark_has_by_default_works_for_whoever_names_it(
    start_driver: StartDriver, settings: dict[str, str], arguments: tuple[str, ...]
) -> None:
    start_driver("hdfs", "hdfs_store.py", spark_conf=settings, args=arguments).await_batch(2)
