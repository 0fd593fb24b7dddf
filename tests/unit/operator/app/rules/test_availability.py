"""Available is True while the queries run, and through an upgrade; Ready is about the spec. Pure."""

import msgspec
import pytest

from tidegate.api.streaming_app import Condition, Phase, StreamingApp, UpgradePhase
from tidegate.app.actions import Plan
from tidegate.app.rules.live.availability import AVAILABLE
from tidegate.app.rules.plan import decide
from tidegate_spark.contract.reasons import Reason
from tidegate_testing.observations import NOW, app_with, launched, observe
from tidegate_testing.plans import status_of
from tidegate_testing.upgrades import BEGUN, new_app, old_app, runs


def available(plan: Plan) -> tuple[str, str]:
    condition = status_of(plan).condition(AVAILABLE)
    assert condition is not None
    return condition.status, condition.reason


def was_available(app: StreamingApp, status: str = "True") -> StreamingApp:
    known = Condition(type=AVAILABLE, status=status, reason="Running", last_transition_time=BEGUN)
    conditions = (*app.status.conditions, known)
    return msgspec.structs.replace(app, status=msgspec.structs.replace(app.status, conditions=conditions))


def test_it_is_true_while_the_queries_run_and_false_before() -> None:
    app = old_app()
    assert available(decide(observe(app, **runs(app)), NOW)) == ("True", "Running")
    assert available(decide(observe(launched(app_with({}))), NOW))[0] == "False"


@pytest.mark.parametrize("phase", [UpgradePhase.STOPPING, UpgradePhase.GATE, UpgradePhase.ROLLING_BACK])
def test_it_stays_true_through_an_upgrade_in_which_nothing_runs_for_a_while(phase: UpgradePhase) -> None:
    assert available(decide(observe(was_available(new_app(phase))), NOW)) == ("True", Reason.UPGRADING)
    assert available(decide(observe(was_available(new_app(phase), "False")), NOW))[0] == "False"


def test_it_is_false_for_what_is_suspended_whatever_was_under_way() -> None:
    app = was_available(new_app(UpgradePhase.STOPPING))
    spec = msgspec.structs.replace(app.spec, suspend=True)
    suspended = msgspec.structs.replace(
        app, spec=spec, status=msgspec.structs.replace(app.status, phase=Phase.SUSPENDED)
    )
    assert available(decide(observe(suspended), NOW))[0] == "False"
