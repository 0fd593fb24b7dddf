"""Messages about tables that queries write to. No I/O."""

from __future__ import annotations

CATALOG_IN_MEMORY = "in the memory of the driver, and lost with it"
CATALOG_IN_DERBY = "in a Derby database of the driver's pod, and lost with it"


def metastore(addresses: str) -> str:
    return f"in the Hive metastore {addresses}".rstrip()


def catalog_of_class(name: str) -> str:
    return f"where its class, {name}, keeps it"


def table_location(query: str, table: str, catalog: str, location: str) -> str:
    where = f"in {location}" if location else "where its catalog puts them"
    return f"Query {query!r} writes to the table {table}: its catalog is {catalog}; its data are {where}."


TABLE_WITHOUT_BATCHES = (
    " None of the earlier batches of the query is there: what they wrote is elsewhere, as after a change of the "
    "catalog, of spark.sql.warehouse.dir or of the path. To continue the earlier table, set these as they were."
)


def table_created_by_script(location: str) -> str:
    return (
        " The script creates the table without a path, which Spark refuses at the next start (LOCATION_ALREADY_EXISTS):"
        f" add LOCATION '{location}' to it, or leave it to toTable()."
    )


def table_in_pod(table: str, location: str) -> str:
    return (
        f"the data of the table {table} would be in {location}, a folder that each pod has for itself, so rows of "
        "executors would be lost. Set spec.sparkConf spark.sql.warehouse.dir to a place in object storage (s3a://…), "
        "or give the table one with .option('path', 's3a://…')."
    )


def table_without_catalog(table: str, kind: str, catalog: str) -> str:
    return (
        f"the catalog of the table {table} is {catalog}: at the next start Spark would create the table of format "
        f"{kind} again, and fail. Give it a place with .option('path', 's3a://…'), or use a catalog "
        "that outlasts the driver (spec.sparkConf spark.sql.catalog.…, or a Hive metastore)."
    )


def table_of_another_query(table: str, location: str) -> str:
    return (
        f"the folder of the table {table}, {location}, has the log of another query, whose batches have the same "
        "numbers: Spark would leave batches of this one out. Give the query the name that it had, or write to another "
        "table."
    )
