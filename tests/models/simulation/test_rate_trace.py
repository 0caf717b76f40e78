"""Rate traces simulated, against the sibling of constant rate, and what they must conserve."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.models.arrays import Array
from headway.models.batches.microbatch import AffineDuration
from headway.models.laws.distributions import uniform_mixture_quantile
from headway.models.simulation.rate_trace import (
    BatchNoise,
    RateTraceRuns,
    simulate_rate_trace,
)
from tests.oracles.microbatch import simulate_microbatch
from tests.seeds import examples

QUIET = BatchNoise(batch_ratio=0.0)


def affine(rows: Array) -> Array:
    return np.asarray(0.3 + 1e-4 * rows)


def simulated_runs(
    edges_s: list[float], rates_per_s: list[float], trigger_s: float, **options: Any
) -> RateTraceRuns:
    given_options: dict[str, Any] = {"noise": QUIET, "seed": 1, "num_runs": 1, "dispersion": 0.0}
    return simulate_rate_trace(
        affine,
        np.array(edges_s),
        np.array(rates_per_s),
        trigger_s,
        **(given_options | options),
    )


@pytest.mark.parametrize("trigger_s", [0.0, 1.0])
def test_a_constant_rate_gives_what_the_simulation_of_constant_rates_gives(
    trigger_s: float,
) -> None:
    simulated = simulated_runs(
        [0.0, 4000.0],
        [4000.0],
        trigger_s,
        noise=BatchNoise(batch_ratio=0.15),
        num_runs=4,
        dispersion=1.0,
    )
    trace = simulate_microbatch(
        AffineDuration(0.3, 1e-4, 0.15), 4000.0, trigger_s, num_batches=12000, seed=2
    )
    late = simulated.start_s > 50.0
    ours = uniform_mixture_quantile(
        np.array([0.5, 0.99]),
        (simulated.commit_s - simulated.last_arrival_s)[late],
        (simulated.commit_s - simulated.first_arrival_s)[late],
        simulated.num_rows[late],
    )
    theirs = trace.latency_quantile_s(np.array([0.5, 0.99]))
    assert ours == pytest.approx(theirs, rel=0.02)


def test_batches_get_longer_with_every_row_that_was_read_before() -> None:
    longer_s_per_row = 1e-6
    runs = simulated_runs([0.0, 300.0], [4000.0], 1.0, longer_s_per_row=longer_s_per_row)
    earlier_rows = np.cumsum(runs.num_rows) - runs.num_rows
    expected_s = affine(runs.num_rows) + longer_s_per_row * earlier_rows
    assert runs.duration_s == pytest.approx(expected_s)
    assert runs.duration_s[-1] > runs.duration_s[0] + 0.9


def test_rows_of_no_batch_are_counted_where_they_arrived() -> None:
    # The rate limit lets a third through: what arrived in the last two thirds is waiting.
    runs = simulated_runs([0.0, 300.0], [9000.0], 1.0, max_rows_per_trigger=3000.0)
    edges = np.linspace(0.0, 300.0, 7)
    (unread,) = runs.unread_rows(edges).T
    assert unread.sum() == pytest.approx(300.0 * 9000.0 - runs.num_rows.sum())
    assert unread[:1] == pytest.approx(0.0)
    assert unread[2:] == pytest.approx(50.0 * 9000.0)


@examples(20, 40)
@given(
    rates_per_s=st.lists(st.sampled_from([0.0, 500.0, 3000.0, 20000.0]), min_size=1, max_size=5),
    trigger_s=st.sampled_from([0.0, 0.7, 2.0]),
    cap=st.sampled_from([math.inf, 5000.0]),
)
def test_rows_are_read_once_in_order_and_not_before_they_come(
    rates_per_s: list[float], trigger_s: float, cap: float
) -> None:
    edges_s = [20.0 * number for number in range(len(rates_per_s) + 1)]
    if not any(rates_per_s):
        rates_per_s = [*rates_per_s[:-1], 500.0]
    simulated = simulated_runs(edges_s, rates_per_s, trigger_s, max_rows_per_trigger=cap)
    assert np.all(simulated.num_rows <= cap * (1 + 1e-12))
    assert simulated.num_rows.sum() <= 20.0 * sum(rates_per_s) * (1 + 1e-9)
    assert np.all(simulated.first_arrival_s <= simulated.last_arrival_s + 1e-6)
    assert np.all(simulated.last_arrival_s <= simulated.start_s + 1e-9)
    assert np.all(np.diff(simulated.first_arrival_s) >= -1e-6)
    assert np.all(simulated.start_s[1:] >= (simulated.start_s + simulated.duration_s)[:-1] - 1e-9)


def test_an_outage_leaves_its_rows_to_the_batches_after_it() -> None:
    simulated = simulated_runs([0.0, 100.0], [1000.0], 1.0, outages_s=[(40.0, 60.0)])
    inside = (simulated.start_s >= 40.0) & (simulated.start_s < 60.0)
    assert not inside.any()
    first = int(np.flatnonzero(simulated.start_s >= 60.0)[0])
    assert simulated.start_s[first] == 60.0
    assert simulated.num_rows[first] == pytest.approx(21000.0, rel=0.01)
    assert simulated.commit_s[first] - simulated.first_arrival_s[first] == pytest.approx(
        23.4, rel=0.02
    )


def test_a_cap_works_off_a_backlog_at_its_pace() -> None:
    # Batches of 3000 rows take 0.6 s, so one a second: 2000 rows/s of room, 20 000 rows behind.
    simulated = simulated_runs(
        [0.0, 100.0], [1000.0], 1.0, outages_s=[(40.0, 60.0)], max_rows_per_trigger=3000
    )
    full = simulated.num_rows >= 2999.0
    assert full.sum() == pytest.approx(10, abs=1)


def test_runs_differ_by_chance_and_repeat_by_their_seed() -> None:
    noise = BatchNoise(batch_ratio=0.1, autocorrelation=0.5, run_to_run_ratio=0.2)
    first, again = (
        simulated_runs([0.0, 300.0], [2000.0], 1.0, noise=noise, num_runs=6, seed=3)
        for _ in range(2)
    )
    assert np.array_equal(first.duration_s, again.duration_s)
    means = [first.duration_s[first.run == number].mean() for number in range(6)]
    assert np.std(np.log(means)) == pytest.approx(0.2, rel=0.6)


@pytest.mark.parametrize(
    ("edges_s", "rates_per_s", "options"),
    [
        ([0.0, 0.0], [1.0], {}),
        ([0.0, 1.0], [-1.0], {}),
        ([0.0, 1.0], [1.0, 2.0], {}),
        ([0.0, 1.0], [1.0], {"num_runs": 0}),
        ([0.0, 1.0], [1.0], {"dispersion": -1.0}),
    ],
)
def test_traces_out_of_range_are_refused(
    edges_s: list[float], rates_per_s: list[float], options: dict[str, Any]
) -> None:
    with pytest.raises(ValueError, match="need"):
        simulated_runs(edges_s, rates_per_s, 1.0, **options)
