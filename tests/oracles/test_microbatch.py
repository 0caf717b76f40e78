"""The event simulation keeps Spark's rules and loses no row."""

from __future__ import annotations

import numpy as np
import pytest

from headway.models.batches.microbatch import AffineDuration
from tests.oracles.microbatch import MicrobatchTrace, simulate_microbatch


def simulated(
    trigger_s: float, noise: float = 0.3, dispersion: float = 0.0, cap: float = np.inf
) -> MicrobatchTrace:
    return simulate_microbatch(
        AffineDuration(1.0, 5e-4, noise),
        1000.0,
        trigger_s,
        num_batches=2000,
        seed=11,
        dispersion=dispersion,
        max_rows_per_trigger=cap,
    )


def test_a_batch_starts_on_the_grid_or_right_after_an_overrun() -> None:
    trace = simulated(2.2)
    end = trace.start_s + trace.duration_s
    next_point = 2.2 * (np.floor(trace.start_s / 2.2 + 1e-9) + 1.0)
    expected = np.maximum(end, next_point)[:-1]
    assert trace.start_s[1:] == pytest.approx(expected)
    off_grid = np.abs(trace.start_s / 2.2 - np.round(trace.start_s / 2.2)) > 1e-6
    assert 0 < off_grid.sum() < len(off_grid)


def test_without_a_trigger_batches_follow_each_other() -> None:
    trace = simulated(0.0)
    assert trace.start_s[1:] == pytest.approx((trace.start_s + trace.duration_s)[:-1])


def test_an_even_flow_brings_rate_times_interval() -> None:
    trace = simulated(2.2)
    assert trace.num_rows == pytest.approx(1000.0 * trace.interval_s)
    assert trace.latency_num_rows.sum() == pytest.approx(trace.num_rows.sum())
    assert np.all(trace.num_backlog_rows == 0.0)


def test_row_counts_have_the_dispersion() -> None:
    trace = simulated(4.0, noise=0.0, dispersion=40.0)
    assert trace.num_rows.mean() == pytest.approx(4000.0, rel=0.01)
    assert trace.num_rows.var() == pytest.approx(40.0 * 4000.0, rel=0.15)


def test_the_cap_holds_and_rows_wait_their_turn() -> None:
    trace = simulated(2.5, noise=0.0, dispersion=50.0, cap=2700.0)
    assert trace.num_rows.max() == pytest.approx(2700.0)
    assert trace.num_backlog_rows.max() > 0.0
    arrived = np.diff(trace.num_backlog_rows) + trace.num_rows[1:]
    assert arrived.mean() == pytest.approx(2500.0, rel=0.02)
    uncapped = simulated(2.5, noise=0.0, dispersion=50.0)
    assert trace.latency_mean_s() > uncapped.latency_mean_s()
    extra = trace.num_backlog_rows.mean() / 1000.0
    assert trace.latency_mean_s() - uncapped.latency_mean_s() == pytest.approx(extra, rel=0.25)


def test_a_query_without_rows_polls() -> None:
    trace = simulate_microbatch(
        AffineDuration(0.01, 0.0), 0.5, 0.0, num_batches=500, seed=3, polling_delay_s=0.25
    )
    assert np.all(trace.num_rows >= 1.0)
    # A poll that finds rows takes those of the last quarter of a second.
    assert trace.latency_high_s.max() <= 0.25 + 0.02 + 1e-9
    assert trace.interval_s.max() > 2.0
    assert trace.num_rows.sum() / trace.interval_s.sum() == pytest.approx(0.5, rel=0.15)


def test_idle_triggers_run_no_batch() -> None:
    trace = simulate_microbatch(AffineDuration(0.1, 0.0), 0.1, 1.0, num_batches=300, seed=3)
    assert trace.interval_s == pytest.approx(np.round(trace.interval_s))
    assert trace.interval_s.max() > 1.5
    assert trace.latency_high_s.max() == pytest.approx(1.1)
    assert trace.num_rows.sum() / trace.interval_s.sum() == pytest.approx(0.1, rel=0.15)


def test_after_the_commit_counts_for_the_interval_only() -> None:
    late = AffineDuration(1.0, 5e-4, 0.3)
    early = AffineDuration(1.0, 5e-4, 0.3, after_commit_s=0.4)
    traces = [
        simulate_microbatch(duration, 1000.0, 0.0, num_batches=200, seed=5)
        for duration in (late, early)
    ]
    assert traces[0].start_s.tolist() == traces[1].start_s.tolist()
    assert traces[0].latency_mean_s() - traces[1].latency_mean_s() == pytest.approx(0.4)


def test_a_seed_repeats_and_another_does_not() -> None:
    def starts(seed: int) -> list[float]:
        trace = simulate_microbatch(
            AffineDuration(1.0, 5e-4, 0.3), 1000.0, 0.0, num_batches=50, seed=seed
        )
        return [float(start) for start in trace.start_s]

    assert starts(1) == starts(1)
    assert starts(1) != starts(2)


def test_quantiles_and_cdf_of_a_trace_agree() -> None:
    trace = simulated(2.2)
    q = np.array([0.1, 0.5, 0.99])
    assert trace.latency_cdf(trace.latency_quantile_s(q)) == pytest.approx(q, abs=1e-9)


@pytest.mark.parametrize(
    "options",
    [{"num_batches": 0}, {"dispersion": -1.0}, {"max_rows_per_trigger": 0.0}, {"rate_per_s": 0.0}],
)
def test_refusals(options: dict[str, float]) -> None:
    arguments = {"rate_per_s": 1.0, "trigger_s": 1.0, "num_batches": 5, "seed": 1} | options
    with pytest.raises(ValueError, match="need"):
        simulate_microbatch(AffineDuration(1.0, 1e-3), **arguments)  # type: ignore[arg-type]
