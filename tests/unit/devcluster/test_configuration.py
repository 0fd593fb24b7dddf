"""What the development cluster writes for its programs."""

import ipaddress
import json
import tarfile
from pathlib import Path

import pytest

from devcluster import busybox, controlplane, kubeconfig, node, paths, second_node
from devcluster.cluster import LISTENERS
from devcluster.control import log_tail
from devcluster.kafka import jars
from devcluster.kafka.broker import server_properties
from devcluster.kubeconfig import User
from devcluster.pki import KeyPair, Pki
from devcluster.rabbitmq import packages
from devcluster.rabbitmq.broker import configuration, distribution, environment
from devcluster.site import S3Keys

FOLDER = Path("/state/dev")


def identity() -> Pki:
    pair = KeyPair(FOLDER / "x.crt", FOLDER / "x.key")
    return Pki(pair, pair, pair, FOLDER / "service-account.key")


@pytest.mark.parametrize("name", ["", "Dev", "a_b", "-a", "a-", "../dev", "a" * 31])
def test_a_name_that_cannot_be_a_folder_a_cgroup_and_a_label_is_refused(name: str) -> None:
    with pytest.raises(ValueError, match="cluster name"):
        paths.state(name)


def test_a_bound_name_tells_its_owner_and_others_do_not() -> None:
    name = paths.bound_name()
    assert paths.state(name).name == name
    assert paths.owner_of("dev") is None
    assert paths.owner_of("bound-17-0") == 17


def test_a_kubeconfig_names_one_user_by_token() -> None:
    content = json.loads(kubeconfig.kubeconfig("https://127.0.0.1:1", b"PEM", User("admin", ("g",), "secret")))
    assert content["users"] == [{"name": "admin", "user": {"token": "secret"}}]
    assert content["clusters"][0]["cluster"] == {
        "server": "https://127.0.0.1:1",
        "certificate-authority-data": "UEVN",
    }


def test_tokens_carry_all_groups_of_a_user() -> None:
    assert kubeconfig.tokens_csv({"a": User("ann", ("g", "h"), "t")}) == 't,ann,ann,"g,h"\n'


def test_two_users_never_share_a_token() -> None:
    assert User("a").token != User("a").token


def test_the_kubelet_lives_in_the_clusters_own_cgroup_and_folder() -> None:
    config = node.kubelet_config(FOLDER, "tidegate-dev-1", identity())
    assert config["cgroupRoot"] == "/tidegate-dev-1"
    assert config["containerRuntimeEndpoint"] == "unix:///state/dev/containerd.sock"
    assert config["clusterDNS"] == [node.DNS_SERVICE]
    assert config["authentication"]["anonymous"] == {"enabled": False}


def test_two_kubelets_share_nothing_that_they_write_or_remove() -> None:
    first = node.kubelet_config(FOLDER, node.cgroup("tidegate-dev-1", 0), identity())
    second = second_node.kubelet_config(first, FOLDER / "n1", node.cgroup("tidegate-dev-1", 1))
    own = ("containerRuntimeEndpoint", "cgroupRoot", "podLogsDir", "volumePluginDir", "port")
    assert [key for key in own if first.get(key) == second[key]] == []
    assert {key: second[key] for key in first if key not in own} == {k: v for k, v in first.items() if k not in own}


def test_pods_of_two_nodes_get_addresses_from_ranges_that_do_not_meet() -> None:
    first, second = (ipaddress.ip_network(subnet) for subnet in (node.POD_SUBNET, second_node.POD_SUBNET))
    everything = ipaddress.ip_network(node.POD_RANGE)
    assert not first.overlaps(second)
    assert [n for n in (first, second) if not everything.supernet_of(n)] == []  # type: ignore[arg-type] # all are IPv4


def test_the_audit_log_of_a_cluster_that_stays_tells_of_changes_only() -> None:
    (left_out, kept) = controlplane.audit_policy(reads=False)["rules"]
    assert (left_out["level"], kept) == ("None", {"level": "Metadata"})
    assert set(left_out["verbs"]) == {"get", "list", "watch"}
    assert controlplane.audit_policy(reads=True)["rules"] == [kept]


def test_each_kubelet_is_a_user_of_its_own() -> None:
    users = controlplane.users(node.NAMES)
    assert (users["kubelet"].name, users["kubelet-1"].name) == ("system:node:node0", "system:node:node1")


def test_pods_get_addresses_from_the_clusters_own_ledger() -> None:
    network = json.loads(node.pod_network(FOLDER))
    assert network["plugins"][0]["ipam"]["dataDir"] == "/state/dev/cni-addresses"


def test_the_broker_advertises_to_each_side_what_that_side_can_reach() -> None:
    lines = server_properties(FOLDER, LISTENERS, "127.0.0.1:5", S3Keys("tidegate", "secret")).splitlines()
    assert "advertised.listeners=PODS://10.89.0.1:9092,HOST://127.0.0.1:5,SASL://10.89.0.1:9095" in lines
    assert any('user_tidegate="secret"' in line for line in lines)


def test_jars_that_are_not_the_pinned_ones_are_named() -> None:
    wanted = {"a.jar": "1", "b.jar": "2", "c.jar": "3"}
    found = {"a.jar": "1", "b.jar": "9", "d.jar": "4"}
    assert jars.differences(wanted, found) == [
        "c.jar is missing",
        "d.jar is not in the list",
        "b.jar has another hash",
    ]
    assert jars.differences(wanted, wanted) == []


def test_every_pinned_jar_has_a_sha256() -> None:
    assert all(len(digest) == 64 and name.endswith(".jar") for name, digest in jars.expected().items())


def test_the_archive_holds_both_images_on_one_layer(tmp_path: Path) -> None:
    busybox.write_archive(tmp_path / "a.tar")
    with tarfile.open(tmp_path / "a.tar") as archive:
        index = json.load(archive.extractfile("index.json") or pytest.fail("no index"))
        names = {m["annotations"]["io.containerd.image.name"] for m in index["manifests"]}
        manifests = [
            json.load(archive.extractfile(f"blobs/sha256/{m['digest'].partition(':')[2]}") or pytest.fail("no blob"))
            for m in index["manifests"]
        ]
    assert names == {node.PAUSE_IMAGE, busybox.SHELL_IMAGE}
    assert len({m["layers"][0]["digest"] for m in manifests}) == 1


def test_a_log_tail_is_short_and_a_missing_log_is_empty(tmp_path: Path) -> None:
    log = tmp_path / "x.log"
    assert not log_tail(log)
    log.write_text("\n".join(["x" * 1000] * 30))
    assert [len(line) for line in log_tail(log, lines=2).splitlines()] == [400, 400]


def test_rabbitmq_listens_where_the_cluster_is_and_erlang_on_loopback_alone() -> None:
    reported = configuration(LISTENERS, S3Keys("tidegate", "secret"))
    assert f"listeners.tcp.1 = {LISTENERS.host}:5672\n" in reported
    assert "default_user = tidegate\ndefault_pass = secret\n" in reported
    assert "{inet_dist_use_interface, {127,0,0,1}}" in distribution(LISTENERS)


def test_all_files_of_rabbitmq_are_in_its_folder(tmp_path: Path) -> None:
    (tmp_path / "usr/lib/erlang/erts-13.1/bin").mkdir(parents=True)
    reported = environment(tmp_path, FOLDER / "rabbitmq", LISTENERS)
    places = {name: value for name, value in reported.items() if "/" in value and name != "PATH"}
    assert all(value.startswith(f"{FOLDER}/rabbitmq") for value in places.values()), places
    assert reported["ERL_EPMD_ADDRESS"] == "127.0.0.1"


def test_erlang_is_found_where_it_was_unpacked(tmp_path: Path) -> None:
    starter = tmp_path / "usr/lib/erlang/bin/erl"
    starter.parent.mkdir(parents=True)
    starter.write_text('ROOTDIR="/usr/lib/erlang"\n')
    packages.relocate(tmp_path, Path("/cache/rabbitmq"))
    assert starter.read_text() == 'ROOTDIR="/cache/rabbitmq/usr/lib/erlang"\n'
