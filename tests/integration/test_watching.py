"""A recording holds every version of every object, in order; and says so when it cannot."""

import http.server
import json
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from devcluster.apiserver import ApiServer
from tidegate_testing.crd import MINIMAL
from tidegate_testing.cuttable_line import CuttableLine
from tidegate_testing.kubectl import Kubectl, write_kubeconfig
from tidegate_testing.watching import Version, VersionsMissedError, Watch, watched


def named(name: str) -> dict[str, Any]:
    return {**MINIMAL, "metadata": {"name": name}}


def write_batch(kubectl: Kubectl, namespace: str, number: int) -> None:
    kubectl.patch_status("sapp", "orders", namespace, {"batch": number})


def batch(version: Version) -> Any:
    return version.object.get("status", {}).get("batch")


def batches(versions: list[Version]) -> list[Any]:
    return [(version.change, batch(version)) for version in versions]


def test_each_version_is_recorded_in_order_however_short_it_was(api_kubectl: Kubectl, namespace: str) -> None:
    api_kubectl.create(named("before"), namespace)
    reported = list(range(40))
    with watched(api_kubectl, "sapp", namespace) as seen:
        for _ in range(2):
            api_kubectl.create(named("orders"), namespace)
            for number in reported:
                write_batch(api_kubectl, namespace, number)
            api_kubectl.delete("sapp", "orders", namespace)
    life = [("ADDED", None), *(("MODIFIED", number) for number in reported), ("DELETED", reported[-1])]
    assert batches(seen.versions("orders")) == life * 2
    assert batches(seen.versions("before")) == [("THERE", None)]
    assert [version.name for version in seen.versions()] == ["before", *["orders"] * len(life) * 2]


def test_a_version_that_is_over_is_found_and_one_to_come_is_awaited(api_kubectl: Kubectl, namespace: str) -> None:
    api_kubectl.create(named("orders"), namespace)
    with watched(api_kubectl, "sapp", namespace) as seen:
        for number in (1, 2):
            write_batch(api_kubectl, namespace, number)
        over = seen.wait_for("the first", lambda version: batch(version) == 1, timeout=120)
        later = threading.Timer(0.3, write_batch, (api_kubectl, namespace, 3))
        later.start()
        end = seen.wait_for("the third", lambda version: batch(version) == 3, timeout=120)
        later.join()
        with pytest.raises(AssertionError, match=r"waited 0 s for the fourth; recorded last: .*'batch': 3"):
            seen.wait_for("the fourth", lambda version: batch(version) == 4, timeout=0)
    assert over.number < end.number


def test_a_watch_that_breaks_off_goes_on_where_it_was(
    api_server: ApiServer, api_kubectl: Kubectl, namespace: str, tmp_path: Path
) -> None:
    content = json.loads(api_server.kubeconfig.read_text())
    cluster = content["clusters"][0]["cluster"]
    api_kubectl.create(named("orders"), namespace)
    with CuttableLine(int(cluster["server"].rpartition(":")[2]), "127.0.0.8") as line:
        cluster["server"] = f"https://127.0.0.1:{line.port}"
        (tmp_path / "kubeconfig").write_text(json.dumps(content))
        reported = list(range(10))
        with watched(Kubectl(api_server.kubectl, tmp_path / "kubeconfig"), "sapp", namespace) as seen:
            for number in reported:
                write_batch(api_kubectl, namespace, number)
                seen.catch_up()
                line.break_off()
    assert batches(seen.versions()) == [("THERE", None), *(("MODIFIED", number) for number in reported)]


def test_a_watch_gives_each_version_of_its_object_once_and_in_order(api_kubectl: Kubectl, namespace: str) -> None:
    api_kubectl.create(named("others"), namespace)
    with Watch(api_kubectl, "sapp", namespace, name="orders") as watch:
        api_kubectl.create(named("orders"), namespace)
        for number in (1, 2, 3):
            write_batch(api_kubectl, namespace, number)
        found = [watch.until("a batch", lambda app: app.get("status", {}).get("batch"), 120) for _ in range(3)]
        with pytest.raises(AssertionError, match=r"waited 0 s for more; recorded last: .*'batch': 3"):
            watch.until("more", lambda app: True, 0)
    assert found == [1, 2, 3]


def test_a_watch_by_labels_leaves_out_what_has_others_and_what_is_gone(api_kubectl: Kubectl, namespace: str) -> None:
    labelled = {**MINIMAL, "metadata": {"name": "orders", "labels": {"team": "a", "tier": "b"}}}
    with Watch(api_kubectl, "sapp", namespace, selector="team=a,tier=b") as watch:
        for manifest in (named("others"), labelled):
            api_kubectl.create(manifest, namespace)
        api_kubectl.delete("sapp", "orders", namespace)
        api_kubectl.create({**labelled, "metadata": {**labelled["metadata"], "name": "second"}}, namespace)
        names = [watch.until("one", lambda app: str(app["metadata"]["name"]), 120) for _ in range(2)]
    assert names == ["orders", "second"]


# --- what a real server does only after minutes -----------------------------------------------------------------------

PODS = {"resource": "pods", "singularResource": "pod", "scope": "Namespaced", "responseKind": {"kind": "Pod"}}
CORE = {"metadata": {}, "versions": [{"version": "v1", "resources": [PODS]}]}
EXPIRED = {"kind": "Status", "reason": "Expired", "code": 410, "message": "too old resource version: 7 (99)"}
ANSWERS = {
    "/api": {"items": [CORE]},
    "/apis": {"items": []},
    "/api/v1/namespaces/shop/pods": {"metadata": {"resourceVersion": "7"}, "items": []},
}


class Forgetful(http.server.BaseHTTPRequestHandler):
    """An API server that no longer has the changes after the version that is asked for."""

    def do_GET(self) -> None:
        body = json.dumps(ANSWERS.get(self.path) or {"type": "ERROR", "object": EXPIRED}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 - as the base class names it
        pass


@pytest.fixture
def forgetful(tmp_path: Path) -> Iterator[Kubectl]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Forgetful) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield Kubectl(Path("kubectl"), write_kubeconfig(tmp_path, f"http://127.0.0.1:{server.server_port}"))
        server.shutdown()


def test_a_recording_in_which_something_is_missing_is_no_recording(forgetful: Kubectl) -> None:
    with pytest.raises(VersionsMissedError, match="too old resource version"), watched(forgetful, "pods", "shop") as it:
        it.wait_for("a pod", lambda version: version, timeout=120)
