"""Labels and annotations that a spec cannot set: Tidegate's, and those by which Spark finds executors. No I/O.

With another application's values a pod would be taken for that application's.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tidegate.api.values.errors import SpecError
from tidegate.pods import messages
from tidegate_spark.contract.protocol import LABEL_MANAGED_BY, OWN_LABELS, is_reserved_label, label_set_by

_NAMING = frozenset({"spark.kubernetes.executor.decommissionLabel"})
"""Settings whose values are names of labels: Spark puts this one on an executor that is to go."""
REMEDY = messages.reserved_label(OWN_LABELS)


def refuse_in_template(template: Mapping[str, Any], field: str) -> None:
    """Raise if a user's template sets one.

    Args:
        template: the template; what is wrong with its shape is reported by whoever merges it.
        field: its path in the spec.

    Raises:
        SpecError: the first that is not the user's to set.
    """
    metadata = template.get("metadata")
    if not isinstance(metadata, Mapping):
        return
    for kind in ("labels", "annotations"):
        given = metadata.get(kind)
        for name in given if isinstance(given, Mapping) else ():
            # Many templates carry this one, whatever made them; Tidegate's own is laid over it.
            if is_reserved_label(name) and name != LABEL_MANAGED_BY:
                raise SpecError(f"{field}.metadata.{kind}[{name}]", REMEDY)


def refuse_in_settings(spark_conf: Mapping[str, str]) -> None:
    """Raise if a setting of Spark gives pods one: it would win over the executors' template.

    Raises:
        SpecError: the first that is not the user's to set.
    """
    for key in sorted(spark_conf):
        if is_reserved_label(label_set_by(key)) or (key in _NAMING and is_reserved_label(spark_conf[key].strip())):
            raise SpecError(f"spec.sparkConf[{key}]", REMEDY)
