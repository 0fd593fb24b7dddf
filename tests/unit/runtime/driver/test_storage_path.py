"""What a script sets late leaves the path to the application's own storage as it is. The JVM is a stand-in."""

from types import SimpleNamespace
from typing import Any, cast

import pytest
from py4j.java_gateway import JavaMember
from pyspark import SparkContext

from tidegate_spark.contract.protocol import Storage
from tidegate_spark.driver.script.storage_path import StoragePath
from tidegate_spark.process.progress import Progress
from tidegate_testing.driver_process import driver_config

STORAGE = Storage("s3://own/apps/orders", endpoint="http://store:9000")
OWN, OTHER = "fs.s3a.bucket.own.", "fs.s3a.bucket.other."
ANOTHER_CLASS = "org.example.NoFileSystem"


class Props(dict[str, str]):
    """A map of the JVM's."""

    def equals(self, other: object) -> bool:
        return self == other


class Hadoop:
    """A configuration of Hadoop's in the JVM."""

    def __init__(self, **settings: str) -> None:
        self.settings = dict(settings)

    def equals(self, other: object) -> bool:
        return self is other

    def get(self, key: str) -> str | None:
        return self.settings.get(key)

    def _set(self, key: str, value: object) -> None:
        self.settings[key] = str(value).lower() if isinstance(value, bool) else str(value)

    def __getattr__(self, name: str) -> Any:
        if name in {"set", "setBoolean", "setInt"}:
            return self._set
        raise AttributeError(name)

    def unset(self, key: str) -> None:
        self.settings.pop(key, None)

    def getPropsWithPrefix(self, prefix: str) -> Props:  # noqa: N802 - Hadoop's name
        return Props({k.removeprefix(prefix): v for k, v in self.settings.items() if k.startswith(prefix)})


class Script:
    """A script that has Spark, and calls Java by PySpark's own bridge."""

    def __init__(self, **image: str) -> None:
        self.progress = Progress(driver_config("orders", "local:///main.py", STORAGE))
        self.hadoop = Hadoop(**image)
        self.path = StoragePath(STORAGE, self.progress)
        jvm: Any = SimpleNamespace()
        files = SimpleNamespace(get=lambda uri, conf: None)
        jvm.org = SimpleNamespace(apache=SimpleNamespace(hadoop=SimpleNamespace(fs=SimpleNamespace(FileSystem=files))))
        jvm.java = SimpleNamespace(net=SimpleNamespace(URI=str))
        context = SimpleNamespace(_jsc=SimpleNamespace(hadoopConfiguration=lambda: self.hadoop), _jvm=jvm)
        self.path.reach(cast(SparkContext, context))
        self.began = dict(self.hadoop.settings)

    def calls(self, name: str, *args: object, of: Hadoop | None = None) -> None:
        member: Any = JavaMember.__new__(JavaMember)
        member.name, member.container = name, of or self.hadoop
        member(*args)

    @property
    def said(self) -> list[str]:
        return [notice.message.partition(" ")[0] for notice in self.progress.report().notices]


@pytest.fixture(autouse=True)
def bridge(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have calls of Java arrive at the stand-in; what the path does to the bridge ends with the test."""
    monkeypatch.setattr(
        JavaMember, "__call__", lambda member, *args: getattr(member.container, member.name)(*args), raising=True
    )


@pytest.mark.parametrize(
    ("call", "key", "value"),
    [
        ("set", f"{OWN}endpoint", ("http://elsewhere",)),
        ("set", f"{OWN}aws.credentials.provider", ("org.example.Mine",)),
        ("set", f"{OWN}access.key", ("mine",)),
        ("setBoolean", f"{OWN}path.style.access", (True,)),
        ("setInt", f"{OWN}proxy.port", (1,)),
        ("unset", f"{OWN}endpoint", ()),
        ("set", "fs.s3a.impl", (ANOTHER_CLASS,)),
    ],
)
def test_a_call_that_would_lead_elsewhere_while_queries_run_is_left_out_and_named(
    call: str, key: str, value: tuple[object, ...]
) -> None:
    script = Script(**{f"{OWN}endpoint": "http://store:9000"})
    script.calls(call, key, *value)
    assert script.hadoop.settings == script.began
    assert script.said == [key]


def test_settings_of_other_buckets_of_all_buckets_and_of_speed_are_the_scripts() -> None:
    script = Script()
    wanted = {f"{OTHER}endpoint": "http://other", "fs.s3a.endpoint": "http://other", f"{OWN}threads.max": "9"}
    for key, value in wanted.items():
        script.calls("set", key, value)
    script.calls("set", "fs.s3a.impl", "org.apache.hadoop.fs.s3a.S3AFileSystem")
    assert script.hadoop.settings.items() >= wanted.items()
    assert script.said == []


def test_what_the_path_is_already_may_be_said_again() -> None:
    script = Script(**{"fs.s3a.impl": ANOTHER_CLASS, f"{OWN}path.style.access": "true"})
    script.calls("set", "fs.s3a.impl", ANOTHER_CLASS)
    script.calls("setBoolean", f"{OWN}path.style.access", True)
    script.calls("unset", f"{OWN}access.key")
    assert (script.hadoop.settings, script.said) == (script.began, [])


def test_a_configuration_of_the_scripts_own_is_its_own() -> None:
    script, own = Script(), Hadoop()
    script.calls("set", f"{OWN}endpoint", "http://elsewhere", of=own)
    assert own.settings == {f"{OWN}endpoint": "http://elsewhere"}
    assert script.said == []


def test_what_code_in_a_jar_changes_is_put_right_at_the_next_look() -> None:
    script = Script(**{f"{OWN}endpoint": "http://store:9000"})
    script.hadoop.settings |= {f"{OWN}endpoint": "http://elsewhere", f"{OWN}secret.key": "x", "fs.s3a.impl": "y"}
    script.hadoop.settings["fs.s3a.endpoint"] = "http://other"
    script.path.hold_context()
    assert script.hadoop.settings == script.began | {"fs.s3a.endpoint": "http://other"}
    assert sorted(script.said) == [f"{OWN}endpoint", f"{OWN}secret.key", "fs.s3a.impl"]


def test_nothing_is_looked_at_before_there_is_spark() -> None:
    progress = Progress(driver_config("orders", "local:///main.py", STORAGE))
    StoragePath(STORAGE, progress).hold_context()
