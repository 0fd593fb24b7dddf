"""Limits the size of a version, so that the API server can store the records of it. No I/O.

The spec and two recorded versions share one object, of which etcd takes about 1.5 MiB. A version that does not fit is
refused before anything is stopped, because its status could never be written.
"""

from __future__ import annotations

import json

import msgspec

from tidegate.api.lost_status import has_launched, may_be_lost
from tidegate.api.spec_hash import recorded_version, spec_hash, version_of
from tidegate.api.streaming_app import StreamingApp
from tidegate.api.values.errors import TooLongError
from tidegate.pods import messages

LONGEST_OBJECT = 1344 * 1024
"""Bytes of a spec and two records of versions. The rest of what etcd takes (--max-request-bytes, 1.5 MiB) is for the
rest of the status and for the metadata."""
_SURELY_FITS = LONGEST_OBJECT // 24
"""Characters of a spec, and of the stable version, of which nothing has to be counted, whichever they are."""
_ESCAPED_BY_API_SERVER = "<>&"
"""Written with six characters each, as Go does."""


def refuse_large_version(app: StreamingApp) -> None:
    """Raise if the API server would not store an application with this version under test, or stable and replaced.

    Beside this version's record its status has the stable version's at first, and one more of a version as large as
    this one once that is edited: the larger of the two counts.

    The limit is for edits and for new applications. What has run already is let through: whatever is to be done about
    it, it must be possible to start it again, also if its status was lost.

    Raises:
        TooLongError: naming the field that has most of it.
    """
    spec, stable = msgspec.json.encode(app.spec).decode(), app.status.last_stable
    other = stable.spec if stable is not None else ""
    if max(len(spec), len(other)) < _SURELY_FITS:
        return
    record = _record_size(recorded_version(app.spec))
    size = _size(spec) + record + max(record, _record_size(other))
    if size > LONGEST_OBJECT and not _has_run(app):
        values = json.loads(version_of(app.spec))
        largest = max(values, key=lambda path: len(json.dumps(values[path])))
        message = messages.version_too_large(size, LONGEST_OBJECT, new=not has_launched(app.status))
        raise TooLongError(f"spec.{largest}", message)


def _record_size(version: str) -> int:
    return _size(json.dumps(version, ensure_ascii=False))


def _size(text: str) -> int:
    return len(text.encode()) + 5 * sum(text.count(each) for each in _ESCAPED_BY_API_SERVER)


def _has_run(app: StreamingApp) -> bool:
    stable = app.status.last_stable
    known = (app.status.applied_spec_hash, stable.spec_hash if stable is not None else "")
    # Nobody knows with what an application ran whose status is lost, also where it has got an epoch since because no
    # pod could be made: a launch has a hash. Who adopts says that there is something to go on with.
    adopts = app.spec.start_from is not None and app.spec.start_from.adopt
    forgotten = bool(app.status.epoch) and not app.status.applied_spec_hash
    return spec_hash(app) in known or may_be_lost(app) or forgotten or (adopts and not app.status.epoch)
