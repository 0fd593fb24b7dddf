"""Which field of the spec the API server's words about a pod are about. Pure; the words are the real server's."""

from typing import Any

import pytest

from tidegate.api.streaming_app import StreamingApp
from tidegate.app.builders.driver import build_driver_pod
from tidegate.pods.admission.admission_error import Complaint, complaint_of
from tidegate.pods.builders.driver_config import app_storage
from tidegate.pods.builders.executor import build_executor_to_try
from tidegate_testing.observations import PLATFORM, app_with
from tidegate_testing.pod_refusals import OVER_THE_LIMIT, WRONG, Wrong

OF_DRIVER = "spec.driver.podTemplate.spec"
NOT_DECODED = 'Pod in version "v1" cannot be handled as a Pod: '


def made_with(role: str, wrong: Wrong) -> StreamingApp:
    # What Tidegate sets itself in its own container is compared with it before anybody is asked.
    name = "proxy" if "imagePullPolicy" in wrong.container else role
    containers = [{"name": name, **wrong.container}] if wrong.container else []
    for each in wrong.spec.get("containers", []):
        containers.append({**each, "name": role} if each["name"] == "driver" else each)
    template = {"spec": {**wrong.spec, "containers": containers}} if containers else {"spec": wrong.spec}
    return app_with({f"{role}.podTemplate": template})


def complaint(app: StreamingApp, message: str, role: str = "driver") -> Complaint:
    if role == "driver":
        return complaint_of(message, app, role, build_driver_pod(app, 1, 1, PLATFORM))
    return complaint_of(message, app, role, build_executor_to_try(app, 1, app_storage(app), PLATFORM))


@pytest.mark.parametrize(
    ("role", "field"),
    [("driver", "spec.driver.resources"), ("repartition", "spec.state.repartition.resources")],
)
def test_what_a_limit_range_keeps_out_has_resources_that_do_not_fit(role: str, field: str) -> None:
    app = app_with({"driver.podTemplate": {"spec": {"tolerations": []}}})
    assert complaint_of(OVER_THE_LIMIT, app, role, {}) == Complaint(
        "maximum memory usage per Container is 1536Mi, but limit is 2Gi, as a LimitRange of the namespace has it",
        (field,),
        by_limit_range=True,
    )


EXPECTED = {
    "unknown field": (".tolerationz", 'unknown field "{}"'),
    "unknown field of a container": (".containers[0].resource", 'unknown field "{}"'),
    "type": (".tolerations", "{}: found a string, expected a list"),
    "type of a value": (".nodeSelector.disk", "{}: found a number, expected a string"),
    "type in a container": (".containers[0].imagePullPolicy", "{}: found a list, expected PullPolicy"),
    "quantity": (
        ".containers[0].resources.limits.cpu",
        "{}: 'lots' is no quantity; write something like 500m, 2 or 2Gi",
    ),
    "value": (
        ".tolerations[0].operator",
        '{}: Unsupported value: "Exist": supported values: "Equal", "Exists"',
    ),
    "missing value": (".containers[1].image", "{}: Required value"),
}
"""The field within the template's spec, and the text with the whole path in it."""


@pytest.mark.parametrize("what", WRONG)
@pytest.mark.parametrize("role", ["driver", "executor"])
def test_what_the_api_server_finds_wrong_is_said_of_the_field_of_the_template(what: str, role: str) -> None:
    wrong = WRONG[what]
    app = made_with(role, wrong)
    field = f"spec.{role}.podTemplate.spec{EXPECTED[what][0]}"
    assert complaint(app, wrong.server_message, role) == Complaint(EXPECTED[what][1].format(field), (field,))


def test_a_type_that_is_told_without_a_number_is_found_where_that_type_stands() -> None:
    containers: list[dict[str, Any]] = [
        {"name": "driver"},
        {"name": "a", "image": "a", "imagePullPolicy": "Always"},
        {"name": "b", "image": "b", "imagePullPolicy": ["Always"]},
    ]
    app = app_with({"driver.podTemplate": {"spec": {"containers": containers}}})
    said = complaint(app, WRONG["type in a container"].server_message)
    assert said.fields == (f"{OF_DRIVER}.containers[2].imagePullPolicy",)


def test_the_key_of_a_mapping_that_has_dots_is_written_so_that_it_can_be_read() -> None:
    app = app_with({"driver.podTemplate": {"spec": {"nodeSelector": {"zone": "a", "example.com/disk": 5}}}})
    said = complaint(app, WRONG["type of a value"].server_message)
    assert said.fields == (f"{OF_DRIVER}.nodeSelector[example.com/disk]",)


def test_items_of_a_template_are_numbered_as_they_stand_there_and_not_as_in_the_pod() -> None:
    volumes = [{"name": "data", "emptyDirr": {}}]  # behind those that Tidegate has by itself
    app = app_with({"driver.podTemplate": {"spec": {"volumes": volumes}}})
    pod = build_driver_pod(app, 1, 1, PLATFORM)
    number = [volume["name"] for volume in pod["spec"]["volumes"]].index("data")
    assert number > 0
    message = f'{NOT_DECODED}strict decoding error: unknown field "spec.volumes[{number}].emptyDirr"'
    assert complaint_of(message, app, "driver", pod).fields == (f"{OF_DRIVER}.volumes[0].emptyDirr",)


def test_what_is_not_of_a_template_is_named_by_its_own_field() -> None:
    app = app_with(
        {
            "application.env": [{"name": "A", "value": "1"}, {"name": "B", "valueFrom": {"fieldRef": {"path": "x"}}}],
            "driver.podTemplate": {"spec": {"containers": [{"name": "driver", "env": [{"name": "B", "value": "2"}]}]}},
        }
    )
    pod = build_driver_pod(app, 1, 1, PLATFORM)
    number = [variable["name"] for variable in pod["spec"]["containers"][0]["env"]].index("B")
    for path, field in {
        "spec.containers[0].resources.requests": "spec.driver.resources",
        "spec.containers[0].image": "spec.application.image",
        f"spec.containers[0].env[{number}].valueFrom.fieldRef": "spec.application.env[1].valueFrom.fieldRef",
        "spec.imagePullSecrets[0].name": "spec.application.imagePullSecrets",
    }.items():
        said = complaint_of(f'Pod "orders-driver" is invalid: {path}: Invalid value: "x"', app, "driver", pod)
        assert said == Complaint(f'{field}: Invalid value: "x"', (field,))


def test_several_faults_are_named_each_with_its_field() -> None:
    app = app_with({"driver.podTemplate": {"spec": {"tolerationz": [], "nodeselector": {}}}})
    message = f'{NOT_DECODED}strict decoding error: unknown field "spec.nodeselector", unknown field "spec.tolerationz"'
    text = f'unknown field "{OF_DRIVER}.nodeselector", unknown field "{OF_DRIVER}.tolerationz"'
    assert complaint(app, message) == Complaint(text, (f"{OF_DRIVER}.nodeselector", f"{OF_DRIVER}.tolerationz"))


def test_what_is_found_nowhere_in_the_spec_keeps_its_name_with_the_template_that_is_merged_in() -> None:
    message = 'Pod "orders-driver" is invalid: spec.hostname: Invalid value: "x_y": a lowercase RFC 1123 label.'
    plain = 'spec.hostname: Invalid value: "x_y": a lowercase RFC 1123 label'
    assert complaint(app_with(), message) == Complaint(plain, ())
    templated = app_with({"driver.podTemplate": {"spec": {"subdomain": "x"}}})
    assert complaint(templated, message) == Complaint(f"{plain} (spec.driver.podTemplate is merged into the pod)", ())
    assert complaint(templated, "no").text == "no (spec.driver.podTemplate is merged into the pod)"


@pytest.mark.parametrize(
    ("spec", "message", "field"),
    [
        (
            {"containers": [{"name": "proxy", "image": "x", "ports": [{"name": "http"}]}]},
            "spec.containers[0].ports[0].containerPort: Required value",
            ".containers[0].ports[0].containerPort",
        ),
        (
            {"initContainers": [{"name": "wait", "image": "x", "env": [{"value": "1"}]}]},
            "spec.initContainers[0].env[0].name: Required value",
            ".initContainers[0].env[0].name",
        ),
        (
            {"hostAliases": [{"hostnames": ["kafka"]}]},
            'spec.hostAliases[0].ip: Invalid value: "": must be a valid IP address',
            ".hostAliases[0].ip",
        ),
        (
            {"topologySpreadConstraints": [{"maxSkew": 1, "whenUnsatisfiable": "DoNotSchedule"}]},
            "spec.topologySpreadConstraints[0].topologyKey: Required value: cannot be empty",
            ".topologySpreadConstraints[0].topologyKey",
        ),
    ],
)
def test_an_item_without_what_tells_it_from_others_is_named_by_its_place(
    spec: dict[str, Any], message: str, field: str
) -> None:
    app = app_with({"driver.podTemplate": {"spec": spec}})
    pod = build_driver_pod(app, 1, 1, PLATFORM)
    # Where it stands in the pod, behind what Tidegate has by itself.
    key = message.removeprefix("spec.").partition("[")[0]
    wanted = spec[key][0]
    number = next(n for n, item in enumerate(pod["spec"][key]) if item.get("name") == wanted.get("name"))
    reported = message.replace(f"{key}[0]", f"{key}[{number}]", 1)
    said = complaint_of(f'Pod "orders-driver" is invalid: {reported}', app, "driver", pod)
    assert said.fields == (f"{OF_DRIVER}{field}",)


@pytest.mark.parametrize(
    "path", ["volumes[40].name", "containers[0].volumeMounts[40].mountPath", "containers[7].image", "hostAliases[2].ip"]
)
def test_what_others_put_into_the_pod_on_its_way_keeps_its_name(path: str) -> None:
    spec = {
        "volumes": [{"name": "data", "emptyDir": {}}],
        "containers": [{"name": "driver", "volumeMounts": [{"name": "data", "mountPath": "/data"}]}],
        "hostAliases": [{"ip": "10.0.0.1", "hostnames": ["kafka"]}],
    }
    said = complaint(
        app_with({"driver.podTemplate": {"spec": spec}}), f'Pod "orders-driver" is invalid: spec.{path}: x'
    )
    assert said == Complaint(f"spec.{path}: x (spec.driver.podTemplate is merged into the pod)", ())
