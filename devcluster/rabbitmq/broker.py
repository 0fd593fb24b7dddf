"""Start and end the broker, make queues. Starts processes, writes files, talks to the broker."""

import os
import socket
from pathlib import Path

import pika

from devcluster import private
from devcluster.rabbitmq import packages
from devcluster.site import Listeners, S3Keys, Site, remove_data

_NAME, _EPMD = "rabbitmq", "rabbitmq-epmd"
_LOOPBACK = "127.0.0.1"
_GREETING = b"AMQP\x00\x00\x09\x01"
_METHOD_FRAME = b"\x01"


def configuration(at: Listeners, keys: S3Keys) -> str:
    """Return the broker's configuration: one listener, and one user, who may come from anywhere."""
    return f"""listeners.tcp.1 = {at.host}:{at.rabbitmq}
default_user = {keys.access_key}
default_pass = {keys.secret_key}
loopback_users = none
log.console = true
log.console.level = info
log.file = false
vm_memory_high_watermark.absolute = 256MiB
disk_free_limit.absolute = 64MiB
"""


def distribution(at: Listeners) -> str:
    """Return Erlang's own configuration: nodes talk to each other on loopback alone, and there is one."""
    return f"""[{{kernel, [
  {{inet_dist_use_interface, {{127,0,0,1}}}},
  {{inet_dist_listen_min, {at.rabbitmq_distribution}}},
  {{inet_dist_listen_max, {at.rabbitmq_distribution}}}
]}}].
"""


def environment(root: Path, folder: Path, at: Listeners) -> dict[str, str]:
    """Return the variables of the broker's process: everything of its own is in ``folder``."""
    return {
        "PATH": f"{packages.erlang_path(root)}:{os.environ.get('PATH', '/usr/bin:/bin')}",
        "HOME": str(folder),
        "LANG": "C.UTF-8",
        "ERL_EPMD_ADDRESS": _LOOPBACK,
        "ERL_EPMD_PORT": str(at.epmd),
        "RABBITMQ_NODENAME": "rabbit@localhost",
        "RABBITMQ_CONF_ENV_FILE": str(folder / "none"),
        "RABBITMQ_CONFIG_FILE": str(folder / "rabbitmq.conf"),
        "RABBITMQ_ADVANCED_CONFIG_FILE": str(folder / "advanced.config"),
        "RABBITMQ_ENABLED_PLUGINS_FILE": str(folder / "enabled_plugins"),
        "RABBITMQ_MNESIA_BASE": str(folder / "data"),
        "RABBITMQ_LOG_BASE": str(folder / "log"),
        "RABBITMQ_LOGS": "-",
        "RABBITMQ_DIST_PORT": str(at.rabbitmq_distribution),
        # Not below a shell of its own, so that whoever ends the component ends the broker.
        "RABBITMQ_ALLOW_INPUT": "1",
        "RABBITMQ_SERVER_ADDITIONAL_ERL_ARGS": "-noinput -start_epmd false",
        # Two cores are shared with everything else.
        "RABBITMQ_SCHEDULER_BIND_TYPE": "u",
        "RABBITMQ_IO_THREAD_POOL_SIZE": "8",
    }


def up(site: Site) -> str:
    """Start the broker and wait until it serves; one that serves already is kept. Return how to reach it.

    Raises:
        ComponentError: it did not start; the text shows the end of its log.
        RuntimeError: its packages could not be fetched.
    """
    folder, at = site.folder / _NAME, site.listeners
    if not site.control.alive(_NAME):
        root = packages.ensure()
        folder.mkdir(exist_ok=True)
        private.write(folder / "rabbitmq.conf", configuration(at, site.s3_keys))
        (folder / "advanced.config").write_text(distribution(at))
        (folder / "enabled_plugins").write_text("[].\n")
        variables = environment(root, folder, at)
        if not site.control.alive(_EPMD):
            (program,) = (root / "usr/lib/erlang").glob("erts-*/bin/epmd")
            site.control.start(_EPMD, [program, "-address", _LOOPBACK, "-port", str(at.epmd)], variables)
        site.control.start(_NAME, [packages.server(root)], variables)
    host, _, port = site.rabbitmq_host.rpartition(":")
    site.control.until(_NAME, lambda: _serves(host, int(port)), timeout=300)
    return (
        f"RabbitMQ for pods: amqp://{site.rabbitmq_pods}\nRabbitMQ for this machine: amqp://{site.rabbitmq_host}\n"
        f"user {site.s3_keys.access_key}, password {site.s3_keys.secret_key}"
    )


def stop(site: Site, grace: float = 15) -> str:
    """Stop the broker and keep its data; 0 seconds of grace is a crash."""
    site.control.stop(_NAME, grace)
    return "RabbitMQ broker stopped"


def start(site: Site) -> str:
    """Start it again on its data."""
    return up(site)


def down(site: Site) -> str:
    """Stop it and remove its data."""
    stop(site, grace=0)
    site.control.stop(_EPMD, 0)
    remove_data(site, _NAME)
    return "RabbitMQ broker removed"


def parameters(address: str, keys: S3Keys) -> pika.ConnectionParameters:
    """Return how a client of this machine reaches a broker."""
    host, _, port = address.rpartition(":")
    credentials = pika.PlainCredentials(keys.access_key, keys.secret_key)
    return pika.ConnectionParameters(host=host, port=int(port), credentials=credentials)


def create_queue(address: str, keys: S3Keys, queue: str) -> None:
    """Make a queue that outlives the broker's process; AMQPError if the broker is not there."""
    with pika.BlockingConnection(parameters(address, keys)) as connection:
        connection.channel().queue_declare(queue, durable=True)


def _serves(host: str, port: int) -> bool:
    with socket.create_connection((host, port), timeout=2) as connection:
        connection.sendall(_GREETING)
        return connection.recv(1) == _METHOD_FRAME
