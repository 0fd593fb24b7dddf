"""Whose setting wins."""

import pytest

from tidegate.pods.spark.settings import CLOSED_PORTS, DEFAULTS, spark_settings
from tidegate_spark.contract.owned_settings import BOTH_TEMPLATES, IN_EFFECT, remedy_of

HELD = DEFAULTS | CLOSED_PORTS
NAMED = {"spark.kubernetes.executor.podTemplateContainerName": "executor"}


def test_without_settings_of_the_user_the_defaults_hold() -> None:
    assert spark_settings({}, "executor") == HELD | NAMED


def test_the_user_may_change_a_default_and_add_settings() -> None:
    user = {"spark.kubernetes.driver.ownPersistentVolumeClaim": "true", "spark.sql.session.timeZone": "UTC"}
    assert spark_settings(user, "executor") == HELD | user | NAMED


def test_what_an_older_schema_let_pass_is_the_runtimes_to_report() -> None:
    user = {"spark.app.id": "x", "spark.kubernetes.driver.label.a": "b"}
    assert spark_settings(user, "executor") == HELD | user | NAMED


def test_executors_of_a_stored_spec_keep_the_nodes_and_the_scheduler_that_it_chose_for_them() -> None:
    user = {"spark.kubernetes.node.selector.disk": "ssd", "spark.kubernetes.scheduler.name": "mine"}
    own = {"spark.kubernetes.executor.node.selector.disk": "ssd", "spark.kubernetes.executor.scheduler.name": "mine"}
    assert spark_settings(user, "executor") == HELD | user | own | NAMED
    beside = {"spark.kubernetes.executor.scheduler.name": "other"}
    assert spark_settings(user | beside, "executor") == HELD | user | own | beside | NAMED


def test_no_default_is_a_setting_that_users_are_refused() -> None:
    assert [key for key in HELD if remedy_of(key)] == []


def test_a_setting_without_effect_is_known_by_what_it_starts_with_and_has_the_field_that_does_it() -> None:
    assert remedy_of("spark.kubernetes.driver.annotation.team") == "use driver.podTemplate"
    assert remedy_of("spark.kubernetes.driver.secretKeyRef.TOKEN") == "use application.env, with valueFrom.secretKeyRef"
    assert remedy_of("spark.kubernetes.driverEnv.A") == "use application.env"
    assert remedy_of("spark.driver.cores") == "use driver.resources.requests.cpu"
    assert remedy_of("spark.kubernetes.node.selector.disk") == BOTH_TEMPLATES
    for key in (*IN_EFFECT, "spark.kubernetes.executor.node.selector.disk", "spark.sql.streaming.stopTimeout"):
        assert not remedy_of(key), key


@pytest.mark.parametrize("off", ["false", " False "])
def test_an_application_that_leaves_sparks_ports_open_is_not_told_to_encrypt_either(off: str) -> None:
    user = {"spark.authenticate": off}
    assert spark_settings(user, "executor") == DEFAULTS | user | NAMED


def test_each_setting_of_sparks_ports_may_be_another() -> None:
    user = {"spark.network.crypto.cipher": "AES/GCM/NoPadding", "spark.authenticate.secret.file": "/mine"}
    assert spark_settings(user, "executor") == HELD | user | NAMED
