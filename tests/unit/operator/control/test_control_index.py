"""What is known of ControlMessages: in which order they were sent, and what is kept of those that have ended."""

from datetime import UTC, datetime

import msgspec

from tidegate.api.control_message import payload_text
from tidegate.cache.index import Index
from tidegate.cache.kinds.resource_cache import UnreadableResource
from tidegate.cache.process_state import TimedReport
from tidegate.control.index import ControlIndex
from tidegate.control.observe import observe_control
from tidegate_testing.control_observations import APP, SENT, agent, ended, message, offered
from tidegate_testing.observations import NOW, running_driver

ORDERS = ("shop", "orders")


def names(index: ControlIndex) -> list[str]:
    return [found.metadata.name for found in index.in_order(ORDERS)]


def test_messages_are_in_the_order_of_their_creation() -> None:
    index = ControlIndex()
    for name, sent in (("a", SENT + 1), ("b", SENT), ("c", SENT + 2)):
        index.put(message(name, sent=sent))
    assert names(index) == ["b", "a", "c"]


def test_of_one_second_the_version_in_which_each_was_first_seen_tells_the_order() -> None:
    index = ControlIndex()
    index.put(message("z", resource_version="100"))
    index.put(message("a", resource_version="101"))
    assert names(index) == ["z", "a"]
    index.put(message("z", offered(order="100"), resource_version="130"))
    assert names(index) == ["z", "a"]


def test_a_version_that_no_decoder_of_numbers_reads_keeps_no_other_message_from_its_turn() -> None:
    index = ControlIndex()
    index.put(message("z", offered(order="9" * 5_000), resource_version="100"))
    index.put(message("a", resource_version="101"))
    assert names(index) == ["z", "a"]


def test_of_one_version_the_name_tells_it() -> None:
    index = ControlIndex()
    index.put(message("b", resource_version=""))
    index.put(message("a", resource_version=""))
    assert names(index) == ["a", "b"]


def test_of_what_has_ended_the_payload_is_not_kept() -> None:
    index = ControlIndex()
    index.put(message("a", payload={"threshold": 3}))
    index.put(message("b", ended(), payload={"threshold": 3}))
    assert [payload_text(found) for found in index.in_order(ORDERS)] == ['{"threshold":3}', "null"]


def test_messages_that_can_not_be_read_are_known_by_namespace() -> None:
    index = ControlIndex()
    odd = UnreadableResource(message("odd").metadata, "spec.type: missing")
    index.put(odd)
    assert (index.unreadable_in("shop"), index.unreadable_in("other"), index.has_messages(ORDERS)) == ([odd], [], False)


def test_an_application_with_no_message_left_has_none() -> None:
    index = ControlIndex()
    index.put(message("a"))
    assert index.has_messages(ORDERS)
    index.remove(("shop", "a"), "uid-a")
    assert not index.has_messages(ORDERS)
    assert not index.put(message("a", resource_version="99"))


def test_an_observation_has_the_application_its_driver_and_its_newest_answer() -> None:
    index, driver = Index(), running_driver(APP)
    index.of(ControlIndex).put(message("a"))
    assert observe_control(index, ORDERS, NOW).app is None
    index.put_app(APP)
    index.put_pod(driver)
    index.reports[ORDERS] = TimedReport(agent(), NOW, driver.uid, driver.restarts)
    seen = observe_control(index, ORDERS, NOW, 3.0)
    assert (seen.app, seen.driver, seen.agent, seen.clock_skew) == (APP, driver, agent(), 3.0)
    assert observe_control(index, ORDERS, NOW + 1000).agent is None
    index.put_app(
        {
            **msgspec.to_builtins(APP),
            "metadata": {**msgspec.to_builtins(APP.metadata), "resourceVersion": "99"},
            "spec": {},
        }
    )
    assert observe_control(index, ORDERS, NOW).app_unreadable


def test_thousands_that_have_ended_are_not_looked_at_each_time() -> None:
    index = ControlIndex()
    for number in range(3_000):
        done = ended(at=SENT + number)
        index.put(message(f"m{number:04}", done, sent=SENT, resource_version=str(number)))
    index.put(message("waits", sent=SENT + 5_000))
    found = names(index)
    assert (found[:3], found[-1], len(found)) == (["m0000", "m0001", "m0002"], "waits", 129)
    for name in found[:-1]:
        assert index.remove(("shop", name), index.get(("shop", name)).metadata.uid)  # type: ignore[union-attr] # is known
    assert names(index)[0] == "m0128"
    assert sum(index.phases(ORDERS).values()) == 3_000 - 128


def test_one_that_ends_or_is_being_deleted_is_where_it_belongs() -> None:
    index = ControlIndex()
    index.put(message("a", resource_version="1"))
    index.put(message("a", ended(), resource_version="2"))
    assert names(index) == ["a"]
    known = index.get(("shop", "a"))
    assert known is not None
    deleted = msgspec.structs.replace(
        known.metadata, deletion_timestamp=datetime.fromtimestamp(SENT, UTC), resource_version="3"
    )
    index.put(msgspec.structs.replace(known, metadata=deleted))
    assert names(index) == []
    assert sum(index.phases(ORDERS).values()) == 1
    index.remove(("shop", "a"), known.metadata.uid)
    assert (index.phases(ORDERS), index.has_messages(ORDERS)) == ({}, False)
