"""What :mod:`tidegate_testing.previous_runtime` runs: all that an earlier runtime can say, by its own types.

It imports the earlier ``tidegate_spark``, and nothing of this checkout: what it uses has to be there in both. The first
line that it prints is all it would report; each further one is what its agent was ordered to do. It ends with its
standard input.
"""

import dataclasses
import importlib
import json
import os
import sys
import typing
from collections.abc import Callable, Iterator
from enum import Enum
from typing import Any

from prometheus_client import CollectorRegistry


def home_of(module: str) -> Any:
    """Return one of the earlier runtime's modules."""
    return importlib.import_module(f"tidegate_spark.{module}")


_agent = home_of("driver.agent.agent")
_contract = home_of("contract.protocol")
_snapshots = home_of("contract.snapshot_protocol")
preflight, start = home_of("driver.preflight"), home_of("driver.start")
sparkconf = home_of("process.spark.sparkconf")
checking = home_of("control.messages.validation")
Agent, Commands = _agent.Agent, _agent.Commands
Entry: Any = home_of("control_log.entries").Entry
Environment: Any = home_of("process.environment").Environment
AgentReport: Any = _contract.AgentReport
Termination: Any = _contract.Termination
CONFIG_VARIABLE, EXIT_CODES, to_json = _contract.CONFIG_VARIABLE, _contract.EXIT_CODES, _contract.to_json
Secrets: Any = home_of("process.redaction").Secrets
word_of = home_of("snapshots.service.pod").word_of
EXPORT_FORMATS = _snapshots.EXPORT_FORMATS
SnapshotReport: Any = _snapshots.SnapshotReport
FaultError: Any = home_of("storage.s3_client").FaultError
termination_text = home_of("process.termination").termination_text

FORMATS = "FORMATS_OF_DUMPS"
"""Variable with the formats that the operator knows."""
LAUNCH = "CONFIG_OF_A_LAUNCH"
"""Variable with a driver's configuration."""
PLAIN: dict[Any, Callable[[int], Any]] = {
    str: lambda number: f"text {number}",
    bool: lambda number: True,
    int: lambda number: number + 2,
    float: lambda number: number + 0.5,
}


def words(kind: type[Enum]) -> list[Enum]:
    """Return the words that a runtime says: not the one for what it does not know itself."""
    return [word for word in kind if word.name != "UNKNOWN"]


def sample(kind: Any, number: int) -> Any:
    """Return a value of a type, at no default anywhere; another number has other words."""
    arguments = typing.get_args(kind)
    if type(None) in arguments:
        return sample(next(each for each in arguments if each is not type(None)), number)
    if dataclasses.is_dataclass(kind):
        hints: dict[str, Any] = typing.get_type_hints(kind)
        return typing.cast(Any, kind)(**{name: sample(hint, number) for name, hint in hints.items()})
    if typing.get_origin(kind) is tuple:
        return (sample(arguments[0], number), sample(arguments[0], number + 1))
    if typing.get_origin(kind) is dict:
        return {f"name {number}": sample(arguments[1], number)}
    if issubclass(kind, Enum):
        return words(kind)[number % len(words(kind))]
    return PLAIN[kind](number)


def most_members(kind: Any) -> int:
    """Return how many words that kind has of which there are most within a type."""
    if dataclasses.is_dataclass(kind):
        return max(map(most_members, typing.get_type_hints(kind).values()), default=1)
    if typing.get_args(kind):
        return max(map(most_members, typing.get_args(kind)))
    return len(words(kind)) if isinstance(kind, type) and issubclass(kind, Enum) else 1


def samples(kind: Any) -> Iterator[Any]:
    """Yield values of a type until each word has been in each of its places."""
    return (sample(kind, number) for number in range(most_members(kind)))


class Progress:
    """Reports one after the other, and begins again."""

    ready, stalled = True, ""

    def __init__(self, reports: list[Any]) -> None:
        self.reports, self.next = reports, 0

    def report(self) -> Any:
        self.next += 1
        return self.reports[(self.next - 1) % len(self.reports)]


def protocol_refusal(text: str) -> str:
    """Return why it starts nothing for an operator that configures it so, empty if it does."""
    try:
        preflight.refuse_other_protocol(start.read_config(text))
    except FaultError as error:
        return str(error.fault.message)
    return ""


def on_kubernetes(text: str) -> dict[str, Any]:
    """Return what its Spark is told in a pod, and the executors' template."""
    config, pod = start.read_config(text), Environment.read({"TIDEGATE_POD_UID": "uid-of-the-pod"})
    template = sparkconf.executor_template(config, pod.pod_uid)
    return {"settings": sparkconf.build_spark_conf(config, pod, "a process"), "template": template}


def rejection(word: str) -> list[str]:
    """Return reason and message with which it rejects a dump in that format, empty if it takes it."""
    draft = Entry(1, id="dump", type="dump-state", payload=json.dumps({"format": word}))
    logged = checking.checked(draft, checking.Vocabulary({}))
    return [] if logged == draft else [logged.reason, logged.message]


def given(order: Any) -> None:
    print(json.dumps({"given": order if isinstance(order, int) else json.loads(to_json(order))}), flush=True)


def main() -> None:
    config, reports = os.environ[CONFIG_VARIABLE], list(samples(AgentReport))
    nothing: dict[str, Any] = {field.name: given for field in dataclasses.fields(Commands)}
    progress: Any = Progress(reports)
    Agent(Environment.read(os.environ), progress, CollectorRegistry(), Commands(**nothing), Secrets()).start()
    reported = {
        "config": json.loads(to_json(start.read_config(config))),
        "refusals": {
            number: protocol_refusal(json.dumps({**json.loads(config), "protocol": number})) for number in range(-1, 9)
        },
        "launch": on_kubernetes(os.environ[LAUNCH]),
        "formats": EXPORT_FORMATS,
        "rejections": {word: rejection(word) for word in (*EXPORT_FORMATS, *os.environ[FORMATS].split())},
        "reports": [json.loads(to_json(report)) for report in reports],
        "terminations": [termination_text(each, Secrets()) for each in samples(Termination)],
        "ends": [termination_text(Termination(reason, "x", 1), Secrets()) for reason in EXIT_CODES],
        "snapshots": [word_of((each,), Secrets()) for each in samples(SnapshotReport)],
    }
    print(json.dumps(reported), flush=True)
    sys.stdin.read()


if __name__ == "__main__":
    main()
