"""The functions by which a query takes part in the control stream. Talks to Spark."""

from __future__ import annotations

from typing import Protocol

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from tidegate_spark.control.messages import handlers
from tidegate_spark.control_log.offsets import SOURCE

NAMED_SOURCES, SOURCE_NAME = "spark.sql.streaming.queryEvolution.enableSourceEvolution", "tidegate_control"
"""With this setting queries know their sources by names, and take in one more."""


class Host(Protocol):
    """The driver around the program."""

    def serve(self, session: SparkSession) -> None:
        """Be ready for queries that ask, and know the source; may be called again."""


class _Hosts:
    """The driver of this process, if it is one of Tidegate's."""

    here: Host | None = None


def hosted_by(host: Host | None) -> None:
    """Say which driver is around the program."""
    _Hosts.here = host


def is_hosted() -> bool:
    """Return whether this is a process of a driver of Tidegate's."""
    return _Hosts.here is not None


def controlled(df: DataFrame) -> DataFrame:
    """Return ``df``, a stream, with no row more or less, such that its query takes part in the control stream.

    The query's batches have a position in the control log from then on, and functions of the query may ask
    :func:`tidegate_spark.control.current` what is in force. A message starts a batch even if there is no data. Call it
    once for each query, anywhere above its first stateful operator. Columns become nullable. A query with a checkpoint
    from before cannot be made to take part without a new lineage: it is refused.

    Outside of Tidegate ``df`` is returned as it is.
    """
    if _Hosts.here is None:
        return df
    if not df.isStreaming:
        raise ValueError("controlled() is for a streaming DataFrame")
    columns = [F.lit(None).cast(field.dataType).alias(field.name) for field in df.schema.fields]
    # Spark finds the source in the plan as it is written, and has nothing to read of it in the plan as it is run.
    return df.union(_records(_Hosts.here, df.sparkSession).where(F.lit(False)).select(*columns))


def stream(spark: SparkSession) -> DataFrame:
    """Return the control messages of the application as a stream of records, for joins with data by key.

    Columns: sequence (long), id, type, time (timestamp), source, payload (JSON text). A record comes in the batch in
    which its message comes into force; what was sent before a query's first batch is in force and no record. There is
    no watermark on it, and none is held back by it unless you set one. Its query takes part as if
    :func:`controlled` had been called, and messages of whatever type are understood.

    Raises:
        RuntimeError: outside of Tidegate.
    """
    if _Hosts.here is None:
        raise RuntimeError("there is no control stream outside of Tidegate")
    handlers.accept_any()
    return _records(_Hosts.here, spark)


def _records(host: Host, session: SparkSession) -> DataFrame:
    host.serve(session)
    reader = session.readStream.format(SOURCE)
    # Where sources have names Spark wants one of each; before 4.2 there is neither the setting nor the method.
    named = str(session.conf.get(NAMED_SOURCES, "false")).lower() == "true"
    return (reader.name(SOURCE_NAME) if named else reader).load()
