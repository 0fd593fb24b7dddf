"""What a program asks for is read from the source as Spark wants it. Without a JVM."""

import functools
import itertools
from collections.abc import AsyncIterator, Callable, Iterator
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession

from tidegate_spark.control.messages import handlers
from tidegate_spark.control.messages.validation import Vocabulary
from tidegate_spark.control.worker import program


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


@pytest.mark.parametrize(
    "said",
    [
        lambda: handlers.on(cast(Any, print)),  # @control.on without parentheses
        lambda: handlers.on_driver(cast(Any, print)),
        lambda: handlers.on("mode", schema=cast(Any, {"name": "str"})),
        lambda: handlers.on_driver("mode", schema=cast(Any, {"names": list[str]})),
        lambda: handlers.accept("mode", schema=cast(Any, ["name"])),
        lambda: handlers.accept("mode", schema=cast(Any, {"name": str | None})),
        lambda: handlers.accept("mode", schema=cast(Any, {"name": Any})),
        lambda: handlers.config(limit=cast(Any, 3.0)),
    ],
)
def test_what_no_message_could_be_judged_by_is_refused_where_it_is_said(said: Callable[[], object]) -> None:
    with pytest.raises(TypeError):
        said()
    assert handlers.declared().vocabulary() == Vocabulary({}, config={})


def refill(message: handlers.Message) -> str:
    return "refilled"


def empty(message: handlers.Message) -> str:
    return "emptied"


class Refill:
    """An object that is called."""

    def __call__(self, message: handlers.Message) -> None: ...


def timed(function: Callable[..., str]) -> Callable[..., str]:
    @functools.wraps(function)
    def call(message: handlers.Message) -> str:
        return function(message)

    return call


@pytest.mark.parametrize("declare", [handlers.on, handlers.on_driver])
@pytest.mark.parametrize(
    ("first", "second"),
    [
        (refill, empty),
        (timed(refill), timed(empty)),
        (functools.partial(refill), empty),
        (lambda message: 1, lambda message: 2),
        (Refill(), print),
    ],
    ids=["functions", "decorated", "partial", "lambdas", "object"],
)
def test_a_second_function_for_a_type_is_refused_because_the_first_would_not_be_called(
    declare: Any, first: Any, second: Any
) -> None:
    declare("table")(first)
    with pytest.raises(ValueError, match="'table' have a handler already"):
        declare("table")(second)
    declare("other")(second)
    declared = handlers.declared()
    assert [handler.function for handler in {**declared.on_worker, **declared.on_driver}.values()] == [first, second]


def defined(text: str, file: str, module: str) -> Any:
    names: dict[str, Any] = {"__name__": module}
    exec(compile(text, file, "exec"), names)
    return names["refill"]


REFILL = "def refill(message):\n    return {}\n"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (refill, refill),
        (functools.partial(refill), functools.partial(refill)),
        (defined(REFILL, "cell 1", "__main__"), defined(f"\n{REFILL}    # changed\n", "cell 2", "__main__")),
        (defined(REFILL, "app.py", "__main__"), defined(REFILL, "app.py", "app")),
    ],
    ids=["loop", "partial", "cell", "script that is imported"],
)
@pytest.mark.parametrize("declare", [handlers.on, handlers.on_driver])
def test_the_same_function_may_be_declared_again_and_the_last_one_counts(declare: Any, first: Any, second: Any) -> None:
    declare("table")(first)
    declare("table")(second)
    declared = handlers.declared()
    assert [handler.function for handler in {**declared.on_worker, **declared.on_driver}.values()] == [second]


def test_a_type_may_have_a_handler_in_the_workers_and_one_in_the_driver() -> None:
    handlers.on("table")(refill)
    handlers.on_driver("table")(empty)
    assert handlers.declared().vocabulary().types == {"table": None}


async def later(message: handlers.Message) -> None:
    """Do something, for whoever awaits it."""


async def records(message: handlers.Message) -> AsyncIterator[None]:
    """Likewise."""
    yield


class Later:
    """Likewise."""

    async def __call__(self, message: handlers.Message) -> None:
        """Likewise."""


@pytest.mark.parametrize("declare", [handlers.on, handlers.on_driver])
@pytest.mark.parametrize("function", [later, functools.partial(later), records, Later(), classmethod(print), None])
def test_a_handler_that_would_do_nothing_when_it_is_called_is_refused(
    declare: Callable[[str], Callable[[Any], Any]], function: Any
) -> None:
    """Its messages were Done."""
    with pytest.raises(TypeError, match="a handler is "):
        declare("mode")(function)
    assert handlers.declared().vocabulary() == Vocabulary({}, config={})


@pytest.mark.parametrize("order", tuple(itertools.permutations(range(3))))
def test_a_payload_must_have_what_any_handler_of_its_type_needs_in_whatever_order_that_is_said(
    order: tuple[int, ...],
) -> None:
    said: list[Callable[[], object]] = [
        lambda: handlers.on("mode", schema={"name": str})(print),
        lambda: handlers.on_driver("mode", schema={"since": float})(print),
        lambda: handlers.accept("mode"),
    ]
    for number in order:
        said[number]()
    assert handlers.declared().vocabulary().types == {"mode": {"name": str, "since": float}}


def test_types_are_said_by_name_or_by_a_mapping() -> None:
    handlers.accept("mode", schema={"name": str, "since": float})
    handlers.config({"too-late": float}, limit=float, alerts=dict)
    said = handlers.declared().vocabulary()
    assert said.types == {"mode": {"name": str, "since": float}}
    assert said.config == {"too-late": float, "limit": float, "alerts": dict}
