"""The series of an application end with it, and those of no other."""

from prometheus_client import CollectorRegistry, Counter, Histogram

from tidegate.engine.app_series import AppSeries

ORDERS, BILLS = ("shop", "orders"), ("shop", "bills")


def test_an_application_that_is_gone_has_no_series_and_begins_again_with_nothing() -> None:
    registry, series = CollectorRegistry(), AppSeries()
    ends = Counter("ends", "Ends.", ("namespace", "app", "reason"), registry=registry)
    seconds = Histogram("seconds", "Time.", ("namespace", "app"), registry=registry)

    def shown() -> dict[tuple[str, ...], float]:
        samples = [sample for metric in registry.collect() for sample in metric.samples]
        counts = [sample for sample in samples if sample.name in {"ends_total", "seconds_count"}]
        return {(sample.name, *sample.labels.values()): sample.value for sample in counts}

    for app in (ORDERS, ORDERS, BILLS):
        series.of(ends, app, "Evicted").inc()
    series.of(ends, ORDERS, "Lost").inc()
    series.of(seconds, ORDERS).observe(2.0)
    series.remove(ORDERS)
    assert shown() == {("ends_total", *BILLS, "Evicted"): 1.0}
    series.remove(ORDERS)
    series.of(ends, ORDERS, "Lost").inc()
    assert shown() == {("ends_total", *BILLS, "Evicted"): 1.0, ("ends_total", *ORDERS, "Lost"): 1.0}
