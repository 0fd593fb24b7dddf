"""Computes fingerprints of state stores that do not depend on where a row is. Talks to Spark.

It reads keys and values of all column families as bytes, like Spark's repartition. Sums of hashes are independent of
order and, unlike exclusive ors, notice a row that is there twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pyspark.sql import Column, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - as everybody calls it

from tidegate_spark.exports.tables import StoreMetadata

_AS_BYTES = "_readAllColumnFamilies"
"""Option of Spark's state reader: rows of partition_key, key_bytes, value_bytes and column_family_name."""
_LOW = 0xFFFFFFFF


@dataclass(frozen=True)
class Fingerprint:
    """One column family of one state store, over all partitions; sums of the hashes' lower and upper halves."""

    rows: int
    keys: tuple[int, int]
    pairs: tuple[int, int]
    """Of keys with their values."""


@dataclass(frozen=True)
class Store:
    """A state store, over all partitions."""

    operator: int
    operator_name: str
    name: str

    def __str__(self) -> str:
        """Return it for a person."""
        return f"store {self.name!r} of operator {self.operator} ({self.operator_name})"


@dataclass(frozen=True)
class Contents:
    """What a checkpoint's state is after one batch."""

    families: Mapping[tuple[Store, str], Fingerprint]
    """By state store and column family; families without a row are not in it."""
    misplaced: Mapping[Store, int]
    """Rows in another partition than the hash of their key says; stores that have none are not in it."""

    @property
    def rows(self) -> int:
        """All of them."""
        return sum(each.rows for each in self.families.values())


def read_contents(
    session: SparkSession, checkpoint: str, batch: int, partitions: int, stores: Iterable[StoreMetadata]
) -> Contents:
    """Read all state after a batch.

    Args:
        session: with the settings under which it was written.
        checkpoint: the query's.
        batch: a committed one.
        partitions: that the state has then.
        stores: what there is to be read.

    Raises:
        PySparkException, Py4JError: Spark cannot read it.
    """
    families: dict[tuple[Store, str], Fingerprint] = {}
    misplaced: dict[Store, int] = {}
    for each in stores:
        store = Store(each.operator, each.operator_name, each.store)
        reader = session.read.format("statestore").option("batchId", batch).option("operatorId", each.operator)
        rows = reader.option("storeName", each.store).option(_AS_BYTES, "true").load(checkpoint)
        key = F.xxhash64("column_family_name", "key_bytes")
        # The state reader has one task for each partition, in their order.
        elsewhere = F.pmod(F.hash("partition_key"), F.lit(partitions)) != F.spark_partition_id()
        keys = rows.select("column_family_name", "value_bytes", key.alias("k"), elsewhere.alias("e"))
        # No key is hashed twice.
        found = keys.select("column_family_name", "k", F.xxhash64("k", "value_bytes").alias("p"), "e")
        counted = found.groupBy("column_family_name").agg(
            F.count(F.lit(1)).alias("rows"),
            *(half.alias(name) for of in ("k", "p") for name, half in _halves(of)),
            F.sum(F.when(F.col("e"), F.lit(1)).otherwise(F.lit(0))).alias("elsewhere"),
        )
        for row in counted.collect():
            families[store, row["column_family_name"]] = Fingerprint(
                row["rows"], (row["k_low"], row["k_high"]), (row["p_low"], row["p_high"])
            )
            if row["elsewhere"]:
                misplaced[store] = misplaced.get(store, 0) + row["elsewhere"]
    return Contents(families, misplaced)


def _halves(of: str) -> list[tuple[str, Column]]:
    # A sum of whole hashes would not fit its type.
    low, high = F.col(of).bitwiseAND(F.lit(_LOW)), F.shiftrightunsigned(F.col(of), 32)
    return [(f"{of}_low", F.sum(low)), (f"{of}_high", F.sum(high))]


def difference(before: Contents, after: Contents) -> str:
    """Return the differences as text, empty if there are none; pure."""
    for store, family in sorted(before.families.keys() | after.families.keys(), key=str):
        old, new = before.families.get((store, family)), after.families.get((store, family))
        if old == new:
            continue
        where = f"{store}, column family {family!r}"
        had, has = (each.rows if each is not None else 0 for each in (old, new))
        if had != has:
            return f"{where} had {had} rows before and has {has} after"
        what = "keys" if old is None or new is None or old.keys != new.keys else "values"
        return f"{where} has as many rows after as before ({had}), and other {what}"
    for store, rows in sorted(after.misplaced.items(), key=str):
        return f"{rows} rows of {store} are in a partition where the query does not look for their keys"
    return ""
