"""What is said of a fault: what is wrong, and one remedy. Pure."""

import pytest
from botocore.exceptions import ClientError, EndpointConnectionError, NoCredentialsError

from tidegate.pods.records.faults import end_problem, reported_problem, start_problem
from tidegate.pods.records.record import Exit, PodRecord
from tidegate_spark.contract.protocol import Storage
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.reasons.registry import entry_of
from tidegate_spark.storage.s3_client import fault_of
from tidegate_testing.observations import NOW, app_with, driver_of, ended_with

PLACE = Storage("s3://streams/apps/shop/orders", "http://s3:9000")


def answer(code: str, status: int) -> ClientError:
    return ClientError({"Error": {"Code": code}, "ResponseMetadata": {"HTTPStatusCode": status}}, "PutObject")  # type: ignore[typeddict-item] # as much of an answer as is read


@pytest.mark.parametrize(
    "error",
    [
        answer("NoSuchBucket", 404),
        answer("AccessDenied", 403),
        answer("PermanentRedirect", 301),
        answer("NotImplemented", 501),
        answer("InternalError", 500),
        NoCredentialsError(),
        EndpointConnectionError(endpoint_url="http://s3:9000"),
    ],
    ids=str,
)
@pytest.mark.parametrize("secret", ["", "storage-keys"])
def test_a_fault_of_the_storage_is_told_with_one_remedy(error: Exception, secret: str) -> None:
    fault = fault_of(error, PLACE, secret)
    assert fault is not None
    entry = entry_of(fault.reason)
    remedy = f"{entry.remedy} {entry.after}"
    reported = reported_problem(fault, driver_of(app_with())).message
    assert reported.endswith(f" {remedy}")
    what = reported.removesuffix(f" {remedy}")
    said_to_do = ("Create", "Correct", "correct the", "Check", "Use a", "name a Secret", "keeps trying", "looks again")
    assert [message for message in said_to_do if message in what] == []


def test_a_command_that_a_remedy_names_is_for_the_pod_that_ended() -> None:
    stalled = driver_of(app_with(), ended=ended_with(Reason.STALLED, 1, message="Nothing moved."))
    problem = end_problem(stalled)
    assert problem.reason == "Stalled"
    assert '"kubectl logs orders-driver -n shop --previous"' in problem.message
    assert "NAMESPACE" not in problem.message


def test_a_command_names_the_application_whose_storage_is_empty() -> None:
    problem = end_problem(driver_of(app_with(), ended=ended_with(Reason.STORAGE_EMPTY, 0)))
    assert (
        '"kubectl annotate streamingapp orders -n shop --overwrite tidegate.dev/abandon-state=LINEAGE"'
        in problem.message
    )


def test_a_driver_that_was_killed_is_said_to_be_and_memory_only_guessed_at() -> None:
    killed = driver_of(app_with(), ended=Exit(137, "Error", "", NOW - 5))
    problem = end_problem(killed)
    assert (problem.reason, problem.message) == (
        "DriverCrashed",
        "The process in pod orders-driver was killed by SIGKILL. The usual cause is a lack of memory: raise "
        "spec.driver.resources.requests.memory.",
    )


def test_a_driver_that_the_kernel_killed_for_its_memory_is_told_to_have_more() -> None:
    killed = driver_of(app_with(), ended=Exit(137, "OOMKilled", "", NOW - 5))
    assert end_problem(killed).reason == "OutOfMemory"


@pytest.mark.parametrize("ended", [Exit(255, "Unknown", "", NOW), Exit(137, "ContainerStatusUnknown", "gone", NOW)])
def test_a_driver_whose_node_started_again_is_lost_and_not_crashed(ended: Exit) -> None:
    problem = end_problem(driver_of(app_with(), ended=ended))
    assert (problem.reason, "node" in problem.message, "memory" in problem.message) == ("DriverLost", True, False)


def test_a_driver_whose_init_container_failed_for_good_is_told_so() -> None:
    driver = driver_of(app_with(), phase="Failed", init_ended=Exit(1, "Error", "", NOW), init_name="tidegate-runtime")
    problem = end_problem(driver)
    assert problem.reason == "InitFailed"
    assert "-c tidegate-runtime" in problem.message


def test_a_driver_that_wrote_more_than_its_limit_is_told_the_field_and_one_whose_node_is_short_is_lost() -> None:
    message = "Pod ephemeral local storage usage exceeds the total limit of containers 1Gi."
    over = end_problem(driver_of(app_with(), phase="Failed", reason="Evicted", message=message))
    assert (over.reason, over.message) == (
        "EphemeralStorageExceeded",
        f"Pod orders-driver was evicted: {message} Raise spec.driver.resources.limits.ephemeral-storage, or the "
        "sizeLimit of the volume (spec.scratch, unless it is in a pod template).",
    )
    short = {"phase": "Failed", "reason": "Evicted", "disruption": "TerminationByKubelet"}
    assert end_problem(driver_of(app_with(), **short)).reason == "DriverLost"


def killed_init(role: str, reason: str = "OOMKilled", container: str = "tidegate-runtime") -> PodRecord:
    ended = Exit(137, reason, "", NOW)
    return driver_of(app_with(), name="orders-pod", role=role, init_ended=ended, init_name=container)


NEEDED_MORE = "Init container tidegate-runtime of pod orders-pod needed more than its memory and was killed."
OF_HELPERS = "Raise spec.helpers.resources.limits.memory"


@pytest.mark.parametrize(
    ("role", "remedy"),
    [
        ("driver", f"{OF_HELPERS}, and change spec.restartNonce: new pods get it."),
        ("executor", f"{OF_HELPERS}, and change spec.restartNonce: new pods get it."),
        ("rehearsal", f"{OF_HELPERS}."),
        ("repartition", f"{OF_HELPERS}."),
        (
            "export",
            f"{OF_HELPERS} of the application, and delete the pod: "
            '"kubectl delete pod orders-pod -n shop". The next one gets it.',
        ),
    ],
)
def test_an_init_container_that_was_killed_for_its_memory_is_told_the_field_that_gives_it_more(
    role: str, remedy: str
) -> None:
    """The log of a killed process, which other messages name, says nothing of it."""
    problem = start_problem(killed_init(role))
    assert problem is not None
    assert (problem.reason, problem.message) == ("InitFailed", f"{NEEDED_MORE} {remedy}")


@pytest.mark.parametrize(("role", "group"), [("driver", "driver"), ("rehearsal", "driver"), ("executor", "executor")])
def test_an_init_container_of_a_template_is_given_more_there(role: str, group: str) -> None:
    problem = start_problem(killed_init(role, reason="Error", container="fetch-model"))
    assert problem is not None
    assert problem.message == (
        "Init container fetch-model of pod orders-pod was killed by SIGKILL, usually for a lack of memory. Raise its "
        f"resources.limits.memory in spec.{group}.podTemplate or spec.podTemplate."
    )
