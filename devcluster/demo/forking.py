"""Two variants of the demo's application on one snapshot of it: ``make variants``, after ``make demo``. Prints."""

from __future__ import annotations

import argparse
import os
import sys
import time
from collections.abc import Mapping
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from devcluster import environment
from devcluster.cluster import Cluster
from devcluster.demo.application import BUCKET, SAMPLES, VARIANTS, Application, Topics, build_application
from devcluster.demo.compare import TopicReader, compare
from devcluster.demo.console import Narrator, StepFailedError
from devcluster.demo.kubernetes import Kubernetes
from devcluster.demo.oracle import Variant, expected_decisions
from devcluster.demo.replay import Replay, create_topics, delete_topics
from devcluster.demo.scenario import Scenario
from devcluster.demo.setting_up import connect, kubectl_hint
from devcluster.demo.snapshot_cut import ends_of, is_before, read_positions
from devcluster.demo.variants import show
from devcluster.environment import Environment

SNAPSHOT = "before-variants"
START_SECONDS, DECIDE_SECONDS = 300.0, 180.0
QUIET_SECONDS = 3.0
"""So long after the last expected decision another one, which would be wrong, is waited for."""


def main() -> int:
    """Let two variants of the application go on from one snapshot of it, side by side, and compare what they decide."""
    parser = argparse.ArgumentParser(
        prog="make variants ARGS=…", description=main.__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--name", default="dev", help="the development cluster with the demo")
    parser.add_argument("--readings", type=int, default=24_000, help="readings that are replayed, from the beginning")
    parser.add_argument("--rate", type=float, default=800.0, help="readings per second")
    parser.add_argument("--picture", type=Path, default=Path("variants.png"), help="file to write")
    options = parser.parse_args()
    narrator = Narrator()
    try:
        scenario = Scenario(readings=options.readings)
        Variants(narrator, _site(options.name), scenario, options.rate).run(options.picture)
    except StepFailedError as failed:
        narrator.failure(failed)
        return 1
    except (ValueError, RuntimeError, OSError) as error:
        narrator.failure(StepFailedError("The comparison cannot go on", str(error), "make demo, then this again"))
        return 1
    print("variants: ok")
    return 0


def _site(name: str) -> Environment:
    if os.environ.get(environment.KUBECONFIG):
        return environment.foreign(os.environ)
    return environment.of_cluster(Cluster(name))


class Variants:
    """Everything after the demo's application runs."""

    def __init__(self, narrator: Narrator, site: Environment, scenario: Scenario, rate: float) -> None:
        self._narrator, self._site, self._scenario, self._rate = narrator, site, scenario, rate
        self._kubernetes: Kubernetes = connect(site)
        self._topics = Topics.on(own=site.own)
        self._original = build_application(image=site.image_spark, endpoint=site.s3_endpoint_pods, options={})
        self._variants = [self._build(file) for file in VARIANTS]

    def _build(self, file: Path) -> Application:
        bare = build_application(image="", endpoint="", options={}, file=file)
        topic = bare.option("decisions") if self._site.own else f"{BUCKET}-{bare.option('decisions')}"
        options = {"brokers": self._site.kafka_pods, **self._topics.options(), "decisions": topic}
        return build_application(
            image=self._site.image_spark, endpoint=self._site.s3_endpoint_pods, options=options, file=file
        )

    def run(self, picture: Path) -> None:
        """Run all steps; write the picture."""
        self._remove_earlier()
        status = self._take()
        self._start()
        self._replay()
        self._compare(status)
        first, second = (variant.option("decisions") for variant in self._variants)
        show(self._site.kafka_host, (first, second), picture, Console())
        self._hints()

    # --- steps ---

    def _remove_earlier(self) -> None:
        app, ctl = self._original, self._kubernetes.ctl
        if self._kubernetes.get("sapp", app.name, app.namespace) is None:
            raise StepFailedError("There is no application to fork", f"no StreamingApp {app.name}", "make demo")
        with self._narrator.step("Deleting the variants of an earlier run", self._check()):
            names = [variant.name for variant in self._variants]
            gone = ("--ignore-not-found", "--timeout=150s")
            ctl("delete", "sapp", *names, "-n", app.namespace, *gone, timeout=160)
            ctl("delete", "snap", SNAPSHOT, "-n", app.namespace, *gone, timeout=160)
            topics = dict.fromkeys((variant.option("decisions") for variant in self._variants), 2)
            delete_topics(self._site.kafka_host, topics)
            create_topics(self._site.kafka_host, topics)

    def _take(self) -> Mapping[str, Any]:
        """Have the snapshot taken; return its status."""
        app = self._original
        with self._narrator.step(f"StreamSnapshot {SNAPSHOT} of {app.name}, which runs on", self._check()):
            metadata = {"name": SNAPSHOT, "namespace": app.namespace}
            spec = {"appRef": {"name": app.name}, "deletionPolicy": "Delete"}
            self._kubernetes.apply(
                {"apiVersion": "tidegate.dev/v1alpha1", "kind": "StreamSnapshot", "metadata": metadata, "spec": spec}
            )
            ready = ("--for=condition=Ready", "--timeout=180s")
            self._kubernetes.ctl("wait", f"snap/{SNAPSHOT}", "-n", app.namespace, *ready, timeout=190)
        found = self._kubernetes.get("snap", SNAPSHOT, app.namespace) or {}
        status: Mapping[str, Any] = found["status"]
        self._narrator.say(f"  batch {status['batch']}, {status['size']}B")
        return status

    def _start(self) -> None:
        for variant in self._variants:
            file = SAMPLES.parent.name + "/" + SAMPLES.name + f"/{variant.name}.yaml"
            with self._narrator.step(f"kubectl apply -f {file}", self._check(variant)):
                self._kubernetes.apply(variant.manifest)
        for variant in self._variants:
            with self._narrator.step(f"Waiting for {variant.name} to run", self._check(variant)):
                ready = ("--for=condition=Ready", f"--timeout={START_SECONDS:.0f}s")
                target = (f"sapp/{variant.name}", "-n", variant.namespace)
                self._kubernetes.ctl("wait", *target, *ready, timeout=START_SECONDS + 10)

    def _replay(self) -> None:
        total = self._scenario.readings
        self._narrator.say(f"Replaying {total:,} readings; those that were judged before are ignored", "bold")
        remedy = "is the broker up? make kafka-up"
        with self._narrator.step("Sending", remedy, moving=False), self._narrator.bar("readings", total) as show_done:
            replay = Replay(self._site.kafka_host, self._topics.readings, self._topics.settings)
            replay.run(self._scenario.records(), progress=show_done, rate=self._rate)

    def _compare(self, status: Mapping[str, Any]) -> None:
        """Compare what each variant decided with what it should have, by an independent computation."""
        brokers, topic = self._site.kafka_host, self._topics.readings
        with self._narrator.step(f"Reading where the snapshot ends in the topic {topic}", "make kafka-up"):
            positions, ends = read_positions(brokers, topic), ends_of(status, topic)
        for variant in self._variants:
            margin = float(variant.option("margin") or 0)
            cut = Variant(margin, partial(is_before, positions=positions, ends=ends))
            expected = expected_decisions(self._scenario.records(), cut)
            with self._narrator.step(f"Waiting for the last decisions of {variant.name}", self._check(variant)):
                consumed = self._consume(variant.option("decisions"), set(expected))
            report = compare(expected, consumed)
            self._narrator.say(f"  {report.report()}", "green" if report.ok else "red")
            if not report.ok:
                raise StepFailedError(f"{variant.name} decided otherwise", report.report(), self._check(variant))

    def _consume(self, topic: str, expected: set[str]) -> list[dict[str, Any]]:
        reader, consumed, seen = TopicReader(self._site.kafka_host, topic), list[dict[str, Any]](), set[str]()
        deadline, newest = time.monotonic() + DECIDE_SECONDS, time.monotonic()
        try:
            while not expected <= seen or time.monotonic() - newest < QUIET_SECONDS:
                if time.monotonic() > deadline:
                    raise TimeoutError(f"{len(expected - seen):,} did not come within {DECIDE_SECONDS:.0f} s")
                found = reader.poll(0.2)
                newest = time.monotonic() if found else newest
                consumed += found
                seen |= {decision["id"] for decision in found}
        finally:
            reader.close()
        return consumed

    # --- words ---

    def _check(self, app: Application | None = None) -> str:
        of = app or self._original
        return f"{kubectl_hint(self._site, f'describe sapp,snap -n {of.namespace}')}, and see docs/samples.md"

    def _hints(self) -> None:
        names, namespace = " ".join(v.name for v in self._variants), self._original.namespace
        ctl = partial(kubectl_hint, self._site)
        self._narrator.plain(
            f"""
All three applications run. To look further, and to remove the variants:
  {ctl(f"get sapp,snap -n {namespace}")}
  {ctl(f"delete sapp {names} -n {namespace}")}
  {ctl(f"delete snap {SNAPSHOT} -n {namespace}")}"""
        )


if __name__ == "__main__":
    sys.exit(main())
