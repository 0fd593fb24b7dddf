"""An inbox on a real S3 server keeps the contract, and the library's writer writes what it reads."""

import itertools
import json

import pytest

from devcluster import s3
from devcluster.site import LocalSite
from tidegate_spark.control_writer import NotWrittenError, Pace
from tidegate_testing.channel_contract import Application, ChannelContract, Scene, messages, opened, received, until
from tidegate_testing.fake_operations import FakeOperations
from tidegate_testing.inbox_scene import InboxScene


@pytest.fixture(scope="session")
def s3_site(site: LocalSite) -> LocalSite:
    s3.up(site)
    return site


class TestInbox(ChannelContract):
    @pytest.fixture
    def scene(self, s3_site: LocalSite) -> Scene:
        return InboxScene.on(s3_site)

    def test_a_message_that_hangs_is_rejected_in_its_time_and_the_next_one_comes(
        self, scene: Scene, application: Application
    ) -> None:
        super().test_a_message_that_hangs_is_rejected_in_its_time_and_the_next_one_comes(scene, application)


@pytest.fixture
def inbox(s3_site: LocalSite) -> InboxScene:
    return InboxScene.on(s3_site)


def test_what_a_writer_puts_comes_in_its_order_and_is_removed_when_it_was_taken(inbox: InboxScene) -> None:
    with inbox.writer(pace=Pace(linger_seconds=0.0, most_in_batch=7)) as writer:
        sent = [writer.send("reload-config", {"n": number}) for number in range(100)]
    names = inbox.unread()
    assert len(names) >= 100 / 7
    with opened(inbox) as channel:
        deliveries = received(channel, 100)
        assert [json.loads(message.body)["id"] for message in messages(deliveries)] == sent
        assert inbox.unread() == names
        channel.taken(deliveries[-1])
        assert inbox.unread() == []


def test_a_writer_goes_on_when_its_store_is_back_and_everything_is_there_once(inbox: InboxScene) -> None:
    application = Application(inbox, FakeOperations({"main"}))
    application.start()
    numbers = itertools.count()
    with inbox.writer(pace=Pace(most_in_batch=5)) as writer:
        for _ in range(20):
            writer.send("reload-config", {}, id=str(next(numbers)))
        writer.flush()
        inbox.stop()
        for _ in range(20):
            writer.send("reload-config", {}, id=str(next(numbers)))
        with pytest.raises(NotWrittenError):
            writer.flush(timeout=1)
        inbox.start()
        writer.flush(timeout=300)
        until(lambda: len(application.logged()) == 40, "the log")
        application.commit(1)
        assert writer.outcome("39", timeout=300).applied
    application.stop()
    assert [entry.id for entry in application.logged()] == [f"/test#{number}" for number in range(40)]


def test_a_writer_with_a_wrong_password_is_told_so(inbox: InboxScene) -> None:
    wrong = InboxScene(inbox.place, type(inbox.credentials)(inbox.credentials.access_key, "wrong"))
    writer = wrong.writer()
    writer.send("ping")
    with pytest.raises(NotWrittenError, match="refuses"):
        writer.flush(timeout=300)
