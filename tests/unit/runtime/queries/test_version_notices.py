"""What is said of a version is said by its first launch. The store is in memory."""

from tidegate_spark.contract.protocol import Storage
from tidegate_spark.queries.state.version_notices import NOTES_FILE, VersionNotices
from tidegate_spark.snapshots.repository import SnapshotRepository
from tidegate_testing.driver_process import driver_config
from tidegate_testing.memory_store import Buckets, MemoryStore

LIBRARY = "apps/orders"


class World:
    """An application's storage."""

    def __init__(self) -> None:
        self.repository = SnapshotRepository(MemoryStore(Buckets(), "here"), LIBRARY)

    def launch(self, epoch: int, spec_hash: str, *messages: str) -> list[str]:
        """Return what of ``messages`` a launch gives."""
        reported: list[str] = []
        config = driver_config("app", "main.py", Storage("s3://here/apps/orders"), epoch=epoch, spec_hash=spec_hash)
        notices = VersionNotices(
            config, lambda: self.repository, lambda reason, message, warning: reported.append(message)
        )
        for message in messages:
            notices.publish("StateSchema", message, True)
        return reported


def test_a_notice_is_given_by_the_first_launch_of_a_version_and_by_that_of_the_next_version() -> None:
    world = World()
    assert world.launch(1, "v1", "a", "b") == ["a", "b"]
    assert world.launch(2, "v1", "a", "b", "c") == ["c"]
    assert world.launch(3, "v2", "a") == ["a"]
    # A rollback is a change of the version, too.
    assert world.launch(4, "v1", "a") == ["a"]


def test_a_process_that_is_started_again_in_its_pod_gives_it_again() -> None:
    world = World()
    assert world.launch(1, "v1", "a") == ["a"]
    assert world.launch(1, "v1", "a") == ["a"]


def test_where_it_is_not_known_what_was_given_everything_is() -> None:
    world = World()
    assert world.launch(1, "", "a") == ["a"]
    assert world.launch(2, "", "a") == ["a"]
    world.repository.store.put(world.repository.key(NOTES_FILE), b"[]")
    assert world.launch(3, "v1", "a") == ["a"]
    world.repository.store.put(world.repository.key(NOTES_FILE), b'{"version": 2}')
    assert world.launch(4, "v1", "a") == ["a"]
