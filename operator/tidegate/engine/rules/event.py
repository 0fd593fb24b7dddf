"""Kubernetes Events, as ``kubectl describe`` shows them below the resource. No I/O."""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import Any

from tidegate.api.streaming_app import API_VERSION, KIND, Metadata
from tidegate_spark.contract.protocol import LABEL_APP, LABEL_MANAGED_BY, MANAGED_BY
from tidegate_spark.contract.reasons import AnyReason
from tidegate_spark.contract.secret_shapes import without_shapes

COMPONENT = "tidegate"
MESSAGE_LIMIT = 1024
"""Characters; the API server refuses longer messages."""


def build_event(  # noqa: PLR0913 - the parts of one sentence, all but the first by name
    about: Metadata,
    *,
    reason: AnyReason,
    message: str,
    now: datetime,
    warning: bool = False,
    key: str = "",
    kind: str = KIND,
    any_message: bool = False,
) -> dict[str, Any]:
    """Return an Event about an application or another resource of ours.

    Its name follows from what it says: a decision that is carried out twice, because the operator died in between,
    is published once (the second create is answered with a conflict).

    Args:
        about: metadata of the resource.
        reason: one word in CamelCase.
        message: for a person; cut at :data:`MESSAGE_LIMIT`.
        now: when it happened, with a time zone.
        warning: True for what needs attention.
        key: distinguishes what happens again with the same message, such as the epoch.
        kind: of the resource.
        any_message: it is the same event whatever the message.
    """
    message = without_shapes(message)
    identity = "\0".join((about.uid, reason, "" if any_message else message, key))
    digest = hashlib.sha256(identity.encode()).hexdigest()[:16]
    time = now.isoformat(timespec="seconds").replace("+00:00", "Z")
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {
            "name": f"{about.name}.{digest}",
            "namespace": about.namespace,
            "labels": {**({LABEL_APP: about.name} if kind == KIND else {}), LABEL_MANAGED_BY: MANAGED_BY},
        },
        "involvedObject": {
            "apiVersion": API_VERSION,
            "kind": kind,
            "name": about.name,
            "namespace": about.namespace,
            "uid": about.uid,
        },
        "type": "Warning" if warning else "Normal",
        "reason": reason,
        "message": message if len(message) <= MESSAGE_LIMIT else message[: MESSAGE_LIMIT - 1] + "…",
        "firstTimestamp": time,
        "lastTimestamp": time,
        "count": 1,
        "source": {"component": COMPONENT},
        "reportingComponent": COMPONENT,
        "reportingInstance": COMPONENT,
    }
