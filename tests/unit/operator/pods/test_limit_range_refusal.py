"""Which container a LimitRange refuses, and which field helps. Pure; the words are the real server's."""

import pytest

from tidegate.app.builders.driver import build_driver_pod
from tidegate.pods.admission.admission_error import complaint_of
from tidegate.pods.admission.limit_range_refusal import containers_refused, refusal_of_helper
from tidegate_testing.every_pod import BESIDE
from tidegate_testing.observations import PLATFORM, app_with

SIDECAR = {"name": "proxy", "image": "proxy:1", "resources": {"requests": {"memory": "32Mi"}}}
APP = app_with({"driver.podTemplate": {"spec": {"containers": [SIDECAR]}}})
DRIVER = build_driver_pod(APP, 1, 1, PLATFORM)
MINIMUM = "minimum memory usage per Container is {}, but request is {}"


@pytest.mark.parametrize(
    ("message", "container", "field"),
    [
        (MINIMUM.format("1Gi", "64Mi"), "tidegate-runtime", "spec.helpers.resources"),
        (MINIMUM.format("3Gi", "2Gi"), "driver", "spec.driver.resources"),
        (MINIMUM.format("1Gi", "32Mi"), "proxy", "spec.driver.podTemplate.spec.containers[0].resources"),
        (
            "maximum memory usage per Container is 200Mi, but limit is 256Mi",
            "tidegate-runtime",
            "spec.helpers.resources",
        ),
        (
            "memory max limit to request ratio per Container is 2, but provided ratio is 4.000000",
            "tidegate-runtime",
            "spec.helpers.resources",
        ),
    ],
)
def test_a_drivers_refusal_names_container_and_field(message: str, container: str, field: str) -> None:
    said = complaint_of(f'pods "orders-driver" is forbidden: {message}', APP, "driver", DRIVER)
    assert said.text == f"{message} in container {container}, as a LimitRange of the namespace has it"
    assert said.fields == (field,)


def test_of_several_all_are_named() -> None:
    message = f"[{MINIMUM.format('3Gi', '2Gi')}, {MINIMUM.format('3Gi', '64Mi')}]"
    assert containers_refused(message, DRIVER) == ("tidegate-runtime", "driver")
    said = complaint_of(f'pods "orders-driver" is forbidden: {message}', APP, "driver", DRIVER)
    assert said.fields == ("spec.helpers.resources", "spec.driver.resources")


@pytest.mark.parametrize(
    ("kind", "request_", "container", "field"),
    [
        ("purge", "256Mi", "purge", "spec.helpers.resources"),
        ("take", "256Mi", "snapshot", "spec.helpers.resources"),
        ("release", "256Mi", "snapshot", "spec.helpers.resources"),
        ("export", "2Gi", "export", "spec.export.resources"),
        ("export", "64Mi", "tidegate-runtime", "spec.helpers.resources"),
        ("repartition", "2Gi", "repartition", "spec.state.repartition.resources"),
        ("rehearsal", "2Gi", "driver", "spec.upgrade.rehearsal.resources"),
    ],
)
def test_a_refusal_of_a_pod_beside_drivers_does_too(kind: str, request_: str, container: str, field: str) -> None:
    message = MINIMUM.format("4Gi", request_)
    said, fields = refusal_of_helper(f'pods "x" is forbidden: {message}', BESIDE[kind]({}), "")
    assert said == f"{message} in container {container}, as a LimitRange of the namespace has it"
    assert fields == f"{field}, or the LimitRange"


def test_what_may_not_be_read_is_said_to_be_unchecked() -> None:
    said, _ = refusal_of_helper(MINIMUM.format("1Gi", "256Mi"), BESIDE["purge"]({}), "limitranges is forbidden.")
    assert said.endswith("(unchecked: the operator cannot list LimitRanges, limitranges is forbidden)")


def test_an_amount_that_no_container_has_leaves_the_words_as_they_are() -> None:
    said, fields = refusal_of_helper("maximum pods of a policy", BESIDE["purge"]({}), "")
    assert (said, fields) == ("maximum pods of a policy, as a LimitRange of the namespace has it", "the LimitRange")
