"""What is said of an attempt that made no lineage. Spark is played."""

import pytest

from tidegate_spark.contract.protocol import TERMINATION_MESSAGE_LIMIT, Storage, Termination, from_json
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.repartition_protocol import Repartition, RepartitionedQuery, RepartitionEnd
from tidegate_spark.process.environment import Environment
from tidegate_spark.process.redaction import Secrets
from tidegate_spark.process.termination import termination_text
from tidegate_spark.repartition.errors import RepartitionError
from tidegate_spark.repartition.pod import Making
from tidegate_testing.driver_process import driver_config

CONFIG = driver_config("orders", "local:///main.py", Storage("s3://here/apps/orders"))


class PlayedMaking(Making):
    """An attempt that fails, beside a JVM that runs, or ended."""

    def __init__(self, failure: Exception, jvm_exit_code: int | None) -> None:
        super().__init__(CONFIG, Repartition(8, "up-1", 1, 2), Environment.read({}))
        self._failure, self._code = failure, jvm_exit_code

    def _make(self) -> Termination:
        raise self._failure

    def _jvm_exit_code(self) -> int | None:
        return self._code


def spark(message: str) -> RepartitionError:
    return RepartitionError(Reason.SPARK_FAILED, message)


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (spark("Answer from Java side is empty."), -9),
        (spark("Answer from Java side is empty."), 137),
        (spark("java.lang.OutOfMemoryError: Java heap space."), None),
        (ConnectionRefusedError("Connection refused"), 137),
    ],
)
def test_a_jvm_that_lacked_memory_is_told_as_such_with_the_field_that_helps(
    failure: Exception, code: int | None
) -> None:
    said = PlayedMaking(failure, code).make()
    assert said.repartition is not None
    assert said.repartition.what is Reason.OUT_OF_MEMORY
    assert "spec.state.repartition.resources.requests.memory" in said.message


@pytest.mark.parametrize(
    ("failure", "code", "what"),
    [
        (spark("UNSUPPORTED_VARIABLE_TYPE."), None, Reason.SPARK_FAILED),
        (spark("Answer from Java side is empty."), 1, Reason.SPARK_FAILED),
        (RepartitionError(Reason.STATE_DIFFERS, "Not the same."), 137, Reason.STATE_DIFFERS),
        (RuntimeError("what nobody thought of"), None, Reason.SPARK_FAILED),
    ],
)
def test_other_failures_are_told_as_they_are(failure: Exception, code: int | None, what: Reason) -> None:
    said = PlayedMaking(failure, code).make()
    assert said.repartition is not None
    assert said.repartition.what is what
    assert str(failure) in said.message


@pytest.mark.parametrize("number", [1, 30, 45, 60, 1000])
@pytest.mark.parametrize("name", ["q", "a-name-as-long-as-people-give-them-to-queries-that-count-things"])
def test_last_words_fit_into_a_termination_message_however_many_queries_there_are(number: int, name: str) -> None:
    queries = {f"{name}-{n:04}": RepartitionedQuery(123456, 1_000_000, 200) for n in range(number)}
    seconds = dict.fromkeys(("pin", "copy", "start", "spark", "verify"), 1234.567)
    end = RepartitionEnd(lineage=2, rows=number * 1_000_000, queries=queries, seconds=seconds)
    message = "Lineage 2 has state in 8 partitions; 1000000000 rows, the same as before."
    text = termination_text(Termination(Reason.COMPLETED, message, 3, repartition=end), Secrets())
    assert len(text.encode()) <= TERMINATION_MESSAGE_LIMIT
    reported = from_json(Termination, text)
    assert reported.repartition is not None
    assert (reported.message, reported.repartition.rows, reported.repartition.seconds) == (message, end.rows, seconds)
    kept = reported.repartition.queries
    assert len(kept) + reported.repartition.left_out == number
    assert list(kept) == sorted(queries)[: len(kept)]
    assert kept
    assert (len(kept) == number) == (reported.repartition.left_out == 0)
    # No more are left out than have to be.
    assert not reported.repartition.left_out or len(text.encode()) > TERMINATION_MESSAGE_LIMIT - 200
