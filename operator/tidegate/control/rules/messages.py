"""Messages of a ControlMessage's conditions and events. No I/O.

Text from a driver's report is cut to a length that a status can hold.
"""

from __future__ import annotations

from tidegate.pods.records.fault_messages import OLDER_RUNTIME, with_remedy
from tidegate_spark.contract.control_protocol import LARGEST_PAYLOAD, LONGEST_ERROR, MessageReport, QueryAcknowledgement
from tidegate_spark.contract.reasons import Reason

LONGEST_REPORTED = 1024
"""Characters of what a driver reports of a message."""
_MOST_QUERIES = 8
_SEND_ANOTHER = "Send the message again under another name."

# --- the application ---


def app_unreadable(app: str, namespace: str) -> str:
    return (
        f"StreamingApp {app} cannot be read. Correct the field that its conditions name: "
        f'"kubectl describe streamingapp {app} -n {namespace}".'
    )


def app_not_found(app: str, namespace: str) -> str:
    return f"StreamingApp {app} does not exist in namespace {namespace}. The message waits for it."


def app_deleting(app: str) -> str:
    return f"StreamingApp {app} is being deleted and receives no more messages."


def app_not_started(app: str) -> str:
    return f"StreamingApp {app} has never run, as far as its status says. The message waits for it."


def app_suspended(app: str) -> str:
    return f"StreamingApp {app} is suspended (spec.suspend). The message waits until it runs again."


def app_ended(app: str, phase: str) -> str:
    return f"StreamingApp {app} is {phase}. The message waits until it runs again."


def app_not_running(app: str) -> str:
    return f"StreamingApp {app} receives no messages at the moment. The message waits until it runs."


def app_replaced(app: str, *, recreated: bool, offered: bool) -> str:
    what = "was deleted and created again" if recreated else "was deleted"
    when = "before it reported the outcome of the message" if offered else "before the message was offered to it"
    return f"StreamingApp {app} {what} {when}. {_SEND_ANOTHER}"


# --- on its way to the driver ---


def offered(pod: str) -> str:
    return f"The message is offered to the driver in pod {pod}."


def queued(in_progress: int) -> str:
    return f"Earlier messages come first; {in_progress} of them are in progress."


def order_refused(pod: str, answer: str) -> str:
    return f"The agent in pod {pod} refused the messages: {answer}. They are offered again. {OLDER_RUNTIME}"


def with_outcome_unknown(message: str) -> str:
    """Return the text for a message that a driver received, and that may be in the log."""
    return f"{message} A driver received it before; its outcome is known when the application runs again."


def payload_too_large() -> str:
    return f"The payload is longer than {LARGEST_PAYLOAD // 1024} KiB. {_SHORTEN}"


def payload_too_deep(levels: int) -> str:
    return f"The payload is nested deeper than {levels} levels. {_SHORTEN}"


_SHORTEN = (
    "Shorten it; or write it to an object store, and send its address, if the application's handler for this type "
    "accepts an address."
)


def too_many(app: str, most: int, mib: int) -> str:
    return (
        f"{most} messages, or {mib} MiB of payloads, wait for StreamingApp {app} already. "
        "When some of them have ended, send the message again under another name."
    )


def too_many_without_app(app: str, namespace: str, most: int, mib: int) -> str:
    return (
        f"StreamingApp {app} does not exist, and {most} messages, or {mib} MiB of payloads, wait for such applications "
        f"in namespace {namespace} already. Create the application, and send the message again under another name."
    )


def expired(seconds: int, before: str) -> str:
    """Return the text; ``before`` is what the condition said until then, which is why it was not delivered."""
    why = f" Until then: {before}" if before else ""
    return f"Not delivered within spec.expirationSeconds ({seconds}).{why}"


# --- from a channel ---


def lost() -> str:
    return (
        "The driver of the application no longer knows this message from the channel. Send the message again through "
        "the channel, with another id."
    )


def from_channel(app: str) -> str:
    return f"The message came from a channel of StreamingApp {app}; its driver reports the outcome when it runs."


def resource_refused(answer: str) -> str:
    return f"The API server refuses the ControlMessage: {answer}"


# --- in the log of the driver ---


def logged(report: MessageReport) -> str:
    text = reported(report) or "It takes effect with the next batch."
    return f"The message has number {report.sequence} in the control log. {text}"


def unknown_state(report: MessageReport) -> str:
    text = reported(report) or "The driver reports a state of the message that this operator does not know."
    return with_remedy(Reason.UNKNOWN, text)


def with_pause(message: str) -> str:
    return f"{message} The application is paused."


def in_effect(report: MessageReport) -> str:
    if not report.queries:
        return "In effect."
    named = sorted(report.queries.items())
    queries = "; ".join(_of_query(name, it) for name, it in named[:_MOST_QUERIES])
    more = f"; and {len(named) - _MOST_QUERIES} more queries" if len(named) > _MOST_QUERIES else ""
    return f"In effect: {queries}{more}. {reported(report)}".strip()[:LONGEST_REPORTED]


def _of_query(name: str, it: QueryAcknowledgement) -> str:
    missing = f" ({it.missing[0][:LONGEST_ERROR]})" if it.missing else ""
    return f"{name[:64]} since batch {it.batch}, {it.applied} of {it.ran} workers{missing}"


def handler_failed(report: MessageReport) -> str:
    first = next(((name, it.errors[0]) for name, it in sorted(report.queries.items()) if it.errors), None)
    if first is None:
        return "The application could not do what the message asks for; the log of the driver says why."
    return f"A handler failed in query {first[0][:64]}: {first[1]}"[:LONGEST_REPORTED]


def rejected(_: MessageReport) -> str:
    return (
        "The application rejects the message: its type is unknown, or its payload does not fit the type. Correct that, "
        "and send another message."
    )


def rejected_by_older(message: str) -> str:
    """Return the text for a message that the operator understands and the driver does not."""
    return (
        f"{message} The operator knows the format, so the runtime is older: upgrade the runtime by another "
        "spec.restartNonce of the application or, if spec.application.runtime is Image, by a newer image."
    )


def expired_in_log(_: MessageReport) -> str:
    return "Logged, but spec.expirationSeconds had passed when the next batch was planned."


def rolled_back(_: MessageReport) -> str:
    return (
        "A rollback undid the batch in which the message took effect; the message is no longer in effect. "
        f"{_SEND_ANOTHER}"
    )


def reported(report: MessageReport) -> str:
    """Return what the driver itself reports, empty if nothing."""
    return report.message.strip()[:LONGEST_REPORTED]


# --- its snapshot ---


def snapshot_name_taken(name: str) -> str:
    return f"StreamSnapshot {name} exists and does not belong to this message. {_SEND_ANOTHER}"


def snapshot_deleted(name: str) -> str:
    return f"StreamSnapshot {name} is being deleted. {_SEND_ANOTHER}"


def snapshot_refused(answer: str) -> str:
    return f"The API server refuses the StreamSnapshot of the message: {answer} {_SEND_ANOTHER}"


def snapshot_unconfirmed(identity: str) -> str:
    return f"The driver does not confirm that it took snapshot {identity}. {_SEND_ANOTHER}"


def snapshot_taken(identity: str, name: str) -> str:
    return f"The driver took snapshot {identity}; StreamSnapshot {name} is created from it."


def snapshot_copying(name: str, progress: str) -> str:
    return f"StreamSnapshot {name} is created from what the driver took. {progress}".strip()


def of_snapshot(name: str, message: str) -> str:
    return f"StreamSnapshot {name}: {message}"


def exporting(name: str, progress: str) -> str:
    return f"The state of StreamSnapshot {name} is exported to files. {progress or 'The export comes next.'}"


def exported(rows: int, tables: int) -> str:
    return f"The state is exported: {rows} rows in {tables} files."


# --- the plan ---


def summary(messages: int, *, given: int, written: int, retired: int) -> str:
    return f"{messages} control messages: {given} offered to the driver, {written} statuses written, {retired} deleted"
