"""What the driver's JVM says of replies that it gave to Kafka's producer, without a broker."""

from typing import Any

import pytest
from py4j.protocol import Py4JJavaError


def failed(jvm: Any) -> Any:
    return jvm.java.util.concurrent.CompletableFuture.failedFuture(jvm.java.lang.IllegalStateException("full"))


def there(jvm: Any) -> Any:
    return jvm.java.util.concurrent.CompletableFuture.completedFuture(None)


def test_a_reply_that_failed_is_not_forgotten_for_one_that_is_there_at_once(jvm: Any) -> None:
    sent, early = jvm.dev.tidegate.spark.SentRecords(), jvm.java.util.concurrent.CompletableFuture()
    sent.add(early)
    sent.add(there(jvm))
    early.completeExceptionally(jvm.java.lang.IllegalStateException("full"))
    with pytest.raises(Py4JJavaError, match="full"):
        sent.flush()
    sent.flush()


def test_after_one_that_fails_at_once_nobody_waits_for_the_others(jvm: Any) -> None:
    sent = jvm.dev.tidegate.spark.SentRecords()
    sent.add(jvm.java.util.concurrent.CompletableFuture())  # never done
    with pytest.raises(Py4JJavaError, match="full"):
        sent.add(failed(jvm))
    sent.flush()
