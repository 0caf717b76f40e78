"""The simulated pipeline against what its rules give by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headway.models.pipeline.latency import PHASES
from headway.models.pipeline.parameters import Finalizing, Pipeline, pipeline_loads
from headway.models.simulation.pipeline import PipelineTrace, simulate_pipeline
from tests.models.pipeline.pipeline_cases import pipeline


def simulated(case: Pipeline, seed: int = 1, length_s: float = 3.0) -> PipelineTrace:
    return simulate_pipeline(case, length_s=length_s, seed=seed, warmup_s=1.0, num_rows=20_000)


def test_one_seed_one_trace() -> None:
    case = pipeline(noise=0.2, dispersion=2.0)
    first, again, other = simulated(case), simulated(case), simulated(case, seed=2)
    assert np.array_equal(first.phase_s, again.phase_s)
    assert not np.array_equal(first.phase_s, other.phase_s)


def test_phases_are_times_and_add_up() -> None:
    trace = simulated(
        pipeline(noise=0.2, dispersion=2.0, shuffle_row_bytes=1e4, input_row_bytes=1e3)
    )
    assert trace.phase_s.shape == (12, 20_000)
    assert np.all(np.isfinite(trace.phase_s))
    assert np.all(trace.phase_s >= -1e-9)
    assert trace.latency_s.mean() == pytest.approx(sum(trace.phase_means_s().values()))
    assert list(trace.phase_means_s()) == list(PHASES)


def test_an_idle_pipeline_only_waits_for_clocks() -> None:
    trace = simulated(pipeline(0.2, 0.13, 1e-6, map_busy=1e-6))
    means = trace.phase_means_s()
    assert means[PHASES[0]] == pytest.approx(0.0025, rel=0.01)
    assert means[PHASES[5]] == pytest.approx(0.1, rel=0.02)
    # 64 pairs of clocks, of a common divisor of 10 ms, and some thousand rows of each.
    assert means[PHASES[8]] == pytest.approx(0.065, rel=0.04)
    assert trace.latency_s.mean() == pytest.approx(0.1675, rel=0.02)
    busy = sum(means[PHASES[number]] for number in (1, 2, 3, 4, 6, 7, 9, 10, 11))
    assert busy < 1e-4


def test_waits_are_as_long_as_their_periods() -> None:
    trace = simulated(pipeline(0.2, 0.13, 0.3))
    assert trace.phase_s[5].max() <= 0.2 + 1e-9
    assert trace.phase_s[8].max() <= 0.13 + 1e-9
    assert trace.phase_s[0].max() <= 0.005 + 1e-9


@pytest.mark.parametrize("noise", [0.0, 0.3])
def test_threads_are_busy_as_their_loads_say(noise: float) -> None:
    case = pipeline(
        0.1, 0.05, 0.4, noise=noise,
        shuffle_fixed_s=0.005, fetch_fixed_s=0.01, batch_fixed_s=0.001,
        finalizing=Finalizing(num_keys=10, per_key_s=0.01, slide_s=1.0),
    )  # fmt: skip
    trace = simulate_pipeline(case, length_s=8.0, seed=3, warmup_s=0.0, num_rows=10)
    loads = pipeline_loads(case)
    assert trace.map_busy == pytest.approx(float(loads.map_busy), rel=0.02)
    assert trace.reduce_busy == pytest.approx(float(loads.reduce_busy), rel=0.03)


def test_early_rows_of_a_batch_wait_longer_and_are_served_first() -> None:
    # One mapper and one reducer: L = B - x (1 - S / B), between S and B.
    trace = simulated(pipeline(1.0, 1e-3, 0.5, map_busy=1e-6, num_nodes=1), length_s=5.0)
    assert np.corrcoef(trace.phase_s[5], trace.phase_s[11])[0, 1] < -0.999
    assert np.quantile(trace.latency_s, 0.001, method="inverted_cdf") == pytest.approx(
        0.5, abs=0.01
    )
    assert np.quantile(trace.latency_s, 0.999, method="inverted_cdf") == pytest.approx(
        1.0, abs=0.01
    )
    assert trace.latency_s.var() == pytest.approx(0.25 / 12.0, rel=0.02)


def test_locked_clocks_do_not_spread_a_run() -> None:
    # One mapper, one reducer, equal periods: the wait for the poll is one number in each run.
    case = pipeline(0.2, 0.2, 1e-3, map_busy=1e-3, num_nodes=1)
    runs = [simulated(case, seed=seed) for seed in range(12)]
    assert max(float(run.phase_s[8].std()) for run in runs) < 1e-6
    means = [float(run.phase_s[8].mean()) for run in runs]
    assert min(means) < 0.05
    assert max(means) > 0.15


def test_two_clocks_in_steps() -> None:
    runs = [
        simulated(pipeline(0.3, 0.4, 1e-3, map_busy=1e-3, num_nodes=1), seed, 12.0)
        for seed in (1, 2)
    ]
    for run in runs:
        assert float(run.phase_s[8].var()) == pytest.approx(0.0125, rel=0.03)
        assert len(np.unique(np.round(run.phase_s[8], 4))) <= 8


def test_a_slow_network_holds_back_the_reducer() -> None:
    case = pipeline(0.2, 0.2, 1e-4, map_busy=1e-4, shuffle_row_bytes=5e5)
    loads = pipeline_loads(case)
    trace = simulated(case)
    # The k-th of the batches of a poll is there after k transfers.
    waited = trace.phase_s[9] + trace.phase_s[8]
    assert float(waited.mean()) == pytest.approx(0.1 + 4.5 * float(loads.fetch_s), rel=0.07)


def test_overload_leaves_rows_behind() -> None:
    trace = simulated(pipeline(0.2, 0.2, 3.0), length_s=6.0)
    assert np.isinf(trace.latency_s).any()
    assert np.isinf(np.quantile(trace.latency_s, 0.99, method="inverted_cdf"))


def test_windows_end_after_their_last_rows() -> None:
    final = Finalizing(num_keys=64, per_key_s=0.01, slide_s=1.0)
    case = pipeline(0.1, 0.1, 1e-3, map_busy=1e-3, finalizing=final)
    trace = simulated(case, length_s=4.5)
    times = trace.window_latency_s
    assert len(times) == 5 * 8 * 64
    # Packing and polling at most a period each, then one of 64 keys after the other.
    assert times.min() >= 0.01
    assert times.max() <= 0.005 + 0.1 + 0.1 + 0.64 + 0.01
    first = times.reshape(-1, 64)
    assert np.diff(first, axis=1) == pytest.approx(0.01, abs=1e-6)


def test_refusals() -> None:
    case = pipeline()
    with pytest.raises(ValueError, match="must be a scalar"):
        simulate_pipeline(
            replace(case, rate_per_s=np.array([1.0, 2.0])), length_s=1.0, seed=1, warmup_s=0.0
        )
    with pytest.raises(ValueError, match="length_s"):
        simulate_pipeline(case, length_s=0.0, seed=1, warmup_s=0.0)
