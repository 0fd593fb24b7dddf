"""The operator's settings, from flags and the environment. Pure."""

import pytest

from tidegate.settings import Settings, read_settings

IMAGE = {"TIDEGATE_OPERATOR_IMAGE": "example/tidegate-operator:1"}


def test_the_defaults_are_those_of_the_type() -> None:
    assert read_settings([], IMAGE) == Settings("example/tidegate-operator:1")


def test_every_setting_has_an_environment_variable() -> None:
    environment = {
        **IMAGE,
        "TIDEGATE_OPERATOR_IMAGE_PULL_POLICY": "Always",
        "TIDEGATE_WATCH_NAMESPACES": "b, a,,a",
        "TIDEGATE_METRICS_PORT": "9090",
        "TIDEGATE_LOG_FORMAT": "console",
        "TIDEGATE_LOG_LEVEL": "debug",
        "TIDEGATE_CONCURRENCY": "3",
        "TIDEGATE_AGENT_CONCURRENCY": "4",
        "TIDEGATE_LARGE_APPS_MIB": "128",
        "TIDEGATE_LARGE_APPS_OF_NAMESPACE_MIB": "32",
        "TIDEGATE_LEADER_ELECTION": "false",
        "TIDEGATE_LEASE_NAME": "gate",
        "TIDEGATE_KEY_NAME": "gates-key",
        "TIDEGATE_POD_SECURITY_CONTEXT": '{"runAsNonRoot": true}',
        "TIDEGATE_IMAGE_PULL_SECRETS": "mirror, second,",
        "TIDEGATE_POD_LABELS": '{"sidecar.istio.io/inject": "false"}',
        "TIDEGATE_POD_ANNOTATIONS": '{"linkerd.io/inject": "disabled"}',
        "POD_NAMESPACE": "system",
    }
    image = "example/tidegate-operator:1"
    expected = Settings(
        *(image, "Always", ("a", "b"), 9090, "console", "debug", 3, 4, 128, 32, False),
        lease_name="gate",
        lease_namespace="system",
        key_name="gates-key",
        pod_security_context={"runAsNonRoot": True},
        image_pull_secrets=("mirror", "second"),
        pod_labels={"sidecar.istio.io/inject": "false"},
        pod_annotations={"linkerd.io/inject": "disabled"},
    )
    assert read_settings([], environment) == expected


@pytest.mark.parametrize(("flag", "expected"), [("--leader-election", True), ("--no-leader-election", False)])
@pytest.mark.parametrize("variable", ["true", "false"])
def test_leader_election_is_a_flag_with_its_opposite(flag: str, variable: str, expected: bool) -> None:
    given = {**IMAGE, "TIDEGATE_LEADER_ELECTION": variable}
    assert read_settings([flag], given).leader_election is expected


def test_a_flag_wins_over_the_environment() -> None:
    assert read_settings(["--operator-image", "other:2"], IMAGE).operator_image == "other:2"


def test_an_empty_variable_means_the_default() -> None:
    assert read_settings([], {**IMAGE, "TIDEGATE_LOG_LEVEL": ""}).log_level == "info"


WRONG: dict[str, tuple[list[str], str]] = {
    "a port that is no number": (["--metrics-port", "http"], "--metrics-port: expected a number from 1, got 'http'"),
    "no workers": (["--concurrency", "0"], "--concurrency: expected a number from 1, got '0'"),
    "no memory for large ones": (["--large-apps-mib", "0"], "--large-apps-mib: expected a number from 1, got '0'"),
    "an unknown format": (["--log-format", "xml"], "--log-format: expected one of json, console"),
    "an unknown pull policy": (
        ["--operator-image-pull-policy", "Sometimes"],
        "--operator-image-pull-policy: expected one of Always, IfNotPresent, Never",
    ),
    "a security context that is no JSON": (
        ["--pod-security-context", "runAsUser: 5"],
        "--pod-security-context: expected a JSON object, got 'runAsUser: 5'",
    ),
    "a security context that is no object": (
        ["--pod-security-context", "[]"],
        "--pod-security-context: expected a JSON object, got '[]'",
    ),
    "labels that are no JSON": (["--pod-labels", "a=b"], "--pod-labels: expected a JSON object, got 'a=b'"),
    "a label that is no text": (["--pod-labels", '{"a": true}'], "--pod-labels: expected a text as value of 'a'"),
    "a label of Tidegate's own": (
        ["--pod-labels", '{"tidegate.dev/role": "driver"}'],
        "--pod-labels: 'tidegate.dev/role' is one by which Tidegate or Spark knows the pods, and cannot be set",
    ),
    "an annotation that is no text": (
        ["--pod-annotations", '{"a": 1}'],
        "--pod-annotations: expected a text as value of 'a'",
    ),
    "no image": (["--operator-image", ""], "no operator image: give --operator-image or TIDEGATE_OPERATOR_IMAGE"),
}


@pytest.mark.parametrize("name", WRONG)
def test_a_wrong_setting_is_named_with_what_is_expected(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    arguments, message = WRONG[name]
    with pytest.raises(SystemExit) as ended:
        read_settings(arguments, IMAGE)
    assert (ended.value.code, message in capsys.readouterr().err) == (2, True)


def test_an_election_that_is_neither_on_nor_off_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        read_settings([], {**IMAGE, "TIDEGATE_LEADER_ELECTION": "maybe"})
    assert "TIDEGATE_LEADER_ELECTION: expected true or false, got 'maybe'" in capsys.readouterr().err
