"""An exit inside a batch's function fails the query and says so. Spark's own function, with a stand-in for a batch."""

import os
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

import pytest
from pyspark.sql import SparkSession
from pyspark.sql.utils import ForeachBatchFunction

from tidegate_spark.driver.script.end import script_end
from tidegate_spark.driver.script.script_entry import ScriptRefusedError
from tidegate_spark.process.faults.foreign_text import python_error_in
from tidegate_spark.queries.refusals import DriverStoppingError, QueryRefusedError

INSIDE = "inside a batch, which is not committed; the next start runs it again."


@pytest.fixture(autouse=True)
def guarded(monkeypatch: pytest.MonkeyPatch) -> None:
    # Spark's own function looks for these, and gives the script a frame of a session.
    monkeypatch.setattr("pyspark.sql.session.SparkSession", lambda context, java: None)
    monkeypatch.setattr("pyspark.sql.dataframe.DataFrame", lambda java, session: None)
    monkeypatch.setattr(ForeachBatchFunction, "call", ForeachBatchFunction.call)
    script_end.guard_batches()


def run_batch(function: Callable[[Any, int], None]) -> None:
    """Call a function as the JVM does for a batch."""
    java: Any = SimpleNamespace(sparkSession=lambda: None)
    ForeachBatchFunction(cast(SparkSession, SimpleNamespace(sparkContext=None)), function).call(java, 1)


def leave(error: BaseException) -> Callable[[Any, int], None]:
    def function(frame: Any, number: int) -> None:
        raise error

    return function


@pytest.mark.parametrize(
    ("code", "said"), [(3, "sys.exit(3)"), (0, "sys.exit(0)"), (None, "sys.exit(None)"), ("no\nrows", r"'no\nrows'")]
)
def test_an_exit_inside_a_batch_with_any_code_is_an_error_that_the_jvm_is_given_in_words(
    code: object, said: str
) -> None:
    with pytest.raises(script_end.ExitInsideBatchError) as caught:
        run_batch(leave(SystemExit(code)))
    text = f"Py4JException: Traceback (most recent call last):\n  …\n{type(caught.value).__name__}: {caught.value}\n"
    found = python_error_in(text)
    assert found is not None
    assert said in found[1]
    assert INSIDE in found[1]


def test_an_exit_for_an_error_that_the_function_has_handled_names_the_error() -> None:
    def function(frame: Any, number: int) -> None:
        try:
            raise ValueError("the table is full")
        except ValueError:
            raise SystemExit(1)  # noqa: B904 - as sys.exit(1) does

    with pytest.raises(script_end.ExitInsideBatchError, match="because of ValueError: the table is full"):
        run_batch(function)


@pytest.mark.parametrize(
    "own",
    [QueryRefusedError("why"), ScriptRefusedError("why"), DriverStoppingError(0)],
    ids=lambda own: type(own).__name__,
)
def test_the_runtimes_own_refusals_pass(own: SystemExit) -> None:
    with pytest.raises(type(own)) as caught:
        run_batch(leave(own))
    assert caught.value is own


def test_a_child_that_the_function_has_forked_ends_with_its_own_code() -> None:
    def function(frame: Any, number: int) -> None:
        child = os.fork()
        if child == 0:
            raise SystemExit(5)
        codes.append(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))

    codes: list[int] = []
    own = os.getpid()
    try:
        run_batch(function)
    except BaseException as error:
        if os.getpid() != own:
            script_end.end_process(error.code if isinstance(error, SystemExit) else 99)  # type: ignore[arg-type]
        raise
    assert codes == [5]


def test_other_errors_of_the_function_stay_as_they_are() -> None:
    with pytest.raises(ValueError, match="full"):
        run_batch(leave(ValueError("full")))
