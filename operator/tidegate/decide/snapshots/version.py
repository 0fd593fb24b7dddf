"""Of which version a snapshot that is ordered now holds the state. No I/O."""

from __future__ import annotations

import json
from typing import Any

from tidegate.model.spec_hash import spec_hash, version_of
from tidegate.model.stream_snapshot import SnapshotVersion
from tidegate.model.streaming_app import StreamingApp
from tidegate.observe.snapshot_observation import SnapshotObservation
from tidegate_spark.snapshot_protocol import LONGEST_SPEC, REDACTED, names_a_secret

_SETTINGS, _IMAGE = "sparkConf", "application.image"


def version_taken(o: SnapshotObservation) -> SnapshotVersion | None:
    """Return the version of the driver that runs, else of the last that did; None if neither is known.

    The spec may have been edited since: what it says now is another version, which has committed nothing yet.
    """
    if o.app is None:
        return None
    wanted = _hash_taken(o, o.app)
    return SnapshotVersion(spec_hash=wanted, spec=_shown(_spec_of(o.app, wanted))) if wanted else None


def image_taken(o: SnapshotObservation) -> str:
    """Return the image of that version; the one that the spec names if nobody knows the version any more."""
    if o.app is None:
        return ""
    version = _spec_of(o.app, _hash_taken(o, o.app))
    return str(json.loads(version)[_IMAGE]) if version else o.app.spec.application.image


def _hash_taken(o: SnapshotObservation, app: StreamingApp) -> str:
    return (o.driver.spec_hash if o.driver is not None else "") or app.status.applied_spec_hash


def _spec_of(app: StreamingApp, wanted: str) -> str:
    """Return what makes the version of this hash, as JSON, empty if nobody knows any more."""
    if wanted == spec_hash(app):
        return version_of(app.spec)
    upgrade = app.status.upgrade
    known = (app.status.last_stable, upgrade.previous if upgrade is not None else None)
    return next((each.spec for each in known if each is not None and each.spec_hash == wanted), "")


def _shown(version: str) -> str:
    """Return a version as anybody may read it who may read snapshots, empty if it is too long to be carried along."""
    if not version:
        return ""
    fields = json.loads(version)
    settings = fields.get(_SETTINGS)
    if isinstance(settings, dict):
        fields[_SETTINGS] = {name: REDACTED if names_a_secret(name) else value for name, value in settings.items()}
    shown = json.dumps(_without_secrets(fields), sort_keys=True, separators=(",", ":"))
    return shown if len(shown) <= LONGEST_SPEC else ""


def _without_secrets(value: Any) -> Any:
    """Return a part of a spec without the values of variables and options whose name tells of a secret."""
    if isinstance(value, list):
        return _without_secret_words([_without_secrets(each) for each in value])
    if not isinstance(value, dict):
        return value
    shown = {name: _without_secrets(each) for name, each in value.items()}
    if value.get("value") and names_a_secret(str(value.get("name", ""))):
        shown["value"] = REDACTED
    return shown


def _without_secret_words(words: list[Any]) -> list[Any]:
    """Return arguments without those that an option like ``--password`` is given."""
    shown: list[Any] = []
    follows = False
    for word in words:
        option, equals, given = word.partition("=") if isinstance(word, str) else ("", "", "")
        tells = option.startswith("-") and names_a_secret(option)
        if tells and given:
            shown.append(f"{option}={REDACTED}")
        else:
            shown.append(REDACTED if follows and isinstance(word, str) and not tells else word)
        follows = tells and not equals
    return shown
