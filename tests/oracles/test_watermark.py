"""The row that closes a window, and Klink's slack: against simulation and printed values."""

from __future__ import annotations

import numpy as np
import pytest

from headway.models.laws.distributions import lognormal_quantile
from tests.oracles.watermark import (
    closing_delay_exceedance,
    closing_delay_mean_s,
    join_closing_delay_mean_s,
    klink_slack_as_published_s,
    klink_slack_s,
    miss_probability,
    watermark_law,
    zipf_residuals_s,
)

UNIFORM = (np.arange(2000) + 0.5) / 2000


def first_arrivals(
    rate_per_s: float, delays_s: np.ndarray, num_runs: int, generator: np.random.Generator
) -> np.ndarray:
    """When the first row of an event time of 0 or later arrives, run by run."""
    rows = generator.exponential(1.0 / rate_per_s, (num_runs, 60)).cumsum(axis=1)
    first: np.ndarray = (rows + generator.choice(delays_s, rows.shape)).min(axis=1)
    return first


@pytest.mark.parametrize(("rate", "mean_s"), [(100.0, 0.1253), (1000.0, 0.0396)])
def test_the_fastest_row_of_uniform_delays(rate: float, mean_s: float) -> None:
    assert closing_delay_mean_s(rate, UNIFORM) == pytest.approx(mean_s, abs=2e-4)
    assert closing_delay_mean_s(rate, UNIFORM) == pytest.approx(
        np.sqrt(np.pi / (2.0 * rate)), rel=0.002
    )


def test_simulated_rows_agree_with_the_law() -> None:
    generator = np.random.default_rng(1)
    delays = np.asarray(lognormal_quantile((np.arange(500) + 0.5) / 500, 0.2, 1.0))
    first = first_arrivals(60.0, delays, 20_000, generator)
    x = np.quantile(first, [0.1, 0.5, 0.9])
    np.testing.assert_allclose(
        closing_delay_exceedance(x, 60.0, delays), [0.9, 0.5, 0.1], atol=0.012
    )
    assert closing_delay_mean_s(60.0, delays) == pytest.approx(first.mean(), rel=0.02)
    late = first[first > 0.05]
    assert closing_delay_mean_s(60.0, delays, waited_s=0.05) == pytest.approx(
        (late - 0.05).mean(), rel=0.03
    )


@pytest.mark.parametrize(("waited_s", "left_s"), [(0.1, 0.0656), (0.3, 0.0305)])
def test_what_is_left_to_wait(waited_s: float, left_s: float) -> None:
    assert closing_delay_mean_s(100.0, UNIFORM, waited_s=waited_s) == pytest.approx(
        left_s, abs=2e-4
    )


def test_a_join_waits_for_the_last_of_its_inputs() -> None:
    both = join_closing_delay_mean_s([(100.0, UNIFORM), (10.0, UNIFORM)])
    assert both == pytest.approx(0.402, abs=2e-3)
    assert both > max(closing_delay_mean_s(rate, UNIFORM) for rate in (100.0, 10.0))


def test_zipf_delays_close_windows_long_before_their_mean() -> None:
    values = np.arange(1, 1001)
    weights = values**-0.99
    # As a sample of equally likely delays.
    cumulated = np.cumsum(weights) / weights.sum()
    sample = values[np.searchsorted(cumulated, (np.arange(20_000) + 0.5) / 20_000)] / 1000
    assert sample.mean() == pytest.approx(0.137, abs=1e-3)
    assert closing_delay_mean_s(100.0, sample) == pytest.approx(0.025, abs=1e-3)


def test_what_no_law_allows_is_refused() -> None:
    with pytest.raises(ValueError, match="rate_per_s > 0"):
        closing_delay_exceedance(1.0, 0.0, UNIFORM)


@pytest.mark.parametrize(
    ("now_s", "exact", "step_120", "step_10", "step_1"),
    [
        (0.0, 800.00, 840.3, 776.4, 765.0),
        (900.0, -97.24, -37.8, -92.7, -97.2),
        (1000.0, -160.11, -78.7, -153.1, -156.1),
        (1100.0, -181.34, -80.0, -73.9, -9.3),
        (1200.0, -188.72, 0.0, 0.0, 0.0),
    ],
)
def test_klinks_slack_by_the_closed_form_and_as_printed(
    now_s: float, exact: float, step_120: float, step_10: float, step_1: float
) -> None:
    assert klink_slack_s(now_s, 1000.0, 50.0, 200.0) == pytest.approx(exact, abs=0.01)
    for step, printed in ((120.0, step_120), (10.0, step_10), (1.0, step_1)):
        assert klink_slack_as_published_s(now_s, 1000.0, 50.0, 200.0, step) == pytest.approx(
            printed, abs=0.06
        )


def test_slack_and_misses_agree_with_a_sample() -> None:
    sample = np.random.default_rng(2).normal(1000.0, 50.0, 400_000)
    later = sample[sample >= 950.0]
    assert klink_slack_s(950.0, 1000.0, 50.0, 200.0) == pytest.approx(
        (later - 950.0 - 200.0).mean(), abs=0.3
    )
    assert miss_probability(950.0, 1000.0, 50.0, 40.0) == pytest.approx(
        np.mean(later - 950.0 < 40.0), abs=0.003
    )


def test_slack_is_finite_and_falls_however_far_the_time_is_out() -> None:
    slack = klink_slack_s(np.linspace(-1e5, 1e5, 4001), 0.0, 50.0, 200.0)
    assert np.isfinite(slack).all()
    assert np.all(np.diff(slack) < 1e-9)
    assert slack[-1] == pytest.approx(-200.0, abs=0.1)


def test_the_law_of_the_next_watermark_covers_it() -> None:
    generator = np.random.default_rng(3)
    epochs, events, inside = 10, 5, 0
    for _ in range(4000):
        delays = generator.normal(0.2, 0.05, (epochs, events)).mean(axis=1)
        mean_s, sd_s = watermark_law(7.0, 3.0, delays, events)
        inside += abs(10.0 + generator.normal(0.2, 0.05) - mean_s) < 2.0 * sd_s
    assert inside / 4000 == pytest.approx(0.93, abs=0.02)


def test_zipf_delays_have_longer_to_go_the_longer_they_took() -> None:
    residuals = zipf_residuals_s(1000, 0.99)
    assert residuals[[49, 199, 499]].round() == pytest.approx([268, 298, 222])
    assert residuals[-1] == 0.0
