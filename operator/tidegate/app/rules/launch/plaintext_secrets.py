"""Reports secrets in plain text in the spec, and where each belongs. No I/O.

The application runs all the same. Where another field can hold the value unseen, the API server refuses new specs; what
was stored before that rule is reported here.
"""

from __future__ import annotations

from tidegate.api.spec_hash import version_of
from tidegate.api.streaming_app import Condition, StreamingApp, StreamingAppStatus
from tidegate.api.values.plain_secrets import ARGUMENTS, CHANNEL, SETTINGS, STORAGE, PlainSecret, plain_secrets
from tidegate.app.observation import Observation
from tidegate.app.rules.launch import secret_messages as messages
from tidegate.app.rules.present_condition import present_condition, present_event
from tidegate.engine.rules.actions import PublishEvent
from tidegate_spark.contract.reasons import Reason

PLAINTEXT_SECRETS = "PlaintextSecrets"
"""Type of the condition."""
OF_THE_STORAGE = ("fs.s3a.access.key", "fs.s3a.secret.key", "fs.s3a.session.token")
"""Settings for which there is a field; the CRD refuses a value of theirs."""
_HADOOP = "spark.hadoop."


def secrets_condition(o: Observation, now: float) -> tuple[Condition, ...]:
    """Return the condition of secrets in the spec; none if there are none.

    It is apart from Ready, Reconciling and Stalled: the application is as well as it was.
    """
    return present_condition(o, PLAINTEXT_SECRETS, Reason.PLAINTEXT_SECRET, _message(o.app), now)


def secret_events(o: Observation, status: StreamingAppStatus) -> tuple[PublishEvent, ...]:
    """Publish an event when secrets come into the spec, or others do: once for each version.

    Args:
        o: everything that is known.
        status: what is to be written, with the condition if there are any.
    """
    found = status.condition(PLAINTEXT_SECRETS)
    message = found.message if found is not None else ""
    return present_event(o, PLAINTEXT_SECRETS, Reason.PLAINTEXT_SECRET, message, o.spec_hash)


def _message(app: StreamingApp) -> str:
    found = plain_secrets(version_of(app.spec))
    if not found:
        return ""
    fields = tuple(dict.fromkeys(each.field for each in found))
    return messages.in_plain_text(fields, tuple(dict.fromkeys(_place_for(each) for each in found)))


def _place_for(secret: PlainSecret) -> str:
    """Return where a secret belongs."""
    if secret.place.startswith(CHANNEL):
        return messages.CHANNEL
    if secret.place.startswith(STORAGE):
        return messages.STORAGE
    if secret.place == SETTINGS:
        name = secret.field.removeprefix(f"spec.{SETTINGS}[").removesuffix("]")
        if name.removeprefix(_HADOOP) in OF_THE_STORAGE:
            return messages.STORAGE
        return messages.HADOOP if name.startswith(_HADOOP) else messages.SETTING
    if secret.place == ARGUMENTS:
        return messages.ARGUMENT
    return messages.VARIABLE
