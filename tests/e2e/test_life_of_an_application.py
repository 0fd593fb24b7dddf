"""An application from apply to deletion, and what outlives it."""

import json
from typing import Any

from tidegate_testing.waiting import wait_for
from tidegate_testing.world import World

NAMESPACE = "tidegate-e2e-life"


def test_a_script_that_knows_nothing_of_tidegate_runs_and_shows_its_figures(world: World) -> None:
    world.make_namespace(NAMESPACE)
    world.kubectl.apply(world.app("figures", NAMESPACE, main="script:counting.py"))

    def committed() -> dict[str, Any]:
        status: dict[str, Any] = world.get_app("figures", NAMESPACE).get("status", {})
        queries = status.get("queries", [])
        assert queries, status
        assert queries[0].get("batchId", -1) >= 1, queries
        ran = {"wanted": 1, "running": 1, "summary": "1/1"}
        assert (status["phase"], status["executors"]) == ("Running", ran), status
        return status

    status = wait_for("batches in the status", committed, timeout=600, interval=2)
    assert status["queries"][0]["name"] == "counting"
    table = world.kubectl.run("get", "sapp", "figures", "-n", NAMESPACE)
    assert table.splitlines()[0].split() == ["NAME", "PHASE", "READY", "EXECUTORS", "BATCH", "ROWS/S", "AGE"]
    world.kubectl.run("wait", "sapp/figures", "-n", NAMESPACE, "--for=condition=Ready", "--timeout=120s", timeout=130)

    their_jvms_start_from_the_archive(world)
    scale_out(world)
    delete_and_keep_the_state(world)


def their_jvms_start_from_the_archive(world: World) -> None:
    """A JVM that can not use the archive of classes says nothing, and is slower to start ever after."""
    pods = world.kubectl.list("pods", NAMESPACE, "tidegate.dev/app=figures")
    assert len(pods) == 2, [pod["metadata"]["name"] for pod in pods]
    for pod in pods:
        name = pod["metadata"]["name"]
        maps = world.kubectl.run(
            "exec", name, "-n", NAMESPACE, "--", "sh", "-c", "cat /proc/[0-9]*/maps 2>/dev/null; :"
        )
        assert "/archive/classes.jsa" in maps, name


def scale_out(world: World) -> None:
    """kubectl scale reaches the running driver: the same epoch, one more executor."""
    before = world.get_app("figures", NAMESPACE)["status"]["epoch"]
    world.kubectl.run("scale", "sapp/figures", "-n", NAMESPACE, "--replicas=2")

    def scaled() -> bool:
        status = world.get_app("figures", NAMESPACE)["status"]
        assert status["executors"] == {"wanted": 2, "running": 2, "summary": "2/2"}, status["executors"]
        return bool(status["epoch"] == before)

    wait_for("a second executor under the same driver", scaled, timeout=300, interval=2)


def delete_and_keep_the_state(world: World) -> None:
    """After deletion nothing is left but the storage, which ends at a batch boundary."""
    world.kubectl.delete("sapp", "figures", NAMESPACE)
    wait_for("the resource to be gone", lambda: world.kubectl.get("sapp", "figures", NAMESPACE) is None, timeout=300)
    left = world.kubectl.list("pods,secrets,serviceaccounts,roles,rolebindings,configmaps", NAMESPACE, "")
    ours = [f"{o['kind']}/{o['metadata']['name']}" for o in left if belongs_to_tidegate(o)]
    assert ours == []

    keys = world.keys("figures", NAMESPACE)
    newest = {part: max(int(k.rpartition("/")[2]) for k in batches(keys, part)) for part in ("offsets", "commits")}
    assert newest["offsets"] == newest["commits"]
    (driver_log,) = [k for k in keys if "/logs/" in k and k.endswith("/driver.log")]
    assert "counting" in world.read(driver_log)
    assert [k for k in keys if "/logs/" in k and "/executor-" in k] != []


def batches(keys: list[str], part: str) -> list[str]:
    return [k for k in keys if f"/lineages/1/counting/{part}/" in k and k.rpartition("/")[2].isdigit()]


def belongs_to_tidegate(item: dict[str, Any]) -> bool:
    metadata = item["metadata"]
    return "tidegate" in metadata["name"] or any("tidegate" in label for label in metadata.get("labels", {}))


def test_a_finite_script_completes_and_takes_its_storage_with_it_if_told_to(world: World) -> None:
    world.make_namespace(NAMESPACE)
    target = f"s3a://{world.bucket}/apps/{NAMESPACE}/finite/output"
    app = world.app(
        "finite", NAMESPACE, main="script:finite.py", args=[target], spec={"storage": {"onDelete": "Delete"}}
    )
    world.kubectl.apply(app)

    def completed() -> bool:
        found = world.get_app("finite", NAMESPACE)
        assert found.get("status", {}).get("phase") == "Completed", found.get("status")
        return True

    wait_for("the script's end", completed, timeout=600, interval=2)
    keys = world.keys("finite", NAMESPACE)
    (log,) = [k for k in keys if "/logs/" in k and k.endswith("/driver.log")]
    assert "counted 1000" in world.read(log)
    owner = json.loads(world.read(next(k for k in keys if k.endswith("/app.json"))))
    assert owner["uid"] == world.get_app("finite", NAMESPACE)["metadata"]["uid"]

    world.kubectl.delete("sapp", "finite", NAMESPACE)
    wait_for("the resource to be gone", lambda: world.kubectl.get("sapp", "finite", NAMESPACE) is None, timeout=300)
    assert world.keys("finite", NAMESPACE) == []


def test_a_stock_spark_image_runs_through_the_init_container(world: World) -> None:
    world.make_namespace(NAMESPACE)
    stock = {"image": world.environment.image_stock, "runtime": "Injected"}
    world.kubectl.apply(world.app("stock", NAMESPACE, main="script:counting.py", spec={"application": stock}))

    def committed() -> bool:
        status = world.get_app("stock", NAMESPACE).get("status", {})
        assert status.get("queries"), status
        return bool(status["queries"][0].get("batchId", -1) >= 1 and status["executors"]["running"] == 1)

    wait_for("a batch on the stock image", committed, timeout=600, interval=2)
    world.kubectl.delete("sapp", "stock", NAMESPACE)
    wait_for("the resource to be gone", lambda: world.kubectl.get("sapp", "stock", NAMESPACE) is None, timeout=300)
