"""Control channels: what each reason means. No I/O."""

from __future__ import annotations

from tidegate_spark.reasons import Reason
from tidegate_spark.reasons.entry import Area, Entry, Fault, Place

AREA = Area(
    "Control channels",
    "guide.md#from-the-storage-kafka-and-rabbitmq",
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
                "Check spec.control.channel.kafka.bootstrapServers or spec.control.channel.rabbitmq.uri, for the inbox "
                "spec.storage, and the network."
            ),
            after="Tidegate retries by itself.",
        ),
        Entry(
            Reason.CHANNEL_CREDENTIALS_MISSING,
            Fault.ENVIRONMENT,
            (Place.CHANNEL,),
            "The Secret of spec.control.channel.credentialsSecretRef, or a key of it, does not exist.",
            remedy=(
                "Create it, with the keys username and password and, as the broker needs them, ca.crt, tls.crt and "
                "tls.key."
            ),
            after="Tidegate retries by itself.",
        ),
        Entry(
            Reason.CHANNEL_CREDENTIALS_REJECTED,
            Fault.ENVIRONMENT,
            (Place.CHANNEL,),
            (
                "The broker rejects user or password, or does not let the user read; or the storage does not let the "
                "driver list, read or delete in control/inbox."
            ),
            remedy=(
                "Correct the Secret of spec.control.channel.credentialsSecretRef, or the rights of the user at the "
                "broker; for the inbox, those of spec.storage.credentialsSecretRef."
            ),
            after="Tidegate retries by itself.",
        ),
        Entry(
            Reason.CHANNEL_MISSING,
            Fault.ENVIRONMENT,
            (Place.CHANNEL,),
            "The topic, queue or bucket does not exist.",
            remedy="Create the topic, queue or bucket, or correct its name in spec.control.channel.",
            after="Tidegate retries by itself.",
        ),
        Entry(
            Reason.CHANNEL_IN_USE,
            Fault.ENVIRONMENT,
            (Place.CHANNEL,),
            "Somebody else reads the queue: another application, or the previous driver, which is ending.",
            remedy="Give each application a queue of its own.",
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
            remedy="Use an image with Spark's Kafka connector.",
            after="The driver retries by itself, in vain until it runs in another image.",
        ),
        Entry(
            Reason.CONTROL_LOG_UNAVAILABLE,
            Fault.ENVIRONMENT,
            (Place.CHANNEL,),
            "The control log in the storage of the application does not accept messages; they stay where they are.",
            remedy=(
                "Check that the driver can write below <spec.storage.uri>/<namespace>/<name>/ (credentials, endpoint, "
                "free space); its log has the answer of the store."
            ),
            after="Tidegate retries by itself.",
        ),
        Entry(
            Reason.CONTROL_REPLIES_REFUSED,
            Fault.ENVIRONMENT,
            (Place.CHANNEL, Place.EVENT),
            "Messages are read, and the broker or the storage does not accept the replies.",
            remedy=(
                "Create the reply topic or queue, and let the user write to it; for the inbox, let the driver write "
                "below control/replies in the folder of the application."
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
            "The topic removed messages before they were read; the message says how many.",
            remedy="Send those that are still needed again, and raise the retention of the topic.",
        ),
    ),
)
