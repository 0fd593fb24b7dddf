"""Where S3 server and brokers can run: in a cluster, or (here) plainly on this machine. Starts a supervisor."""

import secrets
import shutil
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Protocol, Self

from devcluster import paths
from devcluster.control import Control, free_port, sweep


@dataclass(frozen=True)
class S3Keys:
    """What a client of the S3 server signs with."""

    access_key: str
    secret_key: str

    @classmethod
    def new(cls) -> "S3Keys":
        """Return fresh keys."""
        return cls("tidegate", secrets.token_hex(16))


@dataclass(frozen=True)
class Listeners:
    """Addresses inside the site on which its services listen; ``host`` is theirs all."""

    host: str
    s3: int
    kafka_pods: int
    kafka_host: int
    kafka_controller: int
    kafka_sasl: int
    """As ``kafka_pods``, for who has the S3 server's keys: as user and password."""
    rabbitmq: int
    rabbitmq_distribution: int
    """Of Erlang, on loopback, as the next one."""
    epmd: int


class Site(Protocol):
    """What the services need to know of the place where they run. ``*_pods`` and ``*_host`` are seen from there."""

    control: Control
    folder: Path

    @property
    def listeners(self) -> Listeners:
        """Where to listen."""

    @property
    def s3_keys(self) -> S3Keys:
        """The S3 server's keys."""

    @property
    def s3_endpoint_pods(self) -> str:
        """Return the S3 server's address for pods."""

    @property
    def s3_endpoint_host(self) -> str:
        """Return the S3 server's address for the machine."""

    @property
    def kafka_pods(self) -> str:
        """Return the broker's bootstrap address for pods."""

    @property
    def kafka_host(self) -> str:
        """Return the broker's bootstrap address for the machine."""

    @property
    def rabbitmq_pods(self) -> str:
        """Return RabbitMQ's host and port for pods."""

    @property
    def rabbitmq_host(self) -> str:
        """Return RabbitMQ's host and port for the machine."""


def remove_data(site: Site, service: str) -> None:
    """Remove the files of a service that has stopped."""
    if (site.folder / service).exists():
        shutil.rmtree(site.folder / service)


class LocalSite:
    """S3 server and brokers on 127.0.0.1, for tests without pods; needs no root. Ends with this process.

    A context manager::

        with LocalSite() as site:
            s3.up(site)
            kafka.up(site)
    """

    def __init__(self) -> None:
        """Choose free ports; ``with`` starts the supervisor, the services are started on their own."""
        sweep()
        self.folder = paths.state(paths.bound_name())
        self.control = Control(self.folder)
        self.listeners = Listeners("127.0.0.1", *(free_port() for _ in range(8)))
        self.s3_keys = S3Keys.new()
        self.s3_endpoint_host = self.s3_endpoint_pods = f"http://127.0.0.1:{self.listeners.s3}"
        self.kafka_host = f"127.0.0.1:{self.listeners.kafka_host}"
        self.kafka_pods = f"127.0.0.1:{self.listeners.kafka_pods}"
        self.rabbitmq_host = self.rabbitmq_pods = f"127.0.0.1:{self.listeners.rabbitmq}"

    def __enter__(self) -> Self:
        """Start the supervisor."""
        self.control.launch(bound=True)
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End the services and remove all files."""
        self.control.wipe()
