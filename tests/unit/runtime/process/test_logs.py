"""Where logs are put and which are kept, in a store that is a dictionary."""

from typing import Any

from tidegate_spark.contract.protocol import Storage
from tidegate_spark.process import logs

PLACE = Storage("s3://bucket/apps/n/a")
NOON = 1_700_000_000.25
"""2023-11-14T22:13:20.250Z"""


class Bucket:
    """What of an S3 client the logs use, on a dictionary of objects."""

    def __init__(self) -> None:
        self.objects: dict[str, bytes] = {}
        self.requests = 0

    def put_object(self, **call: Any) -> None:
        self.requests += 1
        self.objects[call["Key"]] = call["Body"]

    def list_objects_v2(self, **call: Any) -> dict[str, Any]:
        self.requests += 1
        keys = sorted(key for key in self.objects if key.startswith(call["Prefix"]))
        if "Delimiter" not in call:
            return {"Contents": [{"Key": key} for key in keys[: call["MaxKeys"]]]}
        rests = (key.removeprefix(call["Prefix"]) for key in keys)
        folders = sorted({call["Prefix"] + rest.partition("/")[0] + "/" for rest in rests if "/" in rest})
        return {"CommonPrefixes": [{"Prefix": folder} for folder in folders[: call["MaxKeys"]]]}

    def delete_objects(self, **call: Any) -> None:
        self.requests += 1
        for item in call["Delete"]["Objects"]:
            del self.objects[item["Key"]]


def name_of(number: int) -> str:
    return logs.process_name(NOON + number, 3)


def test_names_of_processes_sort_by_time_and_say_the_epoch() -> None:
    assert logs.process_name(NOON, 3) == "20231114T221320.250Z-e3"
    names = [logs.process_name(NOON + pause, epoch) for epoch, pause in ((9, 0.0), (10, 0.001), (10, 60), (11, 86400))]
    assert names == sorted(names)
    assert len(set(names)) == len(names)


def test_a_driver_log_costs_one_request_however_many_processes_ended_before() -> None:
    bucket: Any = Bucket()
    for number in range(50):
        logs.put_driver_log(bucket, PLACE, name_of(number), b"")
    assert bucket.requests == 50
    assert len(bucket.objects) == 50


def test_executors_of_two_driver_processes_keep_both_their_logs() -> None:
    bucket: Any = Bucket()
    for number in (1, 2):
        logs.put_executor_log(bucket, PLACE, name_of(number), "1", f"of process {number}".encode())
    assert sorted(bucket.objects.values()) == [b"of process 1", b"of process 2"]


def test_the_newest_processes_keep_their_logs_and_nothing_else_is_touched() -> None:
    bucket: Any = Bucket()
    others = ["apps/n/a/app.json", "apps/n/a/logs/notes.txt", "apps/n/a/logs/mine/notes.txt", "apps/n/a-2/logs/x/y"]
    bucket.objects = dict.fromkeys(others, b"")
    for number in range(logs.KEPT_PROCESSES + 5):
        logs.put_driver_log(bucket, PLACE, name_of(number), b"")
        logs.put_executor_log(bucket, PLACE, name_of(number), "1", b"")
    assert logs.prune_logs(bucket, PLACE) == 10
    kept = {name_of(number) for number in range(5, logs.KEPT_PROCESSES + 5)}
    assert {key.split("/")[4] for key in bucket.objects if key not in others} == kept
    assert set(others) <= set(bucket.objects)


def test_pruning_is_bounded_and_catches_up() -> None:
    bucket: Any = Bucket()
    for number in range(logs.KEPT_PROCESSES + 2):
        for executor in range(700):
            logs.put_executor_log(bucket, PLACE, name_of(number), str(executor), b"")
    bucket.requests = 0
    assert logs.prune_logs(bucket, PLACE) == logs.PAGE
    assert bucket.requests == 3
    assert logs.prune_logs(bucket, PLACE) == 1400 - logs.PAGE
    assert logs.prune_logs(bucket, PLACE) == 0
    assert len(bucket.objects) == 700 * logs.KEPT_PROCESSES
