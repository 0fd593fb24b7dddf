"""Messages about executors and their number. No I/O."""

from __future__ import annotations

from tidegate.pods.records.fault_messages import OLDER_RUNTIME, logs
from tidegate_spark.contract.protocol import COMMAND_PORT, PROTOCOL


def rescaled(before: int, wanted: int) -> str:
    return f"The number of executors changes from {before} to {wanted}, without a restart."


def agent_unreachable(why: str, running: int, wanted: int, pod: str, namespace: str) -> str:
    number = f" {running} executors run, {wanted} are wanted, and only the agent can change that."
    return (
        f"Its agent does not answer the operator ({why}).{number if running != wanted else ''} Snapshots, control "
        f"messages and metrics wait for it: check network policies, which have to let the operator reach port "
        f"{COMMAND_PORT} of the pod, and the log of the driver: {logs(pod, namespace)}."
    )


def other_key(secret: str, running: int, wanted: int) -> str:
    number = f" {running} executors run, {wanted} are wanted, and only the agent can change that." * (running != wanted)
    keys = f"with another key than this operator's (Secret {secret})" if secret else "by an operator without keys"
    return (
        f"Its driver was launched {keys}: it goes on, and the operator cannot talk to its agent.{number} Snapshots, "
        "control messages and metrics wait for its next launch: change spec.restartNonce."
    )


def operator_too_old(runtime: int) -> str:
    return f"The operator (protocol {PROTOCOL}) is too old for the runtime (protocol {runtime}). Upgrade the operator."


def runtime_too_old(runtime: int) -> str:
    return (
        f"The runtime (protocol {runtime}) is too old for the operator (protocol {PROTOCOL}). Change "
        "spec.restartNonce, which brings the operator's runtime; if spec.application.runtime is Image, use an image "
        "with a newer one."
    )


def order_refused(why: str) -> str:
    return f"Its agent refused an order: {why}. The order is given again. {OLDER_RUNTIME}"


def unknown_values(fields: tuple[str, ...]) -> str:
    return (
        f"The runtime reports words that this operator does not know, in {', '.join(fields)}: it is newer than the "
        "operator. Upgrade the operator."
    )


def both(first: str, second: str) -> str:
    return f"{first} {second}"


def no_pods(number: int, why: str) -> str:
    return f"{number} have no pod: {why}"


def former_account(account: str, driver: str, namespace: str) -> str:
    """Return the text of a driver that runs as the account of an earlier version."""
    return (
        f"the driver runs as {account}, the former ServiceAccount of all drivers, whose Role is not made again if "
        "somebody has removed it. Change spec.restartNonce, which gives the driver an account of its own; otherwise "
        f"{_answer(driver, namespace)}"
    )


def not_registered(number: int, app: str, namespace: str) -> str:
    return (
        f"{number} have a pod and do not register with the driver. Network policies have to let them reach all ports "
        f'of the driver pod; their logs: "kubectl logs -n {namespace} --prefix -l '
        f'tidegate.dev/app={app},tidegate.dev/role=executor".'
    )


def lingering(executor: str, since: str, others: int, pod: tuple[str, str], *, short: bool) -> str:
    """Return the text; ``pod`` is its name, empty if nobody knows it, and its namespace."""
    name, namespace = pod
    who = f"Executor {executor}" + (f" and {others} other{'s' if others > 1 else ''}" if others else "")
    runs, goes = ("run", "they have") if others else ("runs", "it has")
    waits = f"; Spark starts no others instead before {goes} gone" if short else ""
    see = f"pod {name} ({logs(name, namespace)})" if name else "its pod"
    return (
        f"{who} should have ended at {since}, and still {runs} tasks{waits}. See the log and node of {see}. If you "
        "delete the pod, other executors run its tasks again, so what the tasks wrote outside of Spark may be written "
        "twice."
    )


def quota_unsure(quota: str, driver: str, namespace: str) -> str:
    return f"{_REFUSED}; {_answer(driver, namespace)} {quota}."


def quota_reached(quota: str) -> str:
    return f"{quota}. Raise the quota, or lower the number of executors or spec.executor.resources.requests."


def refused_because(complaint: str, fields: str) -> str:
    remedy = f". Correct {fields}" if fields else ""
    return f"the API server refuses them: {complaint}{remedy}."


def refused(driver: str, namespace: str) -> str:
    return f"{_REFUSED}. A LimitRange or an admission policy may be the cause; {_answer(driver, namespace)}"


def _answer(driver: str, namespace: str) -> str:
    return f"the log of the driver has the answer: {logs(driver, namespace)}."


_REFUSED = "the API server refuses them, or the driver may not create them"
