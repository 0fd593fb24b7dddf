"""Control channels: what each reason means. No I/O."""

from __future__ import annotations

from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.reasons.entry import Area, Entry, Fault, Place

AREA = Area(
    "Control channels",
    "guide/control-messages.md#from-the-storage-kafka-and-rabbitmq",
    (
        Entry(
            Reason.CONNECTED,
            Fault.NONE,
            (Place.CHANNEL,),
            "Messages are read from the channel.",
        ),
        Entry(
            Reason.CONNECTING,
            Fault.NONE,
            (Place.CHANNEL,),
            "The application starts; messages wait in the channel.",
        ),
        Entry(
            Reason.NO_DRIVER,
            Fault.NONE,
            (Place.CHANNEL,),
            "The application does not run; messages wait in the channel.",
        ),
        Entry(
            Reason.CHANNEL_UNAVAILABLE,
            Fault.ENVIRONMENT,
            (Place.CHANNEL,),
            "The broker, or the storage, does not answer.",
            remedy=(
                "Check the network and the address: spec.control.channel.kafka.bootstrapServers, "
                "spec.control.channel.rabbitmq.uri or, for the inbox, spec.storage."
            ),
            after="Tidegate retries by itself.",
        ),
        Entry(
            Reason.CHANNEL_CREDENTIALS_MISSING,
            Fault.ENVIRONMENT,
            (Place.CHANNEL,),
            "The Secret with the credentials of the channel, or a key of it, does not exist.",
            remedy=(
                "Create the Secret of spec.control.channel.credentialsSecretRef, with the keys username and password, "
                "and with ca.crt, tls.crt and tls.key if the broker needs them. For the inbox, the Secret is that of "
                "spec.storage.credentialsSecretRef."
            ),
            after="Tidegate retries by itself.",
        ),
        Entry(
            Reason.CHANNEL_CREDENTIALS_REJECTED,
            Fault.ENVIRONMENT,
            (Place.CHANNEL,),
            (
                "The broker rejects the user or the password, or does not let the user read. For the inbox: the "
                "storage does not let the driver list, read or delete below control/inbox in the application's folder."
            ),
            remedy=(
                "Correct the Secret of spec.control.channel.credentialsSecretRef, or the user's rights at the broker; "
                "for the inbox, the Secret of spec.storage.credentialsSecretRef, or the rights of its key."
            ),
            after="Tidegate retries by itself.",
        ),
        Entry(
            Reason.CHANNEL_MISSING,
            Fault.ENVIRONMENT,
            (Place.CHANNEL,),
            "The topic, queue or bucket does not exist.",
            remedy=(
                "Create the topic, queue or bucket, or correct the name of the topic or queue in spec.control.channel, "
                "which restarts the application. The bucket is that of spec.storage.uri."
            ),
            after="Tidegate retries by itself.",
        ),
        Entry(
            Reason.CHANNEL_IN_USE,
            Fault.ENVIRONMENT,
            (Place.CHANNEL,),
            "Somebody else reads the queue: another application, or the previous driver, which is ending.",
            remedy=(
                "If it is another application, set spec.control.channel.rabbitmq.queue of one of the two to a queue of "
                "its own, which restarts it. If it is the previous driver, wait."
            ),
            after="Tidegate retries by itself.",
        ),
        Entry(
            Reason.CHANNEL_MISCONFIGURED,
            Fault.VERSION,
            (Place.CHANNEL,),
            "An address, an option or a certificate of the channel is invalid.",
            remedy=(
                "Correct spec.control.channel, which restarts the application; for a certificate, the Secret of "
                "spec.control.channel.credentialsSecretRef."
            ),
            after="The driver reads the Secret again, and retries by itself.",
        ),
        Entry(
            Reason.CHANNEL_CONNECTOR_MISSING,
            Fault.VERSION,
            (Place.CHANNEL,),
            "The image has no Kafka clients, or lacks tidegate-spark.jar; the condition says which.",
            remedy=(
                "For the Kafka clients, set spec.application.image to an image with Spark's Kafka connector. For "
                "tidegate-spark.jar, set spec.application.runtime to Injected, or use an image that has the jar."
            ),
            after="The driver retries by itself, but only a new driver in a suitable image succeeds.",
        ),
        Entry(
            Reason.CONTROL_LOG_UNAVAILABLE,
            Fault.ENVIRONMENT,
            (Place.CHANNEL,),
            (
                "The driver cannot write messages to the control log in the application's folder; they stay in the "
                "channel."
            ),
            remedy=(
                "Check that the driver can write below <spec.storage.uri>/<namespace>/<name>/ (credentials, endpoint, "
                'free space); "kubectl logs POD -n NAMESPACE" of the driver pod shows the answer of the store.'
            ),
            after="Tidegate retries by itself.",
        ),
        Entry(
            Reason.CONTROL_REPLIES_REFUSED,
            Fault.ENVIRONMENT,
            (Place.CHANNEL, Place.EVENT),
            "Messages are read, but the broker or the storage does not accept the replies to them.",
            remedy=(
                "Create the topic of spec.control.channel.kafka.replyTopic, or the queue of "
                "spec.control.channel.rabbitmq.replyQueue, and let the user of "
                "spec.control.channel.credentialsSecretRef write to it; for the inbox, let the driver write below "
                "<spec.storage.uri>/<namespace>/<name>/control/replies/."
            ),
            after="Tidegate retries by itself.",
        ),
        Entry(
            Reason.CONTROL_CHANNEL_CONNECTED,
            Fault.NONE,
            (Place.EVENT,),
            "Messages are read from the channel again.",
        ),
        Entry(
            Reason.CONTROL_MESSAGES_LOST,
            Fault.DATA,
            (Place.EVENT,),
            "The topic removed messages before they were read; the event says how many, and Tidegate never saw which.",
            remedy="Send again those that are still needed, and raise the retention of the topic.",
        ),
    ),
)
