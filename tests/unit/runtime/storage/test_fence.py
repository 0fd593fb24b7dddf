"""Who may write: each test states what fence.json holds and asserts who has it afterwards. No I/O."""

import dataclasses
import json
from collections.abc import Callable

import pytest

from tidegate_spark.contract.json_form import DamagedFormError, NewerFormatError
from tidegate_spark.storage.claim.fence import FenceContendedError, Fenced, Held, Holder, check, take

ME = Holder(uid="app-1", epoch=3, lineage=2, pod_uid="pod-3", process="c")


class Object:
    """fence.json in memory; ``meanwhile`` is called once before each conditional write is looked at."""

    def __init__(self, content: bytes | None = None, meanwhile: Callable[["Object"], None] = lambda it: None) -> None:
        self.content, self.version, self.meanwhile = content, 1, meanwhile

    def get(self) -> tuple[bytes, str] | None:
        return None if self.content is None else (self.content, f"etag-{self.version}")

    def put_if(self, body: bytes, etag: str | None) -> str | None:
        self.meanwhile(self)
        if etag != (None if self.content is None else f"etag-{self.version}"):
            return None
        self.write(body)
        return f"etag-{self.version}"

    def write(self, body: bytes) -> None:
        self.content, self.version = body, self.version + 1

    def holder(self) -> Holder:
        assert self.content is not None
        return Holder(**json.loads(self.content))


def held_by(holder: Holder) -> Object:
    fence = Object()
    take(fence, holder)
    return fence


def other(**fields: object) -> Holder:
    return dataclasses.replace(ME, **{"pod_uid": "pod-x", "process": "x", **fields})  # type: ignore[arg-type] # by name


def test_a_fence_that_nobody_has_is_taken() -> None:
    fence = Object()
    assert take(fence, ME) == Held("etag-2")
    assert fence.holder() == ME


@pytest.mark.parametrize(
    "before",
    [
        pytest.param(other(epoch=2), id="an earlier epoch"),
        pytest.param(dataclasses.replace(ME, process="b"), id="an earlier process of this pod"),
        pytest.param(other(uid="app-0", epoch=9), id="another application, whose claim a person removed"),
    ],
)
def test_the_fence_is_taken_from(before: Holder) -> None:
    fence = held_by(before)
    held = take(fence, ME)
    assert isinstance(held, Held)
    assert fence.holder() == ME
    assert check(fence, held) is None


@pytest.mark.parametrize(
    ("ahead", "fenced"),
    [
        pytest.param(other(epoch=7, lineage=4), Fenced(7, 4), id="a later epoch"),
        pytest.param(other(), Fenced(3, 2), id="another pod of this epoch"),
    ],
)
def test_the_fence_is_not_taken_from(ahead: Holder, fenced: Fenced) -> None:
    fence = held_by(ahead)
    assert take(fence, ME) == fenced
    assert fence.holder() == ahead


def test_who_lost_the_fence_learns_to_whom() -> None:
    fence = held_by(ME)
    held = take(fence, ME)
    take(fence, other(epoch=4))
    assert isinstance(held, Held)
    assert check(fence, held) == Fenced(4, 2)


def test_a_fence_that_was_removed_is_lost() -> None:
    assert check(Object(), Held("etag-2")) == Fenced()


def test_of_two_that_take_it_at_once_the_later_epoch_has_it() -> None:
    later = other(epoch=4)

    def meanwhile(it: Object) -> None:
        it.meanwhile = lambda it: None
        take(it, later)

    fence = Object(meanwhile=meanwhile)
    assert take(fence, ME) == Fenced(4, 2)
    assert fence.holder() == later


def test_a_write_whose_answer_was_lost_is_recognised() -> None:
    fence = held_by(ME)
    assert take(fence, ME) == Held("etag-2")


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"epoch": "many"}', b"\xff", b"[" * 100_000])
def test_a_fence_that_does_not_say_whom_it_keeps_out_is_not_taken(content: bytes) -> None:
    fence = Object(content)
    with pytest.raises(DamagedFormError):
        take(fence, ME)
    assert fence.content == content


def test_who_finds_a_damaged_fence_instead_of_its_own_has_lost_it() -> None:
    fence = held_by(ME)
    held = take(fence, ME)
    assert isinstance(held, Held)
    fence.write(b"{}")
    assert check(fence, held) == Fenced()


def test_a_fence_of_a_newer_tidegate_is_not_taken_whatever_else_it_says() -> None:
    content = b'{"version": 2, "holders": []}'
    fence = Object(content)
    with pytest.raises(NewerFormatError, match="its format is 2"):
        take(fence, ME)
    assert fence.content == content


def test_who_finds_a_fence_of_a_newer_tidegate_instead_of_its_own_has_lost_it() -> None:
    fence = held_by(ME)
    held = take(fence, ME)
    assert isinstance(held, Held)
    fence.write(b'{"version": 2}')
    assert check(fence, held) == Fenced()


def test_a_fence_that_changes_hands_all_the_time_is_not_waited_for() -> None:
    earlier = held_by(other(epoch=1)).content or b""
    fence = Object(meanwhile=lambda it: it.write(earlier))
    with pytest.raises(FenceContendedError):
        take(fence, ME)
