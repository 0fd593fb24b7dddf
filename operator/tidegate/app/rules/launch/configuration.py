"""Creates the Secret with the long part of a driver's configuration, if its pod waits for it. No I/O.

The Secret is created right after the pod. If the operator ended between the two, or somebody deleted the Secret, the
pod waits and no container has started.
"""

from __future__ import annotations

from tidegate.api.streaming_app import Phase
from tidegate.api.values.errors import SpecError
from tidegate.app.actions import Action, DeleteDriver, ProvideConfiguration
from tidegate.app.observation import Observation
from tidegate.app.rules.launch.launch import build_launch
from tidegate.app.rules.verdict import Verdict
from tidegate.engine.rules.health import Health
from tidegate.pods.records import fault_messages
from tidegate.pods.records.faults import lacks_configuration
from tidegate_spark.contract.reasons import Reason


def provide_again(o: Observation) -> tuple[Action, ...]:
    """Return what makes the Secret of a driver that waits: what is in it follows from its version, and comes again.

    Unless the operator, or settings that make no version, changed since: its name then is another one.
    """
    driver = o.driver
    if driver is None or not driver.configuration_secret:
        return ()
    try:
        secret = build_launch(o, driver.epoch).secret
    except SpecError:
        return ()
    if secret is None or secret["metadata"]["name"] != driver.configuration_secret:
        return ()
    return (ProvideConfiguration(secret, driver.name, replace=False),)


def replace_unconfigured_driver(o: Observation, now: float) -> Verdict | None:
    """Replace a driver whose Secret is gone and could not be made again: it would wait for ever."""
    driver = o.driver
    if driver is None or driver.running or not lacks_configuration(driver) or provide_again(o):
        return None
    message = fault_messages.configuration_missing(driver.configuration_secret, driver.name)
    return Verdict(
        Phase.STARTING,
        Health.RECONCILING,
        Reason.CONFIGURATION_CHANGED,
        message,
        after=(DeleteDriver(driver),),
        warning=True,
    )
