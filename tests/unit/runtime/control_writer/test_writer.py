"""A writer puts each message once and in order, says when it cannot, and tells what came of a message."""

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from botocore.exceptions import EndpointConnectionError

from tidegate_spark.contract.object_paths import INBOX_PREFIX
from tidegate_spark.control.channels.transports.inbox import batch_of, messages_in, with_replies
from tidegate_spark.control_writer import (
    BufferFullError,
    ControlWriter,
    ControlWriterError,
    InvalidMessageError,
    NoOutcomeError,
    NotWrittenError,
    Pace,
)
from tidegate_spark.control_writer import writer as writers
from tidegate_spark.control_writer.__main__ import UNAPPLIED, UNTOLD, UNWRITTEN, USAGE, WRITTEN, main
from tidegate_testing.control_log import BUCKET, PREFIX
from tidegate_testing.driver_process import SOURCES
from tidegate_testing.inbox_scene import refused
from tidegate_testing.memory_store import Buckets, Call, MemoryStore

ADDRESS = f"s3://{BUCKET}/{PREFIX}"
QUICK = Pace(linger_seconds=0.0)
GENEROUS = 60.0


@pytest.fixture(autouse=True)
def quickly(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writers, "FIRST_PAUSE_SECONDS", 0.01)


@pytest.fixture
def unhurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """However short the wait for an outcome is, the message is written before it."""
    flush = ControlWriter.flush
    monkeypatch.setattr(ControlWriter, "flush", lambda self, timeout=GENEROUS: flush(self, GENEROUS))


class Bucket:
    """A bucket that answers, answers late, or refuses."""

    def __init__(self) -> None:
        self.buckets = Buckets()
        self.before: Exception | None = None
        """Raised instead of a put."""
        self.after: Exception | None = None
        """Raised once, behind one."""
        self.goes_on = threading.Event()
        self.goes_on.set()
        self.failed = threading.Semaphore(0)
        """Has one for each put that found nothing."""
        self.store = MemoryStore(self.buckets, BUCKET, self.watch)

    def watch(self, call: Call) -> None:
        if call.verb != "put_if":
            return
        assert self.goes_on.wait(GENEROUS)
        if not call.done and self.before is not None:
            self.failed.release()
            raise self.before
        if call.done and self.after is not None:
            error, self.after = self.after, None
            raise error

    def writer(self, pace: Pace = QUICK, **more: Any) -> ControlWriter:
        return ControlWriter(ADDRESS, pace=pace, store=self.store, **more)

    def names(self) -> list[str]:
        prefix = f"{PREFIX}/{INBOX_PREFIX}/"
        return [key[len(prefix) :] for key in self.buckets.keys(BUCKET, prefix)]

    def ids(self) -> list[str]:
        """Return the messages in the inbox, as a driver reads them."""
        found = []
        for name in self.names():
            stored = self.buckets.read(BUCKET, f"{PREFIX}/{INBOX_PREFIX}/{name}")
            assert stored is not None
            found += [json.loads(message.body)["id"] for message in messages_in(name, stored.body)]
        return found

    def reply(self, number: int, name: str, state: str = "Done", source: str = writers.SOURCE, **more: Any) -> None:
        """Say what came of a message of the one writer that there is."""
        (writer,) = {batch.writer for batch in map(batch_of, self.names()) if batch is not None}
        reported = {"id": name, "source": source, "state": state, "sequence": 1 + number, **more}
        key = f"{PREFIX}/control/replies/{writer}/{number // 128:010d}.json"
        before = self.buckets.read(BUCKET, key)
        event = json.dumps({"id": str(number), "data": reported}).encode()
        self.buckets.write(BUCKET, key, with_replies(before.body if before else None, [event]))


UNREACHABLE = EndpointConnectionError(endpoint_url="http://nowhere")


@pytest.fixture
def bucket() -> Bucket:
    return Bucket()


def test_messages_are_in_the_inbox_in_their_order_when_the_writer_is_closed(bucket: Bucket) -> None:
    with bucket.writer(Pace(linger_seconds=0.0, most_in_batch=7)) as writer:
        sent = [writer.send("reload-config", {"n": number}) for number in range(50)]
    assert bucket.ids() == sent
    assert len(set(sent)) == 50


def test_messages_that_come_together_are_put_together(bucket: Bucket) -> None:
    with bucket.writer(Pace(linger_seconds=GENEROUS)) as writer:
        for _ in range(20):
            writer.send("ping")
        assert bucket.names() == []
        writer.flush()
        assert len(bucket.names()) == 1


def test_messages_of_several_threads_are_each_there_once(bucket: Bucket) -> None:
    with bucket.writer(Pace(linger_seconds=0.001)) as writer:

        def produce(thread: int) -> None:
            for number in range(100):
                writer.send("ping", id=f"{thread}-{number:03d}")

        threads = [threading.Thread(target=produce, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = bucket.ids()
    assert len(found) == len(set(found)) == 400
    for number in range(4):
        mine = [name for name in found if name.startswith(f"{number}-")]
        assert mine == sorted(mine)


def test_a_put_whose_answer_was_lost_is_the_same_put_when_it_is_done_again(bucket: Bucket) -> None:
    bucket.after = UNREACHABLE
    with bucket.writer() as writer:
        writer.send("ping", id="a")
        writer.flush()
        writer.send("ping", id="b")
    assert bucket.ids() == ["a", "b"]


def test_a_store_that_comes_back_has_everything_in_order(bucket: Bucket) -> None:
    bucket.before = UNREACHABLE
    with bucket.writer() as writer:
        for number in range(5):
            writer.send("ping", id=str(number))
        # Of the first failure it may not have taken notice yet; when it tries again, it has.
        assert all(bucket.failed.acquire(timeout=GENEROUS) for _ in range(2))
        with pytest.raises(NotWrittenError, match=r"EndpointConnectionError.*nowhere") as raised:
            writer.flush(timeout=0.2)
        assert raised.value.ids == ("0", "1", "2", "3", "4")
        bucket.before = None
        writer.flush()
    assert bucket.ids() == ["0", "1", "2", "3", "4"]


FORKED = f"""
import os
from tidegate_spark.control.channels.transports.inbox import batch_of
from tidegate_spark.control_writer import ControlWriter
from tidegate_testing.memory_store import Buckets, MemoryStore

buckets = Buckets()
writer = ControlWriter("{ADDRESS}", store=MemoryStore(buckets, "{BUCKET}"))
writer.send("ping")
writer.flush()
child = os.fork()
writer.send("ping")
writer.flush(30)
batches = [batch_of(key.rpartition("/")[2]) for key in buckets.keys("{BUCKET}")]
print(*(f"{{batch.writer}}:{{batch.first}}" for batch in batches), flush=True)
if child:
    os.waitpid(child, 0)
"""


def test_a_process_that_is_forked_is_another_writer() -> None:
    """As workers of a web server are. By the numbers of one writer the driver would leave one's messages out."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(SOURCES), *sys.path])}
    command = [sys.executable, "-W", "ignore", "-c", FORKED]
    said = subprocess.run(command, env=environment, check=True, capture_output=True, text=True, timeout=GENEROUS).stdout
    batches = {name for line in said.splitlines() for name in line.split()}
    assert sorted(name.partition(":")[2] for name in batches) == ["0", "0", "1"]
    assert len({name.partition(":")[0] for name in batches}) == 2


def test_a_store_that_refuses_is_told_of_at_once_and_by_every_call(bucket: Bucket) -> None:
    bucket.before = refused("AccessDenied", 403)
    writer = bucket.writer()
    writer.send("ping", id="a")
    with pytest.raises(NotWrittenError, match="AccessDenied") as raised:
        writer.flush()
    assert raised.value.ids == ("a",)
    for call in (lambda: writer.send("ping"), writer.flush, lambda: writer.outcome("a"), writer.close):
        with pytest.raises(NotWrittenError, match="refuses"):
            call()


def test_more_messages_than_may_wait_are_refused_or_wait_for_room(bucket: Bucket) -> None:
    bucket.goes_on.clear()
    writer = bucket.writer(Pace(linger_seconds=0.0, most_waiting=2))
    writer.send("ping")
    writer.send("ping")
    with pytest.raises(BufferFullError, match="2 messages wait"):
        writer.send("ping", wait_seconds=0.05)
    bucket.goes_on.set()
    writer.send("ping", wait_seconds=GENEROUS)
    writer.close()
    assert len(bucket.ids()) == 3


def test_a_message_that_is_none_is_not_sent_and_the_others_are(bucket: Bucket) -> None:
    with bucket.writer() as writer:
        with pytest.raises(InvalidMessageError, match="must be an object"):
            writer.send("reload-config", 7)
        writer.send("reload-config", {}, id="a")
    assert bucket.ids() == ["a"]


def test_a_closed_writer_takes_nothing(bucket: Bucket) -> None:
    writer = bucket.writer()
    writer.close()
    with pytest.raises(ControlWriterError, match="closed"):
        writer.send("ping")
    writer.close()


def test_what_the_block_raised_is_raised_and_what_was_sent_before_is_written(bucket: Bucket) -> None:
    def work() -> None:
        with bucket.writer() as writer:
            writer.send("ping", id="a")
            raise KeyError("mine")

    with pytest.raises(KeyError):
        work()
    assert bucket.ids() == ["a"]


@pytest.mark.parametrize("address", ["", "bucket/prefix", "s3://bucket", "s3://bucket/", "http://bucket/prefix"])
def test_an_address_that_is_none_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match="address must be s3://bucket/prefix"):
        ControlWriter(address)


def test_an_address_may_have_hadoops_spelling_and_slashes_at_its_end(bucket: Bucket) -> None:
    with ControlWriter(f"s3a://{BUCKET}/{PREFIX}//", store=bucket.store, pace=QUICK) as writer:
        writer.send("ping", id="a")
    assert bucket.ids() == ["a"]


# --- what came of messages ---


def test_it_is_told_what_came_of_a_message(bucket: Bucket) -> None:
    with bucket.writer() as writer:
        for number in range(130):
            writer.send("ping", id=str(number))
        writer.flush()
        bucket.reply(129, "129", queries={"main": {"batch": 3, "applied": 2, "ran": 2}})
        bucket.reply(1, "1", "Rejected", reason="UnknownType", message="No.")
        done, wrong = writer.outcome("129"), writer.outcome("1")
    assert (done.applied, done.sequence, done.queries) == (True, 130, {"main": {"batch": 3, "applied": 2, "ran": 2}})
    assert (wrong.applied, wrong.state, wrong.reason, wrong.message) == (False, "Rejected", "UnknownType", "No.")


def test_an_outcome_that_comes_later_is_waited_for(bucket: Bucket) -> None:
    with bucket.writer() as writer:
        writer.send("ping", id="a")
        writer.flush()
        threading.Timer(0.1, lambda: bucket.reply(0, "a")).start()
        assert writer.outcome("a", GENEROUS).applied


def test_a_message_of_which_nothing_is_told_is_named_with_what_may_be_wrong(bucket: Bucket) -> None:
    with bucket.writer() as writer:
        writer.send("ping", id="a")
        writer.flush()
        bucket.reply(0, "a", source="/another")
        with pytest.raises(NoOutcomeError, match=r"'a'.*spec\.control\.channel\.storage"):
            writer.outcome("a", timeout=0.05)
        with pytest.raises(ControlWriterError, match="not sent by this writer"):
            writer.outcome("b")


def test_who_may_not_read_replies_is_told_so(bucket: Bucket) -> None:
    def watch(call: Call) -> None:
        if call.verb == "get":
            raise refused("AccessDenied", 403)

    bucket.store.watch = watch
    with bucket.writer() as writer:
        writer.send("ping", id="a")
        writer.flush()
        with pytest.raises(NoOutcomeError, match="AccessDenied"):
            writer.outcome("a", timeout=0.05)


def test_only_the_newest_messages_are_remembered(bucket: Bucket, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writers, "MOST_REMEMBERED", 3)
    with bucket.writer() as writer:
        for number in range(5):
            writer.send("ping", id=str(number))
        with pytest.raises(ControlWriterError, match="not sent by this writer"):
            writer.outcome("1")


# --- from a shell ---


def test_a_message_is_written_from_a_shell(bucket: Bucket, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "payload").write_text('{"limit": 3}')
    reported = [ADDRESS, "reload-config", f"@{tmp_path / 'payload'}", "--id", "x", "--source", "/me", "--expires", "60"]
    assert main(reported, bucket.store) == WRITTEN
    assert json.loads(capsys.readouterr().out) == {"id": "x", "source": "/me"}
    assert bucket.ids() == ["x"]


@pytest.mark.parametrize(("state", "code"), [("Done", WRITTEN), ("Failed", UNAPPLIED), ("Expired", UNAPPLIED)])
def test_the_exit_code_says_whether_it_was_applied(
    bucket: Bucket, capsys: pytest.CaptureFixture[str], state: str, code: int
) -> None:
    def answer() -> None:
        while not bucket.names():
            time.sleep(0.01)
        bucket.reply(0, "x", state)

    threading.Thread(target=answer).start()
    assert main([ADDRESS, "ping", "--id", "x", "--wait"], bucket.store) == code
    assert json.loads(capsys.readouterr().out)["state"] == state


@pytest.mark.usefixtures("unhurried")
@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        ([ADDRESS, "ping", "{"], USAGE, "PAYLOAD is not JSON: Expecting property name"),
        ([ADDRESS, "ping", "@/nowhere/at/all"], USAGE, "/nowhere"),
        (["nowhere", "ping"], USAGE, "address"),
        ([ADDRESS, "reload-config", "7"], USAGE, "InvalidPayload"),
        ([ADDRESS, "ping", "--credentials", "/nowhere"], USAGE, "--credentials"),
        ([ADDRESS, "ping", "--wait", "0.05"], UNTOLD, "No reply to message"),
    ],
)
def test_what_goes_wrong_has_an_exit_code_and_words(
    bucket: Bucket, capsys: pytest.CaptureFixture[str], arguments: list[str], code: int, message: str
) -> None:
    assert main(arguments, bucket.store) == code
    assert message in capsys.readouterr().err


def test_a_store_that_refuses_is_an_exit_code_too(bucket: Bucket, capsys: pytest.CaptureFixture[str]) -> None:
    bucket.before = refused("AccessDenied", 403)
    assert main([ADDRESS, "ping"], bucket.store) == UNWRITTEN
    assert "AccessDenied" in capsys.readouterr().err


def test_a_store_that_is_away_is_not_waited_for_longer_than_was_asked(
    bucket: Bucket, capsys: pytest.CaptureFixture[str]
) -> None:
    bucket.before = OSError("away")
    assert main([ADDRESS, "ping", "--wait", "0.3"], bucket.store) == UNWRITTEN
    assert "Not written after 0 s: OSError: away" in capsys.readouterr().err


@pytest.mark.parametrize("seconds", ["-3", "soon", "inf"])
def test_a_wait_that_is_none_is_told_of(capsys: pytest.CaptureFixture[str], seconds: str) -> None:
    with pytest.raises(SystemExit):
        main([ADDRESS, "ping", "--wait", seconds])
    assert f"argument --wait: invalid seconds value: '{seconds}'" in capsys.readouterr().err


def test_help_says_what_there_is() -> None:
    environment = {**os.environ, "PYTHONPATH": str(SOURCES), "COLUMNS": "120"}
    command = [sys.executable, "-m", "tidegate_spark.control_writer", "--help"]
    said = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    assert "exit codes" in said
    assert "--wait" in said


def test_a_writer_needs_no_spark_and_nothing_else_that_a_driver_needs() -> None:
    code = (
        "import sys; import tidegate_spark.control_writer.__main__; "
        "print(sorted({m.partition('.')[0] for m in sys.modules}))"
    )
    environment = {**os.environ, "PYTHONPATH": str(SOURCES)}
    said = subprocess.run(
        [sys.executable, "-S", "-c", code], env=environment, check=True, capture_output=True, text=True
    )
    outside = set(eval(said.stdout)) - sys.stdlib_module_names - {"tidegate_spark", "__main__"}
    assert outside == set()
