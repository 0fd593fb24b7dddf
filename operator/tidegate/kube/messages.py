"""Messages: why the API server gives no usable answer. No I/O."""

from __future__ import annotations

NOT_LEADING = "this process does not hold the leadership, and changes nothing"
NO_ATTEMPT = "no attempt was made"
LEASE_NOT_READ = "nobody has looked yet"
LINE_TOO_LONG = "a line of the watch is longer than any object can be"


def answer_too_long(longest: int) -> str:
    return f"the answer is longer than {longest} bytes"


def redirected(status: int, location: str) -> str:
    return f"HTTP {status} to {location or 'nowhere'}: give the operator the API server's own address, not a redirect's"


def answer_unreadable(error: Exception) -> str:
    return f"the API server's answer is not understood: {error}"


def service_account_not_wanted(kubeconfig: object) -> str:
    return f"not looked for, because {kubeconfig} is to be used"


def no_configuration(not_in_pod: Exception, error: Exception) -> str:
    return f"no service account ({not_in_pod}) and no kubeconfig ({error}): run in a pod, or set KUBECONFIG"


def list_failed(path: str, why: object) -> str:
    return f"list of {path}: {why}"


def watch_refused(path: str, status: int) -> str:
    return f"watch of {path}: HTTP {status}"


def went_back(path: str, version: str, seen: int) -> str:
    return (
        f"{path} is at resource version {version}, after {seen} was seen: the API server's objects were restored from"
        " an older backup"
    )


def watch_ended(path: str, why: str) -> str:
    return f"watch of {path}: {why}"
