"""Control messages: what each reason means. No I/O."""

from __future__ import annotations

from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.reasons.entry import Area, Entry, Fault, Place

AREA = Area(
    "Control messages",
    "guide/control-messages.md",
    (
        Entry(
            Reason.APP_SUSPENDED,
            Fault.NONE,
            (Place.MESSAGE,),
            "The application is suspended.",
            remedy="Set spec.suspend of the application to false.",
            after="The message is offered to the driver when the application runs.",
        ),
        Entry(
            Reason.OFFERED,
            Fault.NONE,
            (Place.MESSAGE,),
            "The message is offered to the driver, which has not confirmed yet that it is in the control log.",
        ),
        Entry(
            Reason.QUEUED,
            Fault.NONE,
            (Place.MESSAGE,),
            "Earlier messages come first.",
        ),
        Entry(
            Reason.LOGGED,
            Fault.NONE,
            (Place.MESSAGE,),
            (
                "The message is in the control log of the application, and takes effect with the next batch of each "
                "query that listens (whose input passes through tidegate_spark.control.controlled())."
            ),
            remedy=(
                "If nothing happens, check whether a query listens, whether the application is paused (its condition "
                "Ready says so), and whether it has input (status.inputRowsPerSecond)."
            ),
        ),
        Entry(
            Reason.NO_QUERY_LISTENS,
            Fault.VERSION,
            (Place.MESSAGE,),
            "No query listens to control messages.",
            remedy=(
                "Pass the input of a query through tidegate_spark.control.controlled(). If the query already has a "
                "checkpoint, it is then refused (QueryRefused); give the query a new name, and it runs, but starts "
                "without its state."
            ),
        ),
        Entry(
            Reason.IN_FORCE,
            Fault.NONE,
            (Place.MESSAGE,),
            (
                "The message is in effect in at least one query. It is not in effect yet in other queries, or what it "
                "asks for is not done yet."
            ),
        ),
        Entry(
            Reason.APPLIED,
            Fault.NONE,
            (Place.MESSAGE,),
            "The message is in effect in every query that listens, and what it asked for is done.",
        ),
        Entry(
            Reason.SNAPSHOT_TAKEN,
            Fault.NONE,
            (Place.MESSAGE,),
            "The driver took the snapshot, and its StreamSnapshot is being created.",
        ),
        Entry(
            Reason.EXPORTING,
            Fault.NONE,
            (Place.MESSAGE,),
            "The state is being written as plain files.",
        ),
        Entry(
            Reason.SNAPSHOT_DELETED,
            Fault.NONE,
            (Place.MESSAGE,),
            "The StreamSnapshot of the message was deleted.",
            remedy="Send the message again under another name.",
        ),
        Entry(
            Reason.HANDLER_FAILED,
            Fault.VERSION,
            (Place.MESSAGE,),
            (
                "A handler (the program's function for this type of message) failed, or what the message asked for "
                "could not be done."
            ),
            remedy=(
                'See status.queries[].errors of the ControlMessage and the log of the driver ("kubectl logs POD -n '
                'NAMESPACE"), correct the handler or the payload, and send the message again under another name.'
            ),
        ),
        Entry(
            Reason.SPARK_REFUSED,
            Fault.VERSION,
            (Place.MESSAGE,),
            "Spark did not do what the message asks for; the condition has its exception.",
            remedy="Correct what the condition names, and send the message again under another name.",
        ),
        Entry(
            Reason.UNKNOWN_TYPE,
            Fault.REQUEST,
            (Place.MESSAGE,),
            "The application does not know the type of the message. The message never took effect.",
            remedy=(
                "Send another message with one of the types that the condition lists, or add a handler (a function) "
                "for the type to the program."
            ),
        ),
        Entry(
            Reason.INVALID_PAYLOAD,
            Fault.REQUEST,
            (Place.MESSAGE,),
            "The payload does not fit the type. The message never took effect.",
            remedy="Correct the payload as the condition says, and send it in another message.",
        ),
        Entry(
            Reason.PAYLOAD_TOO_LARGE,
            Fault.REQUEST,
            (Place.MESSAGE,),
            (
                "The payload is longer than 64 KiB, or nested deeper than 64 levels; or with it all settings together "
                "would have more than 1 MiB. The message never took effect."
            ),
            remedy=(
                "Shorten it; or write it to an object store, and send its address, if the application's handler for "
                "this type accepts an address. Remove settings that are no longer used, by a reload-config message "
                "with null as their value."
            ),
        ),
        Entry(
            Reason.TOO_MANY_MESSAGES,
            Fault.REQUEST,
            (Place.MESSAGE,),
            (
                "Too many messages wait: the limit is 1000, or 8 MiB of payloads, for one application, and for all "
                "applications of the namespace that do not exist. This one never took effect."
            ),
            remedy=(
                '"kubectl get controlmessages -n NAMESPACE" lists them. When some of them have ended, send the '
                "message again under another name."
            ),
        ),
        Entry(
            Reason.REJECTED,
            Fault.VERSION,
            (Place.MESSAGE,),
            (
                "The application rejects the message, and does not report why: its type is unknown, or its payload "
                "does not fit the type. The message never took effect."
            ),
            remedy=(
                "Correct the type or the payload, and send another message. The log of the driver may say more: "
                '"kubectl logs POD -n NAMESPACE".'
            ),
        ),
        Entry(
            Reason.MODEL_NOT_FOUND,
            Fault.ENVIRONMENT,
            (Place.MESSAGE,),
            "The model that the payload of a reload-model message names cannot be read. The message never took effect.",
            remedy=(
                "Put the model at the address in the payload, correct the address, or let the application's "
                "credentials read it; then send another message."
            ),
        ),
        Entry(
            Reason.MODEL_DAMAGED,
            Fault.DATA,
            (Place.MESSAGE,),
            (
                "The SHA-256 checksum of the model differs from the one in the payload of the reload-model message. "
                "The message never took effect."
            ),
            remedy=(
                "Compare the checksum in the payload with that of the file at its address (sha256sum), replace the "
                "file or correct the checksum, and send another message."
            ),
        ),
        Entry(
            Reason.MODEL_NOT_ALLOWED,
            Fault.VERSION,
            (Place.MESSAGE,),
            (
                "The address in the reload-model message is below none of the prefixes from which the application "
                "loads models. The message never took effect."
            ),
            remedy=(
                "Put the model below one of spec.control.models.allowedPrefixes of the application, or add a prefix, "
                "which restarts the application; then send another message."
            ),
            page="control.md#models",
        ),
        Entry(
            Reason.MODEL_TOO_LARGE,
            Fault.VERSION,
            (Place.MESSAGE,),
            (
                "The model of the reload-model message is larger than spec.control.models.sizeLimit. The message never "
                "took effect."
            ),
            remedy=(
                "Put a smaller model at the address, or raise spec.control.models.sizeLimit of the application, which "
                "restarts it; then send another message."
            ),
            page="control.md#models",
        ),
        Entry(
            Reason.MESSAGE_TIMED_OUT,
            Fault.ENVIRONMENT,
            (Place.MESSAGE,),
            (
                "A step of the message took longer than spec.control.messageTimeoutSeconds of the application: its "
                "check, what Spark does, or a call of a handler; the condition names the step. If that was the check, "
                "the message never took effect."
            ),
            remedy=(
                "Check what the condition names, such as the store of a model, and what the handler waits for; raise "
                "spec.control.messageTimeoutSeconds if needed. Then send another message."
            ),
            after="Tidegate handles the next message.",
            page="control.md#what-a-message-may-take",
        ),
        Entry(
            Reason.EXPIRED,
            Fault.NONE,
            (Place.MESSAGE,),
            "spec.expirationSeconds passed before the message could take effect.",
            remedy="If the message is still needed, send it again under another name.",
        ),
        Entry(
            Reason.MESSAGE_LOST,
            Fault.DATA,
            (Place.MESSAGE,),
            (
                "The message came from a channel, but the driver that runs does not know it any more, and does not "
                "carry it out."
            ),
            remedy="Send the message again, with another CloudEvent id.",
        ),
        Entry(
            Reason.MESSAGE_REFUSED,
            Fault.CLUSTER,
            (Place.REPLY, Place.EVENT),
            (
                "A message of the type snapshot or dump-state came through a channel, and the API server refuses to "
                "create its ControlMessage, or could not create it (a webhook that does not answer, for instance)."
            ),
            remedy=(
                "Correct what the reply or the event names. Send the message again, with another CloudEvent id, if "
                "there was a reply; if there is only an event of the StreamingApp, the message waits."
            ),
            after="Tidegate tries to create what waits again every 30 seconds.",
        ),
        Entry(
            Reason.NOT_SENT_HERE,
            Fault.NONE,
            (Place.MESSAGE,),
            (
                "The message was sent to the application whose snapshot this one started from, not to this one; it "
                "came here with the control log of the snapshot, and has no effect here."
            ),
        ),
        Entry(
            Reason.ROLLED_BACK,
            Fault.NONE,
            (Place.MESSAGE,),
            "A rollback undid the batch in which the message took effect; the message is no longer in effect.",
            remedy="If it should be in effect, send the message again under another name.",
            page="guide/roll-back.md",
        ),
        Entry(
            Reason.TYPE_NOT_ALLOWED,
            Fault.VERSION,
            (Place.REPLY,),
            "spec.control.channel.allowedTypes does not allow this type from the channel.",
            remedy=(
                "Send the message as a ControlMessage, or add the type to spec.control.channel.allowedTypes, which "
                "restarts the application."
            ),
            page="guide/control-messages.md#from-the-storage-kafka-and-rabbitmq",
        ),
        Entry(
            Reason.TOO_MANY_OPEN,
            Fault.REQUEST,
            (Place.REPLY,),
            (
                "Eight snapshot and dump-state messages from the channel are not done yet, which is the most that may "
                "be at a time."
            ),
            remedy="When one of them has ended, send the message again, with another CloudEvent id.",
            page="guide/control-messages.md#from-the-storage-kafka-and-rabbitmq",
        ),
        Entry(
            Reason.INVALID_EVENT,
            Fault.REQUEST,
            (Place.REPLY,),
            "The channel delivered something that is not a CloudEvent.",
            remedy="Send a CloudEvent with the attributes id, source and type; the reply says what is wrong.",
            page="control.md#a-message",
        ),
        Entry(
            Reason.EVENT_TOO_LARGE,
            Fault.REQUEST,
            (Place.REPLY, Place.WRITER),
            "The event is longer than 128 KiB, which is the most that a channel accepts.",
            remedy=(
                "Shorten it; or write the payload to an object store, and send its address, if the application's "
                "handler for this type accepts an address."
            ),
            page="control.md#a-message",
        ),
        Entry(
            Reason.INVALID_EXPIRES,
            Fault.REQUEST,
            (Place.WRITER,),
            'The argument "expires" of tidegate_spark.control_writer is neither a time nor a number of seconds.',
            remedy="Pass seconds from now, a timedelta, or a datetime with a time zone.",
            page="control.md",
        ),
        Entry(
            Reason.UNSUPPORTED_CONTENT_TYPE,
            Fault.REQUEST,
            (Place.REPLY,),
            "The content type of the event, or of its data, is not supported.",
            remedy="Send JSON: the content type application/cloudevents+json, and datacontenttype application/json.",
            page="control.md#a-message",
        ),
    ),
)
