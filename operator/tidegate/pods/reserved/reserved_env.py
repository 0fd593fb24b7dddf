"""Environment variables that a spec cannot set, because Tidegate or Spark sets them. No I/O.

The CRD refuses them too; this catches what an older CRD let pass.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tidegate.api.streaming_app import StreamingApp
from tidegate.api.values.errors import SpecError
from tidegate.pods import messages
from tidegate_spark.contract.protocol import ACCESS_KEY, SECRET_KEY, SESSION_TOKEN

PREFIX = "TIDEGATE_"
CREDENTIALS = (ACCESS_KEY, SECRET_KEY, SESSION_TOKEN)
"""Tidegate's while ``storage.credentialsSecretRef`` names a Secret."""

SPARKS = (
    "SPARK_APPLICATION_ID",
    "SPARK_DRIVER_URL",
    "SPARK_EXECUTOR_CORES",
    "SPARK_EXECUTOR_ID",
    "SPARK_EXECUTOR_MEMORY",
    "SPARK_EXECUTOR_POD_IP",
    "SPARK_EXECUTOR_POD_NAME",
    "SPARK_RESOURCE_PROFILE_ID",
)
"""The variables that Spark sets for each executor."""

PREFIX_REMEDY = messages.reserved_variable(PREFIX)
SPARKS_REMEDY = messages.SET_BY_SPARK


def refuse_reserved(env: Iterable[Mapping[str, Any]], app: StreamingApp, field: str) -> None:
    """Raise if a user's variable is reserved.

    Args:
        env: the variables of one place in the spec, each with a name.
        app: the application; it decides whether the storage credentials are Tidegate's.
        field: path of that place.

    Raises:
        SpecError: the first that is not the user's to set, and what to do instead.
    """
    for item in env:
        name = str(item["name"])
        problem = _problem(name, item, app)
        if problem:
            raise SpecError(f"{field}[{name}]", problem)


def _problem(name: str, item: Mapping[str, Any], app: StreamingApp) -> str:
    if name.startswith(PREFIX):
        return PREFIX_REMEDY
    if name in SPARKS:
        return SPARKS_REMEDY
    if name in CREDENTIALS and app.spec.storage.credentials_secret_ref is not None:
        return messages.SET_BY_CREDENTIALS
    if name == "PYTHONPATH" and "value" not in item and item.get("valueFrom"):
        return messages.PATH_PREFIXED
    return ""
