"""Which types of messages are taken from a channel, whose writers Kubernetes does not know. Pure."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

from tidegate_spark.contract.control_protocol import LONGEST_ASKED, MOST_ASKED
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.control.channels import messages
from tidegate_spark.control.channels.cluster_requests import involves_cluster
from tidegate_spark.control.messages.validation import rejected
from tidegate_spark.control_log.entries import Entry, Kind


def of_allowed_types(drafts: Iterable[Entry], types: Collection[str]) -> list[Entry]:
    """Return messages of which those are rejected whose type may not be sent; no ``types``: every type may."""
    return [_checked(draft, types) for draft in drafts]


def within_limit(drafts: Sequence[Entry], open_ones: int, is_known: Callable[[str], bool]) -> list[Entry]:
    """Return messages of which those are rejected that ask more of the cluster at a time than one application may.

    They cannot wait: what they ask for is of the very batch with which they come into force.

    Args:
        drafts: messages, in their order.
        open_ones: how many there are already.
        is_known: whether a message of an id is in the log.
    """
    names: set[str] = set()
    found = []
    for draft in drafts:
        is_new = involves_cluster(draft) and draft.id not in names and not is_known(draft.id)
        if is_new and open_ones + len(names) >= MOST_ASKED:
            message = messages.too_many_asked(MOST_ASKED)
            found.append(rejected(draft, Reason.TOO_MANY_OPEN, messages.another_id(message)))
            continue
        if is_new:
            names.add(draft.id)
        found.append(draft)
    return found


def _checked(draft: Entry, types: Collection[str]) -> Entry:
    if draft.kind is not Kind.MESSAGE:
        return draft
    if types and draft.type not in types:
        message = messages.type_not_allowed(draft.type)
        return rejected(draft, Reason.TYPE_NOT_ALLOWED, message)
    size = len(draft.payload.encode())
    if involves_cluster(draft) and size > LONGEST_ASKED:
        message = messages.payload_too_long_for_channel(size, LONGEST_ASKED)
        return rejected(draft, Reason.PAYLOAD_TOO_LARGE, message)
    return draft
