"""Messages: why no pod can be built from a spec, and what to change. No I/O."""

from __future__ import annotations

from collections.abc import Sequence

NO_DETOUR = "must not contain the path segments '.' and '..'; create the resource again without them"
TEMPLATE_FIELDS = "spec.application.env, spec.podTemplate and spec.executor.podTemplate"
IMAGE_UNKNOWN = "the image that wrote the state is not known; name one with Spark"
TRUE_OR_FALSE = "true or false"
SET_BY_SPARK = (
    "Spark sets SPARK_EXECUTOR_ID and the like for executors; use executor.cores and "
    "executor.resources.requests.memory, or another name"
)
SET_BY_CREDENTIALS = "storage.credentialsSecretRef sets it; leave one of the two out"
_MOUNTED = "that spec.driver.podTemplate mounts (for executors, spec.executor.podTemplate)"
"""``spec.podTemplate`` adds volumes and cannot mount them: Tidegate's own containers are not in it."""
PATH_PREFIXED = "Tidegate puts its own path in front of yours; give it as a value, not from elsewhere"


def image_of_import(named: str) -> str:
    return (
        "an imported snapshot has to be exported in an image that is named here, because anybody who can write to its "
        f"bucket may have written its manifest, which says {named}"
    )


def configuration_too_long(size: int, longest: int) -> str:
    return (
        f"with it the configuration of a launch has {size:,} bytes, and a Secret takes {longest:,}; put what is "
        f"long into a file, of a ConfigMap {_MOUNTED} or in storage, and have the program read it"
    )


def variable_too_long(size: int, longest: int) -> str:
    return (
        f"name and value have {size:,} bytes, and Linux starts no process with a variable of more than "
        f"{longest:,}; put the value into a file, of a ConfigMap {_MOUNTED}"
    )


def environment_too_long(whole: int, longest: int) -> str:
    return (
        f"all variables have {whole:,} bytes, and more than {longest:,} leave Linux no room to start Spark; put "
        f"long values into files, of a ConfigMap {_MOUNTED}"
    )


def setting_too_long(size: int, longest: int) -> str:
    return (
        f"key and value have {size:,} bytes, and Linux starts no JVM with a setting of more than {longest:,}; put "
        f"the value into a file {_MOUNTED}, or set it in the script"
    )


def version_too_large(size: int, longest: int, *, new: bool) -> str:
    """Return the text; ``new``: of an application that was never launched, as far as is known."""
    ran = (
        "An application that ran with it before continues with spec.startFrom.adopt: true."
        if new
        else "The limit is for edits: what runs with more goes on."
    )
    return (
        f"the spec and the two versions that the status keeps have {size:,} bytes, and the API server stores no more "
        f"than {longest:,} of them; put what is long into a file, of a ConfigMap {_MOUNTED} or in storage, and have "
        f"the program read it. {ran}"
    )


def limit_range_refusal(complaint: str, containers: Sequence[str], unread: str) -> str:
    """Return the text; ``unread`` is why the LimitRanges could not be read, empty if they were."""
    of = f" in container {' and '.join(containers)}" if containers else ""
    unchecked = f" (unchecked: the operator cannot list LimitRanges, {unread.rstrip('.')})" if unread else ""
    return f"{complaint}{of}, as a LimitRange of the namespace has it{unchecked}"


def or_limit_range(fields: str) -> str:
    return f"{fields}, or the LimitRange" if fields else "the LimitRange"


def other_kind(expected: str, found: str) -> str:
    return f"expected {expected}, found {found}"


def item_lacks(part: str) -> str:
    return f"each item needs {part!r}"


def plain_value(kind: str) -> str:
    return f"a plain value ({kind})"


def found_instead(found: str, expected: str) -> str:
    return f"found {found}, expected {expected}"


def merged_into_pod(text: str, templates: str, verb: str) -> str:
    return f"{text} ({templates} {verb} merged into the pod)"


def unreadable_by_operator(error: Exception) -> str:
    return f"cannot be read by this operator: {error}"


def reserved_variable(prefix: str) -> str:
    return f"names that start with {prefix} belong to Tidegate; choose another"


def account_of_another_application(account: str) -> str:
    return f"{account} is another application's; leave the field out, or name a ServiceAccount of your own"


def reserved_label(prefix: str) -> str:
    return f"labels and annotations that start with {prefix}, and those of Spark, identify pods; choose another name"


def snapshot_place_unknown(snapshot: str) -> str:
    return f"nothing is known of the storage of snapshot {snapshot}"


def key_of(key: str, kind: str, name: str) -> str:
    return f"key {key} of {kind} {name}"
