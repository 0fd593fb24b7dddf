"""One driver process from start to end: agent, preflight, Spark, script, end. Does I/O; never returns."""

from __future__ import annotations

import dataclasses
import functools
import logging
import os
import sys
import time
import traceback
from collections.abc import Callable
from typing import TYPE_CHECKING, NoReturn

import pyspark

from tidegate_spark.contract.protocol import EXIT_CODES, DriverConfig, DriverState, Termination
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.control.driver.control_runtime import Control
from tidegate_spark.driver import preflight
from tidegate_spark.driver.agent.agent import Agent, Commands, gate_of
from tidegate_spark.driver.agent.inspections import Inside
from tidegate_spark.driver.context_stop import guard_context, guard_queries
from tidegate_spark.driver.ending import Budget, Ending
from tidegate_spark.driver.first_process import StopLine
from tidegate_spark.driver.launch_storage import LaunchStorage
from tidegate_spark.driver.mounted_main import kept_main
from tidegate_spark.driver.restart_budget import RestartBudget
from tidegate_spark.driver.script import own_ports
from tidegate_spark.driver.script.end.script_end import (
    ExitCalls,
    end_process,
    flush_output,
    guard_exits,
    query_of_this_batch,
    waiting,
)
from tidegate_spark.driver.script.query_setup import QuerySetup
from tidegate_spark.driver.script.script import CONNECTION_LOST, judge, outcome_of_behind, outcome_of_exit, run_script
from tidegate_spark.driver.script.script_entry import Entry, Sessions
from tidegate_spark.driver.script.spark_start import Files, SparkStart
from tidegate_spark.executors.leftovers import begin_removal
from tidegate_spark.executors.living_executors import living_of
from tidegate_spark.exports.order_execution import carry_out as make_export
from tidegate_spark.jvm import session as spark_session
from tidegate_spark.jvm.jvm_prestart import HeadStart
from tidegate_spark.monitoring import metrics, watch
from tidegate_spark.monitoring.child_spark import ChildSpark
from tidegate_spark.monitoring.continuous import Epochs
from tidegate_spark.monitoring.listener import ProgressListener, SparkCalls
from tidegate_spark.monitoring.stall_watch import StallWatch
from tidegate_spark.process import logs
from tidegate_spark.process import start_messages as messages
from tidegate_spark.process.environment import Environment
from tidegate_spark.process.faults import faults, foreign_text
from tidegate_spark.process.outcome import Outcome
from tidegate_spark.process.progress import Progress
from tidegate_spark.process.signals import note_waits, watch_signals
from tidegate_spark.process.spark.sparkconf import lineage_uri
from tidegate_spark.process.termination import write_termination
from tidegate_spark.queries.queries import Queries
from tidegate_spark.rehearsal import sink_suppression
from tidegate_spark.rehearsal.rehearsal_run import rehearsing_of
from tidegate_spark.repartition.cleanup import Clearing
from tidegate_spark.snapshots.reach import connector
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_spark.snapshots.service.service import service_of
from tidegate_spark.snapshots.service.snapshot_metrics import SnapshotMetrics
from tidegate_spark.storage import readiness
from tidegate_spark.storage.claim import claiming, fencing
from tidegate_spark.storage.claim.fence import Fenced
from tidegate_spark.storage.s3_client import FaultError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

QUERY_POLL_SECONDS, QUIET_SECONDS = 0.5, 0.05
"""Between two looks at what still runs after the script's last line; between two that find that nothing does."""
CLEARING_SECONDS = 10.0

log = logging.getLogger("tidegate")


def undisturbed(action: Callable[[], object]) -> None:
    """Do ``action`` to its end, although handlers of the script's own for signals raise what they like meanwhile."""
    while True:
        try:
            action()
            return
        except BaseException:  # our own end has a message, which the script's exception would replace
            traceback.print_exc()


class Driver:
    """Holds the parts together; the order of :meth:`run` is the order of a start."""

    def __init__(
        self,
        config: DriverConfig,
        environment: Environment,
        output: logs.OutputTail,
        name: str,
        ahead: HeadStart | None = None,
    ) -> None:
        """Make the parts; nothing runs yet but the JVM that was started ``ahead``. ``name``: of this process."""
        self._config, self._environment, self._output = config, environment, output
        self._process_name, self._ahead = name, ahead
        self._end_ahead: Callable[[], None] = ahead.end if ahead is not None else lambda: None
        self._progress = progress = Progress(config)
        self._queries = queries = Queries(lineage_uri(config), config.state_partitions, self._progress)
        self._account = RestartBudget(environment.work_directory, config.restart, time.time, time.monotonic)
        self._ending = Ending(config, self._progress, self._queries, self._account, self._conclude)
        self._rehearsing = rehearsing_of(config, environment.work_directory, progress, self._ending.request)
        registry, operator_metrics = metrics.build_registry(config, self._progress), SnapshotMetrics(config)
        registry.register(operator_metrics)
        self._snapshots = service_of(config, environment, pyspark.__version__, operator_metrics, make_export)
        self._progress.snapshots = self._snapshots.reports
        self._control = Control(config, environment, progress=progress, queries=queries, snapshots=self._snapshots)
        self._control.notify(registry, output.secrets)
        self._ending.before_stop = self._control.let_stop
        if environment.on_kubernetes:
            self._ending.has_executors = progress.has_executors
        self._control.service.on_newer = lambda message: self._ending.request(Outcome(Reason.NEWER_FORMAT, message))
        ends = self._ending.requested
        self._inside = Inside(config, self._queries, lambda: None if ends.is_set() else self._session, output.secrets)
        give_messages, check = self._control.service.give, self._inside.reply
        commands = Commands(self._stop, self._set_executors, self._snapshots.give, give_messages, check)
        self._agent = Agent(environment, progress, registry, commands, output.secrets, gate_of(config, environment))
        self._session: SparkSession | None = None
        self._sessions = Sessions(self._listen)
        self._watch: watch.Watch | None = None
        self._wanted: int | None = None
        self._storage = LaunchStorage(config, environment, output, progress, self._ending)
        # The storage may be away for a second or a day, and the settings of the waiting JVM be others by then.
        self._storage.on_fault = self._end_ahead
        self._exit_calls = ExitCalls()

    def run(self, stops: StopLine) -> NoReturn:
        """Start, run the script, end the process; ``stops`` reports when it has to."""
        watch_signals(self._stop)
        note_waits()
        stops.listen(self._stop)
        if self._rehearsing is None:
            self._agent.start()
        else:
            self._rehearsing.begin()
        self._ending.start()
        try:
            outcome = self._account.begin() or self._start()
        except claiming.BehindError as error:
            outcome = outcome_of_behind(error)
        except FaultError as error:
            outcome = Outcome(error.fault.reason, error.fault.message)
        except Exception as error:
            log.exception("start failed")
            failure = faults.explain(error)
            outcome = Outcome(failure.reason, messages.could_not_start(failure.message), failure.exception)
        self._ending.request(outcome)
        undisturbed(self._ending.queries_stopped.wait)
        undisturbed(self._exit_calls.call)
        undisturbed(lambda: self._ending.end_script(self._exit_calls.end_remains))
        undisturbed(self._ending.await_end)
        raise AssertionError("await_end() does not return")

    def _start(self) -> Outcome:
        self._progress.failures = self._account.times
        preflight.refuse_other_protocol(self._config)
        paths = preflight.find_files(self._config.py_files)
        sys.path[:0] = [spark_session.python_path_entry(path) for path in paths]
        main = preflight.find_main(kept_main(self._config.main))
        config, environment = self._config, self._environment
        # First of all, because the executors of the previous process take longer to go than everything that follows.
        leftovers_gone = begin_removal(config, environment) if environment.on_kubernetes else lambda: None
        held = self._storage.prepare()
        pinned = self._storage.find_pin() if held is not None else None
        if held is None or pinned is None:
            return Outcome(Reason.STOPPED, messages.STOPPED_WHILE_STARTING)
        if pinned.take:
            self._snapshots.give(pinned)
        self._snapshots.start()
        self._control.service.start()
        starter = self._rehearsing.jvm_starter if self._rehearsing is not None else ""
        process = spark_session.Process(self._process_name, held, leftovers_gone, self._ahead, starter)
        # A mounted program has no neighbours, and executors do not have it.
        in_image = main.path == preflight.local_path(config.main)
        self._await_script(process, paths, main.path if in_image else "")
        if self._ending.requested.is_set():
            return Outcome(Reason.STOPPED, messages.STOPPED_WHILE_STARTING)
        self._ending.script_started.set()
        self._exit_calls.install((*preflight.folders_of(main.path), *paths) if main.path else paths)
        guard_exits(self._end_at_once)
        ChildSpark(self._queries, self._progress, os.getppid()).start(self._ending.requested)
        own_ports.name_owner(tuple(server.port for server in self._agent.servers))
        return self._judge(self._run_script(main))

    def _run_script(self, main: preflight.Main) -> Outcome:
        try:
            return self._after_script(run_script(main, self._config.args))
        except SystemExit as error:  # from a handler of the script, after its last line
            return outcome_of_exit(error.code)
        finally:
            self._ending.script_returned.set()

    def _dependencies_up(self) -> bool:
        executors = self._progress.report().executors_running > 0 or not self._environment.on_kubernetes
        fence = self._storage.fence
        return executors and fence is not None and fence.storage_answers

    def _judge(self, outcome: Outcome) -> Outcome:
        """Return ``outcome`` in other words: who took the fence, or whose a place is that has a fault."""
        if self._ending.requested.is_set():
            return outcome
        fence = self._storage.fence
        if outcome.reason in {Reason.FENCED, Reason.APPLICATION_FAILED} and fence is not None:
            # A script may hide FencedException behind another exception, and a lost race for a file raises another.
            lost = fence.check()
            if lost is not None or outcome.reason is Reason.FENCED:
                return fencing.lost_while_running(lost or Fenced(), self._config)
        if outcome.reason is Reason.APPLICATION_FAILED and foreign_text.names_missing_state(outcome.message):
            if self._rehearsing is not None:
                return outcome
            return self._storage.with_lost_state(outcome, lambda: watch.directory_without_state(self._queries, outcome))
        if outcome.reason not in faults.PROBED:
            return outcome
        return judge(outcome, readiness.find_fault(self._config, self._storage.credentials))

    def _await_script(self, process: spark_session.Process, paths: tuple[str, ...], beside: str) -> None:
        """Have Spark started when the script first asks for it, and its queries looked after."""
        config, environment = self._config, self._environment
        files, ending = Files(paths, beside), self._ending
        start = SparkStart(config, environment, self._progress, process, files=files, ending=ending)
        start.keep_secret = self._output.secrets.add
        self._path = start.path
        Entry(start.host(self._observe), self._progress, environment.master).guard()
        if self._rehearsing is not None:
            sink_suppression.mute()

        def before_query(session: SparkSession) -> None:
            self._sessions.meet(session)
            start.path.hold(session)

        self._queries.before_session = before_query
        self._queries.on_refusal = lambda reason, message: self._ending.request(Outcome(reason, message))
        self._queries.on_failure = lambda outcome: self._ending.request(self._judge(outcome))
        self._queries.install()
        guard_context(self._queries, self._progress, config.stop_grace_seconds, self._ending)
        guard_queries(self._ending)

    def _observe(self, session: SparkSession) -> None:
        """Look after the script's first session; the script does not have it yet."""
        self._session = session
        self._sessions.meet(session)
        self._control.meet(session)
        if self._rehearsing is not None:
            self._rehearsing.meet(session)
        connect = connector(self._config, self._environment.credentials_directory)
        setup = QuerySetup(self._config, self._environment, self._progress, self._storage)
        setup.prepare(self._queries, session, connect)
        self._begin_watch(session, connect)
        if not self._ending.requested.is_set():
            self._progress.enter(DriverState.RUNNING)

    def _begin_watch(self, session: SparkSession, connect: Callable[[], SnapshotRepository]) -> None:
        timeout = self._config.restart.stall_timeout_seconds
        stalls = StallWatch(session, self._queries, self._progress, timeout, self._dependencies_up)
        self._watch = watch.Watch(
            session,
            self._queries,
            self._progress,
            lambda outcome: self._ending.request(self._judge(outcome)),
            living_of(self._config, self._environment),
        )
        epochs = Epochs(self._progress, Budget.of(self._config.stop_grace_seconds).batch)
        fence = self._storage.fence
        assert fence is not None
        clearing = Clearing(self._config.lineage, connect, fence.is_held, self._ending.requested)

        def check() -> None:
            self._path.hold_context()
            epochs.check(self._queries.active())
            self._progress.failures = self._account.check(self._progress.commits > 0)
            self._account.note(self._progress.report)
            stalls.check()
            self._control.log_level.notify_new_executors()
            if self._rehearsing is not None:
                self._rehearsing.check()
            elif self._progress.commits > 0:
                clearing.begin()

        self._watch.check_further = check
        if self._wanted is not None:
            self._watch.want_executors(self._wanted)
        self._watch.start()

    def _listen(self, session: SparkSession) -> None:
        before_first, note = functools.partial(self._control.before_first, session), self._inside.last.note
        starts = self._queries.is_starting
        is_ours = self._rehearsing.refusing(starts) if self._rehearsing is not None else starts
        session.streams.addListener(ProgressListener(SparkCalls(self._progress, before_first, note, is_ours)))

    def _after_script(self, outcome: Outcome) -> Outcome:
        """Return how the application ends, once nothing of it runs; a failure does not wait for the others."""
        code = spark_session.jvm_exit_code(connection_lost=outcome.exception in CONNECTION_LOST)
        if code is not None:
            return watch.jvm_outcome(code, self._progress)
        if outcome != watch.COMPLETED:
            return watch.cause_of(outcome, self._queries)
        return self._await_rest(outcome)

    def _end_at_once(self, code: int, function: str = "os._exit") -> NoReturn:
        """End the driver for a script that calls ``os._exit``; nothing that it left to be done is done.

        An end inside a batch is a failure with any code: the batch is not committed, and nobody would run it again.
        """
        self._ending.script_returned.set()  # its handler of SIGTERM is not called any more
        jvm_code = spark_session.jvm_exit_code()
        outcome, inside = outcome_of_exit(code, function=function), messages.ended_inside(function, code)
        if jvm_code is not None:
            outcome = watch.jvm_outcome(jvm_code, self._progress)
        elif (query := query_of_this_batch()) is not None:
            outcome = Outcome(Reason.APPLICATION_FAILED, inside, "SystemExit")
            self._ending.lost = (query, inside)
        elif outcome == watch.COMPLETED:
            finished = dataclasses.replace(outcome, if_cut=inside)
            outcome = watch.first_failure(self._queries) or watch.cut_with_script(self._queries) or finished
        else:
            outcome = watch.cause_of(outcome, self._queries)
        self._ending.request(self._judge(outcome))
        self._ending.script_ended.set()
        undisturbed(self._ending.await_end)
        raise AssertionError("await_end() does not return")

    def _await_rest(self, outcome: Outcome) -> Outcome:
        """Wait for the script's threads and for its queries, as long as nobody asks for the end."""
        quiet, goes_on = 0, waiting()
        while not self._ending.requested.is_set():
            # A running thread may start a failed query again, as the script may before its last line.
            quiet = 0 if goes_on() else quiet + 1
            # Twice, because a pool's thread that has just taken work looks like a waiting one.
            if quiet > 1:
                if failure := watch.first_failure(self._queries):
                    return failure
                if not ((active := self._queries.active()) or self._queries.starting):
                    self._exit_calls.call()
                    return watch.cut_with_script(self._queries) or outcome
                if quiet == 2 and active:
                    log.info("%s", messages.goes_on(entry.name for entry in active))
            self._ending.requested.wait(QUIET_SECONDS if quiet == 1 else QUERY_POLL_SECONDS)
        return outcome

    # --- commands ----------------------------------------------------------------------------------------------------

    def _stop(self) -> None:
        # The kubelet ends a container whose liveness probe fails in the same way as one that is no longer wanted.
        stalled = self._progress.stalled
        self._ending.request(Outcome(Reason.STALLED, stalled) if stalled else Outcome(Reason.STOPPED, "Stopped."))

    def _set_executors(self, number: int) -> None:
        self._wanted = number
        self._progress.executors(wanted=number)
        if self._watch:
            self._watch.want_executors(number)

    # --- the end -----------------------------------------------------------------------------------------------------

    def _conclude(self, termination: Termination) -> NoReturn:
        try:
            if self._rehearsing is not None:
                termination = self._rehearsing.reported(termination, spark_session.jvm_exit_code())
            self._finish(termination)
        except BaseException:  # this is the last thread that could end the process
            log.exception("stopping: something is left undone")
        end_process(EXIT_CODES[termination.reason])

    def _finish(self, termination: Termination) -> None:
        self._snapshots.stop()
        self._control.end(termination.reason)
        self._output.secrets.add(self._agent.token.value())
        self._progress.enter(DriverState.ENDED)
        self._end_ahead()
        extra = {"action": "end", "reason": termination.reason}
        log.info("end: %s: %s", termination.reason, termination.message, extra=extra)
        write_termination(self._environment.termination_log, termination, self._output.secrets)
        self._ending.await_remains()
        budget = Budget.of(self._config.stop_grace_seconds)
        context, began = pyspark.SparkContext._active_spark_context, time.monotonic()
        if context is not None and spark_session.jvm_exit_code() is None:
            # Removes the executors; without it their pods stay behind in state Error.
            stopped = logs.within(budget.session, context.stop)
            message = "stopped in" if stopped else "did not stop within"
            log.info("stopping: the session %s %.1f s", message, time.monotonic() - began)
        flush_output()
        if self._rehearsing is not None and self._storage.claimed:
            # What is left of it goes with the snapshot.
            logs.within(CLEARING_SECONDS, self._storage.forget_rehearsal)
        if termination.reason is Reason.PROTOCOL_MISMATCH:
            return  # what the operator asks for, of the storage too, is not understood
        content, seconds = self._output.content(), budget.upload_within(self._ending.left())
        logs.within(seconds, lambda: self._storage.put_log(content, self._process_name))
