"""Sets up the hooks that run before each query of the script starts. The hooks do I/O."""

from __future__ import annotations

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tidegate_spark.contract.protocol import FIRST_LINEAGE, DriverConfig
from tidegate_spark.driver import launch_state
from tidegate_spark.driver.launch_storage import LaunchStorage
from tidegate_spark.exports import export_guard
from tidegate_spark.process.environment import Environment
from tidegate_spark.process.progress import Progress
from tidegate_spark.queries import source_cleaning
from tidegate_spark.queries.empty_starts import EmptyStarts
from tidegate_spark.queries.noted_queries import NotedQueries
from tidegate_spark.queries.queries import Queries
from tidegate_spark.queries.sinks import file_sinks
from tidegate_spark.queries.sinks.file_sinks import Sink
from tidegate_spark.queries.sinks.output_registry import OutputRegistry
from tidegate_spark.queries.sinks.tables import Tables
from tidegate_spark.queries.source_cleaning import SourceCleaning
from tidegate_spark.queries.state.state_guard import StateGuard
from tidegate_spark.queries.state.version_notices import VersionNotices
from tidegate_spark.queries.unnamed.registry import UnnamedQueries
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_spark.storage import query_names

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True)
class QuerySetup:
    """Prepares the queries of one driver process."""

    config: DriverConfig
    environment: Environment
    progress: Progress
    storage: LaunchStorage

    def prepare(self, queries: Queries, session: SparkSession, connect: Callable[[], SnapshotRepository]) -> None:
        """Set the hooks of queries.

        Args:
            queries: of this process.
            session: the script's first one.
            connect: reaches the application's storage with the credentials of the moment.
        """
        config, notice, rehearses = self.config, self.progress.notice, self.config.rehearsal is not None
        if config.export:
            queries.before_start = functools.partial(export_guard.refusal_of, session, config.export)
        queries.directory_of = EmptyStarts(config, connect, self.progress).directory_of
        is_there = source_cleaning.file_checker(session)
        queries.before_input = SourceCleaning(config, connect, is_there, notice).before_query
        of_version = notice if rehearses else VersionNotices(config, connect, notice).publish
        as_fault = functools.partial(launch_state.as_fault, config)
        unnamed = UnnamedQueries(config.lineage, connect, as_fault=as_fault, notice=of_version)
        queries.name_unnamed, queries.forget_unnamed = unnamed.name, unnamed.forget
        queries.before_state = StateGuard(self.environment.work_directory, of_version).refusal_of
        queries.before_named = NotedQueries(config.lineage, connect, as_fault=as_fault).refusal_of
        if rehearses:
            return
        knows_others = file_sinks.may_know_other_batches(config, FIRST_LINEAGE)
        queries.before_files = self._roll_files_back if knows_others else file_sinks.refuse_another_log
        queries.on_start = functools.partial(query_names.note_from, connect)
        queries.before_output = OutputRegistry(config, connect, self.storage.original).refusal_of
        queries.before_table = Tables(
            session,
            notice,
            self._roll_files_back if knows_others else None,
            apart=self.environment.on_kubernetes,
            pinned=config.pin is not None,
        ).before_query

    def _roll_files_back(self, session: SparkSession, checkpoint: str, sink: Sink) -> None:
        others = self.config.lineage == FIRST_LINEAGE
        file_sinks.roll_back(session, checkpoint, sink, self.progress.notice, others=others)
        if others:
            return
        passed_by = launch_state.batches_without_output(self.config, self.storage.credentials)
        for batch in passed_by.get(checkpoint.rstrip("/").rpartition("/")[2], ()):
            file_sinks.note_without_output(session, sink, batch, self.progress.notice)
