"""Whose setting wins."""

from tidegate.spark.settings import DEFAULTS, OWNED_KEYS, OWNED_PREFIX, spark_settings

NAMED = {"spark.kubernetes.executor.podTemplateContainerName": "executor"}


def test_without_settings_of_the_user_the_defaults_hold() -> None:
    assert spark_settings({}, "executor") == DEFAULTS | NAMED


def test_the_user_may_change_a_default_and_add_settings() -> None:
    user = {"spark.kubernetes.driver.ownPersistentVolumeClaim": "true", "spark.sql.session.timeZone": "UTC"}
    assert spark_settings(user, "executor") == DEFAULTS | user | NAMED


def test_a_setting_of_tidegates_that_an_older_schema_let_pass_is_dropped() -> None:
    owned = [*OWNED_KEYS, f"{OWNED_PREFIX}PROCESS"]
    assert spark_settings(dict.fromkeys(owned, "x"), "executor") == DEFAULTS | NAMED


def test_no_default_is_a_setting_that_users_are_refused() -> None:
    assert DEFAULTS.keys() & OWNED_KEYS.keys() == set()
