"""The cluster and services that tests and the demo run on: a development cluster, or one that the environment names."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from devcluster import images, kafka, s3
from devcluster.cluster import Cluster
from devcluster.site import S3Keys

KUBECONFIG = "TIDEGATE_KUBECONFIG"

# With TIDEGATE_KUBECONFIG these must be set …
_REQUIRED = {
    "TIDEGATE_S3_ENDPOINT": "address of an S3 server as pods reach it, such as http://minio.storage:9000",
    "TIDEGATE_S3_ACCESS_KEY": "access key for it",
    "TIDEGATE_S3_SECRET_KEY": "secret key for it",
    "TIDEGATE_KAFKA": "bootstrap address of a Kafka broker as pods reach it, such as kafka.streams:9092",
    "TIDEGATE_IMAGE_OPERATOR": "image built from images/operator/Dockerfile that the cluster can pull",
    "TIDEGATE_IMAGE_SPARK": "image built from images/spark/Dockerfile that the cluster can pull",
    "TIDEGATE_IMAGE_STOCK": "image laid out as apache/spark, without Tidegate, that the cluster can pull",
}
# … and these may be; without them, this machine uses the address that pods use.
_OPTIONAL = {
    "TIDEGATE_S3_HOST_ENDPOINT": ("TIDEGATE_S3_ENDPOINT", "the S3 server's address as this machine reaches it"),
    "TIDEGATE_KAFKA_HOST": ("TIDEGATE_KAFKA", "the broker's bootstrap address as this machine reaches it"),
}


class EnvironmentIncompleteError(ValueError):
    """The environment names a cluster but not all that belongs to it; the text lists what is missing."""


@dataclass(frozen=True)
class Environment:
    """One cluster with its services and images.

    Attributes:
        kubeconfig: path of a kubeconfig usable from this machine.
        s3_endpoint_pods: the S3 server's address for pods.
        s3_endpoint_host: the same server's address for this machine.
        s3_access_key: who signs requests to it.
        s3_secret_key: what they are signed with.
        kafka_pods: the Kafka broker's bootstrap address for pods.
        kafka_host: the same broker's bootstrap address for this machine.
        image_operator: image of the operator.
        image_spark: image of Spark with Tidegate's runtime.
        image_stock: image of Spark without it.
        cluster: the development cluster if this is one; None if it is somebody else's.
    """

    kubeconfig: Path
    s3_endpoint_pods: str
    s3_endpoint_host: str
    s3_access_key: str
    s3_secret_key: str
    kafka_pods: str
    kafka_host: str
    image_operator: str
    image_spark: str
    image_stock: str
    cluster: Cluster | None = None

    @property
    def s3_keys(self) -> S3Keys:
        """Return both keys as :func:`devcluster.s3.client` takes them."""
        return S3Keys(self.s3_access_key, self.s3_secret_key)

    @property
    def own(self) -> bool:
        """Say whether the cluster is ours to break: to stop its services, to end its processes."""
        return self.cluster is not None


def current(name: str = "dev", variables: Mapping[str, str] = os.environ) -> Environment:
    """Return the cluster that ``$TIDEGATE_KUBECONFIG`` names, else the development cluster ``name`` with its services.

    The development cluster and its services are started unless they run, and it has all images. A foreign cluster is
    only described.

    Raises:
        EnvironmentIncompleteError: ``$TIDEGATE_KUBECONFIG`` is set, but others that belong to it are not.
        ComponentError: the development cluster did not start.
        RuntimeError: an image could not be built.
    """
    if variables.get(KUBECONFIG):
        return foreign(variables)
    cluster = Cluster(name)
    images.bring_up(cluster)
    s3.up(cluster)
    kafka.up(cluster)
    return of_cluster(cluster)


def of_cluster(cluster: Cluster) -> Environment:
    """Describe a development cluster, whose services may be started later; raise ComponentError if it is down."""
    return Environment(
        kubeconfig=cluster.kubeconfig,
        s3_endpoint_pods=cluster.s3_endpoint_pods,
        s3_endpoint_host=cluster.s3_endpoint_host,
        s3_access_key=cluster.s3_keys.access_key,
        s3_secret_key=cluster.s3_keys.secret_key,
        kafka_pods=cluster.kafka_pods,
        kafka_host=cluster.kafka_host,
        image_operator=images.OPERATOR.name,
        image_spark=images.SPARK.name,
        image_stock=images.STOCK.name,
        cluster=cluster,
    )


def foreign(variables: Mapping[str, str]) -> Environment:
    """Describe somebody else's cluster by variables; raise EnvironmentIncompleteError if some are missing."""
    missing = [f"  {name}: {meaning}" for name, meaning in _REQUIRED.items() if not variables.get(name)]
    if missing:
        optional = [f"  {name}: {meaning}" for name, (_, meaning) in _OPTIONAL.items() if not variables.get(name)]
        raise EnvironmentIncompleteError(
            "\n".join(
                [f"{KUBECONFIG} is set; set also", *missing, *(["and if they differ", *optional] if optional else [])]
            )
        )
    kubeconfig = Path(variables[KUBECONFIG])
    if not kubeconfig.is_file():
        raise EnvironmentIncompleteError(f"{KUBECONFIG} names {kubeconfig}, which is not a file")
    values = {**variables, **{n: variables.get(n) or variables[other] for n, (other, _) in _OPTIONAL.items()}}
    return Environment(
        kubeconfig=kubeconfig,
        s3_endpoint_pods=values["TIDEGATE_S3_ENDPOINT"],
        s3_endpoint_host=values["TIDEGATE_S3_HOST_ENDPOINT"],
        s3_access_key=values["TIDEGATE_S3_ACCESS_KEY"],
        s3_secret_key=values["TIDEGATE_S3_SECRET_KEY"],
        kafka_pods=values["TIDEGATE_KAFKA"],
        kafka_host=values["TIDEGATE_KAFKA_HOST"],
        image_operator=values["TIDEGATE_IMAGE_OPERATOR"],
        image_spark=values["TIDEGATE_IMAGE_SPARK"],
        image_stock=values["TIDEGATE_IMAGE_STOCK"],
    )
