"""What the scripts of the patterns read: forty orders, as files of a bucket or as records of a topic. Does I/O."""

import itertools
import json
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from confluent_kafka import Producer
from mypy_boto3_s3 import S3Client

from devcluster import kafka


def orders() -> Iterator[tuple[str, str]]:
    """Return eight files by their names: JSON lines, five orders each."""
    for file in range(8):
        numbers = range(file * 5, file * 5 + 5)
        rows = [{"id": n, "item": "abc"[n % 3], "at": f"2026-01-01T00:00:{n:02}Z", "price": n / 4} for n in numbers]
        yield f"{file:02}.json", "".join(f"{json.dumps(row)}\n" for row in rows)


def put_files(s3: S3Client, bucket: str, folder: str) -> None:
    """Have them in a folder of a bucket."""
    for name, text in orders():
        s3.put_object(Bucket=bucket, Key=f"{folder}/{name}", Body=text.encode())


@contextmanager
def _comes(send: Callable[[threading.Event], None], patience: float = 60) -> Iterator[None]:
    """Have a function send while the context lasts; it ends soon after the event is set, within `patience` seconds."""
    over = threading.Event()
    sending = threading.Thread(target=send, args=(over,))
    sending.start()
    try:
        yield
    finally:
        over.set()
        sending.join(patience)


@contextmanager
def files_put(s3: S3Client, bucket: str, folder: str) -> Iterator[None]:
    """Have them in a folder of a bucket, where more come while the context lasts: a reader never has read them all."""
    put_files(s3, bucket, folder)

    def put(over: threading.Event) -> None:
        for number, (_, text) in enumerate(itertools.cycle(orders()), 8):
            if over.wait(4):
                return
            s3.put_object(Bucket=bucket, Key=f"{folder}/{number:06}.json", Body=text.encode())

    with _comes(put):
        yield


@contextmanager
def files_of(folder: Path) -> Iterator[None]:
    """Have payments, impressions and clicks in a folder of this machine; while the context lasts, more of them come."""
    folder.mkdir(parents=True)

    def write(over: threading.Event) -> None:
        for file in itertools.count():
            at = f"2026-01-01T{file // 60 % 24:02}:{file % 60:02}:00Z"
            rows = [
                {"id": n, "user": "abc"[n % 3], "amount": n / 4, "ts": at, "ad": str(n), "shown": at, "clicked": at}
                for n in range(file * 5, file * 5 + 5)
            ]
            # Whole at once: a name that starts so is none of the input's.
            hidden = folder / f".{file:06}"
            hidden.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
            hidden.rename(folder / f"{file:06}.json")
            if over.wait(0.5):
                return

    with _comes(write):
        yield


@contextmanager
def records_of(brokers: str, topic: str) -> Iterator[None]:
    """Have them in a topic, which is made; while the context lasts, they come again and again."""
    for name in (topic, f"{topic}-dear"):  # what they are read from, and what a script writes to
        kafka.create_topic(brokers, name, partitions=2)
    producer = Producer({"bootstrap.servers": brokers, "enable.idempotence": True, "acks": "all"})

    def send(over: threading.Event) -> None:
        for _, text in itertools.cycle(orders()):
            for line in text.splitlines():
                producer.produce(topic, value=line)
            producer.flush(120)
            if over.wait(0.5):
                return

    with _comes(send, 180):
        yield
