"""Sends control messages to an application through its storage: needs boto3 and access to the bucket, nothing else.

No Spark, no broker, no Kubernetes. The application has ``spec.control.channel: {type: Storage, storage: {}}``::

    from tidegate_spark.control_writer import ControlWriter

    with ControlWriter("s3://shop/apps/shop/orders") as writer:
        name = writer.send("reload-config", {"limit": 3}, expires=600)
        print(writer.outcome(name, timeout=60).state)

``python3 -m tidegate_spark.control_writer --help`` does the same from a shell.
"""

from tidegate_spark.control_writer.errors import (
    BufferFullError,
    ControlWriterError,
    InvalidMessageError,
    NoOutcomeError,
    NotWrittenError,
)
from tidegate_spark.control_writer.outbox import Pace
from tidegate_spark.control_writer.outcomes import Outcome
from tidegate_spark.control_writer.writer import ControlWriter
from tidegate_spark.storage.s3_client import Credentials

__all__ = (
    "BufferFullError",
    "ControlWriter",
    "ControlWriterError",
    "Credentials",
    "InvalidMessageError",
    "NoOutcomeError",
    "NotWrittenError",
    "Outcome",
    "Pace",
)
