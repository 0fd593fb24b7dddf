"""What the simulated and the real API server have in common: everything the simulation's results rest on.

A test class with a fixture ``api`` inherits from :class:`ApiServerContract`; there is one for each of the two servers.
"""

import datetime
from typing import Any

import msgspec
import pytest

from tidegate.app.builders.references import secret_to_try
from tidegate.kube.client import KubeClient
from tidegate.kube.failures import AlreadyExists, Conflict, Invalid, NotFound
from tidegate.kube.paths import collection, item
from tidegate.kube.watch import Changed, Listed, Removed, Watch
from tidegate_testing.apps import streaming_app
from tidegate_testing.observations import app_with

FINALIZER = "tidegate.dev/streamingapp"
LABEL = "tidegate.dev/contract"


class Meta(msgspec.Struct):
    name: str
    uid: str
    resourceVersion: str  # noqa: N815 - the API's name


class Named(msgspec.Struct):
    metadata: Meta


class Api:
    """A client, a namespace of its own, and objects to put into it."""

    def __init__(self, client: KubeClient, namespace: str) -> None:
        self.client, self.namespace = client, namespace

    async def get(self, kind: str, name: str) -> Any:
        return await self.client.get(item(kind, self.namespace, name), dict[str, Any])

    async def must_get(self, kind: str, name: str) -> dict[str, Any]:
        found = await self.get(kind, name)
        assert isinstance(found, dict), found
        return found

    async def create(self, kind: str, manifest: dict[str, Any], *, strict: bool = False) -> Any:
        return await self.client.create(collection(kind, self.namespace), manifest, dict[str, Any], strict=strict)

    async def try_out(self, manifest: dict[str, Any]) -> Any:
        return await self.client.try_out(collection(manifest["kind"], self.namespace), manifest, patience=10.0)

    async def patch(self, kind: str, name: str, change: dict[str, Any], part: str = "") -> Any:
        return await self.client.merge_patch(item(kind, self.namespace, name) + part, change, dict[str, Any])

    async def delete(self, kind: str, name: str, uid: str = "", version: str = "") -> Any:
        answer = await self.client.delete(item(kind, self.namespace, name), uid, version)
        return msgspec.json.decode(answer) if isinstance(answer, bytes) else answer

    async def app(self, **metadata: Any) -> dict[str, Any]:
        """Create an application."""
        storage = {"uri": "s3://bucket/apps"}
        manifest = streaming_app("orders", self.namespace, image="x", storage=storage, main="local:///opt/main.py")
        created = await self.create("StreamingApp", {**manifest, "metadata": {**manifest["metadata"], **metadata}})
        assert isinstance(created, dict), created
        return created

    async def pod(self, name: str = "orders-driver", node: str = "", **fields: Any) -> dict[str, Any]:
        """Create a pod, and give it to a node if one is named."""
        created = await self.create("Pod", {**self.pod_manifest(name), **fields})
        assert isinstance(created, dict), created
        if node:
            target = {"apiVersion": "v1", "kind": "Node", "name": node}
            binding = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
            await self.client.create(item("Pod", self.namespace, name) + "/binding", binding, msgspec.Raw)
        return await self.must_get("Pod", name)

    def pod_manifest(self, name: str = "orders-driver", **spec: Any) -> dict[str, Any]:
        """Return a pod with these fields beside what it must have."""
        container = {"name": "driver", "image": "x"}
        return {
            "apiVersion": "v1",
            "kind": "Pod",
            "metadata": {"name": name, "namespace": self.namespace, "labels": {LABEL: self.namespace}},
            "spec": {"containers": [container], "terminationGracePeriodSeconds": 40, **spec},
        }

    async def secret(self, name: str = "token") -> dict[str, Any]:
        """Create a Secret."""
        metadata = {"name": name, "namespace": self.namespace}
        created = await self.create("Secret", {"kind": "Secret", "metadata": metadata, "stringData": {"token": "abc"}})
        assert isinstance(created, dict), created
        return created


def version_of(body: dict[str, Any]) -> str:
    return str(body["metadata"]["resourceVersion"])


class ApiServerContract:
    """Each test states what there is, does one thing, and asserts what there is then."""

    # --- creation ---

    async def test_a_created_object_has_uid_version_generation_and_time(self, api: Api) -> None:
        metadata = (await api.app())["metadata"]
        assert metadata["uid"]
        assert metadata["resourceVersion"].isdecimal()
        assert metadata["generation"] == 1
        assert datetime.datetime.fromisoformat(metadata["creationTimestamp"]).tzinfo is not None

    async def test_a_name_is_used_once(self, api: Api) -> None:
        first = await api.secret()
        again = {
            "kind": "Secret",
            "metadata": {"name": "token", "namespace": api.namespace},
            "stringData": {"token": "x"},
        }
        assert isinstance(await api.create("Secret", again), AlreadyExists)
        assert (await api.must_get("Secret", "token"))["metadata"]["uid"] == first["metadata"]["uid"]

    async def test_a_name_that_was_used_comes_back_with_another_uid(self, api: Api) -> None:
        first = await api.secret()
        await api.delete("Secret", "token")
        second = await api.secret()
        assert second["metadata"]["uid"] != first["metadata"]["uid"]
        assert int(version_of(second)) > int(version_of(first))

    async def test_nothing_is_created_in_a_namespace_that_is_not_there(self, api: Api) -> None:
        elsewhere = Api(api.client, "nowhere")
        manifest = {"kind": "Secret", "metadata": {"name": "token", "namespace": "nowhere"}}
        assert isinstance(await elsewhere.create("Secret", manifest), NotFound)

    async def test_a_status_in_a_manifest_is_not_taken(self, api: Api) -> None:
        pod = await api.pod(status={"phase": "Running"})
        assert pod["status"]["phase"] == "Pending"

    async def test_a_field_that_no_pod_has_is_dropped_or_refused_by_its_name(self, api: Api) -> None:
        manifest = api.pod_manifest(tolerationz=[], nodeselector={"disk": "fast"})
        refused = await api.create("Pod", manifest, strict=True)
        before, _, unknown = refused.message.partition("error: ")
        assert (type(refused), refused.in_itself) == (Invalid, True)
        assert before == 'Pod in version "v1" cannot be handled as a Pod: strict decoding '
        assert sorted(unknown.split(", ")) == ['unknown field "spec.nodeselector"', 'unknown field "spec.tolerationz"']
        made = await api.create("Pod", manifest)
        assert {"tolerationz", "nodeselector"}.isdisjoint(made["spec"])

    async def test_a_pod_that_is_only_tried_is_judged_and_not_there(self, api: Api) -> None:
        assert await api.try_out(api.pod_manifest()) is None
        refused = await api.try_out(api.pod_manifest(tolerationz=[]))
        assert isinstance(refused, Invalid)
        assert refused.in_itself
        assert isinstance(await api.get("Pod", "orders-driver"), NotFound)
        await api.pod()
        assert isinstance(await api.try_out(api.pod_manifest()), AlreadyExists)
        assert isinstance(await api.try_out(api.pod_manifest(tolerationz=[])), Invalid)

    async def test_a_secret_whose_creation_is_only_tried_is_known_to_exist_or_not_and_never_made(
        self, api: Api
    ) -> None:
        manifest = secret_to_try(app_with(namespace=api.namespace), "token")
        assert await api.try_out(manifest) is None
        assert isinstance(await api.get("Secret", "token"), NotFound)
        made = await api.secret()
        assert isinstance(await api.try_out(manifest), AlreadyExists)
        assert version_of(await api.must_get("Secret", "token")) == version_of(made)

    async def test_plain_text_in_a_secret_is_encoded(self, api: Api) -> None:
        await api.secret()
        found = await api.must_get("Secret", "token")
        assert found["data"] == {"token": "YWJj"}
        assert "stringData" not in found

    # --- changes ---

    async def test_what_is_not_there_is_not_found(self, api: Api) -> None:
        assert isinstance(await api.get("StreamingApp", "orders"), NotFound)
        assert isinstance(await api.patch("StreamingApp", "orders", {"spec": {}}), NotFound)
        assert isinstance(await api.delete("StreamingApp", "orders"), NotFound)

    async def test_a_change_of_the_spec_is_a_new_generation_and_leaves_the_status(self, api: Api) -> None:
        await api.app()
        await api.patch("StreamingApp", "orders", {"status": {"epoch": 3}}, "/status")
        change = {"spec": {"application": {"args": ["--a"]}}, "status": {"epoch": 4}}
        await api.patch("StreamingApp", "orders", change)
        found = await api.must_get("StreamingApp", "orders")
        assert (found["metadata"]["generation"], found["status"]["epoch"]) == (2, 3)
        assert found["spec"]["application"]["args"] == ["--a"]

    async def test_a_change_of_the_status_is_no_generation_and_leaves_the_spec(self, api: Api) -> None:
        created = await api.app()
        change = {"status": {"epoch": 3}, "spec": {"application": {"args": ["--a"]}}}
        changed = await api.patch("StreamingApp", "orders", change, "/status")
        assert (changed["metadata"]["generation"], changed["status"]["epoch"]) == (1, 3)
        assert changed["spec"] == created["spec"]
        assert int(version_of(changed)) > int(version_of(created))

    async def test_null_removes_a_field_of_the_status(self, api: Api) -> None:
        await api.app()
        await api.patch("StreamingApp", "orders", {"status": {"epoch": 3, "lineage": 1}}, "/status")
        changed = await api.patch("StreamingApp", "orders", {"status": {"lineage": None}}, "/status")
        assert (changed["status"].get("epoch"), "lineage" in changed["status"]) == (3, False)

    async def test_a_change_that_changes_nothing_is_no_new_version(self, api: Api) -> None:
        await api.app()
        first = await api.patch("StreamingApp", "orders", {"status": {"epoch": 3}}, "/status")
        again = await api.patch("StreamingApp", "orders", {"status": {"epoch": 3}}, "/status")
        assert version_of(again) == version_of(first)

    @pytest.mark.parametrize("part", ["", "/status"])
    async def test_a_change_of_an_old_version_is_a_conflict(self, api: Api, part: str) -> None:
        old = version_of(await api.app())
        await api.patch("StreamingApp", "orders", {"status": {"epoch": 3}}, "/status")
        change = {"metadata": {"resourceVersion": old}, "status": {"epoch": 4}, "spec": {"suspend": True}}
        assert isinstance(await api.patch("StreamingApp", "orders", change, part), Conflict)
        assert (await api.must_get("StreamingApp", "orders"))["status"]["epoch"] == 3

    async def test_a_change_of_another_object_of_the_name_is_refused(self, api: Api) -> None:
        await api.app()
        change = {"metadata": {"uid": "00000000-0000-0000-0000-000000000000"}, "spec": {"suspend": True}}
        assert isinstance(await api.patch("StreamingApp", "orders", change), Invalid)

    async def test_a_uid_in_a_change_of_the_status_is_not_looked_at(self, api: Api) -> None:
        await api.app()
        change = {"metadata": {"uid": "00000000-0000-0000-0000-000000000000"}, "status": {"epoch": 4}}
        assert (await api.patch("StreamingApp", "orders", change, "/status"))["status"]["epoch"] == 4

    # --- finalizers ---

    async def test_an_object_with_a_finalizer_stays_until_it_is_removed(self, api: Api) -> None:
        await api.app(finalizers=[FINALIZER])
        await api.delete("StreamingApp", "orders")
        found = await api.must_get("StreamingApp", "orders")
        assert "deletionTimestamp" in found["metadata"]
        answer = await api.patch("StreamingApp", "orders", {"metadata": {"finalizers": []}})
        assert not answer["metadata"].get("finalizers")
        assert version_of(answer) == version_of(found), (
            "whoever goes by versions takes it for the object before its end"
        )
        assert isinstance(await api.get("StreamingApp", "orders"), NotFound)

    async def test_an_object_that_ends_takes_no_new_finalizer(self, api: Api) -> None:
        await api.app(finalizers=["tidegate.dev/other"])
        await api.delete("StreamingApp", "orders")
        change = {"metadata": {"finalizers": ["tidegate.dev/other", FINALIZER]}}
        assert isinstance(await api.patch("StreamingApp", "orders", change), Invalid)
        await api.patch("StreamingApp", "orders", {"metadata": {"finalizers": []}})

    async def test_an_object_that_ends_still_takes_a_status(self, api: Api) -> None:
        await api.app(finalizers=[FINALIZER])
        await api.delete("StreamingApp", "orders")
        changed = await api.patch("StreamingApp", "orders", {"status": {"epoch": 3}}, "/status")
        assert changed["status"]["epoch"] == 3
        await api.patch("StreamingApp", "orders", {"metadata": {"finalizers": []}})

    # --- deletion ---

    @pytest.mark.parametrize("wrong", ["uid", "version"])
    async def test_a_deletion_of_another_state_is_a_conflict(self, api: Api, wrong: str) -> None:
        pod = await api.pod(node="n1")
        wanted = {"uid": pod["metadata"]["uid"], "version": version_of(pod)}
        wanted[wrong] = "00000000-0000-0000-0000-000000000000" if wrong == "uid" else "1"
        assert isinstance(await api.delete("Pod", "orders-driver", **wanted), Conflict)
        assert "deletionTimestamp" not in (await api.must_get("Pod", "orders-driver"))["metadata"]

    async def test_a_deletion_of_the_right_state_is_carried_out(self, api: Api) -> None:
        secret = await api.secret()
        answer = await api.delete("Secret", "token", secret["metadata"]["uid"], version_of(secret))
        assert answer["kind"] != "Pod"
        assert isinstance(await api.get("Secret", "token"), NotFound)

    async def test_a_pod_of_a_node_ends_when_its_node_says_so(self, api: Api) -> None:
        pod = await api.pod(node="n1")
        answer = await api.delete("Pod", "orders-driver", pod["metadata"]["uid"], version_of(pod))
        assert (answer["kind"], answer["metadata"]["uid"]) == ("Pod", pod["metadata"]["uid"])
        ending = (await api.must_get("Pod", "orders-driver"))["metadata"]
        assert (ending["deletionTimestamp"], ending["deletionGracePeriodSeconds"]) == (
            answer["metadata"]["deletionTimestamp"],
            40,
        )
        began = datetime.datetime.fromisoformat(ending["creationTimestamp"])
        assert 39 <= (datetime.datetime.fromisoformat(ending["deletionTimestamp"]) - began).total_seconds() <= 40 + 120
        await self.remove_by_force(api, "orders-driver")
        assert isinstance(await api.get("Pod", "orders-driver"), NotFound)

    async def test_a_second_deletion_of_a_pod_changes_nothing(self, api: Api) -> None:
        await api.pod(node="n1")
        first = await api.delete("Pod", "orders-driver")
        second = await api.delete("Pod", "orders-driver")
        assert version_of(second) == version_of(first)
        await self.remove_by_force(api, "orders-driver")

    @pytest.mark.parametrize("phase", ["", "Succeeded", "Failed"])
    async def test_a_pod_that_no_node_has_or_that_is_finished_ends_at_once(self, api: Api, phase: str) -> None:
        await api.pod(node="n1" if phase else "")
        if phase:
            await api.patch("Pod", "orders-driver", {"status": {"phase": phase}}, "/status")
        answer = await api.delete("Pod", "orders-driver")
        assert answer["kind"] == "Pod"
        assert isinstance(await api.get("Pod", "orders-driver"), NotFound)

    async def remove_by_force(self, api: Api, name: str) -> None:
        """Remove a pod as its kubelet does at its end."""
        options = msgspec.json.encode({"kind": "DeleteOptions", "apiVersion": "v1", "gracePeriodSeconds": 0})
        await api.client._send("DELETE", item("Pod", api.namespace, name), options)

    # --- lists and watches ---

    async def test_a_watch_tells_everything_after_the_list(self, api: Api) -> None:
        await api.pod("first")
        watch = Watch(api.client, collection("Pod", api.namespace), f"{LABEL}={api.namespace}", Named)
        changes = watch.changes()
        listed = await anext(changes)
        assert isinstance(listed, Listed)
        assert [pod.metadata.name for pod in listed.items] == ["first"]
        await api.pod("second")
        await api.patch("Pod", "second", {"status": {"phase": "Running"}}, "/status")
        await api.delete("Pod", "first")
        reported = [await anext(changes) for _ in range(4)]
        await changes.aclose()  # type: ignore[attr-defined] # it is an asynchronous generator
        seen = [(type(change), change.item.metadata.name) for change in reported if not isinstance(change, Listed)]
        assert seen == [(Changed, "second"), (Changed, "second"), (Changed, "first"), (Removed, "first")]
        versions = [int(change.item.metadata.resourceVersion) for change in reported if not isinstance(change, Listed)]
        assert versions == sorted(set(versions))

    async def test_what_loses_the_label_of_a_watch_is_told_as_removed_and_is_told_as_new_when_it_has_it_again(
        self, api: Api
    ) -> None:
        await api.pod("first")
        watch = Watch(api.client, collection("Pod", api.namespace), f"{LABEL}={api.namespace}", Named)
        changes = watch.changes()
        await anext(changes)
        await api.patch("Pod", "first", {"metadata": {"labels": {LABEL: None}}})
        away = await anext(changes)
        assert isinstance(away, Removed)
        found = await api.client.get(item("Pod", api.namespace, "first"), Named)
        assert isinstance(found, Named)
        assert found.metadata.resourceVersion == away.item.metadata.resourceVersion
        await api.patch("Pod", "first", {"metadata": {"labels": {LABEL: api.namespace}}})
        back = await anext(changes)
        await changes.aclose()  # type: ignore[attr-defined] # it is an asynchronous generator
        assert isinstance(back, Changed)

    async def test_a_selector_leaves_out_what_has_other_labels(self, api: Api) -> None:
        await api.pod("ours")
        path = f"{collection('Pod', api.namespace)}?labelSelector={LABEL}%3Dothers"
        listing = await api.client.get(path, dict[str, Any])
        assert isinstance(listing, dict)
        assert listing["items"] == []
