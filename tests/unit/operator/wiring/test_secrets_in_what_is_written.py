"""A planted secret is in nothing that the operator writes, as whole documents; an API server in this process."""

import dataclasses
import json
import subprocess
import sys
from typing import Any

import msgspec
import pytest
from aiohttp import web

from tidegate.agent.client import AgentClient, Unanswered
from tidegate.agent.session import Answer
from tidegate.api.streaming_app import StreamingApp, encode_status
from tidegate.app.builders.driver import build_driver_pod
from tidegate.app.observation import PodRejection
from tidegate.app.rules.plan import decide
from tidegate.cache.index import Index
from tidegate.cache.kinds.unreadable import InvalidResourceReporter
from tidegate.cache.known_apps import UnreadableApp
from tidegate.cache.process_state import ProcessState, Refusal
from tidegate.engine.events import EventPublisher
from tidegate.engine.rules.actions import PublishEvent
from tidegate.kube.failures import Forbidden, Invalid, failure_from_response
from tidegate.pods.records.read_pods import Pod, build_record
from tidegate_spark.contract.protocol import ROLE_DRIVER, AgentReport, DriverState, Fault, Termination, to_json
from tidegate_spark.contract.reasons import ForeignReason, Reason
from tidegate_spark.contract.secret_shapes import REDACTED
from tidegate_testing.observations import KEYS, NOW, PLATFORM, app_with, driver_of, launched, observe, running_driver
from tidegate_testing.plans import written
from tidegate_testing.scripted_server import Server, talking_to
from tidegate_testing.values import body

PASSWORD = "hunter2hunter2"
SHAPED = f"amqp://orders:{PASSWORD}@rabbit/v"
"""What shows it by its shape alone."""
APP: StreamingApp = app_with(
    {
        "sparkConf": {"spark.orders.password": PASSWORD},
        "application.args": ["--password", PASSWORD],
        "application.env": [{"name": "API_TOKEN", "value": PASSWORD}],
    }
)
POD = build_driver_pod(APP, 1, 1, PLATFORM)
PODS = "/api/v1/namespaces/shop/pods"


class Sink:
    """Takes everything, and keeps it whole."""

    def __init__(self) -> None:
        self.documents: list[Any] = []

    async def create(self, path: str, manifest: Any, kind: type[Any]) -> Any:
        self.documents.append(manifest)
        return msgspec.Raw(b"{}")

    async def merge_patch(self, path: str, change: Any, kind: type[Any]) -> Any:
        self.documents.append(change)
        return msgspec.Raw(b"{}")

    @property
    def text(self) -> str:
        return json.dumps(self.documents)


def answer(code: int, message: str) -> web.Response:
    return web.json_response({"message": message, "reason": "Invalid"}, status=code)


@pytest.mark.parametrize("code", [422, 403])
async def test_an_answer_that_quotes_the_pod_is_known_without_the_secrets_of_the_pod(code: int) -> None:
    config = next(each["value"] for each in POD["spec"]["containers"][0]["env"] if each["name"] == "TIDEGATE_CONFIG")
    quoted = f'Pod "orders-driver" is invalid: spec: Invalid value: "{PASSWORD}", {config}, {json.dumps(POD)}'
    server = Server(answer(code, quoted), answer(code, quoted))
    async with talking_to(server) as kube:
        created = await kube.create(PODS, POD, Pod)
        tried = await kube.try_out(PODS, POD, patience=5.0)
    for failure in (created, tried):
        assert isinstance(failure, Invalid | Forbidden)
        assert PASSWORD not in failure.message
        assert failure.message.startswith(f'Pod "orders-driver" is invalid: spec: Invalid value: "{REDACTED}"')


def test_any_other_answer_is_known_without_shapes() -> None:
    reported = json.dumps({"message": f'admission webhook "x" denied the request: {SHAPED}'}).encode()
    failure = failure_from_response(403, reported, {})
    assert isinstance(failure, Forbidden)
    assert PASSWORD not in failure.message
    assert REDACTED in failure.message


@pytest.mark.parametrize("kind", ["StreamingApp", "StreamSnapshot", "ControlMessage"])
async def test_an_event_shows_none(kind: str) -> None:
    api: Any = Sink()
    event = PublishEvent(ForeignReason("Reason"), f"no answer from {SHAPED}", True, "1")
    await EventPublisher(api).publish(APP.metadata, event, NOW, kind)
    assert PASSWORD not in api.text
    assert api.documents[0]["message"] == f"no answer from amqp://orders:{REDACTED}@rabbit/v"


async def test_the_conditions_of_a_resource_that_cannot_be_read_show_none() -> None:
    api: Any = Sink()
    index = Index()
    index.put_app(body({"application.runtime": SHAPED}))
    known = index.app(("shop", "orders"))
    assert isinstance(known, UnreadableApp)
    quoting = dataclasses.replace(known, problem=f"spec.application.runtime: Invalid enum value '{SHAPED}'")
    await InvalidResourceReporter(api, EventPublisher(api)).report(quoting, NOW)
    assert PASSWORD not in api.text
    assert len(api.documents) == 2


def pod(termination: str) -> Pod:
    ended = {"terminated": {"exitCode": 1, "reason": "Error", "message": termination}}
    waiting = {"waiting": {"reason": "CrashLoopBackOff", "message": f"back-off {SHAPED}"}}
    states = [{"name": "driver", "image": "i", "state": waiting, "lastState": ended}]
    metadata = {
        **POD["metadata"],
        "uid": "pod-1",
        "resourceVersion": "1",
        "creationTimestamp": "2026-01-01T00:00:00Z",
    }
    status = {"phase": "Failed", "message": f"evicted: {SHAPED}", "containerStatuses": states}
    return msgspec.convert({"metadata": metadata, "spec": {}, "status": status}, Pod)


@pytest.mark.parametrize(
    "message", [to_json(Termination(Reason.APPLICATION_FAILED, f"no answer from {SHAPED}", 1)), SHAPED]
)
def test_a_status_shows_none_of_a_pod_that_a_runtime_of_another_version_left(message: str) -> None:
    record = build_record(pod(message))
    app = launched(APP)
    o = observe(app, driver=driver_of(app, phase="Failed", ended=record.ended, waiting=record.waiting))
    plan = decide(o, NOW)
    events = [action.message for action in plan.actions if isinstance(action, PublishEvent)]
    shown = json.dumps(encode_status(written(o).status)) + json.dumps(events) + plan.message + repr(record)
    assert PASSWORD not in shown


def test_the_status_shows_none_of_a_refusal_that_is_remembered() -> None:
    failure = failure_from_response(422, json.dumps({"message": f"spec.x: {SHAPED}"}).encode(), {})
    refusal = Refusal(
        "orders-driver", "h", 0, Reason.LAUNCH_REFUSED, failure.message, NOW, 1, server_message=failure.message
    )
    for o in (
        observe(APP, memory=ProcessState(refusal=refusal)),
        observe(launched(APP), rejection=PodRejection(ROLE_DRIVER, failure.message)),
    ):
        plan = decide(o, NOW)
        assert PASSWORD not in json.dumps(encode_status(written(o).status)) + plan.message


class Answering(AgentClient):
    """A client of agents to which one answer comes, whatever it asks."""

    def __init__(self, content: bytes) -> None:
        super().__init__(KEYS, 1)
        self.content = content

    async def _send(self, authorization: str, *_: Any) -> Answer | Unanswered:
        return Answer(200 if authorization else 401, self.content)


async def test_a_report_of_a_runtime_of_another_version_shows_none() -> None:
    report = AgentReport("orders", "u", 1, DriverState.WAITING, Fault(Reason.BROKER_UNAVAILABLE, SHAPED))
    reported = await Answering(to_json(report).encode()).read_progress(
        ("shop", "orders"), running_driver(launched(APP))
    )
    assert not isinstance(reported, Unanswered)
    assert reported.fault is not None
    assert reported.fault.message == f"amqp://orders:{REDACTED}@rabbit/v"


PROGRAM = f"""
import logging
import structlog
from tidegate.wiring.logs import configure_logging
configure_logging("FORM", "info")
log = structlog.get_logger()
log.info("no answer from {SHAPED}", why="{SHAPED}")
try:
    raise ValueError("{SHAPED}")
except ValueError:
    log.exception("reconcile failed")
    logging.getLogger("kopf").exception("a library's {SHAPED}")
"""


@pytest.mark.parametrize("form", ["json", "console"])
def test_the_log_shows_none_in_words_fields_traces_and_what_libraries_say(form: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("FORM", form)], capture_output=True, text=True, check=True
    )
    assert f"no answer from amqp://orders:{REDACTED}@rabbit/v" in done.stderr
    assert done.stderr.count("ValueError: ") >= 2
    # A trace shows the line that raised it, whose text the log redacts as well.
    assert PASSWORD not in done.stderr
