"""Start and end the broker, make topics. Starts processes, writes files, talks to the broker."""

import subprocess
import uuid
from collections.abc import Mapping
from pathlib import Path

from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from devcluster import private
from devcluster.control import PATIENCE, ComponentError
from devcluster.kafka import jars
from devcluster.site import Listeners, S3Keys, Site, remove_data

_NAME = "kafka"
_LOGIN = "org.apache.kafka.common.security.plain.PlainLoginModule"
# A small heap, and the collector and compiler that start soonest: the broker shares two cores with everything else.
_JAVA = ("java", "-Xms128m", "-Xmx384m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xshare:auto")


def server_properties(data: Path, at: Listeners, advertised_to_host: str, keys: S3Keys) -> str:
    """Return the broker's configuration.

    Two listeners, because a client must be able to reach the broker under the address that it advertises: pods reach
    the node's address, the machine outside only a forwarded port. A third one, for pods, asks for user and password.
    """
    pods, host = f"PODS://{at.host}:{at.kafka_pods}", f"HOST://{at.host}:{at.kafka_host}"
    controller, sasl = f"{at.host}:{at.kafka_controller}", f"SASL://{at.host}:{at.kafka_sasl}"
    return f"""process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{controller}
controller.listener.names=CONTROLLER
inter.broker.listener.name=PODS
listeners={pods},{host},{sasl},CONTROLLER://{controller}
advertised.listeners={pods},HOST://{advertised_to_host},{sasl}
listener.security.protocol.map=PODS:PLAINTEXT,HOST:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_PLAINTEXT
sasl.enabled.mechanisms=PLAIN
listener.name.sasl.plain.sasl.jaas.config={_LOGIN} required user_{keys.access_key}="{keys.secret_key}";
log.dirs={data}
auto.create.topics.enable=false
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
group.initial.rebalance.delay.ms=0
"""


def up(site: Site) -> str:
    """Start the broker and wait until it serves; one that serves already is kept. Return how to reach it.

    Raises:
        ComponentError: it did not start; the text shows the end of its log.
        RuntimeError: its jars could not be fetched.
    """
    folder = site.folder / _NAME
    host_bootstrap = site.kafka_host
    if not site.control.alive(_NAME):
        classpath = f"{jars.ensure()}/*"
        properties = folder / "server.properties"
        if not properties.exists():
            _format(site, properties, classpath)
        hosts = folder / "hosts"
        hosts.write_text(f"127.0.0.1 localhost\n{site.listeners.host} kafka\n")
        # A login looks up the name of the broker's own address, which in the cluster's namespace no name server knows:
        # clients would have given up before it does.
        names = f"-Djdk.net.hosts.file={hosts}"
        site.control.start(_NAME, [*_JAVA, names, "-cp", classpath, "kafka.Kafka", properties])
    admin = AdminClient({"bootstrap.servers": host_bootstrap, "log_level": 0})
    site.control.until(_NAME, lambda: _serves(admin), timeout=PATIENCE)
    return f"Kafka for pods: {site.kafka_pods}\nKafka for this machine: {host_bootstrap}"


def _format(site: Site, properties: Path, classpath: str) -> None:
    folder = properties.parent
    folder.mkdir(exist_ok=True)
    draft = properties.with_suffix(".draft")
    private.write(draft, server_properties(folder / "data", site.listeners, site.kafka_host, site.s3_keys))
    cluster_id = uuid.uuid4().hex[:22]
    tool: list[str | Path] = [
        *_JAVA,
        "-cp",
        classpath,
        "kafka.tools.StorageTool",
        "format",
        "-t",
        cluster_id,
        "-c",
        draft,
    ]
    done = subprocess.run(tool, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise ComponentError(f"kafka could not format its storage: {done.stdout[-500:]}{done.stderr[-500:]}")
    # Only a formatted broker has a configuration under its final name, so a broken attempt is formatted again.
    draft.rename(properties)


def stop(site: Site, grace: float = 15) -> str:
    """Stop the broker and keep its data; 0 seconds of grace is a crash."""
    site.control.stop(_NAME, grace)
    return "Kafka broker stopped"


def start(site: Site) -> str:
    """Start it again on its data."""
    return up(site)


def down(site: Site) -> str:
    """Stop it and remove its data."""
    stop(site, grace=0)
    remove_data(site, _NAME)
    return "Kafka broker removed"


def create_topic(bootstrap: str, topic: str, partitions: int = 4, config: Mapping[str, str] | None = None) -> None:
    """Make a topic with one replica; KafkaException if it exists already or the broker is not there."""
    admin = AdminClient({"bootstrap.servers": bootstrap})
    wanted = NewTopic(topic, partitions, 1, config=dict(config or {}))
    for made in admin.create_topics([wanted], request_timeout=30).values():
        made.result()


def topics(bootstrap: str) -> set[str]:
    """Return the names of all topics; KafkaException if the broker is not there."""
    return set(AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=30).topics)


def _serves(admin: AdminClient) -> bool:
    try:
        return bool(admin.list_topics(timeout=5).brokers)
    except KafkaException:
        return False
