"""Classifies the end of an application: its own fault, the broker's, or a storage's.

``chain_of`` reads an exception and its causes, Python's and Java's (asks the JVM). ``classify`` is pure: it uses
Spark's error conditions for lost records, else the classes in :data:`RULES` in order, and text only where one class
stands for several faults.
"""

from __future__ import annotations

import builtins
import dataclasses
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from py4j.protocol import Py4JJavaError
from pyspark.errors.exceptions.captured import CapturedException

from tidegate_spark.contract.protocol import LINEAGE_PREFIX
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.process.faults import fault_messages as messages
from tidegate_spark.process.faults.foreign_text import first_line, missing_module_in, names, python_error_in
from tidegate_spark.process.faults.lost_records import what_is_lost
from tidegate_spark.process.faults.store_codes import EXPIRED_CODES, THROTTLING_CODES

CHAIN_LIMIT = 20
MESSAGE_LIMIT = 1500


@dataclass(frozen=True)
class Link:
    """One exception of a chain of causes: class and superclasses, message, and an AWS answer's status and code.

    Of Spark's own exceptions also the error condition, as ``CONDITION.SUB_CONDITION``, and what that says in its place.
    """

    classes: tuple[str, ...]
    message: str = ""
    status: int = 0
    code: str = ""
    condition: str = ""
    parameters: Mapping[str, str] = field(default_factory=dict)

    def is_a(self, *prefixes: str) -> bool:
        """Return True if the class or a superclass is, or is in the package, one of ``prefixes``."""
        return any(name == p or (p.endswith(".") and name.startswith(p)) for name in self.classes for p in prefixes)


@dataclass(frozen=True)
class Rule:
    """A chain matches if it has a link of ``classes``, and that link has the status, code and text given."""

    reason: Reason
    classes: tuple[str, ...]
    statuses: tuple[int, ...] = ()
    codes: tuple[str, ...] = ()
    text: str = ""
    more_text: str = ""
    """In the same line: Spark's message on a query has its whole plan, and where its checkpoint is."""
    beside: tuple[str, ...] = ()
    """Classes of which some link must be one: distinguishes S3A's use of a general class from anyone else's."""

    def match(self, chain: tuple[Link, ...]) -> Link | None:
        """Return the first link that matches."""
        if self.beside and not any(link.is_a(*self.beside) for link in chain):
            return None
        return next((link for link in chain if self._fits(link)), None)

    def _fits(self, link: Link) -> bool:
        if not link.is_a(*self.classes) or not self._has_text(link.message):
            return False
        if not self.statuses and not self.codes:
            return True
        return link.status in self.statuses or link.code in self.codes

    def _has_text(self, message: str) -> bool:
        parts = message.splitlines() if self.more_text else (message,)
        return any(names(self.text, part) and names(self.more_text, part) for part in parts)


SDK, S3A = "software.amazon.awssdk.", "org.apache.hadoop.fs.s3a."
AWS_ANSWER = "software.amazon.awssdk.awscore.exception.AwsServiceException"
EXPIRED, THROTTLED = tuple(sorted(EXPIRED_CODES)), tuple(sorted(THROTTLING_CODES))
NOT_FOUND = "java.io.FileNotFoundException"
FULL_DISK = "No space left on device"
"""The operating system's words: Java and RocksDB have no class of their own for it, and of an executor's error the
driver gets the text alone."""
IN_A_LINEAGE = f"/{LINEAGE_PREFIX}/"
"""In the path of a checkpoint's file: a file that a query reads may be missing, too, and that is the application's."""
NO_QUERY_ID = "[STREAMING_CHECKPOINT_MISSING_METADATA_FILE]"
"""Spark's error condition where the oldest file of a checkpoint is gone, which a life-cycle rule deletes first."""
FENCED_CLASS = "dev.tidegate.spark.FencedException"
"""Ours, in jvm/: raised instead of a batch's offsets by a driver that lost the fence."""
STORE_ERROR = "tidegate_spark.control.worker.driver_client.StoreError"
"""Ours: a worker, or the source of control messages, got the driver's answer that the storage does not answer."""
KAFKA_ERRORS = "org.apache.kafka.common.errors."
SPARK_THROWABLE = "org.apache.spark.SparkThrowable"
"""The interface of exceptions that have an error condition."""

RULES: tuple[Rule, ...] = (
    Rule(Reason.FENCED, (FENCED_CLASS,)),
    Rule(Reason.STORAGE_UNAVAILABLE, ("org.apache.spark.",), text=STORE_ERROR),
    Rule(Reason.BROKER_UNAVAILABLE, (KAFKA_ERRORS + "RetriableException",)),
    Rule(Reason.BROKER_UNAVAILABLE, (KAFKA_ERRORS + "AuthenticationException",)),
    Rule(Reason.BROKER_UNAVAILABLE, (KAFKA_ERRORS + "AuthorizationException",)),
    Rule(Reason.BROKER_UNAVAILABLE, ("org.apache.kafka.common.config.ConfigException",), text="No resolvable"),
    Rule(Reason.BROKER_UNAVAILABLE, ("kafka.errors.NoBrokersAvailable", "kafka.errors.KafkaConnectionError")),
    Rule(Reason.BUCKET_NOT_FOUND, (S3A + "UnknownStoreException", SDK + "services.s3.model.NoSuchBucketException")),
    Rule(Reason.BUCKET_NOT_FOUND, (AWS_ANSWER,), codes=("NoSuchBucket",)),
    Rule(Reason.CREDENTIALS_MISSING, (S3A + "auth.NoAuthWithAWSException", S3A + "auth.NoAwsCredentialsException")),
    Rule(Reason.CREDENTIALS_EXPIRED, (AWS_ANSWER,), codes=EXPIRED),
    Rule(Reason.CREDENTIALS_REJECTED, (AWS_ANSWER,), (401, 403), ("InvalidToken",)),
    Rule(Reason.CREDENTIALS_REJECTED, ("java.nio.file.AccessDeniedException",), beside=(SDK, S3A)),
    Rule(Reason.STORAGE_THROTTLED, (AWS_ANSWER,), (429,), THROTTLED),
    Rule(Reason.STORAGE_UNAVAILABLE, (AWS_ANSWER,), (408, 500, 502, 503, 504)),
    Rule(
        Reason.STORAGE_UNAVAILABLE,
        (
            S3A + "AWSServiceThrottledException",
            S3A + "AWSStatus500Exception",
            S3A + "AWSApiCallTimeoutException",
            S3A + "AWSClientIOException",
            S3A + "HttpChannelEOFException",
            SDK + "core.exception.SdkClientException",
        ),
    ),
    Rule(
        Reason.STORAGE_UNAVAILABLE,
        ("java.net.ConnectException", "java.net.UnknownHostException", "java.net.SocketTimeoutException"),
        beside=(SDK, S3A),
    ),
    Rule(Reason.CHECKPOINT_FILE_MISSING, (NOT_FOUND,), text=IN_A_LINEAGE),
    Rule(Reason.CHECKPOINT_FILE_MISSING, ("org.apache.spark.",), text=NOT_FOUND, more_text=IN_A_LINEAGE),
    Rule(Reason.CHECKPOINT_FILE_MISSING, ("org.apache.spark.",), text=NO_QUERY_ID),
    Rule(Reason.DISK_FULL, ("java.io.IOException", "org.rocksdb.RocksDBException", "OSError"), text=FULL_DISK),
    Rule(Reason.DISK_FULL, ("org.apache.spark.",), text=FULL_DISK),
)

WHAT: dict[Reason, str] = {
    Reason.FENCED: messages.FENCED,
    Reason.BROKER_UNAVAILABLE: messages.BROKER_UNAVAILABLE,
    Reason.BUCKET_NOT_FOUND: messages.BUCKET_NOT_FOUND,
    Reason.CREDENTIALS_MISSING: messages.CREDENTIALS_MISSING,
    Reason.CREDENTIALS_REJECTED: messages.CREDENTIALS_REJECTED,
    Reason.CREDENTIALS_EXPIRED: messages.CREDENTIALS_EXPIRED,
    Reason.STORAGE_UNAVAILABLE: messages.STORAGE_UNAVAILABLE,
    Reason.STORAGE_THROTTLED: messages.STORAGE_THROTTLED,
    Reason.CHECKPOINT_FILE_MISSING: messages.CHECKPOINT_FILE_MISSING,
    Reason.DISK_FULL: messages.DISK_FULL,
}
"""What is wrong, in words; what to do about it is said by the operator. Whose bucket it is, and who took the storage
over, remains open."""

PROBED = frozenset(
    {
        Reason.BUCKET_NOT_FOUND,
        Reason.CREDENTIALS_MISSING,
        Reason.CREDENTIALS_REJECTED,
        Reason.CREDENTIALS_EXPIRED,
    }
)
"""Faults that last, so that a request to the application's own storage shows whether it is the one that has them.

A store that does not answer may answer again by then, whichever it is."""


MISTAKES = (
    NameError,
    AttributeError,
    TypeError,
    LookupError,
    ImportError,
    AssertionError,
    ArithmeticError,
    SyntaxError,
)
"""What a program seldom raises by itself: raised while it handles an outage, it is what is wrong with the program."""


@dataclass(frozen=True)
class Failure:
    """The end of the application, for the termination message."""

    reason: Reason
    exception: str
    message: str
    own_storage: bool = False
    """Of a store's fault: it was met at a file of a checkpoint, so it is the application's own storage that had it."""


def classify(chain: tuple[Link, ...]) -> Failure:
    """Return whose fault ``chain`` is; its first link is the outermost exception."""
    # What has a condition says more than a text that repeats it, which may stand around it.
    for each in sorted(chain, key=lambda link: not link.condition):
        lost = what_is_lost(each.condition, each.parameters, each.message)
        if lost:
            return Failure(Reason.SOURCE_DATA_LOST, each.classes[0], _shorten(messages.source_data_lost(lost)))
    for rule in RULES:
        link = rule.match(chain)
        if link is not None:
            said = f"{link.classes[0]}: {first_line(link.message)}"
            own = any(map(_is_at_checkpoint, chain))
            return Failure(rule.reason, link.classes[0], _shorten(f"{WHAT[rule.reason]} {said}"), own)
    exception, message = _own_message(chain)
    return Failure(Reason.APPLICATION_FAILED, exception, _shorten(message))


def _is_at_checkpoint(link: Link) -> bool:
    """Return whether a store's client says that a file of a checkpoint was the matter.

    Spark says with each failure of a query where its checkpoint is, whatever failed.
    """
    return not link.is_a("org.apache.spark.") and IN_A_LINEAGE in first_line(link.message)


def _own_message(chain: tuple[Link, ...]) -> tuple[str, str]:
    """Return class and message of the innermost exception; an error of Python code inside Spark is Python's."""
    for link in reversed(chain):
        python_error = python_error_in(link.message)
        if python_error:
            return python_error
    last = chain[-1]
    return last.classes[0], last.message


def _shorten(text: str) -> str:
    return text if len(text) <= MESSAGE_LIMIT else text[: MESSAGE_LIMIT - 1] + "…"


# --- reading exceptions ----------------------------------------------------------------------------------------------


def chain_of(error: BaseException) -> tuple[Link, ...]:
    """Return ``error`` and its causes, outermost first; where Python wraps a Java exception, Java's chain follows."""
    links: list[Link] = []
    current: BaseException | None = error
    while current is not None and len(links) < CHAIN_LIMIT:
        java = _java_exception(current)
        if java is not None:
            return tuple(links) + java_chain(java)
        links.append(Link(_python_classes(current), _text_of(current)))
        current = current.__cause__ or next(iter(_members(current)), None)
    return tuple(links)


def behind(error: BaseException) -> list[BaseException]:
    """Return what was handled when an exception was raised, the nearest first.

    A handler that raises something else, or exits, seldom says ``from``; one that says ``from None`` means it.
    """
    found: list[BaseException] = [error]
    while len(found) <= CHAIN_LIMIT:
        last = found[-1]
        other = last.__cause__ or (None if last.__suppress_context__ else last.__context__)
        if other is None or any(other is known for known in found):
            break
        found.append(other)
    return found[1:]


def _members(error: BaseException) -> tuple[BaseException, ...]:
    """Return the exceptions of a group, as ``asyncio.TaskGroup`` raises it; a group's own message says nothing."""
    group: Any = getattr(builtins, "BaseExceptionGroup", ())  # of Python 3.11
    return tuple(error.exceptions) if isinstance(error, group) else ()


def _leaves(error: BaseException) -> list[BaseException]:
    """Return the members of a group and of the groups in it; an exception that is none is its own."""
    found: list[BaseException] = []
    groups = [error]
    while groups and len(found) < CHAIN_LIMIT:
        each = groups.pop()
        members = _members(each)
        groups += reversed(members)
        found += () if members else (each,)
    return found or [error]


def _text_of(error: BaseException) -> str:
    try:
        return str(error)
    except BaseException:  # foreign code; as Python's own traceback has it
        return "<exception str() failed>"


def java_chain(throwable: Any) -> tuple[Link, ...]:
    """Return a Java Throwable and its causes."""
    links: list[Link] = []
    while throwable is not None and len(links) < CHAIN_LIMIT:
        links.append(_java_link(throwable))
        throwable = throwable.getCause()
    return tuple(links)


def _java_exception(error: BaseException) -> Any:
    if isinstance(error, Py4JJavaError):
        return error.java_exception
    if isinstance(error, CapturedException):
        return getattr(error, "_origin", None)
    return None


def _java_link(throwable: Any) -> Link:
    classes: list[str] = []
    kind = throwable.getClass()
    while kind is not None:
        classes.append(str(kind.getName()))
        kind = kind.getSuperclass()
    status, code = 0, ""
    if AWS_ANSWER in classes:
        details = throwable.awsErrorDetails()
        status, code = int(throwable.statusCode()), str(details.errorCode()) if details is not None else ""
    condition, parameters = "", {}
    if _is_sparks(throwable, classes):
        condition = str(throwable.getCondition() or "")
        parameters = {str(key): str(value) for key, value in (throwable.getMessageParameters() or {}).items()}
    return Link(tuple(classes), str(throwable.getMessage() or ""), status, code, condition, parameters)


def _is_sparks(throwable: Any, classes: list[str]) -> bool:
    """Return whether an exception has one of Spark's error conditions; most of its classes, and of connectors, do."""
    if not any(name.startswith("org.apache.spark.") for name in classes):
        return False
    kind = throwable.getClass()
    while kind is not None:
        if any(str(each.getName()) == SPARK_THROWABLE for each in kind.getInterfaces()):
            return True
        kind = kind.getSuperclass()
    return False


def _python_classes(error: BaseException) -> tuple[str, ...]:
    kinds = [kind for kind in type(error).__mro__ if kind not in (object, BaseException)] or [BaseException]
    return tuple(_qualified(kind) for kind in kinds)


def _qualified(kind: type) -> str:
    # A class of the script itself is looked up by its name alone.
    plain = kind.__module__ in {"builtins", "__main__"}
    return kind.__qualname__ if plain else f"{kind.__module__}.{kind.__qualname__}"


def _with_remedy(failure: Failure) -> Failure:
    """Return a failure with what to do about a module that is missing, which Python does not say."""
    module = missing_module_in(failure.message) if failure.exception == "ModuleNotFoundError" else ""
    if not module:
        return failure
    remedy = messages.module_of_driver_alone if _is_here(module) else messages.module_missing
    return dataclasses.replace(failure, message=_shorten(f"{failure.message}. {remedy(module)}"))


def _is_here(module: str) -> bool:
    try:
        return importlib.util.find_spec(module) is not None
    except (ImportError, ValueError, AttributeError):
        return False


def explain(error: BaseException) -> Failure:
    """Return the end that ``error``, raised by the script or a query, means; never raises.

    What is not the application's own fault is found behind an exception of the application's, too: behind what it
    raises itself, not behind a mistake in its handler. Of a group, a member that is the application's own decides.
    """
    failures = [_explain_with_handled(each) for each in _leaves(error)]
    return next((each for each in failures if each.reason is Reason.APPLICATION_FAILED), failures[0])


def explain_exit(error: SystemExit) -> Failure | None:
    """Return the end that led a script to exit, None if it handled nothing."""
    handled = behind(error)
    return explain(handled[0]) if handled else None


def _explain_with_handled(error: BaseException) -> Failure:
    failure = _explain(error)
    if failure.reason is not Reason.APPLICATION_FAILED or isinstance(error, MISTAKES):
        return failure
    for handled in behind(error):
        if isinstance(handled, MISTAKES):
            break
        found = [_explain(each) for each in _leaves(handled)]
        if all(each.reason is not Reason.APPLICATION_FAILED for each in found):
            then = messages.raised_then(failure.exception, first_line(failure.message))
            return dataclasses.replace(found[0], message=_shorten(f"{found[0].message} {then}"))
    return failure


def _explain(error: BaseException) -> Failure:
    try:
        return _with_remedy(classify(chain_of(error)))
    except Exception:  # an exception of a kind that nobody has seen must not hide that something failed
        # The JVM is gone, so its exceptions cannot be read any more; what Python holds of them still can.
        return Failure(Reason.APPLICATION_FAILED, _python_classes(error)[0], _shorten(_text_of(error)))
