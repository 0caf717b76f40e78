"""Latencies from offsets, held against every row followed by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.models.batches.tuple_latency import empirical_latency_quantile
from headway.models.estimation.live_latency import row_waits
from headway.models.laws.distributions import uniform_mixture_quantile


@given(
    st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40)), min_size=3, max_size=12),
    st.integers(0, 2**32 - 1),
)
def test_each_row_waits_from_its_arrival_to_the_commit_of_its_batch(
    steps: list[tuple[int, int]], seed: int
) -> None:
    random = np.random.default_rng(seed)
    asked = np.cumsum(random.uniform(0.2, 3.0, len(steps)))
    arrived = np.cumsum([arrivals for arrivals, _ in steps])
    read = np.minimum.accumulate(
        np.minimum(np.cumsum([taken for _, taken in steps]), arrived)[::-1]
    )[::-1]
    committed = asked + random.uniform(0.1, 1.0, len(steps))
    waits = row_waits(asked, arrived, read, committed)
    # By hand: thin slices of rows, each placed between the two looks that it came between.
    slices = 8
    for place in range(1, len(steps)):
        if arrived[place] == arrived[place - 1]:
            continue
        for at in range((arrived[place] - arrived[place - 1]) * slices):
            row = arrived[place - 1] + (at + 0.5) / slices
            if not read[0] < row <= read[-1]:
                continue
            share = (row - arrived[place - 1]) / (arrived[place] - arrived[place - 1])
            came_s = asked[place - 1] + share * (asked[place] - asked[place - 1])
            batch = int(np.searchsorted(read, row, side="left"))
            wait_s = committed[batch] - came_s
            own = waits.batch == batch
            assert np.any(
                (waits.low_s[own] - 1e-9 <= wait_s) & (wait_s <= waits.high_s[own] + 1e-9)
            )
    counted = read[-1] - max(read[0], arrived[0])
    assert waits.num_rows.sum() == pytest.approx(max(counted, 0))


def test_without_a_backlog_it_is_what_the_intervals_say() -> None:
    asked = np.array([0.0, 1.0, 3.0, 4.5])
    rows, committed = 100.0 * asked, asked + np.array([0.2, 0.4, 0.3, 0.6])
    waits = row_waits(asked, rows, rows, committed)
    for q in (0.1, 0.5, 0.99):
        assert float(
            uniform_mixture_quantile(q, waits.low_s, waits.high_s, waits.num_rows)
        ) == pytest.approx(
            float(
                empirical_latency_quantile(
                    q, np.diff(asked), (committed - asked)[1:], np.diff(rows)
                )
            )
        )


def test_late_rows_are_those_beyond_the_limit() -> None:
    at_s = np.arange(4.0)
    waits = row_waits(at_s, 100.0 * at_s, 100.0 * at_s, at_s + 0.5)
    assert waits.late_rows(1.25) == pytest.approx(75.0)
    assert waits.late_rows(2.0) == 0.0
    assert waits.late_rows(0.25) == pytest.approx(300.0)
    nothing = row_waits(at_s[:1], at_s[:1], at_s[:1], at_s[:1])
    assert nothing.late_rows(1.0) == 0.0


@pytest.mark.parametrize(
    "arguments",
    [
        ([0.0, 1.0], [0.0, 1.0], [0.0], [0.0, 1.0]),
        ([1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.0, 1.0]),
        ([0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]),
    ],
)
def test_what_goes_backwards_is_refused(arguments: tuple[list[float], ...]) -> None:
    with pytest.raises(ValueError, match=r"need four|must not decrease"):
        row_waits(*map(np.array, arguments))
