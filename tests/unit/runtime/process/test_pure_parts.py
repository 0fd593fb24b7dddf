"""The runtime's pure parts: configuration, names, faults, log tails, termination messages."""

import contextlib
import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from tidegate_spark.contract.protocol import (
    RUNTIME_DIRECTORY,
    TERMINATION_MESSAGE_LIMIT,
    DriverConfig,
    ExecutorSettings,
    Fault,
    Storage,
    Termination,
    store_identity,
)
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.driver.script.script import judge, outcome_of, outcome_of_exit
from tidegate_spark.executors.leftovers import leftovers
from tidegate_spark.jvm.jvm_process import EXIT_NOT_KNOWN
from tidegate_spark.monitoring.watch import COMPLETED, jvm_outcome
from tidegate_spark.process import logs
from tidegate_spark.process.environment import Environment, inherited_variables
from tidegate_spark.process.faults import faults
from tidegate_spark.process.faults.faults import Link
from tidegate_spark.process.outcome import Outcome
from tidegate_spark.process.progress import Progress
from tidegate_spark.process.redaction import Secrets
from tidegate_spark.process.spark import sparkconf
from tidegate_spark.process.termination import termination_text
from tidegate_spark.queries.entries import Entry, is_moved, refusal
from tidegate_spark.queries.queries import checkpoint_directory, with_settings
from tidegate_spark.queries.same_query import Plan
from tidegate_spark.storage.readiness import delays
from tidegate_testing.driver_process import driver_config

CONFIG = DriverConfig(
    app="a",
    namespace="n",
    uid="u",
    epoch=3,
    lineage=2,
    pod_name="a-driver",
    main="local:///m.py",
    storage=Storage("s3://b/p/n/a", "http://s3:1"),
    executor=ExecutorSettings(4, "i", "IfNotPresent", "sa", "a-e3"),
    spark_conf={"spark.executor.memory": "9g", "spark.master": "local", "spark.sql.shuffle.partitions": "99"},
)


def test_what_tidegate_owns_beats_spark_conf_which_beats_the_defaults() -> None:
    environment = Environment.read({"KUBERNETES_SERVICE_HOST": "10.0.0.1", "TIDEGATE_POD_IP": "10.1.1.1"})
    conf = sparkconf.build_spark_conf(CONFIG, environment, "20260101T000000.000Z-e3")
    assert conf["spark.master"] == "k8s://https://10.0.0.1:443"
    assert conf["spark.executor.memory"] == "9g"
    assert conf["spark.sql.shuffle.partitions"] == "4"
    assert conf["spark.executor.instances"] == "4"
    assert conf["spark.sql.streaming.checkpointLocation"] == "s3a://b/p/n/a/lineages/2"
    assert conf["spark.driver.extraClassPath"] == f"{RUNTIME_DIRECTORY}/jars/*"
    assert conf["spark.hadoop.fs.s3a.connection.ssl.enabled"] == "false"
    assert conf["spark.executorEnv.TIDEGATE_PROCESS"] == "20260101T000000.000Z-e3"
    assert sparkconf.ignored_keys(CONFIG) == ("spark.master", "spark.sql.shuffle.partitions")


def test_python_workers_run_by_the_program_that_the_spec_names_as_under_spark_submit() -> None:
    named = replace(CONFIG, spark_conf={"spark.pyspark.python": "/opt/other/python3"})
    own = {"PYSPARK_PYTHON": "/opt/venv/python3"}
    for config, variables, runs in (
        (CONFIG, {}, "/usr/bin/python3"),
        (CONFIG, own, "/opt/venv/python3"),
        (named, own, "/opt/other/python3"),
    ):
        assert inherited_variables(config, variables, "/usr/bin/python3")["PYSPARK_PYTHON"] == runs
    # The driver runs already.
    assert sparkconf.ignored_keys(replace(CONFIG, spark_conf={"spark.pyspark.driver.python": "python3.12"}))


def test_the_jvm_is_told_which_fence_this_driver_holds() -> None:
    settings = sparkconf.fence_settings(CONFIG, '"etag"')
    assert settings == {
        "spark.hadoop.tidegate.fence.object": "s3a://b/p/n/a/fence.json",
        "spark.hadoop.tidegate.fence.etag": '"etag"',
    }


def test_our_class_writes_checkpoint_files_unless_the_user_chose_one_or_it_is_missing() -> None:
    setting = "spark.sql.streaming.checkpointFileManagerClass"
    assert sparkconf.checkpoint_files({}, available=True) == {setting: "dev.tidegate.spark.CheckpointFiles"}
    assert sparkconf.checkpoint_files({}, available=False) == {}
    assert sparkconf.checkpoint_files({setting: "x.Own"}, available=True) == {}


def test_names_become_directories_that_differ_when_the_names_differ() -> None:
    assert checkpoint_directory("orders.v2") == "orders.v2"
    assert checkpoint_directory("a/b") != checkpoint_directory("a b")
    assert "/" not in checkpoint_directory("../x")


def no(entry: Entry) -> bool:
    return False


def yes(entry: Entry) -> bool:
    return True


def unnamed(site: str = "s.py:1", text: str = "rate", function: object = None, location: str = "") -> Entry:
    return Entry("main", site, False, plan=Plan(text, function), location=location)


def test_a_second_unnamed_query_is_refused_and_a_named_one_may_come_back() -> None:
    entries = {"main": unnamed(), "x": Entry("x", "s.py:2", True)}
    assert "s.py:1" in (refusal(unnamed("s.py:9"), entries, no, yes) or "")
    again = Entry("x", "s.py:9", True)
    assert refusal(again, entries, no, no) is None
    assert "two queries" in (refusal(again, entries, yes, no) or "")
    assert refusal(Entry("y", "s.py:9", True), entries, yes, no) is None
    assert "main" in (refusal(Entry("main", "s.py:9", True), entries, no, no) or "")


def test_the_same_unnamed_query_may_be_started_again_when_it_has_failed_and_no_other_one() -> None:
    def writing(place: str) -> Callable[[], str]:
        return lambda: place

    entries = {"main": unnamed(function=writing("a"))}
    assert refusal(unnamed(function=writing("a")), entries, no, yes) is None
    assert refusal(unnamed(function=writing("a")), entries, yes, yes) is not None
    # A function that starts a query for each of several inputs, or outputs, one after the other.
    assert refusal(unnamed(function=writing("b")), entries, no, yes) is not None
    assert refusal(unnamed(text="kafka", function=writing("a")), entries, no, yes) is not None
    # It has read all that there was: the next one may be meant for another place, which nothing here shows.
    assert refusal(unnamed(function=writing("a")), entries, no, no) is not None


def test_an_unnamed_query_with_the_checkpoint_location_of_the_one_before_is_the_same() -> None:
    entries = {"main": unnamed(location="s3a://b/c")}
    assert refusal(unnamed("s.py:9", location="s3a://b/c"), entries, no, no) is None
    assert refusal(unnamed("s.py:9", location="s3a://b/c"), entries, yes, no) is not None
    assert refusal(unnamed("s.py:9", location="s3://b//c/"), entries, no, no) is None
    assert refusal(unnamed(location="s3a://b/d"), entries, no, yes) is not None
    assert "s3a" not in repr(entries)
    assert refusal(unnamed(), entries, no, yes) is not None


def test_an_unnamed_query_that_failed_does_not_begin_from_nothing_because_its_location_is_another_one() -> None:
    before = unnamed(location="/tmp/1")
    assert is_moved(before, unnamed(location="/tmp/2"), yes)
    assert not is_moved(before, unnamed(location="/tmp/1"), yes)
    assert not is_moved(before, unnamed(location="/tmp/2"), no)
    assert not is_moved(before, unnamed("s.py:9", location="/tmp/2"), yes)
    assert not is_moved(before, unnamed(text="kafka", location="/tmp/2"), yes)
    assert not is_moved(Entry("main", "s.py:1", True), unnamed(location="/tmp/2"), yes)


def test_faults_are_told_apart_by_class() -> None:
    stream = Link(("org.apache.spark.sql.streaming.StreamingQueryException",), "outer")
    timeout = Link(
        ("org.apache.kafka.common.errors.TimeoutException", "org.apache.kafka.common.errors.RetriableException")
    )
    denied = Link(
        ("software.amazon.awssdk.services.s3.model.S3Exception", faults.AWS_ANSWER), "no", 403, "AccessDenied"
    )
    refused = Link(("java.net.ConnectException",), "refused")
    s3a = Link(("org.apache.hadoop.fs.s3a.AWSClientIOException",), "s3a")
    assert faults.classify((stream, timeout)).reason is Reason.BROKER_UNAVAILABLE
    assert faults.classify((stream, denied)).reason is Reason.CREDENTIALS_REJECTED
    assert faults.classify((stream, s3a, refused)).reason is Reason.STORAGE_UNAVAILABLE
    closed = Link(("org.apache.hadoop.fs.s3a.HttpChannelEOFException", "java.io.EOFException"), "no answer")
    assert faults.classify((stream, closed)).reason is Reason.STORAGE_UNAVAILABLE
    assert faults.classify((stream, refused)).reason is Reason.APPLICATION_FAILED
    fenced = Link(("dev.tidegate.spark.FencedException", "java.io.IOException"), "fence.json is another driver's")
    assert faults.classify((stream, fenced, s3a)).reason is Reason.FENCED
    python = Link(("py4j.Py4JException",), "Traceback (most recent call last):\n  File x\nValueError: bad")
    assert faults.classify((stream, python)) == faults.Failure(Reason.APPLICATION_FAILED, "ValueError", "bad")


AWS = ("software.amazon.awssdk.services.s3.model.S3Exception", faults.AWS_ANSWER)
FAILED_JOB = (
    "Job aborted due to stage failure: Task 0 in stage 3.0 failed 4 times, most recent failure: Lost task 0.3 in stage "
    "3.0 (TID 9) (10.0.0.7 executor 2): "
)
STATE_FILE = "s3a://streams/apps/shop/orders/lineages/1/main/state/0/0/5_b0c1.changelog"


@pytest.mark.parametrize(
    ("link", "reason"),
    [
        (Link(AWS, "slow", 503, "SlowDown"), Reason.STORAGE_THROTTLED),
        (Link(AWS, "slow", 429, ""), Reason.STORAGE_THROTTLED),
        (Link(AWS, "down", 503, "ServiceUnavailable"), Reason.STORAGE_UNAVAILABLE),
        (Link(AWS, "expired", 400, "ExpiredToken"), Reason.CREDENTIALS_EXPIRED),
        (Link(AWS, "expired", 403, "ExpiredToken"), Reason.CREDENTIALS_EXPIRED),
        (Link(AWS, "denied", 403, "AccessDenied"), Reason.CREDENTIALS_REJECTED),
        (
            Link(("java.io.FileNotFoundException", "java.io.IOException"), f"No such file or directory: {STATE_FILE}"),
            Reason.CHECKPOINT_FILE_MISSING,
        ),
        (
            Link(
                ("org.apache.spark.SparkException",),
                f"{FAILED_JOB}java.io.FileNotFoundException: No such file or directory: {STATE_FILE}",
            ),
            Reason.CHECKPOINT_FILE_MISSING,
        ),
        (
            Link(
                ("org.apache.spark.SparkIllegalStateException",),
                "[STREAMING_CHECKPOINT_MISSING_METADATA_FILE] Checkpoint location s3a://streams/x is in an "
                "inconsistent state: the metadata file is missing but offset and/or commit logs contain data.",
            ),
            Reason.CHECKPOINT_FILE_MISSING,
        ),
        (
            Link(("java.io.FileNotFoundException",), "No such file or directory: s3a://streams/input/1.json"),
            Reason.APPLICATION_FAILED,
        ),
        (
            Link(
                ("org.apache.spark.sql.streaming.StreamingQueryException",),
                "java.io.FileNotFoundException: No such file or directory: s3a://streams/out/_temporary/0\n"
                "Logical Plan:\n[queryName=main, checkpointLocation=s3a://streams/apps/shop/orders/lineages/1/main]",
            ),
            Reason.APPLICATION_FAILED,
        ),
        (Link(("java.io.IOException",), "No space left on device"), Reason.DISK_FULL),
        (Link(("org.rocksdb.RocksDBException",), "While appending: No space left on device"), Reason.DISK_FULL),
        (
            Link(("org.apache.spark.SparkException",), f"{FAILED_JOB}java.io.IOException: No space left on device"),
            Reason.DISK_FULL,
        ),
        (Link(("OSError",), "[Errno 28] No space left on device: '/tmp/model'"), Reason.DISK_FULL),
        (Link(("ValueError",), "No space left on device, says the price list"), Reason.APPLICATION_FAILED),
    ],
)
def test_faults_that_lie_in_the_cluster_or_the_bucket_are_told_apart(link: Link, reason: Reason) -> None:
    stream = Link(("org.apache.spark.sql.streaming.StreamingQueryException",), "outer")
    assert faults.classify((stream, link)).reason is reason


def test_a_stores_fault_that_our_storage_does_not_have_is_the_applications() -> None:
    denied = Outcome(
        Reason.CREDENTIALS_REJECTED, "A store rejects the credentials. S3Exception: s3a://theirs", "S3Exception"
    )
    judged = judge(denied, None)
    assert (judged.reason, judged.exception) == (Reason.APPLICATION_FAILED, "S3Exception")
    assert "s3a://theirs" in judged.message
    assert "spec.storage" not in judged.message


WRITING = "org.apache.hadoop.fs.s3a.AWSBadRequestException"
EXPIRED_ANSWER = Link(("software.amazon.awssdk.awscore.exception.AwsServiceException",), "said", 400, "ExpiredToken")


@pytest.mark.parametrize(
    ("around", "own"),
    [
        (Link((WRITING,), "Writing Object on apps/orders/lineages/1/main/offsets/3: S3Exception: said"), True),
        (Link((WRITING,), "Writing Object on prices/today.json: S3Exception: said"), False),
        (
            Link(
                ("org.apache.spark.sql.streaming.StreamingQueryException",),
                "checkpointLocation=s3a://here/apps/orders/lineages/1/main",
            ),
            False,
        ),
    ],
)
def test_a_fault_that_was_met_at_a_checkpoint_is_our_storages_though_it_is_over(around: Link, own: bool) -> None:
    """A token was renewed meanwhile: nothing is wrong with the version, and no failure of it counts."""
    judged = judge(outcome_of(faults.classify((around, EXPIRED_ANSWER))), None)
    assert (judged.reason is Reason.CREDENTIALS_EXPIRED) == own
    assert ("which answers again" in judged.message) == own


def test_a_stores_fault_that_our_storage_has_is_named_as_our_storage_has_it() -> None:
    denied = Outcome(Reason.CREDENTIALS_REJECTED, "A store rejects the credentials.", "S3Exception")
    judged = judge(denied, Fault(Reason.BUCKET_NOT_FOUND, "There is no bucket 'b' (spec.storage.uri): NoSuchBucket."))
    assert judged.reason is Reason.BUCKET_NOT_FOUND
    assert judged.message.startswith("There is no bucket 'b' (spec.storage.uri): NoSuchBucket.")


class Settings:
    """A session's settings."""

    def __init__(self, **values: str) -> None:
        self.values = values

    def get(self, key: str, default: str | None) -> str | None:
        return self.values.get(key, default)

    def set(self, key: str, value: str) -> None:
        self.values[key] = value

    def unset(self, key: str) -> None:
        del self.values[key]


@pytest.mark.parametrize("error", [None, ValueError()])
def test_settings_of_a_query_are_the_sessions_no_more_once_it_has_started_or_failed(error: Exception | None) -> None:
    conf: Any = Settings(a="1")
    seen: list[dict[str, str]] = []

    def start() -> Any:
        seen.append(dict(conf.values))
        if error:
            raise error

    with contextlib.suppress(ValueError):
        with_settings(conf, {"a": "2", "b": "3"}, start)
    assert seen == [{"a": "2", "b": "3"}]
    assert conf.values == {"a": "1"}


def test_the_tail_keeps_the_last_lines() -> None:
    tail = logs.Tail(lines=2)
    for line in (b"a\n", b"b\n", b"c\n"):
        tail.add(line)
    assert tail.content() == b"b\nc\n"


def test_a_termination_message_fits_and_stays_json() -> None:
    text = termination_text(Termination(Reason.APPLICATION_FAILED, "é\n" * 9000, 1), Secrets())
    assert len(text.encode()) <= TERMINATION_MESSAGE_LIMIT
    assert json.loads(text)["reason"] == "ApplicationFailed"


def test_of_thousands_of_queries_a_termination_message_names_those_that_were_started_last_and_why_it_ended() -> None:
    batches = {f"orders of day {day}": day for day in range(3000)}
    text = termination_text(
        Termination(Reason.APPLICATION_FAILED, "no such column: price", 1, batches=batches), Secrets()
    )
    assert len(text.encode()) <= TERMINATION_MESSAGE_LIMIT
    said = json.loads(text)
    assert (said["message"], len(said["batches"]) > 50) == ("no such column: price", True)
    assert sorted(said["batches"].values()) == list(range(3000 - len(said["batches"]), 3000))
    few = dict(list(batches.items())[:50])
    text = termination_text(Termination(Reason.APPLICATION_FAILED, "é\n" * 9000, 1, batches=few), Secrets())
    assert len(text.encode()) <= TERMINATION_MESSAGE_LIMIT
    assert json.loads(text)["batches"] == few


def test_waiting_backs_off_to_half_a_minute() -> None:
    waits = delays()
    assert [next(waits) for _ in range(7)] == [1, 2, 4, 8, 16, 30, 30]


def test_exit_codes_of_scripts_follow_python() -> None:
    assert outcome_of_exit(None) == COMPLETED
    assert outcome_of_exit(3).reason is Reason.APPLICATION_FAILED


def executor_pod(name: str, owner: str = "this", *, controller: bool = True) -> dict[str, Any]:
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": "a-driver", "uid": owner, "controller": controller}]
    return {"metadata": {"name": name, "uid": f"uid of {name}", "ownerReferences": owners}}


def test_only_this_epochs_executors_are_leftovers() -> None:
    pods = {"items": [executor_pod(name) for name in ("a-e3-exec-1", "a-e2-exec-1", "b-e3-exec-1")]}
    assert leftovers(pods, "a-e3", "this") == {"a-e3-exec-1": "uid of a-e3-exec-1"}


def test_pods_that_only_look_like_this_drivers_executors_are_left_alone() -> None:
    unowned = {"metadata": {"name": "a-e3-exec-4", "uid": "u", "labels": {"spark-role": "executor"}}}
    others = [executor_pod("a-e3-exec-1", "another"), executor_pod("a-e3-exec-2", controller=False), unowned]
    assert leftovers({"items": others}, "a-e3", "this") == {}
    assert leftovers({"items": [executor_pod("a-e3-exec-1", "")]}, "a-e3", "") == {}


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("http://minio:9000", "us-east-1"), ("HTTP://MinIO:9000/", "eu-west-1")),
        (("http://minio:80", ""), ("http://minio", "")),
        (("https://minio:443/", ""), ("https://minio", "")),
        (("", "us-east-1"), ("https://s3.eu-west-1.amazonaws.com", "eu-west-1")),
        (("", "eu-west-1"), ("https://bucket.vpce-1.s3.eu-west-1.vpce.amazonaws.com:443", "")),
        (("", "cn-north-1"), ("https://s3.cn-north-1.amazonaws.com.cn", "")),
        (("", "us-gov-west-1"), ("https://s3.us-gov-west-1.amazonaws.com", "")),
    ],
)
def test_one_store_has_many_spellings(one: tuple[str, str], other: tuple[str, str]) -> None:
    assert store_identity(*one) == store_identity(*other)
    assert Storage("s3://b/p/", *one).is_same_place(Storage("s3://b/p", *other))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("http://minio:9000", ""), ("http://minio:9001", "")),
        (("http://minio.east", ""), ("http://minio.west", "")),
        (("http://minio/a", ""), ("http://minio/A", "")),
        (("", "us-east-1"), ("", "cn-north-1")),
        (("", "us-east-1"), ("https://s3.amazonaws.com.example", "")),
        (("", "us-east-1"), ("http://minio:9000", "us-east-1")),
        (("[::1]:9000", ""), ("http://[::2]:9000", "")),
    ],
)
def test_stores_that_are_not_one_are_told_apart_whatever_their_buckets_are_called(
    one: tuple[str, str], other: tuple[str, str]
) -> None:
    assert not Storage("s3://b/p", *one).is_same_place(Storage("s3://b/p", *other))


@pytest.mark.parametrize(("failed", "reason"), [(False, Reason.COMPLETED), (True, Reason.APPLICATION_FAILED)])
def test_a_jvm_that_ends_well_completes_the_application_unless_it_took_a_query_with_it(
    failed: bool, reason: Reason
) -> None:
    progress = Progress(driver_config("orders", "local:///main.py", Storage(uri="s3://streams/orders")))
    progress.query_started("counts")
    progress.query_ended("counts", 3, failed=failed)
    assert jvm_outcome(0, progress).reason is reason


def test_a_jvm_whose_end_is_not_known_has_crashed_and_the_message_says_why_it_is_not_known() -> None:
    progress = Progress(driver_config("orders", "local:///main.py", Storage(uri="s3://streams/orders")))
    outcome = jvm_outcome(EXIT_NOT_KNOWN, progress)
    assert (outcome.reason, outcome.exception) == (Reason.DRIVER_CRASHED, "JvmExited")
    assert "jvm_parent.py" in outcome.message
    assert "if the script kills processes" in outcome.message
    assert str(EXIT_NOT_KNOWN) not in outcome.message
