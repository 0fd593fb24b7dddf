"""One driver process from start to end: agent, preflight, Spark, the script, the end. Does I/O; never returns."""

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

from tidegate_spark.contract.protocol import EXIT_CODES, FIRST_LINEAGE, DriverConfig, DriverState, Fault, Termination
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.snapshot_protocol import SnapshotOrders
from tidegate_spark.control.driver.control_runtime import Control
from tidegate_spark.driver import preflight
from tidegate_spark.driver.agent.agent import Agent, Commands, gate_of
from tidegate_spark.driver.agent.inspections import Inside
from tidegate_spark.driver.context_stop import guard_context
from tidegate_spark.driver.ending import Budget, Ending
from tidegate_spark.driver.first_process import StopLine
from tidegate_spark.driver.mounted_main import kept_main
from tidegate_spark.driver.restart_budget import FailureAccount
from tidegate_spark.driver.script import own_ports
from tidegate_spark.driver.script.script import CONNECTION_LOST, judge, outcome_of_behind, outcome_of_exit, run_script
from tidegate_spark.driver.script.script_end import (
    ExitCalls,
    end_process,
    flush_output,
    guard_exit,
    guard_jvm_exit,
    query_of_this_batch,
    what_goes_on,
)
from tidegate_spark.driver.script.script_entry import Entry, Sessions
from tidegate_spark.driver.script.spark_start import Files, SparkStart
from tidegate_spark.executors.leftovers import begin_removal
from tidegate_spark.executors.living_executors import living_of
from tidegate_spark.exports import export_guard
from tidegate_spark.exports.order_execution import carry_out as make_export
from tidegate_spark.jvm import session as spark_session
from tidegate_spark.jvm.jvm_prestart import HeadStart
from tidegate_spark.monitoring import metrics, watch
from tidegate_spark.monitoring.continuous import Epochs
from tidegate_spark.monitoring.listener import ProgressListener
from tidegate_spark.monitoring.stall_watch import StallWatch
from tidegate_spark.monitoring.watch import COMPLETED
from tidegate_spark.process import logs
from tidegate_spark.process import start_messages as messages
from tidegate_spark.process.environment import Environment
from tidegate_spark.process.faults import faults
from tidegate_spark.process.outcome import Outcome
from tidegate_spark.process.progress import Progress
from tidegate_spark.process.signals import watch_signals
from tidegate_spark.process.spark.sparkconf import lineage_uri
from tidegate_spark.process.termination import write_termination
from tidegate_spark.queries import source_cleaning
from tidegate_spark.queries.empty_starts import EmptyStarts
from tidegate_spark.queries.queries import Queries
from tidegate_spark.queries.sinks import file_sinks
from tidegate_spark.queries.sinks.file_sinks import Sink
from tidegate_spark.queries.sinks.output_registry import OutputBook
from tidegate_spark.queries.sinks.outputs import Outputs
from tidegate_spark.queries.sinks.tables import Tables
from tidegate_spark.queries.source_cleaning import SourceCleaning
from tidegate_spark.queries.state.state_guard import StateGuard
from tidegate_spark.queries.state.version_notices import VersionNotices
from tidegate_spark.rehearsal import sink_suppression
from tidegate_spark.rehearsal.rehearsal_run import rehearsing_of
from tidegate_spark.repartition.cleanup import Clearing
from tidegate_spark.snapshots.reach import connector
from tidegate_spark.snapshots.service.service import desk_of
from tidegate_spark.snapshots.service.snapshot_metrics import SnapshotFigures
from tidegate_spark.storage import query_names, readiness, s3_client
from tidegate_spark.storage.claim import claiming, fencing
from tidegate_spark.storage.claim.fence import Fenced, Held
from tidegate_spark.storage.s3_client import Credentials, FaultError

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
        except BaseException:  # an end of ours has its words; these would take their place
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
        self._account = FailureAccount(environment.work_directory, config.restart, time.time, time.monotonic)
        self._ending = Ending(config, self._progress, self._queries, self._account, self._conclude)
        self._rehearsing = rehearsing_of(config, self._progress, self._ending.request)
        self._queries.on_refusal = lambda reason, message: self._ending.request(Outcome(reason, message))
        registry, figures = metrics.build_registry(config, self._progress), SnapshotFigures(config)
        registry.register(figures)
        self._snapshots = desk_of(config, environment, pyspark.__version__, figures, make_export)
        self._progress.snapshots = self._snapshots.reports
        self._control = Control(config, environment, progress=progress, queries=queries, snapshots=self._snapshots)
        self._control.tell(registry, output.secrets)
        self._ending.before_stop = self._control.let_stop
        if environment.on_kubernetes:
            self._ending.has_executors = progress.has_executors
        self._control.desk.on_newer = lambda message: self._ending.request(Outcome(Reason.NEWER_FORMAT, message))
        ends = self._ending.requested
        self._inside = Inside(config, self._queries, lambda: None if ends.is_set() else self._session, output.secrets)
        give_messages, look = self._control.desk.give, self._inside.reply
        commands = Commands(self._stop, self._set_executors, self._snapshots.give, give_messages, look)
        gate = gate_of(config, environment)
        self._agent = Agent(environment, self._progress, registry, commands, output.secrets, gate)
        self._session: SparkSession | None = None
        self._sessions = Sessions(self._listen)
        self._watch: watch.Watch | None = None
        self._wanted: int | None = None
        self._claimed = False
        self._credentials: Credentials | None = None
        self._fence: fencing.FenceKeeper | None = None
        self._original: Outputs | None = None
        self._exit_calls = ExitCalls()

    def run(self, stops: StopLine) -> NoReturn:
        """Start, run the script, end the process; ``stops`` tells when it has to."""
        watch_signals(self._stop)
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
        self._ending.script_ended.set()
        undisturbed(self._ending.await_end)
        raise AssertionError("await_end() does not return")

    def _start(self) -> Outcome:
        self._progress.failures = self._account.times
        preflight.refuse_other_protocol(self._config)
        paths = preflight.find_files(self._config.py_files)
        sys.path[:0] = [spark_session.python_path_entry(path) for path in paths]
        main = preflight.find_main(kept_main(self._config.main))
        config, environment = self._config, self._environment
        # They are of this very epoch and pod, and take longer to go than all that follows.
        leftovers_gone = begin_removal(config, environment) if environment.on_kubernetes else lambda: None
        if not self._clear_place():
            return Outcome(Reason.STOPPED, messages.STOPPED_WHILE_STARTING)
        directory, requested = environment.credentials_directory, self._ending.requested
        credentials = readiness.wait_for_storage(config, directory, requested, self._report_fault, pyspark.__version__)
        if self._ending.requested.is_set():
            return Outcome(Reason.STOPPED, messages.STOPPED_WHILE_STARTING)
        self._claimed = True
        self._keep_secret(credentials)
        held = self._take_fence()
        if held is None or not self._fill_lineage() or not self._pin_state():
            return Outcome(Reason.STOPPED, messages.STOPPED_WHILE_STARTING)
        self._snapshots.start()
        self._control.desk.start()
        process = spark_session.Process(self._process_name, held, leftovers_gone, self._ahead)
        in_image = main.path == preflight.local_path(
            config.main
        )  # a mounted one is alone, and executors do not have it
        self._await_script(process, paths, main.path if in_image else "")
        if self._ending.requested.is_set():
            return Outcome(Reason.STOPPED, messages.STOPPED_WHILE_STARTING)
        self._ending.script_started.set()
        self._exit_calls.install()
        guard_exit(self._end_at_once)
        guard_jvm_exit(functools.partial(self._end_at_once, function="System.exit"))
        own_ports.name_owner(tuple(server.port for server in self._agent.servers))
        return self._judge(self._run_script(main))

    def _run_script(self, main: preflight.Main) -> Outcome:
        try:
            return self._after_script(run_script(main, self._config.args))
        except SystemExit as error:  # of a handler that the script set, after its last line
            return outcome_of_exit(error.code)
        finally:
            self._ending.script_returned.set()

    def _clear_place(self) -> bool:
        """Let a rehearsal start with nothing of an earlier attempt; False if it was told to stop meanwhile."""
        if self._rehearsing is None:
            return True
        return readiness.wait_for(self._forget_rehearsal, self._ending.requested, self._report_fault) is not None

    def _forget_rehearsal(self) -> bool:
        from tidegate_spark.snapshots.lineages import rehearsal_copy  # noqa: PLC0415 - only rehearsals need it

        config = self._config
        credentials = s3_client.read_credentials(self._environment.credentials_directory, config.credentials_secret)
        with claiming.faults_of(config):
            rehearsal_copy.forget_own(config, credentials)
        return True

    def _take_fence(self) -> Held | None:
        """Take the fence; None if the driver was told to stop meanwhile."""
        config, me = self._config, fencing.holder_of(self._config, self._environment.pod_uid)
        held = readiness.wait_for(
            lambda: fencing.take(config, self._credentials, me), self._ending.requested, self._report_fault
        )
        if held is None:
            return None
        directory, place = self._environment.credentials_directory, config.storage

        def connect() -> fencing.FenceObject:
            credentials = s3_client.read_credentials(directory, config.credentials_secret)
            return fencing.FenceObject(s3_client.connect(place, credentials), place)

        self._fence = fencing.FenceKeeper(
            connect,
            held,
            lambda: self._progress.commits,
            lambda found: self._ending.request(fencing.lost_while_running(found, config)),
        )
        self._fence.start()
        return held

    def _fill_lineage(self) -> bool:
        """Let the lineage begin as it was said to; False if the driver was told to stop meanwhile."""
        from tidegate_spark.driver import starting_point  # noqa: PLC0415 - not before there is a claim

        requested, notice, config = self._ending.requested, self._progress.notice, self._config
        directory = self._environment.credentials_directory

        def fill() -> bool:
            # They may have been renewed while it was waited for.
            self._keep_secret(s3_client.read_credentials(directory, config.credentials_secret))
            start_from = config.start_from or starting_point.find_left_to_fill(config, self._credentials)
            told = dataclasses.replace(config, start_from=start_from)
            starting_point.fill_lineage(told, self._credentials, requested, notice, pyspark.__version__)
            self._original = starting_point.find_original(config, self._credentials)
            return True

        try:
            return readiness.wait_for(fill, requested, self._report_fault) is not None
        except starting_point.StoppedError:
            return False

    def _pin_state(self) -> bool:
        """Have the state kept that an upgrade goes on with; False if the driver was told to stop meanwhile."""
        if self._config.pin is None:
            return True
        from tidegate_spark.driver import starting_point  # noqa: PLC0415 - as above

        config, environment = self._config, self._environment

        def find() -> SnapshotOrders:
            self._keep_secret(s3_client.read_credentials(environment.credentials_directory, config.credentials_secret))
            return starting_point.find_pin(config, self._credentials, environment.work_directory)

        orders = readiness.wait_for(find, self._ending.requested, self._report_fault)
        if orders is not None and orders.take:
            self._snapshots.give(orders)
        return orders is not None

    def _dependencies_up(self) -> bool:
        executors = self._progress.report().executors_running > 0 or not self._environment.on_kubernetes
        return executors and self._fence is not None and self._fence.storage_answers

    def _judge(self, outcome: Outcome) -> Outcome:
        """Return ``outcome`` in other words: who took the fence, or whose a place is that has a fault."""
        if self._ending.requested.is_set():
            return outcome
        if outcome.reason in {Reason.FENCED, Reason.APPLICATION_FAILED} and self._fence is not None:
            # A script whose query was fenced may end in words of its own, and a lost race for a file has others.
            lost = self._fence.look()
            if lost is not None or outcome.reason is Reason.FENCED:
                return fencing.lost_while_running(lost or Fenced(), self._config)
        if outcome.reason not in faults.PROBED:
            return outcome
        return judge(outcome, readiness.find_fault(self._config, self._credentials))

    def _keep_secret(self, credentials: Credentials | None) -> None:
        # S3A in the JVM reads its credentials from the environment that it inherits.
        os.environ.update(credentials.variables() if credentials else {})
        # Those of an imported snapshot are in the same container, whatever they are used for.
        beside = s3_client.mounted_credentials(self._environment.origin_credentials_directory)
        for each in (credentials, beside):
            self._output.secrets.add(*(each.secrets if each else ()))
        self._credentials = credentials

    def _report_fault(self, fault: Fault | None) -> None:
        if fault is not None:
            # Whether this lasts a second or a day, and what the JVM has to be told then, is not known.
            self._end_ahead()
            extra = {"action": "wait", "reason": fault.reason}
            log.warning("waiting: %s: %s", fault.reason, fault.message, extra=extra)
        self._progress.enter(DriverState.STARTING if fault is None else DriverState.WAITING, fault)

    def _await_script(self, process: spark_session.Process, paths: tuple[str, ...], beside: str) -> None:
        """Have Spark started when the script first asks for it, and its queries looked after."""
        config, environment = self._config, self._environment
        files = Files(paths, beside)
        start = SparkStart(config, environment, self._progress, process, files=files, ending=self._ending)
        start.keep_secret = self._output.secrets.add
        Entry(start.host(self._observe), self._progress, environment.master).guard()
        if self._rehearsing is not None:
            sink_suppression.mute()

        def before_query(session: SparkSession) -> None:
            self._sessions.meet(session)
            start.hold_path(session)

        self._queries.before_session = before_query
        self._queries.install()
        guard_context(self._queries, self._progress, config.stop_grace_seconds, self._ending)

    def _observe(self, session: SparkSession) -> None:
        """Look after the script's first session; the script does not have it yet."""
        self._session = session
        self._sessions.meet(session)
        self._control.meet(session)
        if self._rehearsing is not None:
            sink_suppression.let_files_go(session)
        if self._config.export:
            self._queries.before_start = functools.partial(export_guard.refusal_of, session, self._config.export)
        connect = connector(self._config, self._environment.credentials_directory)
        self._queries.directory_of = EmptyStarts(self._config, connect, self._progress).directory_of
        if self._rehearsing is None:
            self._queries.on_start = functools.partial(query_names.note_from, connect)
            self._queries.before_output = OutputBook(self._config, connect, self._original).refusal_of
        look_for, notice = source_cleaning.file_looker(session), self._progress.notice
        self._queries.before_input = SourceCleaning(self._config, connect, look_for, notice).before_query
        of_version = VersionNotices(self._config, connect, notice).tell if self._rehearsing is None else notice
        guard = StateGuard(self._environment.work_directory, of_version)
        self._queries.before_state = guard.refusal_of
        take_back = functools.partial(self._take_files_back, session)
        self._queries.before_files = (
            take_back if file_sinks.may_know_other_batches(self._config, FIRST_LINEAGE) else None
        )
        if self._rehearsing is None:
            self._queries.before_table = Tables(
                session,
                notice,
                self._queries.before_files,
                apart=self._environment.on_kubernetes,
                pinned=self._config.pin is not None,
            ).before_query
        timeout = self._config.restart.stall_timeout_seconds
        stalls = StallWatch(session, self._queries, self._progress, timeout, self._dependencies_up)
        self._watch = watch.Watch(
            session,
            self._queries,
            self._progress,
            lambda outcome: self._ending.request(self._judge(outcome)),
            living_of(self._config, self._environment),
        )

        epochs = Epochs(self._progress)
        assert self._fence is not None
        clearing = Clearing(self._config.lineage, connect, self._fence.is_held, self._ending.requested)

        def look() -> None:
            epochs.look(self._queries.active())
            self._progress.failures = self._account.look(self._progress.commits > 0)
            stalls.look()
            self._control.log_level.tell_new_executors()
            if self._rehearsing is not None:
                self._rehearsing.look()
            elif self._progress.commits > 0:
                clearing.begin()

        self._watch.look_further = look
        if self._wanted is not None:
            self._watch.want_executors(self._wanted)
        self._watch.start()
        if not self._ending.requested.is_set():
            self._progress.enter(DriverState.RUNNING)

    def _listen(self, session: SparkSession) -> None:
        before_first = functools.partial(self._control.before_first, session)
        session.streams.addListener(ProgressListener(self._progress, before_first, self._inside.last.note))

    def _take_files_back(self, session: SparkSession, checkpoint: str, sink: Sink) -> None:
        others = self._config.lineage == FIRST_LINEAGE
        file_sinks.take_back(session, checkpoint, sink, self._progress.notice, others=others)
        if others:
            return
        from tidegate_spark.driver import starting_point  # noqa: PLC0415 - as above

        passed_by = starting_point.batches_without_output(self._config, self._credentials)
        batch = passed_by.get(checkpoint.rstrip("/").rpartition("/")[2])
        if batch is not None:
            file_sinks.note_without_output(session, sink, batch, self._progress.notice)

    def _after_script(self, outcome: Outcome) -> Outcome:
        """Return how the application ends, once nothing of it runs; a failure does not wait for the others."""
        code = spark_session.jvm_exit_code(connection_lost=outcome.exception in CONNECTION_LOST)
        if code is not None:
            return watch.jvm_outcome(code, self._progress)
        if outcome != COMPLETED:
            return outcome
        return self._await_rest(outcome)

    def _end_at_once(self, code: int, function: str = "os._exit") -> NoReturn:
        """End the driver for a script that calls ``os._exit``; nothing that it left to be done is done.

        An end inside a batch is a failure with any code: the batch is not committed, and nobody would run it again.
        """
        self._ending.script_returned.set()  # its handler of SIGTERM is not called any more
        jvm_code = spark_session.jvm_exit_code()
        outcome = outcome_of_exit(code, function=function)
        inside = messages.ended_inside(function, code)
        if jvm_code is not None:
            outcome = watch.jvm_outcome(jvm_code, self._progress)
        elif (query := query_of_this_batch()) is not None:
            outcome = Outcome(Reason.APPLICATION_FAILED, inside, "SystemExit")
            self._ending.lost = (query, inside)
        elif outcome == COMPLETED:
            finished = dataclasses.replace(outcome, if_cut=inside)
            outcome = watch.first_failure(self._queries) or finished
        self._ending.request(self._judge(outcome))
        self._ending.script_ended.set()
        undisturbed(self._ending.await_end)
        raise AssertionError("await_end() does not return")

    def _await_rest(self, outcome: Outcome) -> Outcome:
        """Wait for the script's threads and for its queries, as long as nobody asks for the end."""
        quiet = 0
        while not self._ending.requested.is_set():
            # A thread that runs may start a failed query again, as the script may before its last line.
            quiet = 0 if what_goes_on() else quiet + 1
            # Twice: a thread of a pool that has just taken its work looks like one that waits for it.
            if quiet > 1:
                failure = watch.first_failure(self._queries)
                if failure:
                    return failure
                if not (self._queries.active() or self._queries.starting):
                    self._exit_calls.call()
                    return outcome
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
                termination = self._rehearsing.told(termination, spark_session.jvm_exit_code())
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
        budget = Budget.of(self._config.stop_grace_seconds)
        context = pyspark.SparkContext._active_spark_context
        if context is not None and spark_session.jvm_exit_code() is None:
            # Removes the executors; without it their pods stay behind in state Error.
            began = time.monotonic()
            stopped = logs.within(budget.session, context.stop)
            words = "stopped in" if stopped else "did not stop within"
            log.info("stopping: the session %s %.1f s", words, time.monotonic() - began)
        flush_output()
        if self._rehearsing is not None and self._claimed:
            # What is left of it goes with the snapshot.
            logs.within(CLEARING_SECONDS, self._forget_rehearsal)
        content = self._output.content()
        if termination.reason is Reason.PROTOCOL_MISMATCH:
            return  # what the operator asks for, of the storage too, is not understood
        logs.within(budget.upload_within(self._ending.left()), lambda: self._put_log(content))

    def _put_log(self, content: bytes) -> None:
        place, directory = self._config.storage, self._environment.credentials_directory
        if self._rehearsing is not None and self._config.start_from is not None:
            place = self._config.start_from.storage  # its own is empty now
            if not self._claimed:
                return
        try:
            # An end that came before the storage was looked at: what is not ours must not be written to.
            credentials = (
                s3_client.read_credentials(directory, self._config.credentials_secret)
                if self._claimed
                else readiness.check_storage(self._config, directory)
            )
        except FaultError:
            return
        client = s3_client.connect(place, credentials, timeout_seconds=3.0)
        self._output.secrets.add(*(credentials.secrets if credentials else ()))
        logs.put_driver_log(client, place, self._process_name, self._output.secrets.clean_bytes(content))
        logs.prune_logs(client, place)
