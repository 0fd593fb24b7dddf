"""The S3 server (versitygw) of a site, reachable from its pods and from the machine. Starts a process, writes files."""

import urllib.request
from typing import TYPE_CHECKING

import boto3
from botocore.config import Config

from devcluster import tools
from devcluster.control import PATIENCE
from devcluster.site import S3Keys, Site, remove_data

if TYPE_CHECKING:
    from mypy_boto3_s3 import S3Client

REGION = "us-east-1"
_NAME = "s3"
_HEALTH = "/health"


def up(site: Site) -> str:
    """Start the server and wait until it serves; one that serves already is kept. Return how to reach it.

    Raises:
        ComponentError: it did not start; the text shows the end of its log.
    """
    keys, listeners = site.s3_keys, site.listeners
    for folder in ("data", "metadata"):
        (site.folder / "s3" / folder).mkdir(parents=True, exist_ok=True)
    if not site.control.alive(_NAME):
        site.control.start(
            _NAME,
            [
                tools.program("versitygw"),
                *("--port", f"{listeners.host}:{listeners.s3}", "--health", _HEALTH, "--region", REGION, "--quiet"),
                # Metadata in files of their own: extended attributes depend on the machine's file system.
                *("--sidecar", site.folder / "s3" / "metadata", site.folder / "s3" / "data"),
            ],
            env={"ROOT_ACCESS_KEY_ID": keys.access_key, "ROOT_SECRET_ACCESS_KEY": keys.secret_key},
        )
    site.control.until(_NAME, lambda: _serves(site), timeout=PATIENCE)
    return (
        f"S3 for pods: {site.s3_endpoint_pods}\nS3 for this machine: {site.s3_endpoint_host}\n"
        f"access key: {keys.access_key}\nsecret key: {keys.secret_key}"
    )


def stop(site: Site, grace: float = 5) -> str:
    """Stop the server and keep its data; 0 seconds of grace is a crash."""
    site.control.stop(_NAME, grace)
    return "S3 server stopped"


def start(site: Site) -> str:
    """Start it again on its data."""
    return up(site)


def down(site: Site) -> str:
    """Stop it and remove its data."""
    stop(site)
    remove_data(site, _NAME)
    return "S3 server removed"


def client(endpoint: str, keys: S3Keys) -> "S3Client":
    """Return a client for an endpoint and its keys."""
    return boto3.client(
        "s3",
        endpoint_url=endpoint,
        aws_access_key_id=keys.access_key,
        aws_secret_access_key=keys.secret_key,
        region_name=REGION,
        config=Config(s3={"addressing_style": "path"}, signature_version="s3v4", retries={"max_attempts": 3}),
    )


def ensure_bucket(site: Site, bucket: str) -> None:
    """Make a bucket unless it exists."""
    s3 = client(site.s3_endpoint_host, site.s3_keys)
    if bucket not in {b["Name"] for b in s3.list_buckets()["Buckets"]}:
        s3.create_bucket(Bucket=bucket)


def _serves(site: Site) -> bool:
    with urllib.request.urlopen(site.s3_endpoint_host + _HEALTH, timeout=5) as answer:
        return bool(answer.status == 200)
