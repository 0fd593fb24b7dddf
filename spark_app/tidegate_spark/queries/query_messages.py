"""Messages: why a query is refused, or a part of it is not used. No I/O."""

from __future__ import annotations

from collections.abc import Sequence

FINISHED = "The application has finished."
STATE_FORGOTTEN = (
    "reads where its inputs continue (starting_offsets()) and none of its state: the inputs before that would be "
    "lost. Call tidegate_spark.initial_state() or exported_state() before the first query starts; to start "
    "without the state on purpose, call tidegate_spark.without_state()."
)
OFFSETS_FORGOTTEN = (
    "reads its state (initial_state(), exported_state()) and not where its inputs continue: inputs would be lost "
    "or counted twice. Call tidegate_spark.starting_offsets() before the first query starts; to start elsewhere "
    "on purpose, call tidegate_spark.without_offsets()."
)
EXPORT_FORGOTTEN = (
    "asked for nothing of that: call tidegate_spark.initial_state() and starting_offsets() before the first "
    "query starts; to start with neither on purpose, call tidegate_spark.without_state() and without_offsets()."
)

MEMORY_FORGETS = (
    "the sink 'memory' keeps its rows in the driver, and Spark continues it only with outputMode('complete'). To "
    "continue, write to another sink"
)
SOCKET_FORGETS = (
    "the source 'socket' cannot send again what it has sent, and Spark cannot continue its offsets in another process. "
    "To continue, read from another source"
)


def started_in_jvm(query: str) -> str:
    return (
        f"Query {query!r} was started by code in the JVM (spark._jvm, a Java or Scala library): its checkpoint is not "
        "in the application's storage, no snapshot has it, and a stop cuts its batch. Start it in the script's Python "
        "(df.writeStream, then start() or toTable())."
    )


def cut_at_the_end(queries: Sequence[str]) -> str:
    return f"{started_in_jvm(queries[0])} It still ran when the script ended."


def continuous(query: str) -> str:
    return (
        f"Query {query!r} has a continuous trigger: its epochs are counted as batches, and Spark reports no rows, "
        "rates and lag of it. It cannot be paused, a stop or a failed task repeats the rows of the epoch that was not "
        "committed, and each of its tasks takes a core."
    )


def real_time(query: str, seconds: float, grace_seconds: float) -> str:
    return (
        f"Query {query!r} is in real-time mode: each of its batches lasts {seconds:.0f} s, and a stop or a pause waits "
        f"for its end. It needs more than {grace_seconds:.0f} in spec.driver.stopGracePeriodSeconds, and more than "
        f"{seconds:.0f} times spec.upgrade.stableBatches in spec.upgrade.timeoutSeconds."
    )


def no_epoch(query: str, last: int, seconds: float) -> str:
    return (
        f"Query {query!r} committed no epoch after {last} for {seconds:.0f} s. Each task of a continuous trigger "
        "needs a core of its own."
    )


def no_task_finished(query: str, seconds: float, batch: int | None) -> str:
    where = f" (batch {batch})" if batch is not None else ""
    return f"No task of query {query!r} finished for {seconds:.0f} s, while it had work{where}."


def not_pausable(names: str) -> str:
    return f"Spark cannot hold a query with a continuous trigger: {names}. All others are paused."


def starts_empty(query: str, why: str) -> str:
    return f"Query {query!r} starts without its state, at batch 0, whenever the driver starts: {why}."


def empty_into_files(why: str) -> str:
    return (
        f"it would start at batch 0 whenever the driver starts, because {why}, or write to another sink: a file sink "
        "leaves out batches whose numbers it has."
    )


def file_sink_stuck(path: str, batch: int, error: Exception) -> str:
    return (
        f"The file sink {path} cannot continue after batch {batch}: {error}. Spark would leave batches out "
        "without an error; write to another path."
    )


def files_of_another_query(path: str, first: int, last: int) -> str:
    return (
        f"the log of the file sink {path} (_spark_metadata) has batches of another query, up to {last}: Spark would "
        f"leave out the batches {first} to {last} of this one without an error. Give the query the name that it had "
        "when it wrote there, or write to another path."
    )


def file_sink_rolled_back(path: str, batch: int, files: int) -> str:
    return (
        f"{path}: its log was rolled back to batch {batch} ({files} files of the log); the batches after it are "
        "run again. Files that they wrote stay, and readers of the log do not see them."
    )


def file_sink_continued(path: str, batch: int) -> str:
    return f"{path}: its log records that batch {batch}, a repartition, wrote nothing."


def cleans_in_rehearsal(option: str, how: str) -> str:
    return (
        f"a table that it reads has {option} '{how}', and a rehearsal must not remove the application's input. Remove "
        f"{option} from the table, and set it on the reader: a rehearsal ignores it there."
    )


def source_files_cleaned(query: str, option: str, how: str) -> str:
    done = "moves" if how == "archive" else "deletes"
    return (
        f"Query {query!r} reads files with {option} '{how}': Spark {done} a file after its batch. A rollback, or a "
        f"start from a snapshot, reads the files after its batch again, and those that are gone are missing."
    )


def source_files_missing(query: str, option: str, missing: Sequence[str], archive: str) -> str:
    where = f"from {archive}" if archive else "if you have copies"
    named = ", ".join(missing[:3]) + (", …" if len(missing) > len(missing[:3]) else "")
    return (
        f"Query {query!r}: {len(missing)} files that the version read before its rollback are gone ({option}): {named}"
        f". Put them back {where}, and they are read; the log of the driver names each."
    )


def sent_twice(what: str, remedy: str) -> str:
    return f"{what}: whatever is sent would be there twice. {remedy}"


def same_place(what: str, remedy: str) -> str:
    return f"{what}: it would write to the same place. {remedy}"


def another_output(option: str) -> str:
    return (
        f"Give it another {option}, by spec.application.args if the script takes it from there. If this "
        "application replaces the other one, which will not run again, set spec.startFrom.outputs to TakeOver "
        "and change spec.restartNonce."
    )


def unnamed_shares(site: str, name: str, named: bool, other_site: str) -> str:
    whose = f"query {name!r}" if named else f"the unnamed query, called {name!r},"
    remedy = "give each query a name of its own with .queryName(...), or a checkpointLocation of its own."
    if site == other_site:
        return (
            f"the script starts an unnamed query at {site} more than once, and it would share its checkpoint with "
            f"{whose} started there before: {remedy}"
        )
    return (
        f"the unnamed query started at {site} would share its checkpoint with {whose} started at {other_site}: {remedy}"
    )


def named_shares(name: str, site: str, unnamed: str, other_site: str) -> str:
    where = "there before" if site == other_site else f"at {other_site}"
    return (
        f"query {name!r} started at {site} would share its checkpoint with the unnamed query, called {unnamed!r}, "
        f"started {where}: give them different names with .queryName(...)."
    )


def retried(name: str, failure: str, site: str, why: str, remedy: str) -> str:
    """Return why a driver ends whose script starts a failed query again.

    Args:
        name: of the query.
        failure: that it had.
        site: where the script starts it.
        why: it cannot go on in this process.
        remedy: what has it go on there.
    """
    return (
        f"Query {name!r}: {failure.rstrip('.')}. The script starts it again at {site}, and {why}: so the driver "
        f"ends, and the next one continues the query. To have it started again at once, {remedy}."
    )


ONE_LOCATION = "give it the same checkpointLocation each time"


def name_it(name: str) -> str:
    return f"name it: .queryName({name!r})"


RETRIED_AS_ANOTHER = "what is started, such as its function, is not the same as before"
RETRIED_ELSEWHERE = "its checkpointLocation is another one than before"


NEITHER_NAME_NOR_LOCATION = (
    "it has neither a name nor a checkpointLocation, and there are other unnamed queries: give it a name with "
    ".queryName(...)."
)


def another_location(names: Sequence[str]) -> str:
    first, missing = names[0], f"{', '.join(map(repr, names))} {'was' if len(names) == 1 else 'were'} not started"
    return (
        f"no query had its checkpointLocation before, and {missing}: it is not known whether it continues that state "
        f"or is a new query. Name it: .queryName({first!r}) continues the state of {first!r}, another name starts a "
        "new query."
    )


def not_the_only_one(name: str) -> str:
    return (
        f"another unnamed query, called {name!r}, was started before, with state of which no checkpointLocation is "
        "noted, or another one: it is not known which of the two the state is of. Give both a name with "
        f".queryName(...): {name!r} continues the state."
    )


def beside_one_without(name: str) -> str:
    return (
        f"another unnamed query, called {name!r}, has no checkpointLocation, so that they cannot be distinguished at "
        f"the next start. Give that one a name: .queryName({name!r}) continues its state."
    )


def neither_of(names: Sequence[str]) -> str:
    first, missing = names[0], f"{', '.join(map(repr, names))} {'was' if len(names) == 1 else 'were'} not started"
    return (
        f"it has neither a name nor a checkpointLocation, and {missing}: it is not known whether it continues that "
        f"state. Name it: .queryName({first!r}) continues the state of {first!r}, another name starts a new query."
    )


NOTES_CONTENDED = "Which query has which checkpointLocation cannot be noted: another process changes it, too."


def notes_not_reached(error: Exception) -> str:
    return f"The storage fails for what is noted of the queries' checkpointLocations ({type(error).__name__})."


def unnamed_unknown(name: str, site: str) -> str:
    return (
        f"Query {name!r}, started at {site}, has no name, and the text of the script does not show that it starts no "
        "other query without one: the query may be refused if its checkpointLocation changes, or is given or removed. "
        f"Name it: .queryName({name!r}) continues its state."
    )


def unnamed_undecided(site: str, why: str) -> str:
    return f"the unnamed query started at {site} cannot be distinguished from others: {why}"


def named_twice(name: str, other_site: str, site: str) -> str:
    if site == other_site:
        return (
            f"query {name!r} is started at {site} while it runs, started there before: stop it first, or give the two "
            "queries different names with .queryName(...)."
        )
    return (
        f"two queries are named {name!r}: one started at {other_site}, another at {site}; give them different "
        "names with .queryName(...)."
    )


def named_elsewhere(name: str, other_site: str, site: str) -> str:
    return (
        f"two queries are named {name!r}, with different checkpointLocations: one started at {other_site}, another at "
        f"{site}. The second would continue the state of the first, because state goes by the name: give them "
        "different names with .queryName(...), or the same checkpointLocation if they are one query."
    )


def location_of_another(other: str) -> str:
    return (
        f"its checkpointLocation is that of query {other!r}, which Spark would continue; with another name it would "
        f"start without state, because state goes by the name. If it is that query, name it .queryName({other!r}) at "
        "each start; if it is a new one, give it another checkpointLocation."
    )


def location_taken(other: str) -> str:
    return (
        f"its checkpointLocation was another one, and is now that of query {other!r}: Spark would continue {other!r}, "
        "and here it would continue its own state, because state goes by the name. If it is the query that it was, "
        f"give it a checkpointLocation of its own; if it is {other!r}, name it .queryName({other!r})."
    )


def location_of_named(other: str) -> str:
    return (
        f"its checkpointLocation is that of query {other!r}. If it is that query, name it .queryName({other!r}); if it "
        "is a new one, give it another checkpointLocation."
    )


def checkpoint_ignored(query: str, location: str) -> str:
    return f"Query {query!r}: the checkpointLocation of the script is not used; the checkpoint is at {location}."


def partitions_ignored(key: str, given: str | None, partitions: str) -> str:
    return (
        f"{key}={given} of the script is not used for streaming queries: spec.state.partitions ({partitions}) decides."
    )


JVM_END_NOT_KNOWN = (
    "ended, and how is not known: something killed the process that had started it (jvm_parent.py) before; if the "
    "script kills processes, have it kill its own alone"
)


def jvm_exited_well(queries: str) -> str:
    return (
        f"Code of the application, such as a jar, ended Spark's JVM with exit code 0 while {queries} ran, perhaps "
        "inside a batch; the next start runs that again. Stop the queries first."
    )


def jvm_ended(how: str) -> str:
    return f"Spark's JVM {how}."


def state_misread(operator: int, what: str, before: Sequence[str], now: Sequence[str], check: str) -> str:
    return (
        f"its state has the {what} columns {_listed(before)}, and this version {_listed(now)} (operator {operator}): "
        "Spark would read one for another, without an error. Give them the names and the order of the state. If only "
        f"names were exchanged, and the values mean what they meant, set {check} to false in spec.sparkConf, and leave "
        "it there as long as the state is used."
    )


def state_renamed(query: str, operator: int, what: str, before: Sequence[str], now: Sequence[str]) -> str:
    return (
        f"Query {query!r}: its state has the {what} columns {_listed(before)}, and this version {_listed(now)} "
        f"(operator {operator}). Spark reads them as the same columns under other names; if they are other columns, "
        "roll back to the previous version."
    )


def _listed(names: Sequence[str]) -> str:
    return f"[{', '.join(names)}]"


def state_not_compared(query: str, error: str) -> str:
    why = error.rstrip(".")
    return f"The columns of the state of query {query!r} are not compared with those of the version: {why}."
