"""Which settings of a script are used, what becomes of them, and what is kept of them for the next process. Pure."""

import dataclasses
from pathlib import Path

import pytest

from tidegate_spark.contract.owned_settings import OWNED_KEYS, OWNED_STARTS
from tidegate_spark.contract.protocol import ExecutorSettings, Storage
from tidegate_spark.driver.script.script_settings import judge
from tidegate_spark.jvm import last_script
from tidegate_spark.jvm.last_script import Asked
from tidegate_spark.process.environment import Environment
from tidegate_spark.process.spark import s3a_settings
from tidegate_spark.process.spark.sparkconf import CONTAINER_NAME, STATE_STORE, build_spark_conf, ignored_keys
from tidegate_testing.driver_process import driver_config

S3A = "spark.hadoop.fs.s3a"
PLACE = Storage("s3://bucket/apps/shop/orders", "http://s3:9000", "eu-1", True)
EXECUTOR = ExecutorSettings(2, "image", "IfNotPresent", "account", "orders-e1", heap_mib=1200, overhead_mib=800)
CONFIG = driver_config(
    "orders", "local:///opt/main.py", PLACE, executor=EXECUTOR, spark_conf={"spark.sql.session.timeZone": "UTC"}
)
IN_A_POD = Environment.read({"TIDEGATE_POD_IP": "10.0.0.7"})


def conf_with(**asked: str) -> dict[str, str]:
    settings = {key.replace("_", "."): value for key, value in asked.items()}
    return build_spark_conf(CONFIG, IN_A_POD, "process", judge(settings, CONFIG).used)


@pytest.mark.parametrize(
    "key",
    [
        "spark.serializer",
        "spark.sql.extensions",
        "spark.sql.catalog.lake",
        "spark.jars",
        "spark.jars.packages",
        "spark.driver.extraJavaOptions",
        "spark.sql.streaming.stopTimeout",
        "spark.app.name",
        "spark.local.dir",
        STATE_STORE,
        f"{S3A}.endpoint",
        f"{S3A}.bucket.inputs.endpoint",
        f"{S3A}.bucket.bucket.threads.max",
        f"{S3A}.bucket.bucket.with.dots.endpoint",
        f"{S3A}.encryption.algorithm",
        "spark.kubernetes.executor.label.team",
    ],
)
def test_a_setting_that_nobody_owns_is_in_force_and_beats_the_defaults(key: str) -> None:
    judged = judge({key: "mine"}, CONFIG)
    assert judged.unused == ()
    assert build_spark_conf(CONFIG, IN_A_POD, "process", judged.used)[key] == "mine"


def test_no_setting_that_an_older_schema_let_pass_is_used_and_each_is_reported() -> None:
    keys = [*OWNED_KEYS, *(f"{start}x" for start in OWNED_STARTS)]
    keys.remove(CONTAINER_NAME)
    passed = dataclasses.replace(CONFIG, spark_conf=dict.fromkeys(keys, "passed"))
    assert "passed" not in build_spark_conf(passed, IN_A_POD, "process").values()
    assert ignored_keys(passed) == tuple(sorted(keys))


def test_the_spec_beats_the_script_which_is_told_so_where_they_differ() -> None:
    judged = judge({"spark.sql.session.timeZone": "Asia/Tokyo"}, CONFIG)
    assert judged.used == {}
    assert [(each.key, each.owned) for each in judged.unused] == [("spark.sql.session.timeZone", False)]
    assert judge({"spark.sql.session.timeZone": "UTC"}, CONFIG).unused == ()


@pytest.mark.parametrize(
    "key",
    [
        *(key for key in OWNED_KEYS if key not in s3a_settings.FOR_ALL),
        *(f"{start}x" for start in OWNED_STARTS),
        "spark.driver.memory",
        "spark.executorEnv.AWS_ACCESS_KEY_ID",
        "spark.kubernetes.executor.label.tidegate.dev/app",
        f"{S3A}.bucket.bucket.endpoint",
        f"{S3A}.bucket.bucket.encryption.algorithm",
        f"{S3A}.bucket.bucket.server-side-encryption-algorithm",
        f"{S3A}.bucket.bucket.access.key",
        "fs.s3a.bucket.bucket.endpoint",
    ],
)
def test_a_setting_that_a_field_owns_or_that_has_no_effect_is_not_used_and_named(key: str) -> None:
    judged = judge({key: "x", "spark.serializer": "y"}, CONFIG)
    assert judged.used == {"spark.serializer": "y"}
    assert [(each.key, bool(each.why)) for each in judged.unused] == [(key, True)]


def test_a_value_that_may_be_a_secret_is_not_shown() -> None:
    secret = judge({"spark.kubernetes.driverEnv.DB_PASSWORD": "hunter2-hunter2"}, CONFIG).unused
    assert [each.shown for each in secret] == [""]
    plain = judge({"spark.executor.instances": "3"}, CONFIG).unused
    assert [each.shown for each in plain] == ["3"]


def test_no_script_labels_executors_that_go_as_anothers() -> None:
    key = "spark.kubernetes.executor.decommissionLabel"
    assert judge({key: "tidegate.dev/app"}, CONFIG).used == {}
    assert judge({key: "going"}, CONFIG).used == {key: "going"}


@pytest.mark.parametrize(
    ("heap", "off_heap", "overhead"), [("600m", None, 1400), ("1g", None, 976), ("600m", "200m", 1200)]
)
def test_an_executor_takes_the_memory_of_the_spec_whatever_heap_the_script_gives_it(
    heap: str, off_heap: str | None, overhead: int
) -> None:
    asked = {"spark.executor.memory": heap}
    if off_heap is not None:
        asked |= {"spark.memory.offHeap.enabled": "true", "spark.memory.offHeap.size": off_heap}
    conf = build_spark_conf(CONFIG, IN_A_POD, "process", judge(asked, CONFIG).used)
    assert (conf["spark.executor.memory"], conf["spark.executor.memoryOverhead"]) == (heap, f"{overhead}m")


@pytest.mark.parametrize("heap", ["3g", "2000m", "100m", "much"])
def test_a_heap_that_does_not_fit_into_the_memory_of_the_spec_is_not_used(heap: str) -> None:
    judged = judge({"spark.executor.memory": heap}, CONFIG)
    assert ([each.key for each in judged.unused], judged.used) == (["spark.executor.memory"], {})
    assert conf_with(spark_executor_memory=heap)["spark.executor.memoryOverhead"] == "800m"


@pytest.mark.parametrize(
    "key",
    [
        f"{S3A}.bucket.bucket.secret.key",
        f"{S3A}.bucket.bucket.client.s3.custom.headers",
        "spark.executorEnv.AWS_SECRET_ACCESS_KEY",
    ],
)
def test_what_may_be_a_key_to_the_storage_is_named_and_not_shown_however_short_it_is(key: str) -> None:
    (unused,) = judge({key: "minio12"}, CONFIG).unused
    assert (unused.key, unused.shown) == (key, "")


def test_a_setting_of_the_spec_that_is_not_used_leaves_the_scripts_alone() -> None:
    of_before = dataclasses.replace(CONFIG, spark_conf={f"{S3A}.endpoint": "http://of-the-spec"})
    judged = judge({f"{S3A}.endpoint": "http://of-the-inputs"}, of_before)
    assert (judged.unused, judged.used) == ((), {f"{S3A}.endpoint": "http://of-the-inputs"})


def test_the_path_to_the_applications_own_storage_is_the_specs_whatever_is_said_of_s3a() -> None:
    asked = {
        f"{S3A}.endpoint": "http://elsewhere",
        f"{S3A}.aws.credentials.provider": "org.example.Other",
        f"{S3A}.proxy.host": "of-the-inputs",
    }
    conf = build_spark_conf(CONFIG, IN_A_POD, "process", judge(asked, CONFIG).used)
    own = f"{S3A}.bucket.bucket."
    of_the_bucket = {key.removeprefix(own): value for key, value in conf.items() if key.startswith(own)}
    # Of what nobody names nothing is said: the image's own configuration may have a proxy or a key for all buckets.
    assert of_the_bucket == {
        "proxy.host": "",
        "endpoint": "http://s3:9000",
        "endpoint.region": "eu-1",
        "path.style.access": "true",
        "connection.ssl.enabled": "false",
        "aws.credentials.provider": s3a_settings.ENVIRONMENT_CREDENTIALS,
    }
    assert conf[f"{S3A}.endpoint"] == "http://elsewhere"


def test_keys_that_a_script_names_for_its_inputs_come_before_those_of_the_storage() -> None:
    conf = conf_with()
    first = [s3a_settings.TEMPORARY_KEYS, s3a_settings.NAMED_KEYS, s3a_settings.ENVIRONMENT_CREDENTIALS]
    assert conf[s3a_settings.PROVIDER].split(",") == first
    # Otherwise Spark puts the storage's there, from the variables.
    assert {conf[key] for key in s3a_settings.KEYS} == {""}
    named = dict(zip(s3a_settings.KEYS, ("key", "secret"), strict=False))
    conf = build_spark_conf(CONFIG, IN_A_POD, "process", judge(named, CONFIG).used)
    assert [conf[key] for key in s3a_settings.KEYS] == ["key", "secret", ""]


def test_a_script_that_names_a_provider_has_the_keys_that_spark_finds_for_it() -> None:
    conf = conf_with(spark_hadoop_fs_s3a_aws_credentials_provider="org.example.Other")
    assert conf.keys().isdisjoint(s3a_settings.KEYS)


def test_another_store_for_all_buckets_has_none_of_what_belongs_to_the_storage() -> None:
    conf = conf_with(spark_hadoop_fs_s3a_endpoint="https://elsewhere")
    gone = {f"{S3A}.{name}" for name in ("endpoint.region", "path.style.access", "connection.ssl.enabled")}
    assert conf.keys().isdisjoint(gone)
    same = conf_with(spark_hadoop_fs_s3a_endpoint="http://s3:9000")
    assert gone <= same.keys()


def test_a_spec_that_says_how_the_storage_is_reached_is_obeyed_for_its_bucket() -> None:
    provider = f"{S3A}.aws.credentials.provider"
    config = dataclasses.replace(CONFIG, spark_conf={provider: "org.example.Ours"})
    conf = build_spark_conf(config, IN_A_POD, "process")
    assert conf[f"{S3A}.bucket.bucket.aws.credentials.provider"] == "org.example.Ours"
    way = {f"{S3A}.proxy.host": "proxy", f"{S3A}.assumed.role.arn": "arn", f"{S3A}.bucket.bucket.threads.max": "3"}
    conf = build_spark_conf(dataclasses.replace(CONFIG, spark_conf=way), IN_A_POD, "process")
    own = ("proxy.host", "assumed.role.arn", "threads.max")
    assert [conf[f"{S3A}.bucket.bucket.{name}"] for name in own] == ["proxy", "arn", "3"]
    aws = dataclasses.replace(CONFIG, storage=Storage("s3://bucket/apps/shop/orders"))
    conf = build_spark_conf(aws, IN_A_POD, "process")
    assert conf[f"{S3A}.bucket.bucket.endpoint"] == ""
    assert f"{S3A}.endpoint" not in conf


# --- the next process ------------------------------------------------------------------------------------------------


def test_what_a_script_asked_for_is_there_for_the_next_process_of_the_pod_and_no_secret(tmp_path: Path) -> None:
    last_script.keep(str(tmp_path), Asked({"spark.serializer": "x", "spark.my.password": "hunter2hunter2"}))
    assert last_script.read(str(tmp_path)) == Asked({"spark.serializer": "x"})
    assert "hunter2" not in (tmp_path / last_script.NAME).read_text()


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"settings": 3}'])
def test_what_cannot_be_read_is_as_nothing(tmp_path: Path, content: str) -> None:
    (tmp_path / last_script.NAME).write_text(content)
    assert last_script.read(str(tmp_path)) == Asked()


OWN = "fs.s3a.bucket.bucket."


def test_what_hadoop_has_at_the_start_is_said_of_the_own_bucket_so_that_nothing_said_later_for_all_reaches_it() -> None:
    of_the_image = {"fs.s3a.proxy.host": "of-the-image", f"{OWN}endpoint": "http://s3:9000", "fs.s3a.endpoint": "other"}
    rest = s3a_settings.rest_of_path(CONFIG.storage, of_the_image.get)
    assert rest.keys() == {f"{OWN}{name}" for name in s3a_settings.PATH} - {f"{OWN}endpoint"}
    assert rest[f"{OWN}proxy.host"] == "of-the-image"
    assert rest[f"{OWN}acl.default"] == s3a_settings.PATH["acl.default"]


@pytest.mark.parametrize("where", ["fs.s3a.", OWN])
def test_encryption_under_its_former_names_is_kept_for_the_own_bucket(where: str) -> None:
    image = {f"{where}server-side-encryption-algorithm": "SSE-KMS", f"{where}server-side-encryption.key": "arn"}
    rest = s3a_settings.rest_of_path(CONFIG.storage, image.get)
    assert (rest[f"{OWN}encryption.algorithm"], rest[f"{OWN}encryption.key"]) == ("SSE-KMS", "arn")


@pytest.mark.parametrize("store", ["hadoop.", "fs.s3a.", OWN])
def test_encryption_that_a_credential_store_may_hold_is_not_said_to_be_none(store: str) -> None:
    image = {f"{store}security.credential.provider.path": "localjceks://file/etc/keys.jceks"}
    rest = s3a_settings.rest_of_path(CONFIG.storage, image.get)
    names = {name.removeprefix(f"{OWN}encryption.") for name in rest if name.startswith(f"{OWN}encryption.")}
    assert names == set()
    # What a setting shows is said of the own bucket all the same.
    rest = s3a_settings.rest_of_path(CONFIG.storage, (image | {"fs.s3a.encryption.algorithm": "SSE-KMS"}).get)
    assert rest[f"{OWN}encryption.algorithm"] == "SSE-KMS"


def test_another_class_for_s3a_is_not_used_for_no_bucket_has_one_of_its_own() -> None:
    usual = {f"{S3A}.impl": "org.apache.hadoop.fs.s3a.S3AFileSystem"}
    assert judge(usual, CONFIG).unused == ()
    (unused,) = judge({f"{S3A}.impl": "com.example.OtherFileSystem"}, CONFIG).unused
    assert (unused.key, unused.shown) == (f"{S3A}.impl", "com.example.OtherFileSystem")
    of_the_spec = dataclasses.replace(CONFIG, spark_conf={f"{S3A}.impl": "com.example.OtherFileSystem"})
    assert judge({f"{S3A}.impl": "com.example.OtherFileSystem"}, of_the_spec).unused == ()
