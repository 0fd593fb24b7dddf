"""The pod that repartitions an application's state."""

import json
from typing import Any

import msgspec
import pytest

from tidegate.api.streaming_app import RepartitionStatus, StreamingApp, UpgradePhase
from tidegate.api.values.errors import SpecError
from tidegate.app.builders.repartition_pod import build_repartition_pod
from tidegate_spark.contract.protocol import CONFIG_VARIABLE, DriverConfig, from_json
from tidegate_spark.contract.repartition_protocol import REPARTITION_VARIABLE, Repartition
from tidegate_testing.observations import PLATFORM, app_with
from tidegate_testing.upgrades import IMAGE, PIN, A, stable_of, under_test

ATTEMPT = RepartitionStatus(partitions=8, previous_partitions=4, snapshot_id=PIN, epoch=2, lineage=3, attempts=2)


def app(change: dict[str, Any] | None = None, **fields: Any) -> StreamingApp:
    asked = {"state.partitions": 8, **(change or {})}
    known = {"repartition": ATTEMPT, "epoch": 0, **fields}
    return under_test(UpgradePhase.REPARTITIONING, asked, **known)


def variables(pod: dict[str, Any]) -> dict[str, Any]:
    (container,) = pod["spec"]["containers"]
    return {item["name"]: item.get("value", item.get("valueFrom")) for item in container["env"]}


def test_it_is_a_bounded_pod_of_one_attempt_in_the_image_that_wrote_the_state() -> None:
    pod = build_repartition_pod(
        app(
            {"state.repartition": {"timeoutSeconds": 900, "resources": {"requests": {"cpu": "1500m", "memory": "3Gi"}}}}
        ),
        PLATFORM,
    )
    metadata, spec = pod["metadata"], pod["spec"]
    assert metadata["name"] == "orders-repartition-2"
    assert (metadata["labels"]["tidegate.dev/role"], metadata["labels"]["tidegate.dev/epoch"]) == ("repartition", "2")
    assert metadata["ownerReferences"][0]["kind"] == "StreamingApp"
    assert (spec["restartPolicy"], spec["activeDeadlineSeconds"]) == ("Never", 900)
    (container,) = spec["containers"]
    assert (container["name"], container["image"]) == ("repartition", "shop/orders:1")
    assert container["command"] == ["python3", "-m", "tidegate_spark.repartition_pod"]
    assert container["resources"]["limits"]["memory"] == "3Gi"
    assert variables(pod)["TIDEGATE_MASTER"] == "local[2]"
    assert variables(pod)["TIDEGATE_POD_UID"] == {"fieldRef": {"fieldPath": "metadata.uid"}}


def test_it_is_told_what_to_make_of_what_and_nothing_of_the_program() -> None:
    conf = {"spark.hadoop.fs.s3a.x": "y", "spark.sql.streaming.stateStore.z": "1", "spark.executor.memory": "9g"}
    old = stable_of(app_with({IMAGE: A, "sparkConf": conf}))
    known = app()
    status = msgspec.structs.replace(known.status, last_stable=old)
    pod = build_repartition_pod(msgspec.structs.replace(known, status=status), PLATFORM)
    order = from_json(Repartition, variables(pod)[REPARTITION_VARIABLE].replace("$$", "$"))
    assert (order.partitions, order.pin, order.of_lineage, order.lineage) == (8, PIN, 1, 3)
    assert order.spark_conf == {"spark.hadoop.fs.s3a.x": "y", "spark.sql.streaming.stateStore.z": "1"}
    config = from_json(DriverConfig, variables(pod)[CONFIG_VARIABLE].replace("$$", "$"))
    assert (config.epoch, config.lineage, config.injected) == (2, 1, True)


TRUST = "-Djavax.net.ssl.trustStore=/certificates/trust.p12 '-Djavax.net.ssl.trustStorePassword=two words'"
PROXY = "-Dhttps.proxyHost=proxy.shop -Dhttps.proxyPort=3128"
OF_THE_DRIVER = "-Duser.timezone=Europe/Berlin -XX:MaxDirectMemorySize=9g -javaagent:/agent/it.jar -Xlog:gc:/logs/gc"


def with_java_options(*env: dict[str, Any], **options: str) -> StreamingApp:
    conf = {f"spark.driver.{key}": value for key, value in options.items()}
    mount = {"name": "certificates", "mountPath": "/certificates"}
    template = {
        "spec": {
            "containers": [{"name": "driver", "volumeMounts": [mount, {"name": "logs", "mountPath": "/logs"}]}],
            "volumes": [
                {"name": "certificates", "secret": {"secretName": "trust"}},
                {"name": "logs", "configMap": {"name": "logs"}},
            ],
        }
    }
    old = stable_of(app_with({IMAGE: A, "sparkConf": conf, "application.env": list(env)}))
    known = app({"driver.podTemplate": template})
    return msgspec.structs.replace(known, status=msgspec.structs.replace(known.status, last_stable=old))


def test_its_jvm_has_the_drivers_trust_store_and_proxy_and_no_other_option_of_it() -> None:
    """Without them it reaches no storage; with an agent, a debugger or a log of the driver's it may not start."""
    options = {"extraJavaOptions": f"{OF_THE_DRIVER} {TRUST}", "defaultJavaOptions": PROXY}
    pod = build_repartition_pod(with_java_options(**options), PLATFORM)
    order = from_json(Repartition, variables(pod)[REPARTITION_VARIABLE].replace("$$", "$"))
    assert order.spark_conf == {"spark.driver.extraJavaOptions": TRUST, "spark.driver.defaultJavaOptions": PROXY}
    (container,) = pod["spec"]["containers"]
    mounts = {mount["name"]: mount["mountPath"] for mount in container["volumeMounts"]}
    assert (mounts.get("certificates"), "logs" in mounts) == ("/certificates", False)
    assert {"name": "certificates", "secret": {"secretName": "trust", "optional": True}} in pod["spec"]["volumes"]


@pytest.mark.parametrize("options", [OF_THE_DRIVER, "", "-Dhttps.proxyHost='never ended"])
def test_its_jvm_has_no_options_where_none_leads_to_the_storage(options: str) -> None:
    pod = build_repartition_pod(with_java_options(extraJavaOptions=options), PLATFORM)
    order = from_json(Repartition, variables(pod)[REPARTITION_VARIABLE].replace("$$", "$"))
    assert order.spark_conf == {}


@pytest.mark.parametrize("name", ["JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"])
def test_its_jvm_has_those_options_too_that_variables_of_the_version_that_wrote_the_state_bring(name: str) -> None:
    word = {"name": "WORD", "valueFrom": {"secretKeyRef": {"name": "trust", "key": "word"}}}
    trust = "-Djavax.net.ssl.trustStore=/certificates/trust.p12 -Djavax.net.ssl.trustStorePassword=$(WORD)"
    options = {"name": name, "value": f"{OF_THE_DRIVER} {trust}"}
    pod = build_repartition_pod(with_java_options({"name": "ELSE", "value": "1"}, word, options), PLATFORM)
    (container,) = pod["spec"]["containers"]
    found = variables(pod)
    assert found[name].replace("'", "") == trust
    names = [item["name"] for item in container["env"]]
    assert names.index("WORD") < names.index(name)  # or the kubelet would leave $(WORD) as it is
    assert (found["WORD"], "ELSE" in found) == (word["valueFrom"], False)
    assert "WORD" in found["TIDEGATE_SECRET_VARIABLES"]
    assert "certificates" in [mount["name"] for mount in container["volumeMounts"]]


@pytest.mark.parametrize(
    "options",
    [
        {"value": OF_THE_DRIVER},
        {"value": "-Dhttps.proxyHost='never ended"},
        {"valueFrom": {"configMapKeyRef": {"name": "java", "key": "options"}}},
    ],
)
def test_it_has_no_such_variable_where_none_of_its_options_is_known_to_lead_to_the_storage(
    options: dict[str, Any],
) -> None:
    pod = build_repartition_pod(with_java_options({"name": "JAVA_TOOL_OPTIONS", **options}), PLATFORM)
    assert "JAVA_TOOL_OPTIONS" not in variables(pod)


def test_image_and_settings_are_those_of_the_version_that_wrote_the_state_whatever_the_new_one_has() -> None:
    codec, old, new = "spark.sql.streaming.stateStore.compression.codec", "lz4", "of.the.new.image"
    stable = app_with({IMAGE: A, "sparkConf": {codec: old}})
    changed = app({"sparkConf": {codec: new, "spark.hadoop.new": "1"}})
    status = msgspec.structs.replace(changed.status, last_stable=stable_of(stable))
    pod = build_repartition_pod(msgspec.structs.replace(changed, status=status), PLATFORM)
    order = from_json(Repartition, variables(pod)[REPARTITION_VARIABLE])
    assert pod["spec"]["containers"][0]["image"] == A
    assert (order.image, order.spark_conf) == (A, {codec: old})


def test_memory_that_does_not_do_for_spark_is_refused_by_its_field() -> None:
    with pytest.raises(SpecError, match=r"spec\.state\.repartition\.resources\.requests\.memory"):
        build_repartition_pod(app({"state.repartition": {"resources": {"requests": {"memory": "64Mi"}}}}), PLATFORM)


def test_without_an_attempt_there_is_no_pod() -> None:
    later = msgspec.structs.replace(ATTEMPT, epoch=0)
    with pytest.raises(ValueError, match="has begun"):
        build_repartition_pod(app(repartition=later), PLATFORM)
    assert json.dumps(build_repartition_pod(app(), PLATFORM))


@pytest.mark.parametrize("stored", ["{", "[]", '{"application.image": 7}'])
def test_by_a_version_that_can_not_be_read_no_state_is_repartitioned(stored: str) -> None:
    """As a newer operator left it: which Spark wrote the state is not guessed."""
    repartitioning = app()
    assert repartitioning.status.last_stable is not None
    newer = msgspec.structs.replace(repartitioning.status.last_stable, spec=stored)
    status = msgspec.structs.replace(repartitioning.status, last_stable=newer)
    with pytest.raises(SpecError, match=r"status\.lastStable\.spec: cannot be read by this operator"):
        build_repartition_pod(msgspec.structs.replace(repartitioning, status=status), PLATFORM)
