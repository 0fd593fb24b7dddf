"""When a rehearsal has seen enough, and what its end says of the version. Pure, but for one variable."""

import dataclasses
import os
from types import SimpleNamespace
from typing import cast

import pytest

from tidegate_spark.contract.protocol import EXIT_CODES, DriverState, Fault, Storage, Termination, from_json, to_json
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.rehearsal_protocol import Rehearsal, RehearsalEnd, RehearsalResult, rehearsal_place
from tidegate_spark.process.outcome import Outcome
from tidegate_spark.process.progress import Commit, Progress
from tidegate_spark.rehearsal.child_refusal import ChildRefusal
from tidegate_spark.rehearsal.rehearsal_run import Rehearsing, what_failed
from tidegate_testing.driver_process import driver_config

PLACE = Storage("s3://here/apps/orders")
COMMIT = Commit(7, 10, 1.0, 1.0, 100, 0, 0, 0.0)


class Run:
    """A rehearsal of three batches."""

    def __init__(self, *queries: str, before: tuple[str, ...] = ()) -> None:
        self.progress = Progress(driver_config("orders", "local:///main.py", PLACE))
        self.asked: list[Outcome] = []
        self.children = SimpleNamespace(refused=False, begin=lambda variables: "")
        self.rehearsing = Rehearsing(
            Rehearsal(3, 60, before), self.progress, self.asked.append, cast(ChildRefusal, self.children)
        )
        self.progress.enter(DriverState.RUNNING)
        for query in queries:
            self.progress.query_started(query, 6)

    def commit(self, query: str, number: int = 1) -> None:
        for _ in range(number):
            self.progress.query_committed(query, COMMIT)

    def reported(
        self, reason: Reason, message: str = "because", exception: str = "", code: int | None = None
    ) -> Termination:
        return self.rehearsing.reported(Termination(reason, message, 1, exception), code)

    def end(
        self, reason: Reason, message: str = "because", exception: str = "", code: int | None = None
    ) -> RehearsalEnd:
        end = self.reported(reason, message, exception, code).rehearsal
        assert end is not None
        return end


def test_each_query_has_to_commit_enough() -> None:
    run = Run("a", "b")
    run.commit("a", 3)
    run.commit("b", 2)
    run.rehearsing.check()
    assert run.asked == []
    run.commit("b")
    run.rehearsing.check()
    assert [outcome.reason for outcome in run.asked] == [Reason.COMPLETED]
    assert run.end(Reason.COMPLETED) == RehearsalEnd(RehearsalResult.PASSED, Reason.NONE, {"a": 3, "b": 3})


def test_a_script_that_has_started_nothing_yet_has_not_passed() -> None:
    run = Run()
    run.rehearsing.check()
    assert run.asked == []


def test_a_query_that_was_just_started_is_waited_for() -> None:
    run = Run("a")
    run.commit("a", 3)
    run.progress.query_started("b")
    run.rehearsing.check()
    assert run.asked == []


def test_it_does_not_pass_while_a_query_has_failed_however_many_batches_the_others_commit() -> None:
    run = Run("a", "b")
    run.progress.query_ended("b", failed=True)
    run.commit("a", 30)
    run.rehearsing.check()
    run.rehearsing.run_out_of_time()
    assert [outcome.reason for outcome in run.asked] == [Reason.STOPPED]
    assert run.end(Reason.STOPPED).result is RehearsalResult.INCONCLUSIVE


def test_a_query_that_the_script_starts_again_after_its_failure_counts_as_any_other() -> None:
    run = Run("a", "b")
    run.progress.query_ended("b", failed=True)
    run.commit("a", 3)
    run.progress.query_started("b")
    run.commit("b", 3)
    run.rehearsing.check()
    assert [outcome.reason for outcome in run.asked] == [Reason.COMPLETED]


def test_a_query_of_the_version_before_is_waited_for_though_the_others_have_enough() -> None:
    run = Run("a", before=("a", "b"))
    run.commit("a", 3)
    run.rehearsing.check()
    assert run.asked == []
    run.progress.query_started("b", 6)
    run.commit("b", 3)
    run.rehearsing.check()
    assert [outcome.reason for outcome in run.asked] == [Reason.COMPLETED]


def test_a_query_that_was_not_started_in_time_counts_as_dropped() -> None:
    run = Run("a", before=("a", "b"))
    run.commit("a", 3)
    run.rehearsing.run_out_of_time()
    reported = run.reported(Reason.COMPLETED)
    assert reported.rehearsal == RehearsalEnd(RehearsalResult.PASSED, Reason.NONE, {"a": 3})
    assert "'b' of the previous version was not started, and counts as dropped" in reported.message


@pytest.mark.parametrize(
    ("committed", "result"), [(1, RehearsalResult.PASSED), (0, RehearsalResult.INCONCLUSIVE)], ids=["one", "none"]
)
def test_a_script_that_reads_what_there_is_passes_with_any_batch(committed: int, result: RehearsalResult) -> None:
    run = Run("a")
    run.commit("a", committed)
    assert run.end(Reason.COMPLETED).result is result


def test_without_input_nothing_is_said() -> None:
    run = Run("a")
    run.commit("a")
    run.rehearsing.run_out_of_time()
    assert [outcome.reason for outcome in run.asked] == [Reason.STOPPED]
    reported = run.reported(Reason.STOPPED)
    assert reported.rehearsal == RehearsalEnd(RehearsalResult.INCONCLUSIVE, Reason.NO_INPUT, {"a": 1})
    assert "query 'a' committed 1 batches; 3 of each were asked for in 60 s" in reported.message


def test_a_batch_that_takes_longer_than_the_time_is_not_a_lack_of_input() -> None:
    run = Run("a")
    run.rehearsing.run_out_of_time()
    assert run.end(Reason.STOPPED).what is Reason.DEADLINE_EXCEEDED


def test_what_it_waited_for_until_the_time_was_over_is_named() -> None:
    run = Run()
    run.progress.enter(DriverState.WAITING, Fault(Reason.STORAGE_UNAVAILABLE, "no answer"))
    run.rehearsing.run_out_of_time()
    run.progress.enter(DriverState.STOPPING)
    reported = run.reported(Reason.STOPPED)
    assert (reported.reason, reported.message) == (Reason.STORAGE_UNAVAILABLE, "no answer")
    assert reported.rehearsal == RehearsalEnd(RehearsalResult.INCONCLUSIVE, Reason.DEPENDENCY_UNAVAILABLE)


def test_a_script_whose_queries_were_in_a_child_process_until_the_time_was_over_has_failed() -> None:
    run = Run()
    run.progress.hold(Fault(Reason.SCRIPT_UNSUPPORTED, "queries in a child"))
    run.rehearsing.run_out_of_time()
    run.progress.enter(DriverState.STOPPING)
    reported = run.reported(Reason.STOPPED)
    assert (reported.reason, reported.message) == (Reason.SCRIPT_UNSUPPORTED, "queries in a child")
    assert reported.rehearsal == RehearsalEnd(RehearsalResult.FAILED, Reason.PLAN_INCOMPATIBLE)


def test_queries_in_a_child_process_are_no_failure_of_a_script_that_has_one_of_its_own_by_now() -> None:
    run = Run()
    run.progress.hold(Fault(Reason.SCRIPT_UNSUPPORTED, "queries in a child"))
    run.progress.query_started("a", 6)
    run.rehearsing.run_out_of_time()
    assert run.end(Reason.STOPPED) == RehearsalEnd(RehearsalResult.INCONCLUSIVE, Reason.DEADLINE_EXCEEDED, {"a": 0})


@pytest.mark.parametrize("reason", [reason for reason in EXIT_CODES if reason is not Reason.COMPLETED])
def test_every_end_has_a_result_and_only_failures_have_failed(reason: Reason) -> None:
    failures = {
        Reason.APPLICATION_FAILED,
        Reason.MAIN_NOT_FOUND,
        Reason.QUERY_REFUSED,
        Reason.STATE_SCHEMA,
        Reason.SCRIPT_UNSUPPORTED,
        Reason.SOURCE_DATA_LOST,
        Reason.CONNECTOR_MISSING,
        Reason.DRIVER_CRASHED,
        Reason.STALLED,
        Reason.SNAPSHOT_UNUSABLE,
        Reason.STATE_MISSING,
        Reason.PROTOCOL_MISMATCH,
        Reason.RESTART_BUDGET_EXHAUSTED,
    }
    assert (Run("a").end(reason).result is RehearsalResult.FAILED) == (reason in failures)


@pytest.mark.parametrize(
    ("reason", "exception", "code"),
    [
        (Reason.DRIVER_CRASHED, "JvmExited", 137),
        (Reason.DRIVER_CRASHED, "JvmExited", -9),
        (Reason.APPLICATION_FAILED, "java.lang.OutOfMemoryError", None),
        (Reason.APPLICATION_FAILED, "MemoryError", None),
    ],
)
def test_its_own_small_memory_says_nothing_of_the_version(reason: Reason, exception: str, code: int | None) -> None:
    end = Run("a").end(reason, "killed", exception, code)
    assert (end.result, end.what) == (RehearsalResult.INCONCLUSIVE, Reason.OUT_OF_MEMORY)


S, P, E = Reason.STATE_SCHEMA, Reason.PLAN_INCOMPATIBLE, Reason.APPLICATION_FAILED


@pytest.mark.parametrize(
    ("exception", "message", "what"),
    [
        ("org.X", "[STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE] Provided value schema", S),
        ("org.X", "Job aborted: [STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE] Provided key", S),
        ("org.X", "[STATE_STORE_INVALID_VALUE_SCHEMA_EVOLUTION] Schema evolution is not possible", S),
        ("org.X", "[STATE_STORE_INVALID_VARIABLE_TYPE_CHANGE] Cannot change", S),
        ("org.X", "[STATE_STORE_VALUE_ROW_FORMAT_VALIDATION_FAILURE] The streaming query failed", S),
        ("org.X", "[STATE_STORE_OPERATION_OUT_OF_ORDER] attempted", E),
        ("org.X", "[STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA] Streaming stateful operator", P),
        (
            "java.lang.AssertionError",
            "There are [1] sources in the checkpoint offsets and now there are [2] sources",
            P,
        ),
        ("pyspark.errors.exceptions.captured.AnalysisException", "[UNRESOLVED_COLUMN.WITH_SUGGESTION] A column", P),
        ("org.apache.spark.sql.catalyst.ExtendedAnalysisException", "[WHATEVER] it is", P),
        ("ValueError", "no such sensor", E),
    ],
)
def test_a_failure_is_named_by_sparks_own_conditions(exception: str, message: str, what: Reason) -> None:
    assert what_failed(exception, message) is what
    assert Run("a").end(Reason.APPLICATION_FAILED, message, exception).what is what


def test_functions_of_the_script_can_know_of_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TIDEGATE_REHEARSAL", "")
    run = Run()
    run.rehearsing.begin()
    assert os.environ["TIDEGATE_REHEARSAL"] == "1"


def test_its_words_go_through_the_contract_and_its_place_is_within_the_applications() -> None:
    reported = Run("a").reported(Reason.APPLICATION_FAILED)
    assert from_json(Termination, to_json(reported)) == reported
    plain = dataclasses.replace(reported, rehearsal=None)
    assert from_json(Termination, to_json(plain)) == plain
    assert rehearsal_place(PLACE, "copy-1").uri == "s3://here/apps/orders/rehearsals/copy-1"


def test_a_rehearsal_says_of_which_query_the_state_was_not_compared() -> None:
    run = Run("a")
    run.progress.notice(Reason.STATE_NOT_COMPARED, "Query 'a' runs, and its columns are not compared: no class.", True)
    run.progress.notice(Reason.STATE_SCHEMA, "Query 'a' has other names.", True)
    run.commit("a", 3)
    run.rehearsing.check()
    reported = run.reported(Reason.COMPLETED)
    assert reported.rehearsal is not None
    assert reported.rehearsal.result is RehearsalResult.PASSED
    assert "without a failure. Query 'a' runs, and its columns are not compared: no class" in reported.message
    assert "other names" not in reported.message


@pytest.mark.parametrize("reason", [Reason.APPLICATION_FAILED, Reason.COMPLETED])
def test_a_script_whose_child_was_refused_spark_shows_nothing_by_a_failure_or_without_a_batch(reason: Reason) -> None:
    run = Run()
    run.children.refused = True
    termination = run.reported(reason, "Command '['spark-submit', 'job.py']' returned non-zero exit status 1.")
    assert termination.rehearsal == RehearsalEnd(RehearsalResult.INCONCLUSIVE, Reason.SCRIPT_UNSUPPORTED, {})
    assert "a child process of the script was refused Spark" in termination.message


def test_state_that_a_version_cannot_read_is_its_failure_whatever_its_children_are_refused() -> None:
    run = Run("a")
    run.children.refused = True
    assert run.end(Reason.STATE_SCHEMA).result is RehearsalResult.FAILED


def test_queries_that_work_have_passed_and_the_message_says_that_a_child_was_refused_spark() -> None:
    run = Run("a")
    run.commit("a", 3)
    run.children.refused = True
    run.rehearsing.check()
    termination = run.reported(Reason.COMPLETED)
    assert termination.rehearsal == RehearsalEnd(RehearsalResult.PASSED, Reason.NONE, {"a": 3})
    assert "a child process of the script was refused Spark" in termination.message


def test_a_query_that_code_in_the_jvm_starts_ends_the_rehearsal_and_does_not_go_on() -> None:
    run, held = Run("a"), list[str]()
    run.rehearsing.hold = lambda: held.append("before its first batch")
    is_ours = run.rehearsing.refusing(lambda name: name == "a")
    assert is_ours("a")
    assert (run.asked, held) == ([], [])
    is_ours("of-a-jar")
    assert held == ["before its first batch"]
    (outcome,) = run.asked
    assert "Query 'of-a-jar' was started by code in the JVM" in outcome.message
    end = run.end(outcome.reason, outcome.message)
    assert (end.result, end.what) == (RehearsalResult.FAILED, Reason.PLAN_INCOMPATIBLE)
