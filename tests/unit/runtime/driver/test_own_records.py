"""What libraries log while the runtime works stays out of the script's logging, and nothing else does."""

import functools
import logging
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from py4j.java_gateway import PythonProxyPool

import tidegate_spark
from tidegate_spark.contract.protocol import Storage
from tidegate_spark.driver.script.own_records import keep_apart
from tidegate_spark.monitoring.listener import SparkCalls
from tidegate_spark.process.progress import Progress
from tidegate_testing.driver_process import driver_config

Call = Callable[[], None]
RUNTIME = "tidegate_spark.monitoring.watch"


class Records(logging.Handler):
    """The script's handler."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.seen: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.seen.append(record.getMessage())


@pytest.fixture
def records(monkeypatch: pytest.MonkeyPatch) -> Iterator[Records]:
    monkeypatch.setattr(logging.Logger, "isEnabledFor", logging.Logger.isEnabledFor)
    keep_apart()
    root, handler = logging.getLogger(), Records()
    before = root.level
    root.addHandler(handler)
    root.setLevel(logging.DEBUG)
    yield handler
    root.removeHandler(handler)
    root.setLevel(before)


def within(module: str, call: Call, name: str = "work", **known: Any) -> Call:
    """Return a function of a module, as the stack has it, that calls ``call``; ``known``: its variables."""
    folder = Path(tidegate_spark.__file__).parent if module.startswith("tidegate_spark") else Path("/site-packages")
    given = "".join(f"    {each} = given[{each!r}]\n" for each in known)
    names: dict[str, Any] = {"__name__": module, "given": known, "call": call}
    exec(compile(f"def {name}():\n{given}    call()\n", str(folder / "file.py"), "exec"), names)
    function: Call = names[name]
    return function


def logged(text: str, level: int = logging.INFO, logger: str = "py4j.clientserver") -> Call:
    return within("py4j.clientserver", functools.partial(logging.getLogger(logger).log, level, text))


def through(modules: list[str], call: Call) -> Call:
    """Return a call through these modules, the outermost first."""
    for module in reversed(modules):
        call = within(module, call)
    return call


def in_thread(call: Call) -> None:
    thread = threading.Thread(target=call)
    thread.start()
    thread.join()


@pytest.mark.parametrize(
    ("modules", "seen"),
    [
        ([RUNTIME], False),
        ([RUNTIME, "pyspark.sql.streaming.query"], False),
        ([RUNTIME, "boto3.s3.transfer", "botocore.client", "concurrent.futures.thread"], False),
        (["__main__", RUNTIME], False),
        (["__main__"], True),
        (["__main__", "pyspark.sql.session"], True),
        (["__main__", RUNTIME, "pyspark.sql.streaming.readwriter"], True),
        ([RUNTIME, "__main__", "a_library_of_the_script"], True),
        (["concurrent.futures.thread", "botocore.client"], True),
    ],
)
def test_a_librarys_record_is_shown_if_the_script_has_called_it(
    records: Records, modules: list[str], seen: bool
) -> None:
    in_thread(through(modules, logged("Command to send")))
    assert (records.seen == ["Command to send"]) is seen


def test_a_warning_of_a_library_is_shown_whoever_has_called_it(records: Records) -> None:
    in_thread(within(RUNTIME, logged("The pool is full.", logging.WARNING, "urllib3.connectionpool")))
    assert records.seen == ["The pool is full."]


def test_handlers_find_whoever_has_logged_where_they_are_without_us(records: Records) -> None:
    """As loguru's recipe for handlers goes: out of the frames of ``logging``, the next one is it."""
    import inspect  # noqa: PLC0415 - here alone

    found: list[str] = []

    def emit(record: logging.LogRecord) -> None:
        frame = inspect.currentframe()
        while frame is not None and frame.f_code.co_filename in {__file__, logging.__file__}:
            found.append(frame.f_code.co_name)
            frame = frame.f_back

    records.emit = emit  # type: ignore[method-assign] # its frame comes first
    logging.getLogger("script").info("here")
    names = ["emit", "handle", "callHandlers", "handle", "_log", "info"]
    assert found[: len(names)] == names
    assert found[len(names)] == "test_handlers_find_whoever_has_logged_where_they_are_without_us"


class BatchFunction:
    """What PySpark has the JVM call for a function of the script's."""


def listener() -> SparkCalls:
    return SparkCalls(Progress(driver_config("orders", "local:///main.py", Storage("s3://streams/apps"))))


@pytest.mark.parametrize(("called", "seen"), [(listener(), False), (BatchFunction(), True)])
def test_a_call_from_the_jvm_is_shown_if_it_is_to_an_object_of_the_script(
    records: Records, called: object, seen: bool
) -> None:
    pool = PythonProxyPool()
    pool.put(listener())
    name = pool.put(called)
    connection = SimpleNamespace(pool=pool)
    call = logged(f"Received command c on object id {name}")
    in_thread(within("py4j.clientserver", call, "wait_for_commands", self=connection, obj_id=name))
    assert bool(records.seen) is seen


@pytest.mark.parametrize(("others", "seen"), [([], False), ([BatchFunction()], True)])
def test_that_the_server_for_calls_is_there_is_shown_if_the_script_can_be_called(
    records: Records, others: list[object], seen: bool
) -> None:
    pool = PythonProxyPool()
    for each in [listener(), *others]:
        pool.put(each)
    ready = logged("Python Server ready to receive messages")
    in_thread(within("py4j.clientserver", ready, "wait_for_commands", self=SimpleNamespace(pool=pool)))
    assert bool(records.seen) is seen


def test_that_objects_in_the_jvm_are_ended_is_not_shown(records: Records) -> None:
    in_thread(within("py4j.clientserver", logged("Command to send: m"), "run", self=SimpleNamespace()))
    assert records.seen == []
