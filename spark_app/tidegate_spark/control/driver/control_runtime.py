"""Connects the control stream of one driver: message service, server for workers, pauses, queries. Talks to Spark."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidegate_spark.contract.control_protocol import LINE_FILE, RELOAD_MODEL, ChannelSettings, ControlReport
from tidegate_spark.contract.object_paths import checkpoint_directory, directory_of_query
from tidegate_spark.contract.protocol import DriverConfig, DriverState
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.control.channels.intake import Broker, Intake
from tidegate_spark.control.channels.metrics import ChannelMetrics
from tidegate_spark.control.channels.pending_replies import Ended
from tidegate_spark.control.channels.ports import Channel, Reply
from tidegate_spark.control.channels.replies import reply_of
from tidegate_spark.control.channels.transports import factory
from tidegate_spark.control.channels.transports.storage import StorageChannel
from tidegate_spark.control.driver.driver_operations import SparkOperations
from tidegate_spark.control.messages import messages
from tidegate_spark.control.messages.handlers import declared
from tidegate_spark.control.service.message_service import MessageService
from tidegate_spark.control.worker import program
from tidegate_spark.control.worker.driver_client import ADDRESS_PROPERTY, QUERY_PROPERTY, TOKEN_PROPERTY
from tidegate_spark.control_log.entries import Entry, Kind
from tidegate_spark.control_log.offsets import SOURCE, Positions, joins_late
from tidegate_spark.monitoring.continuous import is_continuous
from tidegate_spark.process.environment import Environment
from tidegate_spark.process.logs import within
from tidegate_spark.process.progress import Commit, Progress
from tidegate_spark.process.redaction import Secrets, clean_message
from tidegate_spark.queries.entries import Entry as Query
from tidegate_spark.queries.queries import Queries
from tidegate_spark.queries.writers import is_real_time
from tidegate_spark.snapshots.reach import connector
from tidegate_spark.snapshots.service.service import SnapshotService
from tidegate_spark.storage import s3_client

if TYPE_CHECKING:
    from prometheus_client import CollectorRegistry
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

    from tidegate_spark.control.driver.driver_server import Port
    from tidegate_spark.control.driver.pausing import Pauser

KNOWN_SECONDS = 10.0
"""What a query that starts waits to know whether it is to be held."""
OPEN_SECONDS = 30.0
"""From the beginning of the program: then it is taken to have said what it understands, query or not, and each query
to have planned its first batch."""

JOINS_LATE = messages.JOINS_LATE

END_SECONDS = 2.0
_NAME = re.compile(rf"(?:^|[\s,(]){SOURCE}(?:$|[\s,)])")
"""The source's, as Spark prints a leaf of a plan: of a source of files that is the path, which may have it in it."""


class Control:
    """Everything of a driver that has to do with control messages."""

    def __init__(
        self,
        config: DriverConfig,
        environment: Environment,
        *,
        progress: Progress,
        queries: Queries,
        snapshots: SnapshotService,
    ) -> None:
        """Prepare; nothing is read, and nobody listens, yet."""
        self._config, self._environment, self._progress, self._queries = config, environment, progress, queries
        self._connect = connect = connector(config, environment.credentials_directory)
        seconds = config.control.message_timeout_seconds
        self._operations = SparkOperations(
            progress,
            snapshots,
            config.lineage,
            is_open=self._is_open,
            inspection=self._inspection,
            message_seconds=seconds,
            directory_of=queries.directory,
        )
        self.log_level = self._operations.log_level
        channel = config.channel if config.rehearsal is None else None
        answers = factory.answers(channel) if channel is not None else None
        self.service = MessageService(connect, self._operations, declared(), answers=answers, message_seconds=seconds)
        self._intake = self._intake_of(channel) if channel is not None else None
        self._secrets, self._positions = Secrets(), Positions(config.lineage, self._planned, queries.directory)
        self._session: SparkSession | None = None
        self._pauser: Pauser | None = None
        self._port: Port | None = None
        self._running_since: float | None = None
        self._before: frozenset[str] | None = None
        """Directories of the queries that took part in the process before; None: not looked at yet."""
        self._served: SparkSession | None = None
        """The session that knows the source."""
        progress.control = self.report
        progress.on_commit = self._committed
        queries.before_control = self.before_query
        queries.around = self.around_start
        program.hosted_by(self)

    def meet(self, session: SparkSession) -> None:
        """Begin to have a session."""
        from tidegate_spark.control.driver.pausing import Pauser  # noqa: PLC0415 - talks to the JVM, which is there now

        self._session, self._pauser = session, Pauser(self._pausable)
        self._operations.meet(session, self._pauser)
        if self._intake is not None:
            self._intake.start()

    def notify(self, registry: CollectorRegistry, secrets: Secrets) -> None:
        """Register metrics in ``registry``, and a channel's secrets in ``secrets``; no report contains one of them."""
        registry.register(ChannelMetrics(self._config, lambda: self.report().channel))
        self._secrets = secrets

    def report(self) -> ControlReport:
        """Return how far everything is; asks nobody."""
        report = self.service.report()
        return report if self._intake is None else dataclasses.replace(report, channel=self._intake.report())

    def let_stop(self) -> None:
        """Have queries that are held end; called before queries are stopped."""
        self.service.stop()
        if self._intake is not None:
            self._intake.stop()
        if self._pauser is not None:
            self._pauser.let_stop()

    def end(self, reason: Reason) -> None:
        """Write down what came of messages at last; called when no query runs, and not waited for long."""
        if reason is not Reason.FENCED and self.service.is_known(0):
            within(END_SECONDS, self.service.last_poll)

    # --- queries ---

    def before_first(self, session: SparkSession, query_id: str) -> None:
        """Hold a query of a session that starts, if the application is paused; called in the query's own thread."""
        if self._pauser is None or not self.service.is_known(KNOWN_SECONDS):
            return
        if self.service.paused:
            query = session.streams.get(query_id)
            if query is not None and not is_continuous(query):
                self._pauser.hold_first(query)

    def _pausable(self) -> list[Query]:
        """Return the queries that run and have a moment between two batches."""
        return [entry for entry in self._queries.active() if entry.query is not None and not is_continuous(entry.query)]

    def before_query(self, writer: DataStreamWriter, name: str) -> str:
        """Take note of whether a query that starts takes part; return why it must not start, empty if it may."""
        if self._port is None or not takes_part(writer):
            self._operations.asks_no_more(name)
            return ""
        if is_real_time(writer):
            return messages.NOT_IN_REAL_TIME
        repository = self._connect()
        if self._before is None:
            self._before = frozenset(map(directory_of_query, self._positions.asked(repository)))
        text = self._positions.newest_text(repository, name)
        if text is not None and joins_late(text):
            return JOINS_LATE
        self._operations.asks(name)
        position = self._positions.newest(repository, name) if text is not None else None
        if position is not None:
            self.service.begins(name, position)
        return ""

    @contextlib.contextmanager
    def around_start(self, name: str) -> Iterator[None]:
        """Have the tasks of the query that is started inside know its name, and where to ask."""
        if self._session is None:
            yield
            return
        properties = {QUERY_PROPERTY: name}
        if self._port is not None and name in self._operations.names:
            line = self._port.line
            properties |= {ADDRESS_PROPERTY: line.address, TOKEN_PROPERTY: line.token}
        context: Any = self._session.sparkContext
        before = {key: context.getLocalProperty(key) for key in properties}
        try:
            for key, value in properties.items():
                context.setLocalProperty(key, value)
            yield
        finally:
            for key, earlier in before.items():
                context.setLocalProperty(key, earlier)

    def serve(self, session: SparkSession) -> None:
        """Listen, and have Spark know the source; may be called again."""
        from tidegate_spark.control.driver.driver_server import Answers, Port  # noqa: PLC0415 - few programs need it
        from tidegate_spark.control.worker.source import ControlSource  # noqa: PLC0415 - likewise

        if self._port is None:
            place = self._config.storage
            settings, clean = self._config.control, self._secrets.clean
            answers = Answers(
                self.service, declared(), self._positions, self._connect, place, settings=settings, clean=clean
            )
            self._port = Port(answers, self._environment.bind_address, self._environment.pod_ip)
            _write(Path(self._environment.work_directory) / LINE_FILE, json.dumps(vars(self._port.line)))
        if self._served is not session:
            session.dataSource.register(ControlSource)
            self._served = session

    def _planned(self, name: str, batch: int) -> str:
        """Return what Spark knows of the offsets of a query's batch; it starts before it is known here."""
        from tidegate_spark.control.driver.spark_log import planned_offsets  # noqa: PLC0415 - few programs need it

        found = (entry.query for entry in self._queries.entries() if entry.name == name and entry.query is not None)
        return next((planned_offsets(query, batch) for query in found), "")

    def _inspection(self, entry: Entry) -> Callable[[], Entry] | None:
        if entry.type != RELOAD_MODEL or entry.kind is not Kind.MESSAGE:
            return None
        from tidegate_spark.control.worker import models  # noqa: PLC0415 - few programs need it

        directory, secret = self._environment.credentials_directory, self._config.credentials_secret
        place, settings = self._config.storage, self._config.control.models
        if settings.allowed_prefixes is None:
            settings = dataclasses.replace(settings, allowed_prefixes=(f"{place.uri}/",))
        # From now on, however often it is repeated: nobody waits for it any longer.
        is_over = models.within(self._config.control.message_timeout_seconds)

        def check() -> Entry:
            fetch = models.fetcher(
                place,
                lambda: s3_client.read_credentials(directory, secret),
                size_limit=settings.size_limit,
                is_over=is_over,
            )
            return models.inspected(entry, fetch, settings)

        return check

    def _intake_of(self, settings: ChannelSettings) -> Intake:
        config, directory = self._config, self._environment.channel_credentials_directory
        name = f"tidegate-{config.namespace}-{config.app}"

        def make() -> Channel:
            if settings.storage is not None:
                return StorageChannel(settings.storage, self._connect, config.storage, config.credentials_secret)
            jvm = self._session.sparkContext._jvm if self._session is not None else None
            return factory.make_channel(settings, directory, name, jvm, self._secrets.add)

        def reply(ended: Ended) -> Reply:
            reported = dataclasses.replace(ended, report=clean_message(ended.report, self._secrets))
            return reply_of(reported, config.namespace, config.app)

        broker = Broker(factory.kind_of(settings), make, reply, settings.types)
        return Intake(broker, self.service, self._progress.notice)

    def _committed(self, query: str, commit: Commit) -> None:
        if commit.control >= 0:
            self.service.committed(query, commit.batch_id, commit.control)

    def _is_open(self) -> bool:
        report = self._progress.report()
        if report.state is not DriverState.RUNNING:
            return False
        now = time.monotonic()
        self._running_since = self._running_since or now
        # What is in the log before a query's first batch is in force there, and none of its records.
        new = [query.name for query in report.queries if query.active and query.batch_id < 0]
        begun = bool(report.queries) and self._operations.names.isdisjoint(new)
        # Those of the process before come again: what they have not been asked would be done without them.
        started = {checkpoint_directory(query.name) for query in report.queries}
        begun = begun and (self._before or frozenset()) <= started
        return begun or now - self._running_since >= OPEN_SECONDS


def takes_part(writer: DataStreamWriter) -> bool:
    """Return whether a query has a source of control messages; asks the JVM."""
    leaves = writer._df._jdf.queryExecution().analyzed().collectLeaves()
    return any(_NAME.search(str(leaves.apply(number))) for number in range(leaves.size()))


def _write(path: Path, content: str) -> None:
    path.unlink(missing_ok=True)
    with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w", encoding="utf-8") as file:
        file.write(content)
