"""A version that is let through leaves the API server an object that etcd takes, and no other is let through."""

import bisect
import json
from typing import Any

import msgspec
import pytest

from tidegate.api.spec_hash import recorded_version, spec_hash
from tidegate.api.streaming_app import (
    StableSpec,
    StreamingApp,
    StreamingAppStatus,
    UpgradeMode,
    UpgradePhase,
    UpgradeStatus,
    encode_status,
)
from tidegate.api.values.errors import TooLongError
from tidegate.app.actions import CreateDriver
from tidegate.app.builders.driver import build_driver_pod
from tidegate.app.builders.version_limit import LONGEST_OBJECT
from tidegate.app.rules.plan import decide
from tidegate.engine.rules.actions import AddFinalizer
from tidegate_spark.contract.protocol import FINALIZER
from tidegate_testing.observations import NOW, PLATFORM, app_with, launched, observe
from tidegate_testing.plans import acts

ETCD = 3 * 512 * 1024
"""Bytes of an object: its --max-request-bytes, as by default."""
LARGE: dict[str, Any] = {"application.args": ["x" * 1000] * 480}
TEXTS = {"plain": "x", "quotes": '"', "letters": "é", "tags": "<"}


def of_size(text: str, size: int, stable: StableSpec | None = None) -> StreamingApp:
    """Return a new application, or one with an edit if it has a stable version."""
    app = app_with({"application.args": [text * 1000] * (size // len(text.encode()) // 1000)}, finalizers=[])
    return app if stable is None else launched(app, applied_spec_hash=stable.spec_hash, last_stable=stable)


def stored_size(app: StreamingApp, phase: UpgradePhase) -> int:
    """Return the bytes of an application during an upgrade or after it, with this version as the other one, or its."""
    done = phase is UpgradePhase.COMPLETED
    version = StableSpec(spec_hash=spec_hash(app), spec=recorded_version(app.spec))
    upgrade = UpgradeStatus(
        phase=phase,
        mode=UpgradeMode.SNAPSHOT,
        number=1,
        from_spec_hash="a",
        to_spec_hash="b",
        to_spec="" if done else version.spec,
        lineage=1,
        previous=version if done else None,
    )
    stable = app.status.last_stable or version
    status = encode_status(StreamingAppStatus(last_stable=stable, upgrade=upgrade))
    whole: dict[str, Any] = {"spec": msgspec.to_builtins(app.spec), "status": status}
    text = json.dumps(whole, ensure_ascii=False, separators=(",", ":"), default=str)
    for each in "<>&":
        text = text.replace(each, "\\u003c")
    return len(text.encode())


def is_refused(size: int, text: str, stable: StableSpec | None = None) -> bool:
    try:
        build_driver_pod(of_size(text, size, stable), 1, 1, PLATFORM)
    except TooLongError:
        return True
    return False


def largest_taken(text: str, stable: StableSpec | None = None) -> StreamingApp:
    """Return the largest application of this text that is let through, to 10 kB: 180 kB of the object, if escaped."""
    sizes = range(10_000, 600_000, 10_000)
    first_refused = bisect.bisect_left(sizes, True, key=lambda size: is_refused(size, text, stable))
    assert 0 < first_refused < len(sizes)
    return of_size(text, sizes[first_refused - 1], stable)


@pytest.mark.parametrize("phase", [UpgradePhase.GATE, UpgradePhase.COMPLETED])
@pytest.mark.parametrize("name", TEXTS)
def test_what_is_let_through_leaves_room_for_the_rest_of_the_object(name: str, phase: UpgradePhase) -> None:
    app = largest_taken(TEXTS[name])
    assert LONGEST_OBJECT - 200_000 < stored_size(app, phase) < LONGEST_OBJECT + 10_000 < ETCD - 150_000


@pytest.mark.parametrize("name", TEXTS)
def test_an_edit_of_a_larger_stable_version_is_taken_as_far_as_both_fit_into_the_object(name: str) -> None:
    ran = of_size("x", 700_000)  # before there was a limit
    stable = StableSpec(spec_hash=spec_hash(ran), spec=recorded_version(ran.spec))
    app = largest_taken(TEXTS[name], stable)
    assert LONGEST_OBJECT - 200_000 < stored_size(app, UpgradePhase.GATE) < LONGEST_OBJECT + 10_000
    assert not is_refused(10_000, TEXTS[name], stable)


def test_what_is_too_large_is_refused_with_the_field_that_has_most_of_it_its_size_and_what_to_do() -> None:
    with pytest.raises(TooLongError, match=r"1,4\d\d,\d\d\d bytes, .* no more than 1,376,256 .* ConfigMap") as caught:
        build_driver_pod(of_size("x", 480_000), 1, 1, PLATFORM)
    assert caught.value.field == "spec.application.args"


def test_an_edit_hears_that_what_runs_with_more_goes_on_and_a_new_application_how_it_goes_on() -> None:
    with pytest.raises(TooLongError, match="The limit is for edits: what runs with more goes on"):
        build_driver_pod(launched(of_size("x", 480_000), applied_spec_hash="another"), 2, 1, PLATFORM)
    with pytest.raises(TooLongError, match=r"continues with spec\.startFrom\.adopt: true"):
        build_driver_pod(of_size("x", 480_000), 1, 1, PLATFORM)


@pytest.mark.parametrize(
    "ran",
    [app_with(LARGE, finalizers=[FINALIZER]), app_with({**LARGE, "startFrom.adopt": True}, finalizers=[])],
    ids=["its finalizer says so", "it adopts"],
)
def test_an_application_that_may_have_run_with_it_goes_on_though_its_status_is_lost(ran: StreamingApp) -> None:
    plan = decide(observe(ran), NOW)
    assert (plan.rule, acts(plan, CreateDriver)) == ("launch", True)


def test_a_new_application_that_is_refused_for_its_size_is_not_taken_for_one_that_ran() -> None:
    plan = decide(observe(app_with(LARGE, finalizers=[])), NOW)
    assert (plan.reason, acts(plan, AddFinalizer, CreateDriver)) == ("ConfigurationTooLong", False)


def test_a_version_that_has_run_is_launched_again_whatever_its_size() -> None:
    build_driver_pod(launched(of_size("x", 480_000)), 2, 1, PLATFORM)
