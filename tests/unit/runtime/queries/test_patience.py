"""How long a batch is waited for at a stop, by whether somebody computes it. Pure."""

from tidegate_spark.queries.patience import Patience


class Stop:
    """A stop that waits at most 95 s for a batch, on a clock of its own."""

    def __init__(self) -> None:
        self.now, self.computed, self.asked = 100.0, True, 0
        self.patience = Patience(195.0, self._is_computed, lambda: self.now)

    def _is_computed(self) -> bool:
        self.asked += 1
        return self.computed

    def waited(self, at_most: float = 200.0) -> float:
        """Return for how many seconds from now the batch is waited for."""
        began = self.now
        while self.now < began + at_most and not self.patience.is_over():
            self.now += 0.25
        return self.now - began


def test_a_batch_that_is_computed_is_waited_for_until_the_deadline() -> None:
    stop = Stop()
    assert stop.waited() == 95.0
    assert not stop.patience.gave_up


def test_a_batch_that_nobody_computes_is_given_up_soon() -> None:
    stop = Stop()
    stop.waited(20.0)
    stop.computed = False
    assert stop.waited() <= 11.0
    assert stop.patience.gave_up


def test_executors_that_are_gone_for_a_moment_change_nothing() -> None:
    stop = Stop()
    for _ in range(8):
        stop.computed = False
        assert stop.waited(6.0) == 6.0
        stop.computed = True
        assert stop.waited(2.0) == 2.0
    assert not stop.patience.gave_up


def test_whoever_waits_may_look_often_and_spark_is_asked_once_a_second() -> None:
    stop = Stop()
    stop.waited(10.0)
    assert stop.asked <= 11
