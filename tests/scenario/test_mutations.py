"""The simulation bites: with any one of the safeguards taken out, some schedule soon ends in what must never happen."""

import dataclasses
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from tests.scenario.schedule import run
from tidegate.agent.session import Session
from tidegate.app import reconcile
from tidegate.app.actions import CreateDriver, Plan, RecordLaunch
from tidegate.app.pod_actions import PodActions
from tidegate.app.rules import plan
from tidegate.app.rules.live import restarting
from tidegate.app.rules.plan import decide
from tidegate.app.rules.upgrade import invalid_spec, table
from tidegate.control.rules import dispatch
from tidegate.pods.records import names, read_pods
from tidegate.pods.records.pod_owner import Belonging, _role_of, belonging
from tidegate_spark.snapshots.lineages import attempts
from tidegate_spark.storage.claim import fence
from tidegate_testing.mistakes import Course, planted

SCHEDULES = 1500
"""So many are tried when the recorded one no longer fails."""


def without_fence_check(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(fence, "check", lambda port, held: None)


def without_live_read(patch: pytest.MonkeyPatch) -> None:
    async def confirm_gone(self: PodActions, run: Any, name: str, **_: Any) -> None:
        return None

    patch.setattr(PodActions, "_confirm_gone", confirm_gone)


def with_the_act_before_the_intent(patch: pytest.MonkeyPatch) -> None:
    def swapped(*arguments: Any) -> Plan:
        decided = decide(*arguments)
        records = [action for action in decided.actions if isinstance(action, RecordLaunch)]
        others = [action for action in decided.actions if not isinstance(action, RecordLaunch)]
        at = next((n + 1 for n, action in enumerate(others) if isinstance(action, CreateDriver)), len(others))
        return dataclasses.replace(decided, actions=(*others[:at], *records, *others[at:]))

    patch.setattr(reconcile, "decide", swapped)


def without_the_rule_for_what_ended_for_good(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(plan, "RULES", tuple(rule for rule in plan.RULES if rule is not restarting.stay_ended))


def without_the_rule_for_unusable_edits(patch: pytest.MonkeyPatch) -> None:
    taken_out = (invalid_spec.nothing_was_launched, invalid_spec.work_can_be_undone)
    patch.setattr(table, "TABLE", tuple(rule for rule in table.TABLE if rule.when not in taken_out))
    # Nor is there the version under test, which would go on beside such an edit.
    patch.setattr(plan, "with_version_under_test", lambda o: o)


def without_a_line_of_messages(patch: pytest.MonkeyPatch) -> None:
    fitting = dispatch._fitting
    patch.setattr(dispatch, "_fitting", lambda line, room, size: tuple(reversed(fitting(line, room, size))))


def without_taking_lineages_over(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(attempts, "take_over", lambda own, lineage: True)
    patch.setattr(attempts, "_has_own_batches", lambda own, lineage: False)


def with_pods_taken_by_their_labels(patch: pytest.MonkeyPatch) -> None:
    def believing(name: str, owners: Any, labelled: str) -> Belonging:
        return (
            belonging(name, owners, labelled) if owners else Belonging(labelled, _role_of(name, labelled)[0], "", "x")
        )

    patch.setattr(read_pods, "belonging", believing)


def with_one_nonce_for_all_requests(patch: pytest.MonkeyPatch) -> None:
    sign = Session.sign
    patch.setattr(Session, "sign", lambda *given: dataclasses.replace(sign(*given), nonce="the-only-one"))


def with_secrets_whose_names_tell_no_key(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(names, "_launch_digest", lambda app_uid, epoch, key_id: app_uid)


MISTAKES: dict[str, tuple[Callable[[pytest.MonkeyPatch], None], str]] = {
    take_out.__name__: (take_out, broken)
    for take_out, broken in (
        (without_fence_check, "had the fence"),
        (without_live_read, "is recorded, but the driver"),
        (with_the_act_before_the_intent, "but status knows only"),
        (without_the_rule_for_what_ended_for_good, "nothing changed"),
        (without_the_rule_for_unusable_edits, "stands still for an edit"),
        (without_a_line_of_messages, "which was sent later"),
        (without_taking_lineages_over, "is removed, and nobody wants that"),
        (with_pods_taken_by_their_labels, "which only has its labels"),
        (with_one_nonce_for_all_requests, "because of AgentUnreachable"),
        (with_secrets_whose_names_tell_no_key, "because of AgentUnreachable"),
    )
}
PLANTED = planted(__file__, MISTAKES)


def shows(broken: str, seed: Course) -> bool:
    """Return whether a schedule ends in what must never happen."""
    return any(broken in text for text in run(int(seed)).violations)


@pytest.mark.usefixtures("quiet_log")
@pytest.mark.parametrize("name", MISTAKES)
def test_schedules_fail(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    take_out, broken = MISTAKES[name]
    PLANTED.assert_noticed_by_schedules(name, lambda: take_out(monkeypatch), partial(shows, broken), SCHEDULES)


@pytest.mark.long
@pytest.mark.usefixtures("quiet_log")
@pytest.mark.parametrize("name", MISTAKES)
def test_the_recorded_schedule_fails(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    take_out, broken = MISTAKES[name]
    PLANTED.assert_recorded(name, lambda: take_out(monkeypatch), partial(shows, broken))


def test_there_is_a_schedule_for_each_mistake_and_for_nothing_else() -> None:
    assert list(PLANTED.recorded()) == list(MISTAKES)
