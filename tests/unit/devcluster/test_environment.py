"""A foreign cluster, described by environment variables."""

from pathlib import Path

import pytest

from devcluster import environment
from devcluster.environment import EnvironmentIncompleteError


def complete(kubeconfig: Path) -> dict[str, str]:
    return {
        "TIDEGATE_KUBECONFIG": str(kubeconfig),
        "TIDEGATE_S3_ENDPOINT": "http://s3.storage:9000",
        "TIDEGATE_S3_ACCESS_KEY": "access",
        "TIDEGATE_S3_SECRET_KEY": "secret",
        "TIDEGATE_KAFKA": "kafka.streams:9092",
        "TIDEGATE_IMAGE_OPERATOR": "registry/operator:1",
        "TIDEGATE_IMAGE_SPARK": "registry/spark:1",
        "TIDEGATE_IMAGE_STOCK": "registry/stock:1",
    }


@pytest.fixture
def kubeconfig(tmp_path: Path) -> Path:
    file = tmp_path / "kubeconfig"
    file.write_text("{}")
    return file


def test_a_foreign_cluster_is_not_ours_to_break(kubeconfig: Path) -> None:
    found = environment.current(variables=complete(kubeconfig))
    assert not found.own
    assert found.kubeconfig == kubeconfig
    assert found.s3_keys.secret_key == "secret"


def test_this_machine_uses_the_addresses_of_pods_unless_told_otherwise(kubeconfig: Path) -> None:
    same = environment.foreign(complete(kubeconfig))
    assert (same.s3_endpoint_host, same.kafka_host) == (same.s3_endpoint_pods, same.kafka_pods)
    other = environment.foreign({**complete(kubeconfig), "TIDEGATE_KAFKA_HOST": "127.0.0.1:1"})
    assert (other.kafka_host, other.kafka_pods) == ("127.0.0.1:1", "kafka.streams:9092")


def test_everything_missing_is_listed_at_once_with_its_meaning(kubeconfig: Path) -> None:
    with pytest.raises(EnvironmentIncompleteError) as refused:
        environment.foreign({"TIDEGATE_KUBECONFIG": str(kubeconfig), "TIDEGATE_KAFKA": "k:1"})
    text = str(refused.value)
    absent = set(complete(kubeconfig)) - {"TIDEGATE_KUBECONFIG", "TIDEGATE_KAFKA"}
    assert [name for name in absent if f"{name}: " not in text] == []
    assert "TIDEGATE_KAFKA: " not in text


def test_a_kubeconfig_that_is_no_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(EnvironmentIncompleteError, match="absent"):
        environment.foreign(complete(tmp_path / "absent"))
