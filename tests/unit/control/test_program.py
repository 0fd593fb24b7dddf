"""What a program asks for is read from the source as Spark wants it. Without a JVM."""

from collections.abc import Iterator
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from tidegate_spark.control import handlers, program


class Session:
    """A session that says how its stream was read."""

    def __init__(self, **settings: str) -> None:
        self.settings, self.read = settings, [""]
        self.conf = self.readStream = self

    def get(self, key: str, default: str) -> str:
        return self.settings.get(key.rpartition(".")[2], default)

    def format(self, name: str) -> "Session":
        self.read = [name]
        return self

    def name(self, name: str) -> "Session":
        self.read.append(name)
        return self

    def load(self) -> "Session":
        return self


class Host:
    """A driver."""

    def serve(self, session: SparkSession) -> None:
        """Do nothing."""


@pytest.fixture(autouse=True)
def hosted(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setattr(handlers, "_declared", handlers.Declared())
    program.hosted_by(Host())
    yield
    program.hosted_by(None)


@pytest.mark.parametrize(
    ("settings", "read"),
    [
        ({}, ["tidegate-control"]),
        ({"enableSourceEvolution": "false"}, ["tidegate-control"]),
        ({"enableSourceEvolution": "true"}, ["tidegate-control", "tidegate_control"]),
    ],
)
def test_the_source_has_a_name_where_all_sources_must_have_one(settings: dict[str, str], read: list[str]) -> None:
    session = Session(**settings)
    assert cast(Any, program.stream(cast(Any, session))) is session
    assert session.read == read
