"""How long an executor's log may take to get into storage follows from what its JVM left of the pod's time."""

from tidegate_spark.executors.entry_point import GRACE_SECONDS, LEAST_UPLOAD_SECONDS, upload_seconds


def test_an_executor_that_ended_by_itself_has_the_whole_time_that_kubernetes_gives() -> None:
    assert upload_seconds(None, 1000.0) == GRACE_SECONDS


def test_one_that_was_asked_to_go_has_what_its_jvm_left_of_it() -> None:
    assert upload_seconds(1000.0, 1005.0) == GRACE_SECONDS - 5.0


def test_one_whose_jvm_took_it_all_tries_all_the_same() -> None:
    assert upload_seconds(1000.0, 1029.0) == LEAST_UPLOAD_SECONDS
