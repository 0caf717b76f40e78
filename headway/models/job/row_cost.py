"""The cost of a row that batches of one size leave open, and what it does to other sizes."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from headway.assumptions.predictions import CALIBRATED_DOUBLINGS, SPREAD_PER_DOUBLING_RATIO
from headway.domain import Z90, JobProfile, ObservedSetting
from headway.models.arrays import Array, Numeric
from headway.models.estimation.regression import is_spread
from headway.models.job.duration import DurationModel
from headway.models.job.setting import duration_model
from headway.models.laws.normal import ndtr

_LEAST = 1e-9


def row_cost_doublings(
    profile: JobProfile,
    batch_rows: Numeric,
    *,
    model: DurationModel | None = None,
    score: float | None = None,
) -> Array:
    """Doublings as which an open cost per row counts in the spread of durations (P2).

    They have the shape of the rows, and are 0 for profiles of several sizes. The model is that of
    the setting, by default of the profiled one; the score is the normal quantile that is asked
    about, by default the worse of both ends of 90% intervals.

    **(P28)** If all profiled batches had one size, the cost of a row is `q` times the fitted one,
    with `q` as likely above as below 1, from `1-h` to `1+h` with `h` of (E43), and fixed times such
    that batches of the profiled sizes take as long as fitted. With `m` the profiled number of rows
    that is closest to `n`, `w = |1-D(m)/D(n)|` and the score `z`, durations are `e^g` times as long
    as expected, with `g = ln(1+hw(2Φ(z)-1))`, at most as if all time were for rows, `ln((n/m)
    D(m)/D(n))`, and at least so for `n < m`. In (P2), `|g/z|` takes the place of `σ d_n` if it is
    greater: it is the same error, of how time is split between rows and the rest. `n` are the rows
    that batches with these durations settle at by (T3), since longer batches are larger and their
    durations are less certain: five steps, from the rows by the expected durations. A rate is
    called stable if the expected cost says so (P3), and not stable only if `q = max(1-2h, 0)` says
    so, too: beyond the range, whose ends are estimates. In between it is not known. No rate is
    printed as sustainable at which batches would have more than four times the rows of the largest
    profiled one.

    >>> from dataclasses import replace
    >>> from headway.formats.profile_file import load_profile
    >>> profile = load_profile("examples/word-count.profile.yaml")
    >>> float(row_cost_doublings(profile, 1e6))
    0.0
    >>> open_cost = replace(profile, row_cost_half_range_ratio=1.0)
    >>> row_cost_doublings(open_cost, [1e5, 1e6, 1e7]).round(1)
    array([ 3.2,  9.5, 11.4])
    """
    rows = np.maximum(np.asarray(batch_rows, dtype=np.float64), _LEAST)
    half_range_ratio = profile.row_cost_half_range_ratio
    if not half_range_ratio:
        return np.zeros_like(rows)
    if model is None:
        baseline = profile.baseline
        model = duration_model(profile, *baseline.size)
    nearest = np.maximum(np.clip(rows, *profile.rows_per_batch_range), _LEAST)
    nearest_ratio = model.mean_s(nearest) / model.mean_s(rows)
    scores = (-Z90, Z90) if score is None else (score,)
    doublings = [
        np.abs(_log_longer(half_range_ratio, nearest_ratio, rows / nearest, end))
        / max(abs(end) * SPREAD_PER_DOUBLING_RATIO.value, _LEAST)
        for end in scores
    ]
    return np.asarray(np.max(doublings, axis=0))


def known_up_to_per_s(
    profile: JobProfile, model: DurationModel, trigger_s: float, age_factor: float
) -> float:
    """Highest rate [rows/s] at which batches are not too large for a profile of one size (P28).

    It is ``inf`` for profiles of several sizes. ``age_factor`` multiplies every duration.

    >>> from dataclasses import replace
    >>> from headway.formats.profile_file import load_profile
    >>> profile = load_profile("examples/word-count.profile.yaml")
    >>> open_cost = replace(profile, row_cost_half_range_ratio=1.0)
    >>> round(known_up_to_per_s(open_cost, duration_model(profile, 2, 8), 2.0, 1.0))
    64036
    """
    if not profile.row_cost_half_range_ratio:
        return math.inf
    _, largest = profile.rows_per_batch_range
    rows = largest * 2.0**CALIBRATED_DOUBLINGS.value
    batch_s = age_factor * float(model.mean_s(rows))
    return float(rows / max(trigger_s, batch_s))


def _log_longer(
    half_range_ratio: float, nearest_ratio: Array, rows_ratio: Array, score: float
) -> Array:
    """Logarithm of durations at a score over the expected ones."""
    deviation_ratio = half_range_ratio * (2.0 * float(ndtr(score)) - 1.0)
    longer = 1.0 + deviation_ratio * np.abs(1.0 - nearest_ratio)
    all_for_rows = rows_ratio * nearest_ratio
    if score > 0:
        longer = np.where(rows_ratio > 1.0, np.minimum(longer, all_for_rows), longer)
    else:
        longer = np.where(rows_ratio < 1.0, np.maximum(longer, all_for_rows), longer)
    return np.log(np.maximum(longer, _LEAST))


def size_to_vary(profile: JobProfile) -> Callable[[ObservedSetting], float] | None:
    """What all profiled batches have in common although costs depend on it, if anything (E42).

    It is a function of a setting: the rows of its batches, or the time in which these arrive.
    """
    if profile.row_cost_half_range_ratio:
        return middle_rows
    times_s = np.array([arrival_time_s(setting) for setting in profile.settings])
    return arrival_time_s if profile.shape.keeps_rows and not is_spread(times_s) else None


def middle_rows(setting: ObservedSetting) -> float:
    """Rows of a batch halfway between the smallest and the largest, at least one (P28)."""
    return max(setting.rows_per_batch_middle, 1.0)


def arrival_time_s(setting: ObservedSetting) -> float:
    """The time in which the rows of a batch arrive [s]: the state of a join is of before (E29)."""
    return middle_rows(setting) / setting.rate_per_s
