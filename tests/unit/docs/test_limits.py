"""Numbers, times and lists on the pages are those of the code. Reads the pages."""

import re
from pathlib import Path

import pytest

from tidegate.app.dry_runs.reference_checks import MOST_OBJECTS
from tidegate.app.rules.pods.executors import LINGER_SECONDS
from tidegate.app.rules.upgrade.copying import PATIENCE as COPY_PATIENCE
from tidegate.app.rules.upgrade.gate import IDLE
from tidegate.app.rules.upgrade.repartition.phase import MOST_ATTEMPTS
from tidegate.app.rules.upgrade.repartition.pod import ROOM_PATIENCE
from tidegate.cache.pods import start_events
from tidegate.control.rules.dispatch import MOST_UNDER_WAY
from tidegate.control.rules.ending import MOST_WAITING, MOST_WAITING_BYTES
from tidegate.pods.spark.memory import HEAP_PERCENT, SMALLEST_HEAP_MIB
from tidegate.snapshots.rules.refusing import MOST_OPEN
from tidegate.snapshots.rules.retention import LARGEST_SKEW
from tidegate_spark.contract import control_protocol
from tidegate_spark.contract.reasons import Reason
from tidegate_spark.contract.reasons.entry import Place
from tidegate_spark.contract.reasons.registry import AREAS
from tidegate_spark.control.channels import envelope, pending_replies
from tidegate_spark.control.channels.ports import LARGEST_EVENT
from tidegate_spark.control.channels.transports import inbox
from tidegate_spark.control.messages import deadlines, validation
from tidegate_spark.control.worker.models import MOST_KEPT
from tidegate_spark.control_log import dedup_window, offsets, reducer
from tidegate_spark.control_writer import outbox, writer
from tidegate_spark.inspect import answers, conditions, questions, state_frames
from tidegate_spark.inspect.reader import ATTEMPTS
from tidegate_spark.monitoring.child_spark import PATIENCE_SECONDS
from tidegate_spark.monitoring.watch import FAILED_QUERY_SECONDS
from tidegate_spark.process import logs, redaction
from tidegate_spark.storage.readiness import LONGEST_WAIT_SECONDS

DOCS = Path(__file__).parents[3] / "docs"
WORDS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
KIB, MIB, MINUTE, DAY = 1 << 10, 1 << 20, 60, 86_400


def counted(number: float, unit: int = 1) -> str:
    """Return a whole number of a unit as the pages write it: in words up to ten, with commas from a thousand on."""
    whole, rest = divmod(number, unit)
    assert rest == 0, (number, unit)
    return WORDS[int(whole)] if whole < len(WORDS) else f"{int(whole):,}"


def digits(number: float, unit: int = 1) -> str:
    """Return a whole number of a unit in digits."""
    whole, rest = divmod(number, unit)
    assert rest == 0, (number, unit)
    return f"{int(whole):,}"


NAMED = (
    ("guide/control-messages.md", f"At most {MOST_UNDER_WAY} messages of an application are under way"),
    ("guide/control-messages.md", f"While {MOST_WAITING:,} of its messages, or {digits(MOST_WAITING_BYTES, MIB)} MiB"),
    ("guide/control-messages.md", f"any JSON up to {digits(control_protocol.LARGEST_PAYLOAD, KIB)} KiB"),
    ("guide/snapshots.md", f"While {MOST_OPEN} snapshots of an application are not complete"),
    ("guide/snapshots.md", f"API server's differ by more than {counted(LARGEST_SKEW, MINUTE)} minutes"),
    ("guide/pods.md", f"{HEAP_PERCENT} % of it is the JVM's heap"),
    ("guide/pods.md", f"a heap of at least {SMALLEST_HEAP_MIB} MiB"),
    ("guide/pods-that-do-not-start.md", f"again after {start_events.FIRST_PAUSE:.0f} seconds"),
    ("guide/pods-that-do-not-start.md", f"up to {digits(start_events.LONGEST_PAUSE, MINUTE)} minutes"),
    ("guide/pods-that-do-not-start.md", f"those beyond {MOST_OBJECTS} objects"),
    ("guide/rescale.md", f"still runs after {counted(LINGER_SECONDS, MINUTE)} minutes"),
    ("guide/repartition.md", f"another one follows, {counted(MOST_ATTEMPTS)} in all"),
    ("guide/repartition.md", f"did not admit it, for {counted(ROOM_PATIENCE, MINUTE)} minutes"),
    ("guide/upgrade.md", f"the script has {FAILED_QUERY_SECONDS:.0f} seconds to start it again"),
    ("guide/write.md", f"unless the script starts it again within {FAILED_QUERY_SECONDS:.0f} seconds"),
    ("guide/write.md", f"If a child runs a query for {PATIENCE_SECONDS:.0f} s"),
    ("guide/watch.md", f"up to {logs.KEPT_LINES:,} lines or\n{digits(logs.KEPT_BYTES, KIB)} KiB"),
    ("guide/watch.md", f"Values of less than {counted(redaction.SHORTEST)} characters"),
    ("guide/watch.md", f"if the value has {counted(redaction.SHORTEST_BY_NAME)} characters or more"),
    ("guide/describe.md", f"the newest {logs.KEPT_PROCESSES} are kept"),
    ("guide/failures.md", f"checks again every 1 to {LONGEST_WAIT_SECONDS:.0f} seconds"),
    (
        "control.md",
        f"at most {digits(control_protocol.LARGEST_PAYLOAD, KIB)} KiB and {control_protocol.DEEPEST_PAYLOAD}",
    ),
    ("control.md", f"A message as a whole has at most {digits(LARGEST_EVENT, KIB)} KiB"),
    ("control.md", f"Up to {envelope.LONGEST_ATTRIBUTE} characters each"),
    ("control.md", f"one of the program's, up to {envelope.LONGEST_TYPE} characters"),
    ("control.md", f"together would exceed {digits(validation.LARGEST_CONFIG, MIB)} MiB"),
    ("control.md", f"a model by a {validation.MOST_MODELS + 1}th name"),
    ("control.md", f"of at most {validation.MOST_TYPES} types"),
    ("control.md", f"that is not started for {digits(offsets.AWAY_SECONDS, DAY)} days"),
    ("control.md", f"At most {counted(deadlines.MOST_AT_WORK)} such functions run on"),
    ("control.md", f"step that takes longer than {deadlines.SLOW_SECONDS:.0f} seconds"),
    ("control.md", f"models together take at most {counted(MOST_KEPT)} times `sizeLimit`"),
    ("control.md", f"the {counted(reducer.MOST_BEFORE)} versions before the newest are remembered"),
    ("control.md", f"(unless more than {pending_replies.MOST_OPEN:,} messages come after it)"),
    ("control.md", f"the newest {pending_replies.MOST_UNSENT:,} wait; older ones are dropped"),
    ("control.md", f"At most {control_protocol.MOST_ASKED} `snapshot` and `dump-state` messages"),
    ("control.md", f"of these two types has at most {digits(control_protocol.LONGEST_ASKED, KIB)} KiB"),
    ("control.md", f"for a week and {dedup_window.MOST_KNOWN:,} messages, by source and id"),
    ("control.md", f"for a week and {dedup_window.MOST_WRITERS} writers"),
    ("control.md", f"a JSON array of up to {inbox.MOST_IN_BATCH:,}"),
    ("control.md", f"Objects have at most {digits(inbox.LARGEST_OBJECT, MIB)} MiB"),
    ("control.md", f"come within {outbox.Pace().linger_seconds * 1000:.0f} ms"),
    ("control.md", f"at most {outbox.Pace().most_in_batch} (`Pace.most_in_batch`)"),
    (
        "control.md",
        f"{outbox.Pace().most_waiting:,} messages or {digits(outbox.Pace().most_waiting_bytes, MIB)} MiB (`Pace`)",
    ),
    ("control.md", f"`.flush(timeout={writer.FLUSH_SECONDS:.0f})`, `.close(timeout={writer.CLOSE_SECONDS:.0f})`"),
    ("control.md", f"`.outcome(id, timeout={writer.OUTCOME_SECONDS:.0f})`"),
    ("control.md", f"did not send, or {writer.MOST_REMEMBERED:,} others after it"),
    ("look-inside.md", f"| {questions.USUAL_ROWS} | {questions.MOST_ROWS:,} |"),
    ("look-inside.md", f"| `rows` of each window | {questions.USUAL_CONTENTS} | {questions.MOST_CONTENTS} |"),
    ("look-inside.md", f"| `seconds` | {questions.USUAL_SECONDS} | {questions.MOST_SECONDS} |"),
    ("look-inside.md", f"A filter has at most {conditions.MOST_CONDITIONS} comparisons"),
    ("look-inside.md", f"An answer has at most {digits(answers.LARGEST_ANSWER, MIB)} MiB"),
    ("look-inside.md", f"{counted(ATTEMPTS)} times in a row Spark cleaned up the batch"),
)
"""Page and what it says."""


@pytest.mark.parametrize(("page", "said"), NAMED, ids=[said.replace("\n", " ") for _, said in NAMED])
def test_a_page_names_the_limit_of_the_code(page: str, said: str) -> None:
    assert said in (DOCS / page).read_text()


def test_what_lasts_a_minute_or_is_a_quarter_is_that() -> None:
    assert (IDLE, COPY_PATIENCE) == (MINUTE, MINUTE)  # guide/upgrade.md: "for a minute", "within a minute"
    assert state_frames.SHARE_OF_CORES == 4  # look-inside.md: "at most a quarter of the cores"


def test_every_fault_that_a_restart_does_not_fix_is_on_the_page_about_phases() -> None:
    page = (DOCS / "guide" / "watch.md").read_text()
    listed = re.search(r"a fault that another start alone does not fix \((.*?)\)", page, re.DOTALL)
    assert listed is not None
    not_fixed = {entry.reason.value for area in AREAS for entry in area.entries if not entry.start_fixes}
    assert set(re.findall(r"`(\w+)`", listed[1])) == not_fixed, (
        "docs/guide/watch.md lists, after 'a fault that another start alone does not fix', each reason whose entry in "
        "contract/reasons/areas has start_fixes=False"
    )


@pytest.mark.parametrize(("page", "place"), [("rehearse.md", Place.REHEARSAL), ("repartition.md", Place.REPARTITION)])
def test_every_cause_of_a_rehearsals_or_repartitions_end_has_a_row(page: str, place: Place) -> None:
    rows = re.findall(r"^\| (`[^|]+) \|", (DOCS / "guide" / page).read_text(), re.MULTILINE)
    named = {cause for row in rows for cause in re.findall(r"`(\w+)`", row)}
    causes = {entry.reason for area in AREAS for entry in area.entries if place in entry.places}
    assert causes - {Reason.UNKNOWN} - named == set(), (
        f"the table of causes in docs/guide/{page} has no row for these reasons"
    )


def test_every_log_level_that_a_message_may_set_is_named() -> None:
    row = re.search(r"^\| `set-log-level` \|.*$", (DOCS / "control.md").read_text(), re.MULTILINE)
    assert row is not None
    assert [level for level in validation.LOG_LEVELS if level not in row[0]] == [], (
        "name these levels in the row `set-log-level` of docs/control.md"
    )
