"""What arrived: by offsets where they count rows, and by partition where they are of partitions."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from headway.profiler.streaming.arrivals import arrival_series, observed_arrivals, rate_change
from headway.profiler.streaming.samples import ArrivalSeries, SourceSample

Position = Callable[[int], Mapping[str, int]]


def series_of(position: Position, *, rows: int, behind: int, num: int = 5) -> ArrivalSeries:
    """Batches of so many rows each second, each leaving ``behind`` rows to the next one."""

    def source(place: int) -> tuple[SourceSample]:
        start, end = place * rows, (place + 1) * rows
        latest = position(end + behind)
        return (SourceSample(start=position(start), end=position(end), latest=latest),)

    sources = [(source(place + 1), source(place)) for place in range(num)]
    return arrival_series([1.0] * num, [float(rows)] * num, sources)


def of_topic(total: int) -> Mapping[str, int]:
    return {"orders/0": total * 3 // 4, "orders/1": total - total * 3 // 4}


def of_clock(total: int) -> Mapping[str, int]:
    return {"rows": total, "startEpochMicros": 1_795_294_060_968_159}


def test_partitions_of_a_topic_show_which_is_the_busiest() -> None:
    series = series_of(of_topic, rows=100, behind=40)
    assert series.partition_rows == {"orders/0": 375, "orders/1": 125}
    observed = observed_arrivals(series, None)
    assert observed.largest_partition_share == pytest.approx(0.75)
    assert observed.rate_p50_per_s == 100.0
    assert observed.lag_max_rows == 40.0


@pytest.mark.parametrize(
    ("rates_per_s", "is_change"),
    [
        ([1_000] * 10 + [8_000] * 20 + [3_000] * 10, True),
        ([1_000] * 10 + [1_500] * 10 + [1_200] * 10, False),
        ([0, 6_000] * 15, False),  # bursts
        ([1_000] * 6 + [8_000] * 6, False),  # too few to tell
    ],
)
def test_a_rate_that_changed_within_the_run_is_no_rate_to_plan_for(
    rates_per_s: list[int], is_change: bool
) -> None:
    series = arrival_series([2.0] * len(rates_per_s), [2.0 * rate for rate in rates_per_s], ())
    change = rate_change(series)
    assert (change is not None) == is_change
    if change is not None:
        assert "from 1k/s to 8k/s between quarters" in change
        assert "5k/s is the mean" in change


def test_other_numbers_of_an_offset_are_no_partitions() -> None:
    series = series_of(of_clock, rows=100, behind=0)
    assert series.partition_rows == {}
    assert observed_arrivals(series, None).largest_partition_share is None
    assert observed_arrivals(series, None).rate_max_per_s == 100.0


def test_offsets_that_do_not_count_rows_are_not_believed() -> None:
    series = series_of(lambda total: {"orders/0": 10 * total}, rows=100, behind=0)
    assert series.lag_rows is None
    assert observed_arrivals(series, 0.5).rate_p95_per_s == 100.0
    assert observed_arrivals(series, 0.5).event_time_lag_s == 0.5
