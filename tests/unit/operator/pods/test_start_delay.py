"""Which of a pod's events says why its containers do not begin. Pure."""

import datetime

import pytest

from tidegate.pods.records.start_delay import (
    LONGEST_TEXT,
    Obstacle,
    PodEvent,
    StartDelay,
    delay_of,
    missing_claim,
    time_of,
)

NO_CONFIG_MAP = 'MountVolume.SetUp failed for volume "rules" : configmap "rules" not found'
NO_SECRET = 'MountVolume.SetUp failed for volume "keys" : secret "keys" not found'
NO_KEY = 'MountVolume.SetUp failed for volume "rules" : configmap references non-existent config key: a.yaml'
NO_SERVER = 'MountVolume.SetUp failed for volume "data" : mount failed: exit status 32: Connection timed out'
LISTED = (
    "Unable to attach or mount volumes: unmounted volumes=[rules], unattached volumes=[], failed to process "
    "volumes=[]: timed out waiting for the condition"
)
MULTI_ATTACH = 'Multi-Attach error for volume "pvc-1" Volume is already used by pod(s) other-0'
SANDBOX = (
    "Failed to create pod sandbox: rpc error: code = Unknown desc = failed to setup network for sandbox "
    '"6091888ef60975acea7b4596a3b7deb9f51d58e4f4a43ea33e721ed280beb5b7": no addresses left'
)
EPOCH = datetime.datetime(2027, 1, 15, tzinfo=datetime.UTC)


def at(seconds: float) -> datetime.datetime:
    return EPOCH + datetime.timedelta(seconds=seconds)


def warning(reason: str, message: str, seconds: float = 0) -> PodEvent:
    return PodEvent("Warning", reason, message, firstTimestamp=EPOCH, lastTimestamp=at(seconds))


def normal(reason: str, message: str = "", seconds: float = 0) -> PodEvent:
    return PodEvent("Normal", reason, message, firstTimestamp=EPOCH, lastTimestamp=at(seconds))


NAMED: dict[str, tuple[PodEvent, Obstacle, str]] = {
    "ConfigMap": (warning("FailedMount", NO_CONFIG_MAP), Obstacle.REFERENCE, "ConfigMap rules"),
    "Secret": (warning("FailedMount", NO_SECRET), Obstacle.REFERENCE, "Secret keys"),
    "key": (warning("FailedMount", NO_KEY), Obstacle.REFERENCE, "Key a.yaml of a ConfigMap"),
    "server": (warning("FailedMount", NO_SERVER), Obstacle.VOLUME, ""),
    "device": (warning("FailedMapVolume", "MapVolume failed"), Obstacle.VOLUME, ""),
    "attached elsewhere": (warning("FailedAttachVolume", MULTI_ATTACH), Obstacle.VOLUME, ""),
    "only a list": (warning("FailedMount", LISTED), Obstacle.VOLUME, ""),
    "network": (warning("FailedCreatePodSandBox", SANDBOX), Obstacle.SANDBOX, ""),
    "image": (normal("Pulling", 'Pulling image "shop/orders:1"'), Obstacle.PULLING, ""),
    "another warning": (warning("NetworkNotReady", "network is not ready"), Obstacle.UNNAMED, ""),
}


@pytest.mark.parametrize(("event", "obstacle", "name"), NAMED.values(), ids=NAMED.keys())
def test_what_is_in_the_way_is_named_with_its_object(event: PodEvent, obstacle: Obstacle, name: str) -> None:
    found = delay_of([normal("Scheduled", "Successfully assigned shop/orders-driver to node0"), event])
    assert (found.obstacle, found.name) == (obstacle, name)


def test_without_events_nothing_is_known() -> None:
    assert delay_of([]) == StartDelay(Obstacle.UNNAMED)
    assert delay_of([normal("Scheduled")]) == StartDelay(Obstacle.UNNAMED)


@pytest.mark.parametrize("turned", [False, True])
def test_the_newest_event_counts_however_they_are_listed(turned: bool) -> None:
    events = [warning("FailedMount", NO_CONFIG_MAP, 30), warning("FailedMount", NO_SECRET, 60)]
    found = delay_of(events[::-1] if turned else events)
    assert found.name == "Secret keys"


def test_a_list_of_volumes_says_less_than_what_is_wrong_with_one_even_if_that_was_said_before() -> None:
    found = delay_of([warning("FailedMount", NO_CONFIG_MAP, 30), warning("FailedMount", LISTED, 90)])
    assert (found.obstacle, found.name) == (Obstacle.REFERENCE, "ConfigMap rules")


def test_a_list_of_volumes_says_more_than_other_warnings() -> None:
    other = warning("FailedToRetrieveImagePullSecret", "unable to retrieve some image pull secrets", 95)
    found = delay_of([warning("FailedMount", LISTED, 90), other])
    assert (found.obstacle, found.text) == (Obstacle.VOLUME, LISTED)


@pytest.mark.parametrize("progress", ["Pulling", "Pulled", "Created", "Started"])
@pytest.mark.parametrize("seconds", [60, 61])
def test_what_failed_before_the_images_were_pulled_has_passed(progress: str, seconds: float) -> None:
    """Times are whole seconds: of the same second, the later step is the later event."""
    found = delay_of([warning("FailedMount", NO_CONFIG_MAP, 60), normal(progress, "an image", seconds)])
    assert found.obstacle is (Obstacle.PULLING if progress == "Pulling" else Obstacle.UNNAMED)


def test_what_fails_after_an_image_was_pulled_is_in_the_way_again() -> None:
    found = delay_of([normal("Pulled", "an image", 60), warning("FailedCreatePodSandBox", SANDBOX, 90)])
    assert found.obstacle is Obstacle.SANDBOX


def test_that_no_node_was_found_before_one_was_is_not_told() -> None:
    found = delay_of([warning("FailedScheduling", "0/3 nodes are available.", 5), normal("Scheduled", "", 10)])
    assert found == StartDelay(Obstacle.UNNAMED)


def test_the_time_of_an_event_is_the_last_that_it_gives() -> None:
    old, new = warning("FailedMount", NO_CONFIG_MAP), warning("FailedMount", NO_SECRET, 7)
    assert (time_of(old), time_of(new)) == (EPOCH.timestamp(), at(7).timestamp())
    assert time_of(PodEvent(eventTime=at(9))) == at(9).timestamp()
    assert time_of(PodEvent()) == 0.0


def test_a_sandbox_that_fails_again_is_told_of_in_the_same_words() -> None:
    found = delay_of([warning("FailedCreatePodSandBox", SANDBOX)])
    assert "6091888e" not in found.text
    assert "no addresses left" in found.text


def test_a_book_in_an_event_is_cut_and_its_secrets_are_redacted() -> None:
    key = "AKIA" + "ABCDEFGHIJKLMNOP"
    found = delay_of([warning("FailedMount", f"mount failed:\n{key} " + "x " * 10**6)])
    assert len(found.text) == LONGEST_TEXT
    assert key not in found.text
    assert "\n" not in found.text


def test_a_claim_that_the_scheduler_misses_is_named_and_one_that_is_not_bound_is_not_missing() -> None:
    text = '0/1 nodes are available: persistentvolumeclaim "data" not found. preemption: 0/1 nodes are available.'
    missing = missing_claim(text)
    assert missing is not None
    assert (missing.obstacle, missing.name) == (Obstacle.REFERENCE, "PersistentVolumeClaim data")
    assert missing_claim("0/1 nodes are available: pod has unbound immediate PersistentVolumeClaims.") is None
