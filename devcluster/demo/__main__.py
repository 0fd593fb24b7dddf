"""The demo, step by step: ``make demo``. Prints; needs root, or a cluster of your own in TIDEGATE_KUBECONFIG."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial

from devcluster import s3
from devcluster.demo import setting_batches
from devcluster.demo.application import (
    BUCKET,
    BY_MESSAGES,
    MANIFEST,
    Application,
    Topics,
    build_application,
    build_surroundings,
    committed_batches,
)
from devcluster.demo.compare import compare
from devcluster.demo.console import Narrator, StepFailedError
from devcluster.demo.installing import have_tidegate
from devcluster.demo.kubernetes import CommandError, Kubernetes
from devcluster.demo.messages import Messages
from devcluster.demo.oracle import expected_decisions
from devcluster.demo.replay import Replay, create_topics, delete_topics
from devcluster.demo.scenario import Scenario
from devcluster.demo.setting_messages import SettingMessages, complaints
from devcluster.demo.setting_up import clean_up_hint, connect, kubectl_hint, set_up
from devcluster.demo.snapshot_cut import ends_in, read_positions
from devcluster.demo.watch import SECONDS_BETWEEN_POLLS, DecisionWatch, Once, Repeatedly, StatusWatch
from devcluster.environment import Environment

START_SECONDS = 300.0
"""The longest that is waited for the application's first batch."""
CATCH_UP_SECONDS = 180.0
"""The longest that is waited for the last decision after the last reading."""
MESSAGE_SECONDS = 300.0
"""The longest that is waited for a message to be in the log, also if the driver was killed just before, or in force."""
QUIET_SECONDS = 3.0
"""So long after the last expected decision another one, which would be wrong, is waited for."""


def main() -> int:
    """Show Tidegate at work: real temperatures through Kafka into an application on a real Kubernetes."""
    parser = argparse.ArgumentParser(
        prog="make demo ARGS=…", description=main.__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--name", default="dev", help="the development cluster to use")
    parser.add_argument("--readings", type=int, default=12_000, help="how many readings are replayed")
    parser.add_argument("--rate", type=float, default=800.0, help="readings per second")
    parser.add_argument(
        "--settings-from",
        choices=("topic", "messages"),
        default="topic",
        help="how settings come: of a second topic, or as control messages, to an application of their own",
    )
    options = parser.parse_args()
    narrator = Narrator()
    try:
        scenario = Scenario(readings=options.readings)
    except ValueError as wrong:
        parser.error(str(wrong))
    try:
        by_messages = options.settings_from == "messages"
        Demo(narrator, set_up(narrator, options.name), scenario, options.rate, by_messages=by_messages).run()
    except StepFailedError as failed:
        narrator.failure(failed)
        return 1
    except (RuntimeError, OSError) as error:  # between two steps: a command that failed, a server that is gone
        narrator.failure(StepFailedError("The demo cannot go on", str(error), "make demo starts over"))
        return 1
    except KeyboardInterrupt:
        narrator.say(
            "Interrupted. The cluster is still there; `make demo` starts over, `make cluster-down` removes it."
        )
        return 130
    print("demo: ok")
    return 0


class Demo:
    """Everything after the environment is there."""

    def __init__(
        self, narrator: Narrator, site: Environment, scenario: Scenario, rate: float, *, by_messages: bool
    ) -> None:
        self._narrator, self._site, self._scenario, self._rate = narrator, site, scenario, rate
        self._kubernetes: Kubernetes = connect(site)
        self._file = BY_MESSAGES if by_messages else MANIFEST
        self._topics = Topics.on(own=site.own, by_messages=by_messages)
        self._application: Application = build_application(
            image=site.image_spark,
            endpoint=site.s3_endpoint_pods,
            options={"brokers": site.kafka_pods, **self._topics.options()},
            file=self._file,
        )
        messages = Messages(self._kubernetes, self._application)
        self._messages = SettingMessages(messages, MESSAGE_SECONDS, self._report_message) if by_messages else None
        self._s3 = s3.client(site.s3_endpoint_host, site.s3_keys)

    def run(self) -> None:
        """Run all steps."""
        own = have_tidegate(self._narrator, self._kubernetes, self._site, self._application.namespace)
        self._remove_earlier()
        self._prepare()
        self._apply()
        decisions = self._replay()
        self._compare(decisions)
        if self._messages is not None:
            self._account(self._messages, decisions)
        self._hints(own)

    # --- before the data ---

    def _remove_earlier(self) -> None:
        """Delete what a demo that was run before on this cluster left: its state must not decide anything now."""
        app = self._application
        if self._messages is not None:
            with self._narrator.step("Deleting the messages of an earlier demo", self._show_the_app()):
                Messages(self._kubernetes, app).forget()
        if self._kubernetes.get("sapp", app.name, app.namespace) is not None:
            with self._narrator.step("Deleting the application of an earlier demo", self._show_the_app()):
                self._kubernetes.ctl("delete", "sapp", app.name, "-n", app.namespace, "--timeout=150s", timeout=160)

    def _prepare(self) -> None:
        remedy = "check that S3 and Kafka answer: make s3-up kafka-up; then make demo again"
        with self._narrator.step(f"Bucket {BUCKET}, topics {', '.join(self._topics.partitions)}, credentials", remedy):
            if BUCKET not in {bucket["Name"] for bucket in self._s3.list_buckets()["Buckets"]}:
                self._s3.create_bucket(Bucket=BUCKET)
            delete_topics(self._site.kafka_host, self._topics.partitions)
            create_topics(self._site.kafka_host, self._topics.partitions)
            self._kubernetes.apply(
                *build_surroundings(
                    self._application,
                    access_key=self._site.s3_keys.access_key,
                    secret_key=self._site.s3_keys.secret_key,
                )
            )

    def _apply(self) -> None:
        with self._narrator.step(f"kubectl apply -f spark_app/samples/{self._file.name}", self._show_the_app()):
            self._kubernetes.apply(self._application.manifest)

    # --- the data ---

    def _replay(self) -> DecisionWatch:
        """Replay all records; return the decisions that were made of them."""
        status = StatusWatch(self._narrator, self._kubernetes, self._application)
        decisions = DecisionWatch(self._narrator, self._site.kafka_host, self._topics.decisions)
        with ExitStack() as stack:
            stack.callback(decisions.close)
            stack.enter_context(Repeatedly(status.check, SECONDS_BETWEEN_POLLS))
            stack.enter_context(Repeatedly(decisions.check, 0.0))
            self._send(decisions)
            self._catch_up(decisions)
            status.check()
        return decisions

    def _send(self, decisions: DecisionWatch) -> None:
        total, sensors = self._scenario.readings, len(self._scenario.sensors())
        replay = Replay(self._site.kafka_host, self._topics.readings, self._messages or self._topics.settings)
        if self._messages is not None:  # they would wait for the application, and nothing would be seen meanwhile
            self._begin()
        with ExitStack() as stack:
            bar: list[Callable[[int], None]] = []

            def ready() -> None:
                if self._messages is None:
                    self._begin()
                self._narrator.say(
                    f"Replaying {total:,} readings of {sensors} sensors at {self._rate:g} a second …", "bold"
                )
                bar.append(stack.enter_context(self._narrator.bar("readings", total)))

            kill = Once(partial(self._kill_driver, decisions), at=total // 2)

            def progress(done: int) -> None:
                for show in bar:
                    show(done)
                kill(done)

            title = "Sending settings, then readings once the query has begun"
            if self._messages is not None:
                title = "Sending settings as control messages, and readings once the log has those before them"
            with self._narrator.step(title, "is the broker up? make kafka-up; then make demo again", moving=False):
                sent = replay.run(self._scenario.records(), ready=ready, progress=progress, rate=self._rate)
        by_whom = "the broker" if self._messages is None else "the broker and the application's control log"
        self._narrator.say(f"  {sent.readings:,} readings and {sent.settings:,} settings confirmed by {by_whom}")

    def _begin(self) -> None:
        with self._narrator.waiting("waiting for the first batch"):
            self._await_first_batch()

    def _report_message(self, said: str) -> None:
        self._narrator.say(f"  {said}", "yellow")

    def _await_first_batch(self) -> None:
        """Return when the checkpoint holds a committed batch: by then the start of "latest" is fixed for ever."""
        prefix, deadline = self._application.commits(), time.monotonic() + START_SECONDS
        while not committed_batches(
            entry["Key"] for entry in self._s3.list_objects_v2(Bucket=BUCKET, Prefix=prefix).get("Contents", ())
        ):
            if time.monotonic() > deadline:
                raise self._trouble(f"The application committed no batch within {START_SECONDS:.0f} s")
            time.sleep(0.5)
        self._narrator.say("  the first batch is committed: the query runs", "green")

    def _kill_driver(self, decisions: DecisionWatch) -> None:
        """Kill it when it has something to lose: state, and decisions that must not be lost or contradicted."""
        app, deadline = self._application, time.monotonic() + CATCH_UP_SECONDS
        while not decisions.ids:
            if time.monotonic() > deadline:
                raise self._trouble(f"No decision came within {CATCH_UP_SECONDS:.0f} s")
            time.sleep(0.2)
        self._narrator.say(f"Killing the driver's JVM without warning: kill -9 in pod {app.driver_pod}", "bold yellow")
        coming = "readings go on coming" if self._messages is None else "the next message waits for it"
        self._narrator.say(f"  {coming}; the status of the resource will show the crash and the new start")
        try:
            self._kubernetes.kill_process(app.driver_pod, app.namespace, "driver", "java")
        except CommandError as error:
            raise StepFailedError("Killing the driver", str(error), self._show_the_app()) from error

    def _catch_up(self, decisions: DecisionWatch) -> None:
        """Wait until all expected decisions have come, and a little longer for any that should not."""
        expected = set(expected_decisions(self._scenario.records()))
        deadline = time.monotonic() + CATCH_UP_SECONDS
        with self._narrator.step("Waiting for the last decisions", self._show_the_app()):
            while not expected <= decisions.ids or time.monotonic() - decisions.newest_at < QUIET_SECONDS:
                if time.monotonic() > deadline:
                    missing = len(expected - decisions.ids)
                    raise self._trouble(f"{missing:,} decisions did not come within {CATCH_UP_SECONDS:.0f} s")
                time.sleep(0.2)

    # --- after the data ---

    def _compare(self, decisions: DecisionWatch) -> None:
        comparison = compare(expected_decisions(self._scenario.records()), decisions.consumed)
        self._narrator.say("Compared with an independent computation in plain Python over the same input:", "bold")
        self._narrator.say(f"  {comparison.report()}", "green" if comparison.ok else "red")
        if not comparison.ok:
            raise StepFailedError("The decisions are not the expected ones", comparison.report(), self._show_the_app())
        restarts = self._restarts()
        if not restarts:
            raise self._trouble("The driver was killed, yet its pod counts no restart")
        times = "once" if restarts == 1 else f"{restarts} times"
        self._narrator.say(f"  the driver was restarted in place {times}; nothing was lost")

    def _account(self, messages: SettingMessages, decisions: DecisionWatch) -> None:
        """See that each message was in force once, in order, and in the batch of each decision that it led to."""
        with self._narrator.step("Looking at what came of the messages", self._show_the_app()):
            reported = messages.await_ends(MESSAGE_SECONDS)
            positions = read_positions(self._site.kafka_host, self._topics.readings)
            ends = self._ends_of_batches()
        if wrong := complaints(reported):
            raise self._trouble("The messages are not in force as they were sent:\n" + "\n".join(wrong[:5]))
        batches = [status["batch"] for status in reported.values()]
        where = f"in force from batches {batches[0]} to {batches[-1]} on, in the order in which they were sent"
        self._narrator.say(f"  {len(reported)} control messages, each once in the log: {where}", "green")
        found = setting_batches.check(decisions.consumed, messages.sent, reported, positions, ends)
        if found.too_late:
            some = f"{len(found.too_late):,} decisions, {', '.join(found.too_late[:3])} among them"
            raise self._trouble(f"Settings ruled before their message was in force: {some}")
        if not found.in_force:
            raise self._trouble("The checkpoint does not show in which batch any decision was made")
        left = f"; of {found.unknown:,} more, the checkpoint has no record any more" if found.unknown else ""
        where = "made in a batch in which the message with their setting was in force"
        self._narrator.say(f"  {found.in_force:,} decisions were {where}{left}", "green")

    def _ends_of_batches(self) -> dict[int, dict[int, int]]:
        """Return, by batch and partition, up to where the readings were read, as far as the checkpoint shows."""
        prefix = self._application.offsets()
        listed = self._s3.list_objects_v2(Bucket=BUCKET, Prefix=prefix).get("Contents", ())
        ends = {}
        for batch in committed_batches(entry["Key"] for entry in listed):
            text = self._s3.get_object(Bucket=BUCKET, Key=f"{prefix}{batch}")["Body"].read().decode()
            ends[batch] = ends_in(text, self._topics.readings)
        return ends

    def _restarts(self) -> int:
        path = "jsonpath={.status.containerStatuses[?(@.name=='driver')].restartCount}"
        app = self._application
        return int(self._kubernetes.ctl("get", "pod", app.driver_pod, "-n", app.namespace, "-o", path) or 0)

    def _hints(self, own: bool) -> None:
        app, ctl = self._application, partial(kubectl_hint, self._site)
        uri = f"s3://{BUCKET}/apps/{app.namespace}/{app.name}"
        self._narrator.plain(
            f"""
The application still runs and waits for more. To look further:
  {ctl(f"get sapp -n {app.namespace}")}
  {ctl(f"describe sapp {app.name} -n {app.namespace}")}{self._hint_of_messages()}
  {ctl(f"logs {app.driver_pod} -n {app.namespace} --tail=20")}
  {ctl(f"scale sapp {app.name} -n {app.namespace} --replicas=2")}
  {ctl(f"delete sapp {app.name} -n {app.namespace}")}
Decisions: topic {self._topics.decisions} at {self._site.kafka_host} (pods: {self._site.kafka_pods}).
Checkpoints and logs: {uri} at {self._site.s3_endpoint_host} (pods: {self._site.s3_endpoint_pods}).
The tour: docs/tour.md. To clean up: {clean_up_hint(self._site, app.name, app.namespace, own=own)}"""
        )

    def _hint_of_messages(self) -> str:
        hint = kubectl_hint(self._site, f"get ctl -n {self._application.namespace}")
        return "" if self._messages is None else f"\n  {hint}"

    def _show_the_app(self) -> str:
        app, ctl = self._application, partial(kubectl_hint, self._site)
        return f"{ctl(f'describe sapp {app.name} -n {app.namespace}')}, and see docs/samples.md; then make demo again"

    def _trouble(self, what: str) -> StepFailedError:
        app = self._application
        return StepFailedError(what, self._kubernetes.describe_trouble(app.name, app.namespace), self._show_the_app())


if __name__ == "__main__":
    sys.exit(main())
