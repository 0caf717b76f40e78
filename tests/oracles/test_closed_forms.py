"""Closed forms against published values, the steady state, and the event simulation."""

from __future__ import annotations

import numpy as np
import pytest

from headway.models.batches.microbatch import AffineDuration
from tests.oracles.closed_forms import freerun_moments
from tests.oracles.microbatch import simulate_microbatch


def test_golden_freerun_moments() -> None:
    mean, sd, latency, latency_sd = freerun_moments(2.0, 0.45, 0.1)
    assert (float(mean), float(sd) ** 2) == pytest.approx((3.63636, 0.16623), rel=1e-4)
    assert (float(latency), float(latency_sd) ** 2) == pytest.approx((5.49797, 1.43226), rel=1e-5)


def test_freerun_moments_against_simulation() -> None:
    trace = simulate_microbatch(
        AffineDuration(1.0, 0.7 / 1000.0, 0.1),
        1000.0,
        0.0,
        num_batches=30_000,
        seed=2,
        dispersion=0.0,
    )
    moments = freerun_moments(1.0, 0.7, 0.1)
    assert float(moments.mean_duration_s) == pytest.approx(trace.duration_s.mean(), rel=0.01)
    assert float(moments.sd_duration_s) == pytest.approx(trace.duration_s.std(), rel=0.03)
    assert float(moments.mean_latency_s) == pytest.approx(trace.latency_mean_s(), rel=0.01)


def test_freerun_moments_exist_in_order() -> None:
    moments = freerun_moments(1.0, np.array([0.5, 0.85, 0.95, 1.0]), 0.6)
    finite = np.isfinite(np.array(moments))
    assert finite.tolist() == [
        [True, True, True, False],
        [True, True, False, False],
        [True, True, False, False],
        [True, False, False, False],
    ]
    assert not np.any(np.isnan(np.array(moments)))


def test_freerun_without_noise_is_uniform() -> None:
    mean, sd, latency, latency_sd = freerun_moments(2.0, 0.5, 0.0)
    assert (float(mean), float(sd)) == pytest.approx((4.0, 0.0))
    assert (float(latency), float(latency_sd)) == pytest.approx((6.0, 4.0 / np.sqrt(12.0)))


def test_refusals() -> None:
    with pytest.raises(ValueError, match="fixed_s"):
        freerun_moments(0.0, 0.5, 0.1)
