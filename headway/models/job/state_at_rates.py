"""Durations of a job whose state follows the rate, wherever rates are sought or compared."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headway.domain import JobProfile
from headway.models.arrays import Array, Numeric
from headway.models.job.duration import DurationModel, LevelSpan

_LEAST_S, _RATE_TOLERANCE_RATIO, _MOST_STEPS = 1e-12, 1e-12, 200


def state_follows_rate(profile: JobProfile) -> bool:
    """Whether the rate decides how large the state is, and so how long batches take (E36)."""
    state = profile.state
    return (
        state is not None
        and bool(profile.settings)  # the state of a declared job is that of any rate
        and state.rate_exponent > 0
        and profile.held_rows_at(profile.profiled_rate_per_s) > 0
        and any(stage.task_per_state_row_s > 0 for stage in profile.stages)
    )


def with_state_times(
    profile: JobProfile,
    levels: Sequence[LevelSpan],
    without_state: Sequence[LevelSpan],
    profiled: Sequence[LevelSpan],
) -> tuple[LevelSpan, ...]:
    """Levels that can be had at any rate, with the state at the rate of the arrivals (E36).

    Parameters
    ----------
    levels, without_state, profiled : sequence of LevelSpan, with the state at the rate of the
        arrivals, without any, and with that of the profiled rate
    """
    assert profile.state is not None
    rate_per_s, exponent = profile.profiled_rate_per_s, profile.state.rate_exponent
    return tuple(
        level._replace(
            state=(without.fixed_s, full.fixed_s - without.fixed_s, rate_per_s, exponent)
        ).at_rate(profile.arrivals.rate_per_s)
        for level, without, full in zip(levels, without_state, profiled, strict=True)
    )


def rate_of_rows(
    model: DurationModel, batch_rows: Numeric, trigger_s: float, factor: float = 1.0
) -> Array:
    """The rate at which batches settle at some rows: `λ = n/max(B, fD(n))` [records/s].

    Parameters
    ----------
    batch_rows : float or (n,) array, > 0
    trigger_s : float, >= 0
    factor : float, > 0, multiplies every duration

    With a state that follows the rate, `D` rises with it, and `λ fD` is convex: Newton's rule
    converges from above, where there is no state, to its only solution (E36).

    >>> join = LevelSpan("join", 0.3, (), state=(0.1, 0.2, 1000.0, 1.0))
    >>> rate_of_rows(DurationModel(0.0, (join,)), [300.0, 1000.0], 0.0).round()
    array([1000., 2000.])
    """
    rows = np.asarray(batch_rows, dtype=np.float64)
    if not model.follows_rate:
        return np.asarray(rows / np.maximum(trigger_s, factor * model.mean_s(rows)))
    exponent = max(level.state[3] for level in model.levels if level.state is not None)
    without_s = np.maximum(factor * model.at_rate(0.0).mean_s(rows), _LEAST_S)
    rates = rows / without_s
    for _ in range(_MOST_STEPS):
        duration_s = np.maximum(factor * model.at_rate(rates).mean_s(rows), without_s)
        slope = duration_s + exponent * (duration_s - without_s)
        steps = (rates * duration_s - rows) / slope
        rates = rates - steps
        if np.all(np.abs(steps) <= _RATE_TOLERANCE_RATIO * rates):
            break
    return np.asarray(np.minimum(rates, rows / trigger_s) if trigger_s > 0 else rates)
