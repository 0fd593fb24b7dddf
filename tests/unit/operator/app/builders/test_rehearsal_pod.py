"""The pod in which a new version is rehearsed: as the driver's, and not to be mistaken for it."""

from typing import Any

import msgspec
import pytest

from tidegate.api.spec_hash import spec_hash
from tidegate.api.streaming_app import RollbackSnapshot, StreamingApp
from tidegate.api.values.errors import SpecError
from tidegate.app.builders.driver import build_driver_pod
from tidegate.app.builders.rehearsal_pod import build_rehearsal
from tidegate_testing.observations import PLATFORM
from tidegate_testing.rehearsals import ASKED, POD, config_of, rehearsing
from tidegate_testing.upgrades import COPY

TEMPLATE = {
    "metadata": {
        "labels": {"team": "orders", "app": "orders"},
        "annotations": {"prometheus.io/scrape": "true", "owner": "orders"},
    },
    "spec": {
        "nodeSelector": {"disk": "ssd"},
        "volumes": [{"name": "rules", "configMap": {"name": "rules"}}],
        "containers": [
            {
                "name": "driver",
                "volumeMounts": [{"name": "rules", "mountPath": "/rules"}],
                "ports": [{"containerPort": 4040}],
            }
        ],
    },
}


def built(change: dict[str, Any] | None = None) -> dict[str, Any]:
    return build_rehearsal(rehearsing(change), PLATFORM).manifest


def container_of(pod: dict[str, Any]) -> dict[str, Any]:
    (container,) = pod["spec"]["containers"]
    assert isinstance(container, dict)
    return container


def variables(pod: dict[str, Any]) -> dict[str, Any]:
    return {item["name"]: item.get("value", item.get("valueFrom")) for item in container_of(pod)["env"]}


def test_nothing_that_finds_drivers_finds_it() -> None:
    app = rehearsing({"driver.podTemplate": TEMPLATE})
    pod = build_rehearsal(app, PLATFORM).manifest
    assert pod["metadata"]["name"] == POD
    assert pod["metadata"]["labels"] == {
        "tidegate.dev/app": "orders",
        "tidegate.dev/role": "rehearsal",
        "app.kubernetes.io/managed-by": "tidegate",
    }
    assert pod["metadata"]["annotations"] == {
        "owner": "orders",
        "tidegate.dev/spec-hash": spec_hash(app),
        "tidegate.dev/app-uid": "u-1",
    }
    assert [owner["name"] for owner in pod["metadata"]["ownerReferences"]] == ["orders"]
    assert not {"ports", "livenessProbe", "readinessProbe", "startupProbe"} & container_of(pod).keys()


def test_it_has_what_the_drivers_template_gives_a_script() -> None:
    pod = built({"driver.podTemplate": TEMPLATE, "application.env": [{"name": "MODE", "value": "fast"}]})
    assert pod["spec"]["nodeSelector"] == {"disk": "ssd"}
    assert {"name": "rules", "mountPath": "/rules"} in container_of(pod)["volumeMounts"]
    assert variables(pod)["MODE"] == "fast"


def test_it_runs_once_and_not_for_ever_and_asks_the_api_server_for_nothing() -> None:
    spec = built()["spec"]
    assert (spec["restartPolicy"], spec["activeDeadlineSeconds"]) == ("Never", 660)
    assert (spec["automountServiceAccountToken"], spec["serviceAccountName"]) == (False, "tidegate-driver-orders")
    assert spec["terminationGracePeriodSeconds"] == 30
    assert not [volume for volume in spec["volumes"] if volume.get("secret", {}).get("secretName") == "orders-agent"]


def test_spark_makes_a_secret_up_for_itself_in_a_pod_that_shares_none() -> None:
    conf = config_of(built()).spark_conf
    assert (conf["spark.authenticate"], "spark.authenticate.secret.file" in conf) == ("true", False)
    files = {f"spark.authenticate.secret.{role}.file": "/mine" for role in ("driver", "executor")}
    assert not [key for key in config_of(built({"sparkConf": files})).spark_conf if key.endswith(".file")]


def test_a_runtime_that_knows_of_no_rehearsals_does_not_run_the_application() -> None:
    assert container_of(built())["command"] == ["python3", "-m", "tidegate_spark.rehearse"]


@pytest.mark.parametrize(("cpu", "tasks"), [("500m", 2), ("1", 2), ("2500m", 3), (4, 4)])
def test_spark_runs_within_it(cpu: str | int, tasks: int) -> None:
    rehearse = {"resources": {"requests": {"cpu": cpu, "memory": "1Gi"}}}
    pod = built({"upgrade.rehearsal": rehearse, "driver.resources": {"requests": {"memory": "8Gi"}}})
    assert variables(pod)["TIDEGATE_MASTER"] == f"local[{tasks}]"
    assert container_of(pod)["resources"] == {
        "requests": {"cpu": str(cpu), "memory": "1Gi"},
        "limits": {"memory": "1Gi"},
    }


def test_its_heap_fits_into_its_own_memory_whatever_the_drivers_is() -> None:
    conf = {"spark.driver.memory": "7g", "spark.sql.ansi.enabled": "false"}
    config = config_of(built({"sparkConf": conf, "driver.resources": {"requests": {"memory": "8Gi"}}}))
    assert config.driver_heap_mib == 1228
    assert "spark.driver.memory" not in config.spark_conf
    assert config.spark_conf["spark.sql.ansi.enabled"] == "false"


def test_nothing_of_the_application_but_the_copy_is_in_what_it_is_told() -> None:
    app = rehearsing()
    config = config_of(build_rehearsal(app, PLATFORM).manifest)
    assert (config.lineage, config.pin, config.executor.instances) == (1, None, 0)
    assert config.storage.uri.endswith(f"/rehearsals/{COPY}")
    assert config.start_from is not None
    assert (config.start_from.fork, config.start_from.holder) == (True, COPY)


def test_it_is_told_which_queries_the_version_before_has() -> None:
    rehearsal = config_of(build_rehearsal(rehearsing(queries=("main", "totals")), PLATFORM).manifest).rehearsal
    assert rehearsal is not None
    assert (rehearsal.batches, rehearsal.queries) == (3, ("main", "totals"))


def test_its_first_failure_is_told_as_what_it_is_whatever_the_budget() -> None:
    restart = {"maxFailures": 0, "stallTimeoutSeconds": 90}
    config = config_of(built({"restart": restart}))
    assert config.restart.max_failures > 0
    assert (config.restart.failures, config.restart.stall_timeout_seconds) == ((), 90)


def test_the_drivers_pod_is_as_it_was() -> None:
    app = rehearsing()
    unasked = msgspec.structs.replace(
        app, spec=msgspec.structs.replace(app.spec, upgrade=msgspec.structs.replace(app.spec.upgrade, rehearsal=None))
    )
    assert build_driver_pod(app, 1, 1, PLATFORM) == build_driver_pod(unasked, 1, 1, PLATFORM)


def test_memory_that_does_not_fit_is_named() -> None:
    with pytest.raises(SpecError, match="MiB"):
        built({"upgrade.rehearsal": {**ASKED["upgrade.rehearsal"], "resources": {"requests": {"memory": "256Mi"}}}})


def test_without_a_copy_there_is_none() -> None:
    app: StreamingApp = rehearsing(rollback_snapshot=RollbackSnapshot(id="p", lineage=1))
    with pytest.raises(ValueError, match="nothing to rehearse"):
        build_rehearsal(app, PLATFORM)
