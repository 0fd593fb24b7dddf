"""The only module of the operator that reads text written by others for people. No I/O.

The API server has no code for why it refuses an object. Contract tests hold each pattern to the real thing:
tests/integration/scenario/test_contract.py, test_operator_lifecycle.py (LimitRanges) and test_chart_permissions.py
(admission) in tests/integration, test_pods_that_do_not_start.py and test_executors_that_end.py (kubelet and scheduler)
in tests/e2e. Text that is not recognized is no error: it is shown as it is.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

_OF_THE_OBJECT = re.compile(r'\w+ in version "[^"]*" cannot be handled as a |[\w.]+ "[^"]*" is invalid: ')
_PREFIX = re.compile(
    r'^(Pod in version "v1" cannot be handled as a Pod: (strict decoding error: )?|Pod "\S+" is invalid: '
    r'|pods "\S+" is forbidden: )'
)
_PATH = re.compile(r"(?<![\w.])(?:spec|metadata)(?:\.[A-Za-z][\w/-]*|\[[^\][]*\])+")
_WRONG_TYPE = re.compile(r"json: cannot unmarshal (\w+) into Go struct field \w+\.([\w.]+) of type (\S+)")
_USAGE = r"((minimum|maximum) \S+ usage|\S+ max limit to request ratio) per (Container|Pod) is "
_BY_LIMIT_RANGE = re.compile(r'pods "[^"]*" is forbidden: \[?' + _USAGE)
# From the beginnings of words only: from each character on, one long word takes as many steps as its length squared.
_LIMIT_RANGE = re.compile(r"(?<!\S)\[?" + _USAGE)
_DEMAND = re.compile(
    r"(?<!\S)\[?(?:(?:minimum|maximum) (?P<used>\S+) usage|(?P<ratio>\S+) max limit to request ratio)"
    r" per (?:Container|Pod) is (?P<bound>[^\s,]+)(?:, but (?P<of>request|limit) is (?P<found>[^\s,\]]+))?"
)
_NOT_FOUND = re.compile(r"\b(configmap|secret|persistentvolumeclaim|serviceaccount)s? \"([^\"\s]{1,253})\" not found")
_NO_KEY = re.compile(r"\breferences non-existent (config|secret) key: ([-._a-zA-Z0-9]{1,253})")
_KINDS = {
    "configmap": "ConfigMap",
    "secret": "Secret",
    "persistentvolumeclaim": "PersistentVolumeClaim",
    "serviceaccount": "ServiceAccount",
}
_KEY_OF = {"config": "a ConfigMap", "secret": "a Secret"}
_NOT_ADMITTED = re.compile(
    r'pods "[^"]*" is forbidden: (?:'
    r'error looking up service account [^\s"]+: serviceaccount "(?P<ServiceAccount>[^"\s]+)" not found'
    r"|no PriorityClass with name (?P<PriorityClass>[^\s]+) was found"
    r'|pod rejected: RuntimeClass "(?P<RuntimeClass>[^"\s]+)" not found)\Z'
)
_VOLUMES_LISTED = "unmounted volumes=["
_FULL_DISK = "No space left on device"
"""The operating system's words for ENOSPC, as strerror has them."""
MOST_LINES, MOST_OF_LINES = 5, 600
_ID = re.compile(r"\b[0-9a-f]{32,64}\b")
_NO_QUANTITY = "quantities must match the regular expression"


def is_about_object(answer: str) -> bool:
    """Return whether the API server cannot read the object, or finds it invalid, whatever else there is.

    By the reason of its answer alone, Invalid, a ValidatingAdmissionPolicy refuses as well, and many a webhook.
    """
    return _OF_THE_OBJECT.match(answer) is not None


def is_by_limit_range(answer: str) -> bool:
    """Return whether the LimitRanger refused a pod; policies and webhooks start with their names."""
    return _BY_LIMIT_RANGE.match(answer) is not None


def without_prefix(answer: str) -> str:
    """Return what is said of a pod, without that it is about one."""
    return _PREFIX.sub("", answer.strip()).rstrip(".")


def names_limit_range(complaint: str) -> bool:
    """Return whether a complaint without its prefix is the LimitRanger's."""
    return _LIMIT_RANGE.search(complaint) is not None


@dataclass(frozen=True, slots=True)
class Demand:
    """What a LimitRange demands, and the amount that it refuses."""

    resource: str
    bound: str
    ratio: bool
    """It bounds how many times the request the limit may be, and names neither of them."""
    of_request: bool
    found: str
    """The request or limit that is refused; empty if none is named."""


def limit_range_demands(complaint: str) -> tuple[Demand, ...]:
    """Return each demand that the LimitRanger names in a complaint without its prefix; empty if it names none."""
    return tuple(
        Demand(
            found["used"] or found["ratio"],
            found["bound"].rstrip("."),
            found["used"] is None,
            found["of"] == "request",
            (found["found"] or "").rstrip("."),
        )
        for found in _DEMAND.finditer(complaint)
    )


def names_quantity(complaint: str) -> bool:
    """Return whether a complaint without its prefix is about a quantity, of which it does not say where it is."""
    return complaint.startswith(_NO_QUANTITY)


def missing_object(text: str) -> str:
    """Return which object kubelet or scheduler miss, with its kind, such as ``ConfigMap rules``; empty if none.

    Of a key they do not say of which object it is; the name of the volume is in the text, too.
    """
    if found := _NOT_FOUND.search(text):
        return f"{_KINDS[found[1]]} {found[2]}"
    if found := _NO_KEY.search(text):
        return f"Key {found[2]} of {_KEY_OF[found[1]]}"
    return ""


def missing_for_admission(answer: str) -> str:
    """Return which object the API server's own admission misses for a pod, with its kind; empty if none.

    Policies and webhooks put their names first, so that none of them can say this.
    """
    found = _NOT_ADMITTED.match(answer)
    if found is None:
        return ""
    kind = next(name for name in ("ServiceAccount", "PriorityClass", "RuntimeClass") if found[name])
    return f"{kind} {found[kind]}"


def only_lists_volumes(text: str) -> bool:
    """Return whether a kubelet only says which volumes are not mounted, and not why."""
    return _VOLUMES_LISTED in text


def names_full_disk(text: str) -> bool:
    """Return whether what a process wrote last has the operating system's words for a disk without space."""
    return _FULL_DISK in text


def last_lines(output: str) -> str:
    """Return the last lines of what a process wrote, in one line and cut from their beginning; empty if there are none.

    Of a container that fails the kubelet gives the end of its log, in the middle of a line if it is long.
    """
    lines = [line.strip() for line in output.splitlines() if line.strip()][-MOST_LINES:]
    text = " | ".join(lines)
    return text if len(text) <= MOST_OF_LINES else f"…{text[-MOST_OF_LINES:]}"


def without_ids(text: str) -> str:
    """Return a text whose long hexadecimal ids, which differ with each attempt, are left out."""
    return _ID.sub("…", text)


@dataclass(frozen=True, slots=True)
class WrongType:
    """A field that is of another type than the API server expects."""

    before: str
    path: str
    found: str
    expected: str
    """Go's name of the type."""
    after: str


def wrong_type(complaint: str) -> WrongType | None:
    """Return the field of which a complaint says that its type is another one, None if it does not."""
    found = _WRONG_TYPE.search(complaint)
    if found is None:
        return None
    kind, path, expected = found.groups()
    return WrongType(complaint[: found.start()], path, kind, expected, complaint[found.end() :])


def with_paths(complaint: str, renamed: Callable[[str], str]) -> str:
    """Return a complaint with each path of a field in it renamed."""
    return _PATH.sub(lambda found: renamed(found.group()), complaint)


def split_validation_error(text: str) -> tuple[str, str]:
    """Return problem and path of a msgspec.ValidationError, which ends in `` - at `$.spec.storage.uri```.

    Without that it is about the whole object.
    """
    # From the end, because a quoted value may contain anything.
    problem, found, path = text.rpartition(" - at `")
    return (problem, path.removesuffix("`").removeprefix("$").lstrip(".")) if found else (text, "")
