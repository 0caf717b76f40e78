"""Runs simulated in step are runs simulated one by one."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

from headway.models.batches.microbatch import AffineDuration
from tests.oracles.microbatch import MicrobatchTrace, simulate_microbatch
from tests.oracles.microbatch_runs import simulate_microbatch_runs
from tests.seeds import first_of

DURATION = AffineDuration(1.0, 4e-4, 0.2, 0.05, after_commit_s=0.2)


def runs(
    trigger_s: float, *, autocorrelation: float = 0.0, dispersion: float = 1.0
) -> MicrobatchTrace:
    return simulate_microbatch_runs(
        DURATION, 1000.0, trigger_s, num_runs=500, num_batches=100, seed=1,
        autocorrelation=autocorrelation, dispersion=dispersion,
    )  # fmt: skip


# Trigger [s], autocorrelation, dispersion: each value is beside each other one in the first.
EVERY_CASE = [*product([0.0, 1.7, 4.0], [0.0, 0.6], [0.0, 20.0])]
FIRST_CASES = [
    *((0.0, 0.0, 0.0), (0.0, 0.6, 20.0), (1.7, 0.0, 20.0)),
    *((1.7, 0.6, 0.0), (4.0, 0.0, 0.0), (4.0, 0.6, 20.0)),
]
CASES = [*FIRST_CASES, *(case for case in EVERY_CASE if case not in FIRST_CASES)]


@pytest.mark.parametrize("case", first_of(CASES, len(FIRST_CASES)), ids=str)
def test_the_two_simulations_agree(case: tuple[float, float, float]) -> None:
    trigger_s, autocorrelation, dispersion = case
    in_step = runs(trigger_s, autocorrelation=autocorrelation, dispersion=dispersion)
    alone = simulate_microbatch(
        DURATION,
        1000.0,
        trigger_s,
        num_batches=20_000,
        seed=2,
        autocorrelation=autocorrelation,
        dispersion=dispersion,
    )
    assert in_step.latency_mean_s() == pytest.approx(alone.latency_mean_s(), rel=0.02)
    # One run after the other has seen less where it remembers.
    tolerance = 0.08 if autocorrelation else 0.03
    for q in (0.5, 0.99):
        expected = float(alone.latency_quantile_s(q))
        assert float(in_step.latency_quantile_s(q)) == pytest.approx(expected, rel=tolerance)
    assert in_step.duration_s.std() == pytest.approx(alone.duration_s.std(), rel=tolerance)


def test_starts_keep_the_epoch_grid() -> None:
    trace = runs(2.0)
    start = trace.start_s.reshape(500, 100)
    end = start + trace.duration_s.reshape(500, 100)
    following = np.diff(np.floor(start / 2.0 + 1e-9), axis=1)
    late = end[:, :-1] > 2.0 * (np.floor(start[:, :-1] / 2.0 + 1e-9) + 1.0)
    assert np.all(following[~late] == 1.0)
    assert start[:, 1:][late] == pytest.approx(end[:, :-1][late])
    assert late.any()


def test_durations_remember() -> None:
    quiet = AffineDuration(1.0, 0.0, 0.2)
    trace = simulate_microbatch_runs(
        quiet, 1.0, 4.0, num_runs=400, num_batches=50, seed=3, autocorrelation=0.7
    )
    score = np.log(trace.duration_s).reshape(400, 50)
    assert np.corrcoef(score[:, :-1].ravel(), score[:, 1:].ravel())[0, 1] == pytest.approx(
        0.7, abs=0.02
    )


def test_a_seed_repeats() -> None:
    assert np.array_equal(runs(1.7).duration_s, runs(1.7).duration_s)


def test_refusals() -> None:
    with pytest.raises(ValueError, match="rate_per_s"):
        simulate_microbatch_runs(DURATION, 0.0, 1.0, num_runs=1, num_batches=1, seed=1)
    with pytest.raises(ValueError, match="num_runs"):
        simulate_microbatch_runs(DURATION, 1.0, 1.0, num_runs=0, num_batches=1, seed=1)
    with pytest.raises(ValueError, match="autocorrelation"):
        runs(1.0, autocorrelation=1.0)
