"""Messages about executors that ended. No I/O."""

from __future__ import annotations

from tidegate.pods.records.fault_messages import disruption, sentence
from tidegate.pods.records.read_pods import time_from_seconds
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.reasons.registry import remedy_of

_MEMORY = "spec.executor.resources.requests.memory"
_SIGNALS = {4: "SIGILL", 6: "SIGABRT", 7: "SIGBUS", 8: "SIGFPE", 9: "SIGKILL", 11: "SIGSEGV", 15: "SIGTERM"}
"""Those by which a process may end; 128 is added to them in an exit code."""


def disrupted(pod: str, node: str, word: str) -> str:
    return _remedied(f"Executor pod {pod}{_on(node)} {disruption(word)}.", Reason.EXECUTORS_LOST)


def ended_by_kubelet(pod: str, node: str, word: str, detail: str) -> str:
    said = f" {sentence(detail)}" if detail else ""
    text = f"Executor pod {pod}{_on(node)} was ended by its kubelet ({word or 'no reason'}).{said}"
    return _remedied(text, Reason.EXECUTORS_LOST)


def lost_with_node(pod: str, node: str) -> str:
    return _remedied(f"Executor pod {pod} was lost when its node{_name(node)} restarted.", Reason.EXECUTORS_LOST)


def out_of_memory(pod: str) -> str:
    return f"Executor pod {pod} needed more than its memory and was killed (OOMKilled). Raise {_MEMORY}."


def heap_exhausted(pod: str, lines: str) -> str:
    return (
        f"The JVM of executor pod {pod} needed more heap than it has (exit code 52).{_quoted(lines)} Raise {_MEMORY}."
    )


def disk_full(pod: str, node: str, lines: str) -> str:
    return _remedied(f"No space was left for executor pod {pod}{_on(node)}.{_quoted(lines)}", Reason.DISK_FULL)


def killed(pod: str) -> str:
    return (
        f"Executor pod {pod} was killed (exit code 137, SIGKILL). The usual cause is a lack of memory: raise {_MEMORY}."
    )


def failed(pod: str, code: int, word: str, lines: str) -> str:
    """Return the text; ``word`` is the kubelet's for the end."""
    signal = f", {_SIGNALS[code - 128]}" if code - 128 in _SIGNALS else ""
    more = f", {word}" if word not in ("", "Error") else ""
    text = f"Executor pod {pod} ended by itself (exit code {code}{signal}{more}).{_quoted(lines)}"
    return _remedied(text, Reason.EXECUTORS_FAILING)


def next_attempt(text: str, until: float) -> str:
    """Return a text with when others are started; ``until`` is in seconds since the epoch, 0: at once."""
    time = time_from_seconds(until)
    return f"{text} Others start at {time:%Y-%m-%dT%H:%M:%SZ}.".strip() if time is not None else text


def ends_unseen(number: int) -> str:
    return f"{number} have ended, and how the last one did is not known to this operator."


def _remedied(text: str, reason: Reason) -> str:
    return f"{text} {remedy_of(reason)}"


def _quoted(lines: str) -> str:
    return f" Its last lines: {lines}" if lines else ""


def _on(node: str) -> str:
    return f" on node {node}" if node else ""


def _name(node: str) -> str:
    return f" {node}" if node else ""
