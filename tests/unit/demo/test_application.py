"""The demo applies the sample's own manifest, and changes only what depends on the environment."""

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

import tidegate_spark
from devcluster import images
from devcluster.cluster import Cluster
from devcluster.demo.application import (
    BY_MESSAGES,
    FLIGHTS,
    FLIGHTS_FROM_DUMP,
    MANIFEST,
    Topics,
    build_application,
    build_surroundings,
    committed_batches,
)
from samples.flight_delays import parse as parse_flights
from samples.temperature_control import parse

SAMPLES = Path(MANIFEST).parent


def load(path: Path) -> dict[str, Any]:
    kinds: dict[str, dict[str, Any]] = {each["kind"]: each for each in yaml.safe_load_all(path.read_text())}
    return kinds["StreamingApp"]


def test_on_the_development_cluster_the_manifest_is_applied_as_it_is_in_the_file() -> None:
    built = build_application(
        image=images.SPARK.name,
        options={"brokers": Cluster("dev").kafka_pods, **Topics.on(own=True).options()},
        endpoint=Cluster("dev").s3_endpoint_pods,
    )
    assert built.manifest == load(MANIFEST)


def test_elsewhere_image_and_addresses_differ_and_nothing_else() -> None:
    built = build_application(
        image="registry.example/spark:1", endpoint="http://minio:9000", options={"brokers": "kafka:9092"}
    )
    spec, original = built.manifest["spec"], load(MANIFEST)["spec"]
    assert spec["application"]["image"] == "registry.example/spark:1"
    assert spec["storage"]["endpoint"] == "http://minio:9000"
    assert parse(spec["application"]["args"]).brokers == "kafka:9092"
    assert spec["application"]["args"][1:] == original["application"]["args"][1:]
    assert {**spec, "application": 0, "storage": 0} == {**original, "application": 0, "storage": 0}


def test_topics_of_a_foreign_broker_have_names_that_are_the_demos_alone_because_they_are_deleted() -> None:
    topics = Topics.on(own=False)
    assert sorted(topics.partitions) == ["tidegate-demo-decisions", "tidegate-demo-readings", "tidegate-demo-settings"]
    spec = build_application(image="i", endpoint="http://e", options=topics.options()).manifest["spec"]
    parsed = parse(spec["application"]["args"])
    assert {parsed.readings, parsed.settings, parsed.decisions} == set(topics.partitions)


def test_on_the_development_cluster_that_with_settings_as_messages_is_applied_as_it_is_in_its_file() -> None:
    built = build_application(
        image=images.SPARK.name,
        options={"brokers": Cluster("dev").kafka_pods, **Topics.on(own=True, by_messages=True).options()},
        endpoint=Cluster("dev").s3_endpoint_pods,
        file=BY_MESSAGES,
    )
    assert built.manifest == load(BY_MESSAGES)


def test_settings_as_messages_need_no_topic_and_none_that_the_first_application_has() -> None:
    topics = Topics.on(own=False, by_messages=True)
    assert topics.partitions == {"tidegate-demo-readings-by-messages": 4, "tidegate-demo-decisions-by-messages": 2}
    assert not topics.partitions.keys() & Topics.on(own=False).partitions.keys()
    built = build_application(image="i", endpoint="http://e", options=topics.options(), file=BY_MESSAGES)
    assert not built.option("settings")
    parsed = parse(built.manifest["spec"]["application"]["args"])
    assert (parsed.settings_from, {parsed.readings, parsed.decisions}) == ("messages", set(topics.partitions))


def test_the_secret_that_the_manifest_names_is_made() -> None:
    built = build_application(image="i", endpoint="http://e", options={})
    _, secret = build_surroundings(built, access_key="a", secret_key="s")
    assert secret["metadata"]["name"] == built.manifest["spec"]["storage"]["credentialsSecretRef"]["name"]
    assert secret["stringData"] == {"AWS_ACCESS_KEY_ID": "a", "AWS_SECRET_ACCESS_KEY": "s"}


def test_a_folder_marker_and_a_file_on_its_way_are_no_committed_batch() -> None:
    assert committed_batches(["a/commits/", "a/commits/.0.5a1f.tmp"]) == []
    assert committed_batches(["a/commits/", "a/commits/10", "a/commits/9"]) == [9, 10]


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.yaml")), ids=lambda path: path.stem)
def test_a_manifest_runs_a_file_among_the_samples_or_a_script_that_it_brings(path: Path) -> None:
    application = load(path)["spec"]["application"]
    # The image with the samples brings the runtime too.
    assert application["runtime"] == "Image"
    if "mainFrom" in application:
        reference = application["mainFrom"]["configMapKeyRef"]
        (script,) = [it for it in yaml.safe_load_all(path.read_text()) if it["kind"] == "ConfigMap"]
        assert (script["metadata"]["name"], [*script["data"]]) == (reference["name"], [reference["key"]])
        compile(script["data"][reference["key"]], reference["key"], "exec")
        return
    assert application["main"].startswith("local:///opt/tidegate/samples/")
    assert (SAMPLES / Path(application["main"]).name).is_file()


@pytest.mark.parametrize("path", sorted(SAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_a_sample_is_plain_pyspark_and_what_the_library_offers_if_an_option_or_its_subject_asks_for_more(
    path: Path,
) -> None:
    text = path.read_text()
    is_about_more = path.stem == "flight_delays"
    assert is_about_more or not re.search(r"^(import|from)\s+tidegate_spark\b", text, re.MULTILINE)
    assert not re.search(r"^\s*(import|from)\s+(tidegate|devcluster|tidegate_spark\.)\b", text, re.MULTILINE)
    named = re.findall(r"^\s*from tidegate_spark import ([\w, ]+)", text, re.MULTILINE)
    taken = {name.strip() for names in named for name in names.split(",")}
    assert taken <= {*tidegate_spark.__all__, "control"}


def test_the_flights_that_start_from_a_dump_differ_at_their_start_alone() -> None:
    first, again = load(FLIGHTS), load(FLIGHTS_FROM_DUMP)
    assert again["metadata"] == first["metadata"]
    begin = again["spec"].pop("startFrom")
    assert begin == {"exportedState": {"uri": "s3://tidegate-demo/flights/exports/learned/manifest.json"}}
    assert again["spec"]["application"]["args"].pop() == "--begin-with-dump"
    assert again == first
    assert not parse_flights(first["spec"]["application"]["args"]).begin_with_dump


def test_an_option_without_a_value_stays_one() -> None:
    built = build_application(image="i", endpoint="e", options={"flights": "f"}, file=FLIGHTS_FROM_DUMP)
    arguments = built.manifest["spec"]["application"]["args"]
    assert arguments[-1] == "--begin-with-dump"
    assert parse_flights(arguments).begin_with_dump
    assert (built.option("flights"), built.option("begin-with-dump"), built.option("nothing")) == ("f", "", "")
