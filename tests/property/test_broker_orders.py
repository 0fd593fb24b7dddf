"""Of a broker's message that asks for a snapshot or a dump exactly one ControlMessage and one StreamSnapshot are made,
and its sender is told of them: however often driver and operator are killed, and whatever is lost between the two.
"""

import random
from collections import Counter

import pytest

from tidegate.api.control_message import ControlMessage
from tidegate_spark.contract.control_protocol import MOST_ASKED
from tidegate_spark.control.channels.cluster_requests import asked_id, involves_cluster
from tidegate_spark.control_log.entries import Entry
from tidegate_testing.broker_orders import FAILING, BrokerOrders
from tidegate_testing.channels import QUEUE, TOPIC, MemoryBroker
from tidegate_testing.control_log import opened
from tidegate_testing.examples import gate_share

SEEDS, STEPS = gate_share(20), 60


async def reported(kind: str, seed: int) -> BrokerOrders:
    """Return a story that has come to rest."""
    story = BrokerOrders(random.Random(seed), MemoryBroker(kind))
    for _ in range(STEPS):
        await story.happen()
        assert len(story.service.report().asked or ()) <= MOST_ASKED
    await story.settle()
    return story


def asking(story: BrokerOrders) -> list[Entry]:
    """Return the log's messages that ask the cluster for something."""
    log = opened(story.buckets)
    return [entry for entry in log.entries(0, log.last, whole=False) if involves_cluster(entry)]


@pytest.mark.parametrize("kind", [TOPIC, QUEUE])
@pytest.mark.parametrize("seed", range(SEEDS))
async def test_each_has_exactly_one_snapshot_and_its_sender_is_told(kind: str, seed: int) -> None:
    story = await reported(kind, seed)
    entries = asking(story)
    assert len({entry.id for entry in entries}) == len(entries)
    taken = [entry for entry in entries if entry.sequence % FAILING]
    made = Counter(story.api.made)
    assert set(made.values()) <= {1}
    assert sum(kind == "ControlMessage" for kind, _ in made) == len(entries)
    assert sum(kind == "StreamSnapshot" for kind, _ in made) == len(taken)
    by_id = {message.log_id: message for message in story.api.all("controlmessages", ControlMessage)}
    replies = {data["sequence"]: data for data in story.replies()}
    for entry in entries:
        # It may have been removed: a day may have passed.
        message, reply = by_id.get(asked_id(entry)), replies[entry.sequence]
        if entry in taken:
            assert reply["state"] == "Done"
            assert ("StreamSnapshot", reply["results"]["streamSnapshot"]) in made
            assert message is None or message.status.phase == "Applied"
            assert ("uri" in reply["results"]) == (entry.type == "dump-state")
        else:
            assert (reply["state"], reply["reason"]) == ("Failed", "BatchLost")
            assert message is None or message.status.phase == "Failed"
    assert story.service.report().asked == ()


@pytest.mark.parametrize("seed", range(5))
async def test_none_of_them_is_ever_given_to_a_driver_to_be_logged_again(seed: int) -> None:
    story = await reported(TOPIC, seed)
    assert [orders.messages for orders in story.given if orders.messages] == []


@pytest.mark.parametrize("seed", range(5))
async def test_they_are_removed_in_the_end_and_not_made_again(seed: int) -> None:
    story = await reported(QUEUE, seed)
    before = list(story.api.made)
    story.clock.now += 2 * 86_400
    story.restart()
    await story.settle(4)
    assert story.api.all("controlmessages", ControlMessage) == []
    assert story.api.made == before


async def test_the_stories_have_deaths_and_rejections_in_them() -> None:
    facts: Counter[str] = Counter()
    for seed in range(SEEDS):
        story = await reported(TOPIC, seed)
        facts.update(deaths=story.deaths, crashes=story.crashes, asking=len(asking(story)))
        facts.update(f"{data['state']} {data['reason']}" for data in story.replies())
    assert min(facts["deaths"], facts["crashes"], facts["asking"]) > SEEDS
    assert facts["Rejected TooManyOpen"] > 0
