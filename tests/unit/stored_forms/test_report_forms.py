"""What operator and runtime tell each other: configuration, reports, last words. Golden copies.

The agent and the snapshot pod are asked by the operator's own client, on 127.0.0.1.
"""

import asyncio
import dataclasses
import json
import urllib.request
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from aiohttp import web

from tidegate.agent.client import AgentClient, Unanswered
from tidegate.pods.records.faults import has_unknown_termination, read_termination
from tidegate.pods.records.record import Exit
from tidegate.snapshots.rules import pods
from tidegate_spark.contract.configuration_protocol import divide, put_together, with_rest
from tidegate_spark.contract.control_protocol import (
    AskedMessage,
    ChannelReport,
    ChannelSettings,
    ControlReport,
    ControlSettings,
    InboxSettings,
    KafkaSettings,
    MessageReport,
    MessageState,
    ModelSettings,
    QueryAcknowledgement,
    RabbitSettings,
)
from tidegate_spark.contract.json_form import OpenEnum, to_json
from tidegate_spark.contract.protocol import (
    EXPECTS_STATE,
    OPENS_FROM_SNAPSHOT,
    AgentReport,
    DriverConfig,
    DriverState,
    EarlierPin,
    ExecutorSettings,
    Fault,
    Notice,
    Pin,
    QueryReport,
    RestartSettings,
    StartFrom,
    Storage,
    Termination,
    Worked,
)
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.rehearsal_protocol import Rehearsal, RehearsalEnd, RehearsalResult
from tidegate_spark.contract.repartition_protocol import RepartitionedQuery, RepartitionEnd
from tidegate_spark.contract.snapshot_protocol import (
    PROGRESS_PATH,
    QueryPin,
    SnapshotReport,
    SnapshotReports,
    SnapshotState,
    StateFacts,
)
from tidegate_spark.driver import start
from tidegate_spark.driver.startup_failure import startup_termination
from tidegate_spark.process.progress import Commit, Ends, Leaving, Progress
from tidegate_spark.process.redaction import Secrets, clean_report
from tidegate_spark.process.termination import termination_text
from tidegate_spark.snapshots.service.pod import word_of
from tidegate_spark.snapshots.service.progress_server import serve
from tidegate_testing.driver_process import driver_config
from tidegate_testing.observations import app_with, launched, running_driver
from tidegate_testing.older_agent import older_agent
from tidegate_testing.stored_forms import Form, assert_read, assert_written, each, each_written, stored

NOW = 1767225600.25
PLACE = Storage("s3://here/apps/shop/orders", "https://store:9000", "eu-west-3", path_style_access=True)
CONFIG = DriverConfig(
    app="orders",
    namespace="shop",
    uid="0b1c-uid",
    epoch=6,
    lineage=2,
    pod_name="orders-driver",
    main="local:///opt/app/main.py",
    storage=PLACE,
    executor=ExecutorSettings(
        instances=3,
        image="shop/orders:7",
        image_pull_policy="IfNotPresent",
        service_account="tidegate-driver",
        pod_name_prefix="orders-e6",
        cores=2,
        cpu_request="1500m",
        cpu_limit="2",
        heap_mib=1400,
        overhead_mib=600,
        template={"spec": {"containers": [{"name": "executor"}]}},
    ),
    driver_heap_mib=1536,
    args=("--topic", "orders"),
    py_files=("local:///opt/app/rules.zip",),
    spark_conf={"spark.sql.shuffle.partitions": "8"},
    state_partitions=8,
    min_batches_to_retain=20,
    stop_grace_seconds=90,
    credentials_secret="storage-keys",
    injected=False,
    restart=RestartSettings(5, 1800, 300, 900, (NOW - 60, NOW - 30)),
    start_from=StartFrom(
        PLACE, "up-2", "rollback-up-2", False, 1, "shop/orders:6", "origin-keys", (EarlierPin("up-1", "rb-up-1", 3),)
    ),
    export="s3://here/apps/shop/old/exports/e-1/manifest.json",
    apart=True,
    program="9d3f",
    pin=Pin("up-3", "shop/orders:6"),
    rehearsal=Rehearsal(batches=3, timeout_seconds=600, queries=("main", "dedupe")),
    # One of the three is all that there ever is.
    channel=ChannelSettings(
        KafkaSettings("kafka-0:9092", "control", "answers", True, {"security.protocol": "SASL_SSL"}),
        RabbitSettings("amqps://rabbit:5671/shop", "control", "answers"),
        "channel-keys",
        InboxSettings(2.5, 3600.0),
        ("reload-config", "ping"),
    ),
)

TERMINATION = Termination(
    Reason.APPLICATION_FAILED,
    "no such column: price",
    epoch=6,
    exception="AnalysisException",
    batches={"main": 41, "dedupe": 7},
    boundary=False,
    failures=(NOW - 60, NOW),
    committed=12,
    adopt_epoch=8,
    adopt_lineage=3,
    rehearsal=RehearsalEnd(RehearsalResult.FAILED, Reason.STATE_SCHEMA, {"main": 2}),
    repartition=RepartitionEnd(
        Reason.STATE_DIFFERS, 9, 500, {"main": RepartitionedQuery(41, 500, 4)}, 2, {"pin": 1.5, "spark": 20.25}
    ),
)
STARTUP_TERMINATION = Termination(
    Reason.APPLICATION_FAILED, "The driver could not start: no pyspark", 6, "ModuleNotFoundError", committed=0
)

SNAPSHOT = SnapshotReport(
    id="nightly-1",
    state=SnapshotState.WAITING,
    reason=Reason.STORAGE_UNAVAILABLE,
    message="No answer from https://store:9000.",
    files=12,
    bytes=73400320,
    of_files=20,
    of_bytes=104857600,
    rows=500,
    new_bytes=4096,
    created=NOW,
    seconds=3.5,
    lineage=2,
    parent="nightly-0",
    digest="sha256:0c2f",
    manifest="s3://here/apps/shop/orders/snapshots/nightly-1/manifest.json",
    spark_version="4.1.0",
    image="shop/orders:7",
    app="shop/orders",
    app_uid="0b1c-uid",
    spec_hash="5d1a0e",
    spec='{"application.image":"shop/orders:7"}',
    queries={"main": QueryPin(41, "v1\n{}", StateFacts("RocksDB", 8, ("stateStoreSave",), one_place=True))},
)
SNAPSHOTS = SnapshotReports((SNAPSHOT,))

ACKNOWLEDGED = QueryAcknowledgement(41, 3, 5, ("exec-1/7: KeyError",), 9, ("exec-2/8: it ended",))
MESSAGE = MessageReport(
    "resource-uid",
    MessageState.FAILED,
    14,
    "HandlerFailed",
    "exec-1/7: KeyError",
    {"main": ACKNOWLEDGED},
    {"uri": "s3://here/dump"},
)
CONTROL = ControlReport(
    last=16,
    positions={"main": 14},
    paused=True,
    messages=(MESSAGE,),
    channel=ChannelReport("Kafka", True, "SomeLost", "5 messages are gone.", NOW - 90, 40, {"Done": 38}, 2),
    asked=(AskedMessage(MESSAGE, "snapshot", '{"label":"a"}', "control/1", "desk", "snap-1"),),
)
REPORT = AgentReport(
    app="orders",
    uid="0b1c-uid",
    epoch=6,
    state=DriverState.RUNNING,
    fault=Fault(Reason.BROKER_UNAVAILABLE, "kafka-0:9092 does not answer"),
    queries=(
        QueryReport(
            name="main",
            batch_id=41,
            input_rows_per_second=120.5,
            processed_rows_per_second=240.25,
            input_rows_total=1000,
            batch_duration_ms=800,
            state_rows=500,
            state_bytes=65536,
            last_commit_time=NOW - 5,
            lag_rows=30,
            committed=1,
            busy_ms_total=800,
            source_partitions=6,
            state_partitions=8,
        ),
        QueryReport(name="dedupe", batch_id=7, active=False, failed=True),
    ),
    executors_wanted=5,
    executors_running=4,
    notices=(Notice(1, "StatePartitionsKept", "The state keeps its 8 partitions.", warning=True),),
    ready=True,
    failures=(NOW - 60,),
    snapshots=(SNAPSHOT,),
    control=CONTROL,
    task_seconds=91.5,
    executors_idle=2,
    executors_leaving=1,
    executors_short_since=NOW,
    executors_leaving_since=NOW - 20,
    executor_leaving_longest="17",
)


def asked(body: bytes, ask: Callable[[AgentClient, Any], Awaitable[Any]]) -> Any:
    """Return what the operator makes of a pod that answers every question with this."""

    async def question() -> Any:
        async def answer(_: web.Request) -> web.Response:
            return web.Response(body=body)

        with pytest.MonkeyPatch.context() as patch:
            async with older_agent(answer, patch) as client:
                found = await ask(client, running_driver(launched(app_with()), ip="127.0.0.1"))
        return found

    return asyncio.run(question())


def asked_agent(body: bytes) -> Any:
    return asked(body, lambda client, pod: client.read_progress(("shop", "orders"), pod))


def asked_snapshot_pod(body: bytes) -> Any:
    return asked(body, lambda client, pod: client.read_snapshot_pod(pod))


def reported_by_agent(report: AgentReport) -> bytes:
    """Return what an agent answers whose driver has come to where the report says."""
    config = driver_config(
        report.app, "local:///main.py", PLACE, uid=report.uid, epoch=report.epoch, lineage=report.lineage
    )
    progress = Progress(config)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("tidegate_spark.process.progress.time.time", lambda: NOW)
        progress.work(report.task_seconds, report.executors_idle)
        progress.query_committed("main", Commit(41, 1000, 120.5, 240.25, 800, 500, 65536, NOW - 5, 30, 14, 6, 8))
        for query in report.queries:
            if query.starts_empty:
                progress.query_starts_empty(query.name)
        for query in report.queries:
            if query.at_batch:
                progress.query_at_batch(query.name, True)
        progress.query_started("dedupe", 7)
        progress.query_ended("dedupe", failed=True)
        for query in report.queries:
            if query.continuous or query.real_time:
                progress.query_triggers(query.name, continuous=query.continuous, real_time=query.real_time)
        ends = Ends(report.executors_ended, max(0.0, report.executors_held_until - NOW))
        progress.executors(wanted=5, running=4, leaving=Leaving(1, "17", 20.0), ends=ends)
    progress.enter(report.state, report.fault)
    for notice in report.notices:
        progress.notice(notice.reason, notice.message, notice.warning)
    progress.failures = report.failures
    progress.snapshots, progress.control = lambda: report.snapshots, lambda: report.control
    return to_json(clean_report(progress.report(), Secrets())).encode()


def configured(body: bytes) -> DriverConfig:
    return start.read_config(body.decode())


def ended(body: bytes) -> Termination | None:
    return read_termination(Exit(1, "Error", body.decode(), NOW))


WITH_CONTROL = dataclasses.replace(
    CONFIG,
    protocol=1,
    control=ControlSettings(ModelSettings(("s3://models/orders/", "file:///opt/models/"), 1 << 20), 30.0),
)
WITH_OPENING = dataclasses.replace(WITH_CONTROL, opening=OPENS_FROM_SNAPSHOT, adopt=True)
WITH_AGENT_SECRET = dataclasses.replace(WITH_OPENING, agent_secret="orders-agent-6-5d1a0e9c77")
WITH_SPEC_HASH = dataclasses.replace(WITH_AGENT_SECRET, spec_hash="762dde7ba559de6e")
WITH_ADOPTED_LINEAGE = dataclasses.replace(WITH_SPEC_HASH, adopt_lineage=3)
assert WITH_ADOPTED_LINEAGE.start_from is not None
WITH_OFFSETS = dataclasses.replace(
    WITH_ADOPTED_LINEAGE,
    start_from=dataclasses.replace(WITH_ADOPTED_LINEAGE.start_from, offsets='{"orders":{"0":120,"1":17}}'),
)
WITH_EXPECTED_STATE = dataclasses.replace(WITH_OFFSETS, expects=EXPECTS_STATE)
WITH_EXPECTED_BATCHES = dataclasses.replace(WITH_EXPECTED_STATE, expects_batches={"main": 41, "dedup größe": 7})
WITH_BATCHES_LEFT = dataclasses.replace(WITH_EXPECTED_BATCHES, expects_left={"main": 42, "dedup größe": 8})
WITH_BATCHES_BEFORE = dataclasses.replace(WITH_BATCHES_LEFT, expects_otherwise=({"main": 40, "dedup größe": 6},))
WITH_FOLLOWED_LAUNCH = dataclasses.replace(WITH_BATCHES_BEFORE, follows_epoch=6)
ADOPTED = dataclasses.replace(TERMINATION, adopt_opening=True, adopted_from="9a7f-uid")
WITH_BATCH_FAILED = dataclasses.replace(ADOPTED, adopt_found=True, given_up=True, batch_failed=True)
WITH_ENDS = dataclasses.replace(REPORT, protocol=1, lineage=2, executors_ended=3, executors_held_until=NOW + 20.0)
WITH_TRIGGERS = dataclasses.replace(
    WITH_ENDS, queries=(REPORT.queries[0], dataclasses.replace(REPORT.queries[1], continuous=True))
)
WITH_EMPTY_STARTS = dataclasses.replace(
    WITH_TRIGGERS, queries=(REPORT.queries[0], dataclasses.replace(WITH_TRIGGERS.queries[1], starts_empty=True))
)
WITH_BATCH_UNDER_WAY = dataclasses.replace(
    WITH_EMPTY_STARTS, queries=(dataclasses.replace(REPORT.queries[0], at_batch=True), WITH_EMPTY_STARTS.queries[1])
)
WITH_REAL_TIME = dataclasses.replace(
    WITH_BATCH_UNDER_WAY,
    queries=(dataclasses.replace(WITH_BATCH_UNDER_WAY.queries[0], real_time=True), WITH_BATCH_UNDER_WAY.queries[1]),
)
FORMS = [
    # From before operator and runtime told each other which protocol they speak.
    Form("driver-config", CONFIG, configured, None),
    Form("agent-report", REPORT, asked_agent, None),
    # From before it said how control messages are carried out.
    Form("driver-config-with-protocol", dataclasses.replace(CONFIG, protocol=1), configured, None),
    # From before it said why the launch may be in another lineage than the one that the storage names.
    Form("driver-config-with-control", WITH_CONTROL, configured, None),
    # From before the operator signed.
    Form("driver-config-with-opening", WITH_OPENING, configured, None),
    # From before it said of which version of the spec the launch is.
    Form("driver-config-with-agent-secret", WITH_AGENT_SECRET, configured, None),
    # From before a person could name the lineage to be taken over.
    Form("driver-config-with-spec-hash", WITH_SPEC_HASH, configured, None),
    # From before offsets could be named with which a lineage begins.
    Form("driver-config-with-adopted-lineage", WITH_ADOPTED_LINEAGE, configured, None),
    # From before it said what has to be in the storage.
    Form("driver-config-with-offsets", WITH_OFFSETS, configured, None),
    # From before it said which batch has to be there.
    Form("driver-config-with-expected-state", WITH_EXPECTED_STATE, configured, None),
    # From before it said so of each query: one number for all says of none whether it is older.
    Form("driver-config-with-expected-batch", WITH_EXPECTED_STATE, configured, None),
    # From before it said so of the lineage that a rollback leaves.
    Form("driver-config-with-expected-batches", WITH_EXPECTED_BATCHES, configured, None),
    # From before it said so of what a rollback starts from if that lineage was never filled.
    Form("driver-config-with-batches-left", WITH_BATCHES_LEFT, configured, None),
    # From before a rollback said after which launch it was decided.
    Form("driver-config-with-batches-before", WITH_BATCHES_BEFORE, configured, None),
    Form("driver-config-with-followed-launch", WITH_FOLLOWED_LAUNCH, configured, lambda it: to_json(it).encode()),
    # From before it told in which lineage it runs.
    Form("agent-report-with-protocol", dataclasses.replace(REPORT, protocol=1), asked_agent, None),
    # From before it told of executors that end.
    Form("agent-report-with-lineage", dataclasses.replace(REPORT, protocol=1, lineage=2), asked_agent, None),
    # From before it told which queries have a continuous trigger.
    Form("agent-report-with-ends", WITH_ENDS, asked_agent, None),
    # From before it told which queries start empty each time.
    Form("agent-report-with-triggers", WITH_TRIGGERS, asked_agent, None),
    # From before it told which queries are at a batch.
    Form("agent-report-with-empty-starts", WITH_EMPTY_STARTS, asked_agent, None),
    # From before it reported which queries are in real-time mode.
    Form("agent-report-with-batch-under-way", WITH_BATCH_UNDER_WAY, asked_agent, None),
    Form("agent-report-with-real-time", WITH_REAL_TIME, asked_agent, reported_by_agent),
    # From before a place could be taken over.
    Form("termination", TERMINATION, ended, None),
    # From before it told whether there is anything that says where the application is.
    Form("termination-with-adoption", ADOPTED, ended, None),
    # From before a batch was given up for which no executor was left.
    Form("termination-with-found-claim", dataclasses.replace(ADOPTED, adopt_found=True), ended, None),
    # From before a batch that fails was distinguished from one that is out of time.
    Form("termination-with-batch-given-up", dataclasses.replace(ADOPTED, adopt_found=True, given_up=True), ended, None),
    # From before it told what the processes have shown.
    Form("termination-with-batch-failed", WITH_BATCH_FAILED, ended, None),
    Form(
        "termination-with-work",
        dataclasses.replace(WITH_BATCH_FAILED, worked=(Worked(900, NOW - 7200, NOW - 60), Worked(2, NOW - 7200, NOW))),
        ended,
        lambda value: termination_text(value, Secrets()).encode(),
    ),
    # What writes it repeats the contract by hand, and can say no more than this.
    Form("last-words", STARTUP_TERMINATION, ended, None),
    Form("last-words-with-adoption", STARTUP_TERMINATION, ended, None),
    Form("last-words-with-found-claim", STARTUP_TERMINATION, ended, None),
    Form("last-words-with-batch-given-up", STARTUP_TERMINATION, ended, None),
    Form("last-words-with-batch-failed", STARTUP_TERMINATION, ended, None),
    Form("last-words-with-work", STARTUP_TERMINATION, ended, None),
    Form("snapshot-reports", SNAPSHOTS, asked_snapshot_pod, lambda it: word_of(it.snapshots, Secrets()).encode()),
]


@each(FORMS)
def test_what_is_told_is_read(form: Form) -> None:
    form.assert_read()


@each_written(FORMS)
def test_what_is_told_is_what_is_written(form: Form) -> None:
    form.assert_written()


@each(FORMS)
def test_a_field_of_a_later_version_changes_nothing(form: Form) -> None:
    form.assert_read_with_more()


@each_written(FORMS)
def test_what_is_told_tells_of_every_field(form: Form) -> None:
    form.assert_reported()


def test_the_words_of_a_driver_that_could_not_start_are_written_as_they_are_read() -> None:
    words = startup_termination(ModuleNotFoundError("no pyspark"), stored("driver-config").decode())
    assert_written("last-words-with-work", words.encode())


def test_the_words_that_a_snapshot_pod_leaves_are_read_as_its_answer_is() -> None:
    assert_read("snapshot-reports", pods._parse(stored("snapshot-reports").decode()), SNAPSHOTS)


def left_by_pod(body: bytes) -> SnapshotReports | None:
    return pods._parse(body.decode())


REPORTS = [
    *(form for form in FORMS if not isinstance(form.value, DriverConfig)),
    Form("snapshot-reports", SNAPSHOTS, left_by_pod, None),
]
"""What a runtime reports, and how the operator reads it."""
NO_MEMBER = ["", "OfALaterVersion", "running", "x" * 3000, "\x00", "Kubernetes\n", "__members__", "UNKNOWN"]


def with_message(value: Any, document: Any, word: str) -> Iterator[tuple[Any, Any]]:
    """Yield a report, and its document, with each word in turn replaced by one that is not known."""
    if isinstance(value, OpenEnum | Reason):
        yield Reason.NONE if isinstance(value, Reason) and not word else type(value)["UNKNOWN"], word
    for name, part in parts_of(value):
        if isinstance(document, list) or name in document:
            for other, text in with_message(part, document[name], word):
                yield with_part(value, name, other), with_part(document, name, text)


def parts_of(value: Any) -> list[tuple[Any, Any]]:
    if isinstance(value, tuple):
        return list(enumerate(value))
    return list(value.items() if isinstance(value, dict) else vars(value).items() if has_fields(value) else ())


def with_part(value: Any, name: Any, part: Any) -> Any:
    if has_fields(value):
        return dataclasses.replace(value, **{name: part})
    return {**value, name: part} if isinstance(value, dict) else type(value)([*value[:name], part, *value[name + 1 :]])


def has_fields(value: Any) -> bool:
    return dataclasses.is_dataclass(value)


@each(REPORTS)
@pytest.mark.parametrize("word", NO_MEMBER)
def test_a_word_that_is_not_known_here_hides_nothing_else_of_a_report(form: Form, word: str) -> None:
    changed = list(with_message(form.value, json.loads(stored(form.name)), word))
    assert changed
    for value, document in changed:
        assert_read(form.name, form.read(json.dumps(document).encode()), ended_for_a_reason(value))


def ended_for_a_reason(value: Any) -> Any:
    """Return what is read of a report: the end of a process always has a reason, because a condition needs one."""
    if isinstance(value, Termination) and not value.reason:
        return dataclasses.replace(value, reason=Reason.UNKNOWN)
    return value


@pytest.mark.parametrize("word", NO_MEMBER[1:])
def test_all_words_of_a_report_may_be_unknown(word: str) -> None:
    document = json.loads(stored("agent-report"))
    for entry in (document, document["fault"], *document["snapshots"], *document["control"]["messages"]):
        entry.update({name: word for name in ("state", "reason") if name in entry})
    report = asked_agent(json.dumps(document).encode())
    assert report.state is DriverState.UNKNOWN
    assert (report.queries, report.failures, report.notices) == (REPORT.queries, REPORT.failures, REPORT.notices)


def test_a_word_of_another_type_is_no_word() -> None:
    for name, ask in (("agent-report", asked_agent), ("snapshot-reports", asked_snapshot_pod)):
        assert isinstance(ask(stored(name).replace(b'"Waiting"', b"7")), Unanswered)
    assert ended(stored("termination").replace(b'"ApplicationFailed"', b"[]")) is None


@pytest.mark.parametrize("name", ["termination", "last-words"])
def test_a_termination_message_of_a_newer_format_is_refused_though_each_of_its_fields_could_be_read(name: str) -> None:
    later = json.dumps({**json.loads(stored(name)), "version": 2})
    assert ended(later.encode()) is None
    assert has_unknown_termination(Exit(1, "Error", later, 0.0))
    assert not has_unknown_termination(Exit(1, "Error", later.replace('"version": 2', '"version": 1'), 0.0))


def test_a_termination_message_that_is_nested_too_deeply_is_none() -> None:
    assert ended(b'{"a":' + b"[" * 100_000) is None


def test_a_snapshot_pod_answers_with_figures_alone() -> None:
    server = serve("127.0.0.1", 0, lambda: SNAPSHOTS.snapshots)
    assert server is not None
    with urllib.request.urlopen(f"http://127.0.0.1:{server.port}{PROGRESS_PATH}") as answer:
        reported = json.loads(answer.read())
    server.close()
    whole = json.loads(stored("snapshot-reports"))["snapshots"][0]
    shown = {"id", "state", "reason", "files", "bytes", "of_files", "of_bytes", "rows", "new_bytes", "seconds"}
    nothing = json.loads(to_json(SnapshotReport("", SnapshotState.WAITING)))
    assert reported == {"snapshots": [{**nothing, **{name: whole[name] for name in shown}}]}


def test_a_configuration_in_two_parts_is_written_and_read_as_it_is_on_its_way_to_pods_that_run() -> None:
    kept, rest = divide(WITH_FOLLOWED_LAUNCH, ("spark.task.cpus",))
    assert_written("driver-config-rest", rest.encode(), to_the_byte=True)
    text = with_rest(kept, "orders-config-6-6a396ae3aa", rest)
    assert_written("driver-config-in-two-with-followed-launch", text.encode())
    now = stored("driver-config-in-two-with-followed-launch").decode()
    assert_read("driver-config-in-two-with-followed-launch", put_together(now, rest.encode()), WITH_FOLLOWED_LAUNCH)
    # From before it said so of what a rollback starts from otherwise.
    before = stored("driver-config-in-two-with-batches-before").decode()
    assert_read("driver-config-in-two-with-batches-before", put_together(before, rest.encode()), WITH_BATCHES_BEFORE)
    before = stored("driver-config-in-two-with-batches-left").decode()
    assert_read("driver-config-in-two-with-batches-left", put_together(before, rest.encode()), WITH_BATCHES_LEFT)
    # From before it said so of the lineage that a rollback leaves.
    before = stored("driver-config-in-two-with-expected-batches").decode()
    assert_read(
        "driver-config-in-two-with-expected-batches", put_together(before, rest.encode()), WITH_EXPECTED_BATCHES
    )
    # From before it said so of each query.
    before = stored("driver-config-in-two-with-expected-batch").decode()
    assert_read("driver-config-in-two-with-expected-batch", put_together(before, rest.encode()), WITH_EXPECTED_STATE)
    # From before it said which batch has to be there.
    before = stored("driver-config-in-two-with-expected-state").decode()
    assert_read("driver-config-in-two-with-expected-state", put_together(before, rest.encode()), WITH_EXPECTED_STATE)
    # From before it said what has to be in the storage.
    before = stored("driver-config-in-two-with-offsets").decode()
    assert_read("driver-config-in-two-with-offsets", put_together(before, rest.encode()), WITH_OFFSETS)
    # From before offsets could be named, a person could name the lineage, and it said of which version it is.
    before = stored("driver-config-in-two-with-adopted-lineage").decode()
    assert_read("driver-config-in-two-with-adopted-lineage", put_together(before, rest.encode()), WITH_ADOPTED_LINEAGE)
    then = stored("driver-config-in-two-with-spec-hash").decode()
    assert_read("driver-config-in-two-with-spec-hash", put_together(then, rest.encode()), WITH_SPEC_HASH)
    earlier = stored("driver-config-in-two").decode()
    assert_read("driver-config-in-two", put_together(earlier, rest.encode()), WITH_AGENT_SECRET)
