"""The process of a snapshot pod: carries out orders where no driver does. Does I/O.

It can be interrupted and repeated. Exit codes: 0 every order has ended, or is held by somebody; 75 (EXIT_DEPENDENCY)
something did not pass in time, such as a storage that does not answer; 143 (EXIT_STOPPED) it was asked to stop; 1 no
usable configuration. The termination message has the progress of each order.
"""

from __future__ import annotations

import dataclasses
import logging
import os
from collections.abc import Callable, Mapping
from typing import Any

from tidegate_spark.contract.json_form import NewerOrderError
from tidegate_spark.contract.protocol import (
    CONFIG_VARIABLE,
    EXIT_APPLICATION,
    EXIT_DEPENDENCY,
    EXIT_OK,
    EXIT_STOPPED,
    TERMINATION_MESSAGE_LIMIT,
    DriverConfig,
    from_json,
    from_order,
    to_json,
)
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.snapshot_protocol import (
    ORDERS_VARIABLE,
    SnapshotOrders,
    SnapshotReport,
    SnapshotReports,
    SnapshotState,
)
from tidegate_spark.process.environment import Environment
from tidegate_spark.process.helper_end import HelperEnd
from tidegate_spark.process.log_lines import log_to_stderr
from tidegate_spark.process.newer_orders import refused_reports
from tidegate_spark.process.redaction import Secrets, secret_values
from tidegate_spark.process.termination import write_message
from tidegate_spark.snapshots.reach import connector
from tidegate_spark.snapshots.service import progress_server
from tidegate_spark.snapshots.service import snapshot_messages as messages
from tidegate_spark.snapshots.service.operations import Carrier, Export
from tidegate_spark.snapshots.service.queue import ENDED
from tidegate_spark.snapshots.service.worker import SnapshotWorker
from tidegate_spark.storage import s3_client
from tidegate_spark.storage.claim import claim_messages, claiming
from tidegate_spark.storage.claim.claimed import CLAIMED_SPARK
from tidegate_spark.storage.s3_client import FaultError
from tidegate_spark.storage.store import SnapshotError

FOR_THE_KUBELET = frozenset(
    (
        Reason.STORAGE_UNAVAILABLE,
        Reason.CATALOG_LOST,
        Reason.SNAPSHOT_MISSING,
        Reason.NEWER_FORMAT,
        Reason.CLAIM_DAMAGED,
    )
)
"""Reasons to end and be started again, with pauses that are the kubelet's."""
ATTEMPTS = 5
"""At one order; no fault that passes sooner takes more."""
LONGEST_MESSAGE = 400

log = logging.getLogger("tidegate")


def main(export: Export) -> int:
    """Carry the orders out, leave word, and return the exit code; ``export`` makes exports."""
    log_to_stderr(os.environ)
    environment = Environment.read(os.environ)
    text = os.environ.get(ORDERS_VARIABLE, "")
    try:
        config = from_json(DriverConfig, os.environ.get(CONFIG_VARIABLE, ""))
        orders = from_order(SnapshotOrders, text)
        worker = worker_of(config, environment.credentials_directory, export)
        worker.give(orders)
    except NewerOrderError as error:
        return _refuse(environment, text, error)
    except ValueError as error:
        log.error("%s, %s: %s", CONFIG_VARIABLE, ORDERS_VARIABLE, error)
        return EXIT_APPLICATION

    def word() -> str:
        credentials = s3_client.mounted_credentials(environment.credentials_directory)
        secrets = Secrets((*secret_values(os.environ), *(credentials.secrets if credentials else ())))
        reports = worker.reports()
        return word_of(tuple(map(stopped, reports)) if worker.is_stopping else reports, secrets)

    end = HelperEnd(environment.termination_log)
    end.listen(worker.stop, word)
    progress_server.serve(environment.bind_address, environment.status_port, worker.reports)
    code = carry_out(worker, end.asked.wait)
    return end.leave(word(), code)


def _refuse(environment: Environment, text: str, error: NewerOrderError) -> int:
    """Leave word that none of the orders is carried out; return the exit code: another start would change nothing."""
    log.error("%s: %s", ORDERS_VARIABLE, error)
    refused = refused_reports(text, error)
    write_message(environment.termination_log, word_of(refused, Secrets(secret_values(os.environ))))
    return EXIT_OK


def worker_of(config: DriverConfig, credentials_directory: str, export: Export) -> SnapshotWorker:
    """Return who carries orders out for an application that does not run."""

    def refuse_foreign() -> None:
        try:
            credentials = s3_client.read_credentials(credentials_directory, config.credentials_secret)
            claim = claiming.read_claim(s3_client.connect(config.storage, credentials), config.storage)
        except s3_client.EndpointError as error:
            fault = s3_client.fault_of(error, config.storage, config.credentials_secret)
            raise (FaultError(fault) if fault else error) from error
        carrier.spark_version = judge_claim(claim[0] if claim is not None else None, config)

    connect = connector(config, credentials_directory)
    carrier = Carrier(config, connect, before_taking=refuse_foreign, make_export=export)
    return SnapshotWorker(carrier, runs=False)


def judge_claim(claim: Mapping[str, Any] | None, config: DriverConfig) -> str:
    """Return the Spark of the last driver, empty if that is not known: there is none here to ask. Pure.

    Args:
        claim: ``app.json``, None if there is none.
        config: whose storage it should be.

    Raises:
        SnapshotError: it is another application's.
    """
    if claim is None:
        return ""
    owner = claim["uid"]
    if owner != config.uid:
        raise SnapshotError(claim_messages.belongs_to_another(config.storage.uri, owner))
    return str(claim.get(CLAIMED_SPARK, ""))


def carry_out(worker: SnapshotWorker, pause: Callable[[float], object]) -> int:
    """Attempt what there is until it has ended, is the kubelet's to wait for, or is to stop; return the exit code."""
    for _ in range(ATTEMPTS * len(worker.reports())):
        if worker.is_stopping:
            break
        seconds = worker.attempt_next()
        if all(map(is_settled, worker.reports())):
            break
        pause(seconds or 0.0)
    unfinished = [report for report in worker.reports() if not has_ended(report)]
    for report in unfinished:
        extra = {"action": "snapshot", "reason": report.reason}
        log.warning("snapshot %s: to be tried again: %s", report.id, report.message, extra=extra)
    if not unfinished:
        return EXIT_OK
    return EXIT_STOPPED if worker.is_stopping else EXIT_DEPENDENCY


def stopped(report: SnapshotReport) -> SnapshotReport:
    """Return what is left of an order's report by a process that was asked to stop; pure.

    What has ended, or has said why it waits, stays as it is.
    """
    if has_ended(report) or report.reason is not Reason.NONE:
        return report
    far = messages.stopped_after(report.files, report.of_files) if report.of_files else messages.STOPPED
    return dataclasses.replace(report, reason=Reason.STOPPED, message=far)


def has_ended(report: SnapshotReport) -> bool:
    """Return whether another start of the pod would change nothing by itself; pure."""
    return report.state in ENDED or report.state is SnapshotState.HELD


def is_settled(report: SnapshotReport) -> bool:
    """Return whether this process is through with an order; pure."""
    return has_ended(report) or report.reason in FOR_THE_KUBELET


def word_of(reports: tuple[SnapshotReport, ...], secrets: Secrets) -> str:
    """Return the termination message: as much of the reports as the kubelet takes, and no secret; pure.

    What there is no room for goes in this order: offsets, the version's spec, long messages, queries, the last reports.
    """
    cleaned = tuple(dataclasses.replace(each, message=secrets.clean(each.message)) for each in reports)
    for shorter in (_as_it_is, _without_offsets, _without_spec, _with_short_message, _without_queries):
        cleaned = tuple(map(shorter, cleaned))
        text = to_json(SnapshotReports(cleaned))
        if len(text.encode()) <= TERMINATION_MESSAGE_LIMIT:
            return text
    while cleaned and len(to_json(SnapshotReports(cleaned)).encode()) > TERMINATION_MESSAGE_LIMIT:
        cleaned = cleaned[:-1]
    return to_json(SnapshotReports(cleaned))


def _as_it_is(report: SnapshotReport) -> SnapshotReport:
    return report


def _without_offsets(report: SnapshotReport) -> SnapshotReport:
    pins = {name: dataclasses.replace(pin, offsets="") for name, pin in report.queries.items()}
    return dataclasses.replace(report, queries=pins)


def _without_spec(report: SnapshotReport) -> SnapshotReport:
    return dataclasses.replace(report, spec="")


def _with_short_message(report: SnapshotReport) -> SnapshotReport:
    if len(report.message) <= LONGEST_MESSAGE:
        return report
    return dataclasses.replace(report, message=report.message[: LONGEST_MESSAGE - 1] + "…")


def _without_queries(report: SnapshotReport) -> SnapshotReport:
    return dataclasses.replace(report, queries={})
