"""Texts about executors and the agent that scales them: facts in, text out; no code reads them. No I/O."""

from __future__ import annotations

from tidegate_spark.protocol import COMMAND_PORT, PROTOCOL


def rescaled(before: int, wanted: int) -> str:
    return f"The number of executors changes from {before} to {wanted}, without a restart."


def agent_unreachable(why: str, running: int, wanted: int) -> str:
    number = f" {running} executors run, {wanted} are wanted, and only the agent can change that."
    return (
        f"Its agent does not answer the operator ({why}).{number if running != wanted else ''} Snapshots, control "
        f"messages and metrics wait for it: see the log of the driver, and network policies, which have to let the "
        f"operator reach port {COMMAND_PORT} of the pod."
    )


def operator_too_old(runtime: int) -> str:
    return f"The operator (protocol {PROTOCOL}) is too old for the runtime (protocol {runtime}). Upgrade the operator."


def runtime_too_old(runtime: int) -> str:
    return (
        f"The runtime (protocol {runtime}) is too old for the operator (protocol {PROTOCOL}). Change "
        "spec.restartNonce, which brings the operator's runtime; with spec.application.runtime Image, use an image "
        "with a newer one."
    )


def order_refused(why: str) -> str:
    return (
        f"Its agent refused an order: {why}. The order is given again; if the runtime is older than the operator, "
        "change spec.restartNonce."
    )


def unknown_words(fields: tuple[str, ...]) -> str:
    return f"The runtime reports words that this operator does not know, in {', '.join(fields)}. Upgrade the operator."


def both(first: str, second: str) -> str:
    return f"{first} {second}"


def no_pods(number: int, why: str) -> str:
    return f"{number} have no pod: {why}"


def not_registered(number: int) -> str:
    return f"{number} have a pod and do not register with the driver: see the logs of the pods, and network policies."


def lingering(executor: str, since: str, others: int, pod: str, *, short: bool) -> str:
    also = f", nor {'has another one' if others == 1 else f'have {others} others'}" if others else ""
    follows = "Spark starts none in its place before it has gone." if short else "It takes no new tasks."
    return (
        f"Executor {executor} was to end at {since} and has not finished its tasks{also}. {follows} See its log and "
        f"its node; deleting {f'pod {pod}' if pod else 'its pod'} ends it, and others run its tasks again."
    )


def quota_unsure(quota: str) -> str:
    return f"{_REFUSED}; the log of the driver has the answer. {quota}."


def quota_reached(quota: str) -> str:
    return f"{quota}. Raise it, or request less."


def refused() -> str:
    return f"{_REFUSED}. A LimitRange or an admission policy may be the cause; the log of the driver has the answer."


_REFUSED = "the API server refuses them, or the driver may not create them"
