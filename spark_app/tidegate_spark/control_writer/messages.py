"""Messages: why a message is not sent or has no reply, and the command's usage. No I/O."""

from __future__ import annotations

DESCRIPTION = "Send a control message to an application through its storage; no Kubernetes is needed, no broker."

TIME_WITHOUT_ZONE = "'expires' is a time that does not know its zone."
CLOSED = "The writer is closed."


def epilog(written: int, unwritten: int, usage: int, untold: int, unapplied: int) -> str:
    """Return how the command is used; the numbers are its exit codes."""
    return f"""\
ADDRESS is the application's place: its spec.storage.uri, namespace and name. PAYLOAD is JSON, or @FILE, or - for what
comes on standard input. Credentials are found where boto3 looks for them (AWS_ACCESS_KEY_ID, AWS_SECRET_ACCESS_KEY, a
profile, the machine's own), or in the folder of --credentials, as a Secret is mounted.

exit codes:
  {written}  written; with --wait: applied
  {unwritten}  not known to be written; send it again with the same --id
  {usage}  the command line, or the message, is none
  {untold}  written, and no outcome was reported in time
  {unapplied}  Failed, Rejected, Expired or RolledBack

examples:
  python3 -m tidegate_spark.control_writer s3://shop/apps/shop/orders ping --wait
  python3 -m tidegate_spark.control_writer s3://shop/apps/shop/orders reload-config '{{"limit": 3}}' --expires 600
"""


def payload_not_json(error: Exception) -> str:
    return f"The payload is not what JSON can say: {error}."


def message_too_long(size: int, longest: int) -> str:
    return f"The message has {size} bytes as JSON, and at most {longest} are taken."


def expiry_of_other_kind(expires: object) -> str:
    return f"'expires' must be seconds from now, a timedelta or a time, and not {expires!r:.80}."


def expiry_unreadable(error: Exception) -> str:
    return f"'expires' is no time: {error}."


def not_sent_here(message: str) -> str:
    return f"Message {message!r:.200} was not sent by this writer; a writer knows only its own."


def at_store(trouble: object) -> str:
    """Return what follows a text if the store was the trouble; empty if it was none."""
    return f" The store: {trouble}" if trouble else ""


def buffer_full(waiting: int, trouble: object) -> str:
    return f"{waiting} messages wait to be written, and no more may.{at_store(trouble)}"


def not_written(timeout: float, trouble: object) -> str:
    return f"Not written after {timeout:.0f} s: {trouble or 'the store has not answered yet'}"


def refused_for_good(error: Exception) -> str:
    return f"The store refuses messages, and this writer is of no use any more: {error}"


def no_reply(name: str, timeout: float, uri: str, trouble: str) -> str:
    return (
        f"No reply to message {name!r:.200} in {timeout:.0f} s. It is in the inbox, and takes effect when an "
        f"application at {uri} reads it: check that one runs there, with "
        "spec.control.channel.storage.replyRetentionSeconds above 0. A message that was sent before with the "
        f"same id and source gets no second reply.{trouble}"
    )
