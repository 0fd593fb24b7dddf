"""The S3 server of a cluster, reachable from its pods and from the machine. Starts a process, writes files."""

import urllib.request
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config

from devcluster import node, tools
from devcluster.cluster import S3_PORT, Cluster

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

REGION = "us-east-1"
_NAME = "s3"
_HEALTH = "/health"


def up(cluster: Cluster) -> str:
    """Start the server and wait until it serves; one that serves already is kept. Return how to reach it.

    Raises:
        ComponentError: it did not start; the text shows the end of its log.
    """
    state = cluster.state
    for folder in ("data", "metadata"):
        (cluster.folder / "s3" / folder).mkdir(parents=True, exist_ok=True)
    if not cluster.control.alive(_NAME):
        cluster.control.start(
            _NAME,
            [
                tools.program("versitygw"),
                *("--port", f"{node.ADDRESS}:{S3_PORT}", "--health", _HEALTH, "--region", REGION, "--quiet"),
                # Metadata in files of their own: extended attributes depend on the machine's file system.
                *("posix", "--sidecar", cluster.folder / "s3" / "metadata", cluster.folder / "s3" / "data"),
            ],
            env={"ROOT_ACCESS_KEY_ID": state.s3_access_key, "ROOT_SECRET_ACCESS_KEY": state.s3_secret_key},
        )
    cluster.control.until(_NAME, lambda: _serves(cluster), timeout=30)
    return (
        f"S3 for pods: {cluster.s3_endpoint_pods}\nS3 for this machine: {cluster.s3_endpoint_host}\n"
        f"access key: {state.s3_access_key}\nsecret key: {state.s3_secret_key}"
    )


def stop(cluster: Cluster, grace: float = 5) -> str:
    """Stop the server and keep its data; 0 seconds of grace is a crash."""
    cluster.control.stop(_NAME, grace)
    return "S3 server stopped"


def start(cluster: Cluster) -> str:
    """Start it again on its data."""
    return up(cluster)


def down(cluster: Cluster) -> str:
    """Stop it and remove its data."""
    stop(cluster)
    cluster.remove_data(_NAME)
    return "S3 server removed"


def client(endpoint: str, access_key: str, secret_key: str) -> "S3Client":
    """Return a client for an endpoint as it is named in an Environment."""
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        aws_access_key_id=access_key,
        aws_secret_access_key=secret_key,
        region_name=REGION,
        config=Config(s3={"addressing_style": "path"}, signature_version="s3v4", retries={"max_attempts": 3}),
    )


def ensure_bucket(cluster: Cluster, bucket: str) -> None:
    """Make a bucket unless it exists."""
    state = cluster.state
    s3 = client(cluster.s3_endpoint_host, state.s3_access_key, state.s3_secret_key)
    if bucket not in {b["Name"] for b in s3.list_buckets()["Buckets"]}:
        s3.create_bucket(Bucket=bucket)


def _serves(cluster: Cluster) -> bool:
    with urllib.request.urlopen(cluster.s3_endpoint_host + _HEALTH, timeout=5) as answer:
        return bool(answer.status == 200)
