"""What Linux hands to no process is refused, and what it hands over is not; the kernel itself is asked."""

import errno
import subprocess
from typing import Any

import pytest

from tidegate.api.values.errors import TooLongError
from tidegate.app.builders.driver import build_driver_pod
from tidegate.pods.reserved.exec_limits import LONGEST_ENVIRONMENT, LONGEST_SETTING, LONGEST_STRING
from tidegate_testing.observations import PLATFORM, app_with

LONGEST = "x" * (LONGEST_STRING - len("RULES="))


def build(change: dict[str, Any]) -> None:
    build_driver_pod(app_with(change), 1, 1, PLATFORM)


def variable(value: str, name: str = "RULES") -> dict[str, Any]:
    return {"name": name, "value": value}


def test_the_kernel_takes_a_variable_of_this_length_and_none_that_is_longer() -> None:
    subprocess.run(["true"], env={"PATH": "/usr/bin:/bin", "RULES": LONGEST}, check=True)
    with pytest.raises(OSError, match="too long") as caught:
        subprocess.run(["true"], env={"PATH": "/usr/bin:/bin", "RULES": LONGEST + "x"}, check=True)
    assert caught.value.errno == errno.E2BIG


def test_the_kernel_takes_as_many_variables_as_are_let_through_beside_tidegates_own() -> None:
    many = {f"V{number:04d}": "x" * 1000 for number in range(LONGEST_ENVIRONMENT // 1007 + 1)}
    ours = {f"TIDEGATE_{number}": "x" * 96 * 1024 for number in range(3)}
    subprocess.run(["true"], env={"PATH": "/usr/bin:/bin", **many, **ours}, check=True)


def test_a_variable_that_fits_is_taken() -> None:
    build({"application.env": [variable(LONGEST)]})


@pytest.mark.parametrize("value", [LONGEST + "x", "é" * (LONGEST_STRING // 2)])
def test_a_variable_that_is_too_long_is_refused_with_its_name_and_the_remedy(value: str) -> None:
    with pytest.raises(TooLongError, match=r"more than 131,071; .* that spec\.driver\.podTemplate mounts") as caught:
        build({"application.env": [variable("short", "MODE"), variable(value)]})
    assert caught.value.field == "spec.application.env[RULES]"


@pytest.mark.parametrize("role", ["driver", "executor"])
def test_so_is_one_of_a_template(role: str) -> None:
    template = {"spec": {"containers": [{"name": role, "env": [variable(LONGEST + "x")]}]}}
    with pytest.raises(TooLongError) as caught:
        build({f"{role}.podTemplate": template})
    assert caught.value.field == f"spec.{role}.podTemplate.spec.containers[{role}].env[RULES]"


def test_a_variable_counts_with_what_the_kubelet_puts_into_it() -> None:
    part = variable("x" * 50_000, "PART")
    build({"application.env": [part, variable("$(PART)$(PART)")]})
    build({"application.env": [part, variable("$$(PART)$$(PART)$$(PART)")]})
    with pytest.raises(TooLongError) as caught:
        build({"application.env": [part, variable("$(PART)$(PART)$(PART)")]})
    assert caught.value.field == "spec.application.env[RULES]"


def test_too_many_variables_are_refused_also_where_each_fits() -> None:
    env = [variable("x" * 100_000, f"V{number}") for number in range(16)]
    template = {"spec": {"containers": [{"name": "driver", "env": env}]}}
    with pytest.raises(TooLongError, match="all variables have 1,600,"):
        build({"driver.podTemplate": template})


def test_a_setting_of_spark_that_fits_is_taken_and_a_longer_one_refused_with_its_key() -> None:
    longest = "x" * (LONGEST_SETTING - len("spark.my.rules="))
    build({"sparkConf": {"spark.my.rules": longest}})
    with pytest.raises(TooLongError, match="starts no JVM") as caught:
        build({"sparkConf": {"spark.my.rules": longest + "x"}})
    assert caught.value.field == "spec.sparkConf[spark.my.rules]"
