"""Window latency: golden values, the trigger staircase, laws, and the event simulation."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.models.arrays import Array
from headway.models.batches.microbatch import AffineDuration, SteadyState, steady_state
from headway.models.batches.tuple_latency import tuple_latency_mean, tuple_latency_quantile
from headway.models.batches.windows import (
    Lags,
    WindowLatency,
    append_window_latency,
    update_window_latency,
)
from tests.oracles.microbatch import MicrobatchTrace, simulate_microbatch
from tests.oracles.windows import RowStream, simulate_windows
from tests.seeds import first_of

MINUTE_S = 60.0
RATE_PER_S = 1000.0


def batches(fixed_s: float, offered_load: float, noise: float, trigger_s: float) -> SteadyState:
    duration = AffineDuration(fixed_s, offered_load / RATE_PER_S, noise)
    return steady_state(duration, RATE_PER_S, trigger_s, 0.0)


WORKED = batches(2.0, 0.3, 0.1, 10.0)


def sd_s_of(latency: WindowLatency) -> Array:
    """Standard deviation, from those of the parts of the mixture."""
    parts = latency.wait_low_s + 0.5 * latency.wait_width_s + latency.batch_mean_s
    centre = (latency.weight * parts).sum(axis=-1, keepdims=True)
    part_variance = latency.wait_width_s**2 / 12.0 + latency.batch_sd_s**2
    variance = (latency.weight * (part_variance + (parts - centre) ** 2)).sum(axis=-1)
    return np.where(latency.is_finite, np.sqrt(variance), np.inf)


@pytest.mark.parametrize(
    ("delay_s", "slide_s", "mean_s", "sd_s"),
    [
        (10.0, 60.0, 35.0, 0.5),
        (9.4, 60.0, 25.0, 0.5),
        (15.0, 60.0, 35.0, 0.5),
        (0.0, 60.0, 25.0, 0.5),
        (10.0, 7.3, 30.5, 2.93),
    ],
)
def test_append_on_the_grid(delay_s: float, slide_s: float, mean_s: float, sd_s: float) -> None:
    latency = append_window_latency(WORKED, slide_s, delay_s, 0.5)
    assert float(latency.mean_s) == pytest.approx(mean_s, rel=1e-3)
    assert float(sd_s_of(latency)) == pytest.approx(sd_s, rel=1e-2)


def test_append_quantiles_on_the_grid() -> None:
    incommensurate = append_window_latency(WORKED, 7.3, 10.0, 0.5)
    assert float(incommensurate.quantile_s(0.99)) == pytest.approx(35.76, rel=1e-3)
    aligned = append_window_latency(WORKED, MINUTE_S, np.array([10.0, 9.4]), 0.5)
    assert aligned.quantile_s(0.99) == pytest.approx([36.25, 26.25], abs=0.03)


def test_update_on_the_grid() -> None:
    for slide_s, mean_s, sd_s in ((60.0, 15.0, 0.5), (7.3, 10.5, 2.93)):
        latency = update_window_latency(WORKED, slide_s, 0.5)
        assert float(latency.mean_s) == pytest.approx(mean_s, rel=1e-3)
        assert float(sd_s_of(latency)) == pytest.approx(sd_s, rel=1e-2)
        assert float(latency.watermark_delay_s) == 0.0


@pytest.mark.parametrize(
    ("offered_load", "noise", "append_s", "update_s"),
    [(0.3, 0.1, 17.67, 4.81), (0.7, 0.1, 27.39, 10.66), (0.5, 0.3, 21.12, 6.99)],
)
def test_windows_of_batches_without_a_trigger(
    offered_load: float, noise: float, append_s: float, update_s: float
) -> None:
    state = batches(2.0, offered_load, noise, 0.0)
    append = append_window_latency(state, 0.0, 10.0, 0.5)
    assert float(append.mean_s) == pytest.approx(append_s, rel=1e-3)
    update = update_window_latency(state, 0.0, 0.5)
    assert float(update.mean_s) == pytest.approx(update_s, rel=1e-3)


@pytest.mark.parametrize("trigger_s", [0.0, 3.0, 4.0, 5.0, 12.0])
def test_an_update_at_a_random_moment_is_a_row(trigger_s: float) -> None:
    state = batches(2.0, 0.5, 0.1, trigger_s)
    latency = update_window_latency(state, 0.0, 0.0)
    assert float(latency.mean_s) == pytest.approx(float(tuple_latency_mean(state)), rel=2e-3)
    quantiles = np.array([0.05, 0.5, 0.95, 0.99])
    assert latency.quantile_s(quantiles) == pytest.approx(
        tuple_latency_quantile(state, quantiles), rel=2e-3
    )


def test_a_slide_of_half_a_trigger_has_two_phases() -> None:
    latency = append_window_latency(WORKED, 5.0, 10.0, 0.5)
    # Waits 9.5 s and 4.5 s, in turn.
    assert float(latency.mean_s) == pytest.approx(10.5 + 7.0 + 15.0, rel=1e-4)
    assert float(sd_s_of(latency)) == pytest.approx(np.hypot(2.5, 0.5), rel=1e-3)
    assert float(latency.quantile_s(0.25)) == pytest.approx(30.0, abs=0.05)
    assert float(latency.quantile_s(0.75)) == pytest.approx(35.0, abs=0.05)


def test_an_end_on_the_grid_counts_as_missed() -> None:
    assert float(append_window_latency(WORKED, MINUTE_S, 9.4, 0.6).mean_s) == pytest.approx(35.0)


@pytest.mark.parametrize("slide_s", [MINUTE_S, 5.0, 7.3, 0.0])
def test_lags_around_a_trigger_mix_the_windows_of_each(slide_s: float) -> None:
    lag_s, share = np.array([-0.0005, 0.0005, 0.0015]), np.array([0.5, 0.3, 0.2])

    def append(lag: float | Lags) -> WindowLatency:
        return append_window_latency(WORKED, slide_s, 10.0, lag)

    def update(lag: float | Lags) -> WindowLatency:
        return update_window_latency(WORKED, slide_s, lag)

    for latency_of in (append, update):
        mixed, parts = latency_of((lag_s, share)), [latency_of(lag) for lag in lag_s]
        means_s = np.array([float(part.mean_s) for part in parts])
        assert float(mixed.mean_s) == pytest.approx(share @ means_s, rel=1e-9)
        for x_s in np.linspace(5.0, 45.0, 41):
            expected = share @ [float(part.cdf(x_s)) for part in parts]
            # Off the grid, the lag adds its mean only.
            assert float(mixed.cdf(x_s)) == pytest.approx(expected, abs=2e-3)
        assert float(mixed.cdf(mixed.quantile_s(0.6))) == pytest.approx(0.6, abs=1e-3)


def test_lags_of_several_settings_at_once() -> None:
    lags = np.array([-0.0005, 0.0005]), np.array([0.75, 0.25])
    duration = AffineDuration(0.02, 0.3 / RATE_PER_S, 0.1)
    triggers_s = [2.0, 10.0, 0.0, 0.05]
    state = steady_state(duration, RATE_PER_S, np.array(triggers_s), 0.0)
    together = append_window_latency(state, 10.0, 10.0, lags)
    for place, trigger_s in enumerate(triggers_s):
        alone = append_window_latency(batches(0.02, 0.3, 0.1, trigger_s), 10.0, 10.0, lags)
        assert float(together.mean_s[place]) == pytest.approx(float(alone.mean_s), rel=1e-9)


def test_lags_that_vary_over_many_triggers_are_anywhere() -> None:
    lags = np.linspace(0.0, 3.3, 12), np.full(12, 1.0 / 12.0)
    state = batches(0.01, 0.3, 0.1, 0.1)
    spread = append_window_latency(state, 10.0, 10.0, lags)
    anywhere = append_window_latency(state, 0.0, 10.0, 1.65)
    assert float(spread.mean_s) == pytest.approx(float(anywhere.mean_s), rel=1e-3)


def test_what_follows_the_commit_does_not_count() -> None:
    duration = AffineDuration(2.0, 3e-4, 0.1, after_commit_s=0.7)
    state = steady_state(duration, RATE_PER_S, 10.0, 0.0)
    assert float(append_window_latency(state, MINUTE_S, 10.0, 0.5).mean_s) == pytest.approx(34.3)


def test_unstable_never_shows_a_window() -> None:
    duration = AffineDuration(2.0, np.array([3e-4, 1e-3, 2e-3]), 0.1)
    for trigger_s in (0.0, 10.0):
        state = steady_state(duration, RATE_PER_S, trigger_s, 0.0)
        for latency in (
            append_window_latency(state, MINUTE_S, 10.0, 0.5),
            update_window_latency(state, MINUTE_S, 0.5),
        ):
            for values in (latency.mean_s, sd_s_of(latency), latency.quantile_s(0.99)):
                assert np.isfinite(values).tolist() == [True, False, False]
            assert np.all(latency.cdf(1e9)[1:] == 0.0)


def test_settings_broadcast() -> None:
    state = steady_state(
        AffineDuration(2.0, 3e-4, 0.1), RATE_PER_S, np.array([0.0, 3.0, 10.0]), 0.0
    )
    together = append_window_latency(state, np.array([[60.0], [7.3]]), 10.0, 0.5)
    assert together.mean_s.shape == together.quantile_s(0.9).shape == (2, 3)
    for row, slide_s in enumerate((60.0, 7.3)):
        for column, trigger_s in enumerate((0.0, 3.0, 10.0)):
            alone = append_window_latency(batches(2.0, 0.3, 0.1, trigger_s), slide_s, 10.0, 0.5)
            assert together.mean_s[row, column] == pytest.approx(float(alone.mean_s))
            assert together.quantile_s(0.9)[row, column] == pytest.approx(
                float(alone.quantile_s(0.9))
            )


TRIGGERS = st.one_of(st.just(0.0), st.integers(100, 60_000).map(lambda ticks: ticks / 1e3))
SLIDES = st.one_of(st.just(0.0), st.integers(1, 600).map(float))
STATES = st.builds(
    batches, st.floats(0.05, 20.0), st.floats(0.0, 0.9), st.floats(0.0, 0.3), TRIGGERS
)


@given(STATES, SLIDES, st.floats(0.0, 100.0), st.floats(0.0, 50.0), st.floats(0.0, 5.0))
def test_a_longer_watermark_climbs_the_staircase(
    state: SteadyState, slide_s: float, delay_s: float, more_s: float, lag_s: float
) -> None:
    short, long = (
        append_window_latency(state, slide_s, delay, lag_s) for delay in (delay_s, delay_s + more_s)
    )
    tolerance = 1e-6 * (1.0 + float(long.mean_s))
    assert float(long.mean_s) >= float(short.mean_s) - tolerance
    # Beyond the delay itself, never more than a step.
    assert float(long.mean_s - short.mean_s) <= more_s + float(state.trigger_s) + tolerance
    for q in (0.5, 0.99):
        assert float(long.quantile_s(q)) >= float(short.quantile_s(q)) - tolerance


@given(STATES, SLIDES, st.floats(0.0, 100.0), st.floats(0.0, 5.0))
def test_quantiles_are_ordered_and_never_nan(
    state: SteadyState, slide_s: float, delay_s: float, lag_s: float
) -> None:
    laws: list[WindowLatency] = [
        append_window_latency(state, slide_s, delay_s, lag_s),
        update_window_latency(state, slide_s, lag_s),
    ]
    for law in laws:
        quantiles = law.quantile_s(np.array([0.01, 0.5, 0.95, 0.99, 0.999]))
        assert not np.any(np.isnan([law.mean_s, sd_s_of(law)]))
        assert np.all(np.diff(quantiles) >= 0.0)
        assert quantiles[0] >= float(law.watermark_delay_s) + lag_s - 1e-6
        if law.is_finite:
            assert law.weight.sum() == pytest.approx(1.0)
            reached = law.cdf(quantiles * (1.0 + 1e-8) + 1e-8)
            assert np.all(reached >= np.array([0.01, 0.5, 0.95, 0.99, 0.999]) - 1e-3)


@lru_cache(maxsize=8)
def simulated_batches(
    offered_load: float, noise: float, trigger_s: float, num_batches: int
) -> MicrobatchTrace:
    """Batches of which windows of any slide and mode are emitted."""
    return simulate_microbatch(
        AffineDuration(2.0, offered_load / RATE_PER_S, noise), RATE_PER_S, trigger_s,
        num_batches=num_batches, seed=3, dispersion=0.0,
    )  # fmt: skip


def simulated(
    offered_load: float, noise: float, trigger_s: float, slide_s: float, mode: str, num_batches: int
) -> tuple[np.ndarray[tuple[int], np.dtype[np.float64]], WindowLatency]:
    """Latencies of a simulated query, and their law."""
    trace = simulated_batches(offered_load, noise, trigger_s, num_batches)
    span = float(np.maximum(trace.duration_s, trigger_s).sum())
    ends = np.arange(slide_s, 0.9 * span, slide_s)
    rows = RowStream(rate_per_s=100.0, lag_s=0.5)
    seen = simulate_windows(
        ends, trace.duration_s, trigger_s, rows, seed=5, length_s=slide_s,
        mode="append" if mode == "append" else "update", watermark_delay_s=10.0,
    )  # fmt: skip
    state = batches(2.0, offered_load, noise, trigger_s)
    if mode == "append":
        law = append_window_latency(state, slide_s, 10.0, 0.51)
    else:
        law = update_window_latency(state, slide_s, 0.49)
    return seen.latency_s[50:-50], law


CASES = [
    *((0.5, 0.1, 10.0), (0.5, 0.1, 4.0), (0.7, 0.1, 0.0), (0.5, 0.3, 0.0)),
    *((0.3, 0.1, 10.0), (0.5, 0.1, 5.0), (0.5, 0.1, 2.5), (0.3, 0.1, 0.0)),
]


@pytest.mark.parametrize("case", first_of(CASES, 4), ids=str)
@pytest.mark.parametrize("mode", ["append", "update"])
@pytest.mark.parametrize("aligned", [True, False])
def test_against_the_simulation(case: tuple[float, float, float], mode: str, aligned: bool) -> None:
    offered_load, noise, trigger_s = case
    slide_s = 6.0 * trigger_s if aligned and trigger_s else 7.3
    latency, law = simulated(offered_load, noise, trigger_s, slide_s, mode, 3000)
    assert np.all(np.isfinite(latency))
    # Half of the batches overrun at 4 s: they lose the grid for a while, not for good.
    tolerance = 0.1 if trigger_s == 4.0 else 0.03
    assert float(law.mean_s) == pytest.approx(latency.mean(), rel=tolerance)
    assert float(law.quantile_s(0.99)) == pytest.approx(np.quantile(latency, 0.99), rel=0.05)


@pytest.mark.statistical
@pytest.mark.parametrize("utilization", [0.6, 0.7, 0.8, 0.9, 1.0, 1.1, 1.3])
@pytest.mark.parametrize("offered_load", [0.2, 0.5])
@pytest.mark.parametrize("noise", [0.03, 0.1])
@pytest.mark.parametrize("mode", ["append", "update"])
@pytest.mark.parametrize("phases", [1, 2, 0])
def test_the_grid_of_settings(
    utilization: float, offered_load: float, noise: float, mode: str, phases: int
) -> None:
    trigger_s = round(2.0 / (utilization - offered_load), 1)
    slide_s = {1: 3.0 * trigger_s, 2: 1.5 * trigger_s, 0: 1.618 * trigger_s}[phases]
    latency, law = simulated(offered_load, noise, trigger_s, slide_s, mode, 8_000)
    is_transition = (
        0.2 < float(batches(2.0, offered_load, noise, trigger_s).overrun_probability) < 0.8
    )
    tolerance = 0.14 if is_transition and mode == "update" else 0.03
    assert float(law.mean_s) == pytest.approx(latency.mean(), rel=tolerance)
    assert float(law.quantile_s(0.99)) == pytest.approx(np.quantile(latency, 0.99), rel=0.06)


def test_refusals() -> None:
    for slide_s in (-1.0, np.inf):
        with pytest.raises(ValueError, match="slide_s"):
            update_window_latency(WORKED, slide_s, 0.5)
    with pytest.raises(ValueError, match="watermark_delay_s"):
        append_window_latency(WORKED, MINUTE_S, -1.0, 0.0)
    with pytest.raises(ValueError, match="lag_s"):
        append_window_latency(WORKED, MINUTE_S, 1.0, float("nan"))
    with pytest.raises(ValueError, match="lag_s"):
        update_window_latency(WORKED, MINUTE_S, np.inf)
    with pytest.raises(ValueError, match="q must"):
        update_window_latency(WORKED, MINUTE_S, 0.5).quantile_s(1.0)
