"""Messages: why a driver does not start, where it starts, and how it ends. No I/O."""

from __future__ import annotations

from collections.abc import Iterable

STOPPED_WHILE_STARTING = "Stopped while starting."
NOTHING_RAN = "Stopped; no query was running."
FEWER_EXECUTORS = "There are fewer executors wanted."
REHEARSAL_OVER = "The time for the rehearsal is over."
NO_SPARK_IN_CHILDREN = (
    "Tidegate: no child process starts Spark in a rehearsal, because what it writes would be real. TIDEGATE_REHEARSAL "
    "is 1 in a rehearsal: leave the child out there."
)
CHILD_REFUSED = "a child process of the script was refused Spark, because what it writes would be real"
STOPPED_BEFORE_QUERIES = "Stopped before a query was started."
CONFIGURATION_MISSING = (
    "The operator sets it; an image that brings its own runtime must bring one of the operator's version."
)


def could_not_start(why: object) -> str:
    return f"The driver could not start: {why}"


def perhaps_for_child(message: str) -> str:
    return f"{message.rstrip('.')}; {CHILD_REFUSED}. Leave the child out where TIDEGATE_REHEARSAL is 1."


def finished_after(batches: str) -> str:
    return f"The application has finished: {batches}"


def origin_not_reached(whose: str, why: str) -> str:
    return f"The storage of the snapshot {whose}: {why}"


def python_too_old(found: str) -> str:
    return f"python3 of spec.application.image is {found}; at least 3.10 is needed."


def grace_period_over(names: str) -> str:
    return (
        f"The grace period (spec.driver.stopGracePeriodSeconds) ended inside a batch of {names}; the next start "
        "runs it again."
    )


def batch_given_up(names: str) -> str:
    return f"Stopped inside a batch of {names}, for which no executor was left; the next start runs it again."


def batch_failed(query: str, why: str) -> str:
    return f"A batch of {query!r} failed as the driver stopped ({why.rstrip('.')}); the next start runs it again."


def ended_inside(function: str, code: object) -> str:
    return (
        f"The application called {function}({code!r}) inside a batch, which is not committed; the next start runs it "
        "again. End the query from another thread, or after its batch."
    )


def stopped_at_boundary(batches: str) -> str:
    return f"Stopped at a batch boundary: {batches}."


def budget_exhausted(failures: str, seconds: int, most: int, last: str) -> str:
    return f"{failures} of the application within {seconds} s, and spec.restart.maxFailures is {most}. The last: {last}"


def port_taken(port: int, error: Exception) -> str:
    return (
        f"Port {port} of the pod, which is Tidegate's, is in use ({error}): a sidecar of spec.driver.podTemplate "
        "listens there, or hostNetwork is true and the node uses it. Have the sidecar listen on another port, or leave "
        "hostNetwork out."
    )


def not_local(field: str, reference: str) -> str:
    return f"{field}: {reference!r} is not a local:/// path; files come from the image alone."


def no_directory(field: str, directory: object, path: str) -> str:
    return f"{field}: the image has no directory {directory}, so no {path}."


def runtime_too_old(own: int, operators: int) -> str:
    return f"The runtime in the image (protocol {own}) is too old for the operator (protocol {operators})."


def operator_too_old(operators: int, own: int) -> str:
    return f"The operator (protocol {operators}) is too old for the runtime in the image (protocol {own})."


def writes_not_conditional(bucket: str, ignored: str) -> str:
    return (
        f"The store of bucket {bucket!r} (spec.storage.uri) ignores {ignored} on PutObject, so it cannot keep two "
        "drivers from writing one checkpoint."
    )


def no_pyspark(python: str, version: str, spark_home: str) -> str:
    return (
        f"no PySpark in spec.application.image: neither installed for {python} ({version}) nor in "
        f"{spark_home}/python (SPARK_HOME). Use an image of Spark with Python."
    )


def another_place(message: str) -> str:
    return f"{message} Not the application's own storage, which answers: another place that it uses."


def goes_on(queries: Iterable[str]) -> str:
    return (
        f"The script has ended, and the driver goes on while its queries run: {', '.join(map(repr, queries))}. What "
        "was registered with atexit is called after them. For the application to end with the script, stop them before "
        "its last line (query.stop(), spark.stop())."
    )


def answers_again(message: str) -> str:
    return f"{message} It is the application's own storage, which answers again."


def script_exited(function: str, code: object, said: str) -> str:
    last = f" Its last words on standard error: {said}" if said else ""
    return f"The application called {function}({code!r}).{last}"


def exited_for(exception: str, what: str) -> str:
    return f"It did so because of {exception}: {what}" if what else f"It did so because of {exception}."


def module_not_run(name: str) -> str:
    return f"Module {name!r} cannot be run: it has no code, or is a package without a module __main__."


def own_module(name: str, own: str, other: str) -> str:
    return f"import {name}: the application has {own}; Tidegate itself goes on with {other}."


def module_kept(name: str, own: str, other: str) -> str:
    return (
        f"import {name}: {own} is not used, because Tidegate has loaded {other}, and compiled modules are loaded once "
        f"in a process. Have the image install the version of {name} that the application needs."
    )


def archive_not_run(path: str) -> str:
    return f"The archive {path} cannot be run: it has no module __main__."


def checkpoint_class_missing(name: str) -> str:
    return (
        f"The class path lacks {name}, which the application's image should have. Checkpoint files are written "
        "Spark's own way, by renaming, and two writers of one checkpoint may not notice each other."
    )


def s3a_class_missing(name: str, why: str) -> str:
    return f"The class path of the driver lacks {name}, which spec.storage.uri needs: {why}."


def cannot_start_from(lineage: str, snapshot: str, by: str, why: str) -> str:
    return f"{lineage} cannot start from {snapshot}{by}: {why}."


def nothing_started(why: str) -> str:
    return f"{why} Nothing was started."


def started_from(snapshot: str, batches: str, topics: str, field: str) -> str:
    """Return the text; ``field`` of the spec has the offsets of the topics, if any have others."""
    elsewhere = f" Offsets of {topics} are those of {field}." if topics else ""
    return f"Started from {snapshot}: {batches}.{elsewhere}"


def partitions_kept(query: str, partitions: str, wanted: int) -> str:
    return (
        f"The state of query {query!r} keeps the {partitions} partitions that it has in the snapshot; "
        f"spec.state.partitions, {wanted}, is for queries that start without state."
    )


def nothing_started_after(error: Exception) -> str:
    return f"{error}. Nothing was started."


def no_state(why: str) -> str:
    return f"The upgrade has no state to continue with: {why}. Nothing was started."
