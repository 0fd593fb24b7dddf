"""What the attacked application's state has to be, by hand."""

from tests.attack import oracle


def test_the_state_of_a_batch_is_that_of_all_rows_up_to_it() -> None:
    # 7919 = 4 (mod 5): the values 0 to 5 have the keys 0, 4, 3, 2, 1, 0.
    first, second = {0: (0, 1, 0), 4: (4, 1, 1), 3: (3, 1, 2)}, {2: (2, 1, 3), 1: (1, 1, 4), 0: (0, 2, 5)}
    expected = {0: oracle.digest(first.values()), 1: oracle.digest({**first, **second}.values())}
    assert oracle.digests(3, 5, {0, 1}) == expected
    assert oracle.digests(3, 5, {1}) == {1: expected[1]}
    assert oracle.changes(3, 5, 1, 1) == {1: [(0, 2, 5), (1, 1, 4), (2, 1, 3)]}


def test_a_hash_knows_rows_and_not_their_order() -> None:
    assert oracle.digest([(1, 2, 3), (4, 5, 6)]) == oracle.digest([(4, 5, 6), (1, 2, 3)])
    assert oracle.digest([(1, 2, 3)]) != oracle.digest([(1, 3, 3)])


def test_no_ready_snapshot_asks_for_no_batch() -> None:
    assert oracle.digests(3, 5, set()) == {}
