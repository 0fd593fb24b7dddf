"""The reply to the sender of a channel message, as a CloudEvent in JSON. No I/O of its own."""

from __future__ import annotations

import json
from dataclasses import replace

from tidegate_spark.control.channels.envelope import SPEC_VERSION, event_id
from tidegate_spark.control.channels.pending_replies import Ended
from tidegate_spark.control.channels.ports import Reply

TYPE = "dev.tidegate.control.acknowledgement"
SHORT_MESSAGE = 200


def reply_of(ended: Ended, namespace: str, app: str) -> Reply:
    """Return the reply to a message. A repeated reply is the same event, by its source and id."""
    entry, report = ended.entry, ended.report
    queries = {
        name: {
            "batch": reported.batch,
            "applied": reported.applied,
            "ran": reported.ran,
            **({"errors": list(reported.errors)} if reported.errors else {}),
            **({"moreErrors": reported.more_errors} if reported.more_errors else {}),
            **({"missing": list(reported.missing)} if reported.missing else {}),
        }
        for name, reported in sorted(report.queries.items())
    }
    data = {
        "id": event_id(entry),
        "source": entry.source,
        "type": entry.type,
        "sequence": report.sequence,
        "state": report.state.value,
        "reason": report.reason,
        "message": report.message,
        "queries": queries,
        "results": report.results,
        "origin": entry.origin,
        **({"offset": entry.offset} if entry.offset >= 0 else {}),
    }
    event = {
        "specversion": SPEC_VERSION,
        "id": str(report.sequence),
        "source": f"/tidegate/{namespace}/{app}",
        "type": TYPE,
        "subject": event_id(entry),
        "datacontenttype": "application/json",
        "data": data,
    }
    return Reply(event_id(entry), json.dumps(event, sort_keys=True).encode(), entry.origin, entry.offset)


def shortened(reply: Reply) -> Reply:
    """Return a reply without what its queries say, for a broker that takes no larger one: the same event."""
    event = json.loads(reply.body)
    data = event["data"]
    data |= {"message": data["message"][:SHORT_MESSAGE], "queries": {}, "shortened": True}
    return replace(reply, body=json.dumps(event, sort_keys=True).encode())
