"""The profiled range, and how much less certain predictions outside it are."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from functools import lru_cache

import numpy as np

from headway.assumptions.predictions import (
    CALIBRATED_DOUBLINGS,
    NUM_LEARNED,
    SPREAD_PER_DOUBLING_OF_PARTITIONS_RATIO,
    SPREAD_PER_DOUBLING_RATIO,
)
from headway.domain import Z90, Finding, FindingCode, JobProfile, ObservedSetting
from headway.lazy_classes import Identity
from headway.models.arrays import Array, Numeric
from headway.models.batches.microbatch import BoolArray
from headway.models.estimation.regression import is_spread
from headway.models.job.duration import DurationModel
from headway.models.job.setting import duration_model
from headway.models.laws.normal import ndtr

_LEAST = 1e-9
_NO_NUMBER = 1e15


def spread_ratio(
    profile: JobProfile,
    num_slots: Numeric,
    shuffle_partitions: Numeric,
    batch_rows: Numeric,
    *,
    model: DurationModel | None = None,
    score: float | None = None,
) -> Array:
    """Standard deviation of the logarithm of the true over the predicted mean duration.

    Parameters
    ----------
    num_slots, shuffle_partitions, batch_rows : float or (n,) array
    model : DurationModel, optional
        Mean durations of the settings, if all batches had one size (P28); by default of the
        profiled setting.
    score : float, optional
        Normal quantile that the spread is multiplied by; by default the worse end of 90% intervals.

    **(P2)** The logarithm of true over predicted durations has the standard deviation
    `s = sqrt(s_r^2(1+k/m)+σ^2(d_C^2+d_n^2)+σ_P^2d_P^2)`, `σ = 0.12`, `σ_P = 0.03`.
    `s_r` from (E5) applies to the run asked about, and again to the fit of `k = 2` parameters
    (fixed time, time per row) to `m` runs, each of which was off by as much. `d_C, d_P, d_n` are
    the doublings by which slots, shuffle partitions (only of queries with an exchange) and rows of
    the settled batch are outside the profiled range; they are 0 between the minimum and the maximum
    of several configurations. If all batches had one size, (P28) may count as more doublings of
    rows. The errors of the three are independent; that of partitions is smaller, since a task has a
    cost per partition, (T2). The ends of 90% intervals are (T6) with `f` multiplied by
    `e^(±1.645 s)`, the upper one at the rate and factor of (P4), so that it equals what a plan of
    95% confidence promises. A prediction is calibrated if each `d ≤ 2` (four times more or fewer;
    without tasks on record, `d_C = d_P = 0` is required, since the evidence is from profiles with
    tasks), a latency is quoted (P3), `P(D > B) ≤ 0.5` unless `B = 0`, and (B12) holds.

    >>> from headway.formats.profile_file import load_profile
    >>> profile = load_profile("examples/word-count.profile.yaml")
    >>> [float(spread_ratio(profile, num_slots, 8, 16_000.0)) for num_slots in (2, 8)]
    [0.219, 0.325]
    """
    slots, partitions, rows = doublings_beyond(
        profile, num_slots, shuffle_partitions, batch_rows, model=model, score=score
    )
    return widened(own_spread_ratio(profile), slots, rows, partitions=partitions)


def own_spread_ratio(profile: JobProfile) -> float:
    """Spread inside the profiled range: of one more run and of the fit, or as declared (P2).

    >>> from headway.formats.profile_file import load_profile
    >>> round(own_spread_ratio(load_profile("examples/word-count.profile.yaml")), 3)
    0.219
    """
    run_ratio = profile.noise.run_to_run_ratio
    return run_ratio if profile.declared else of_runs_and_fit(run_ratio, len(profile.settings))


def of_runs_and_fit(
    run_to_run_ratio: float, num_settings: int, num_learned: int = NUM_LEARNED.value
) -> float:
    """Spread of one more run, and of parameters fitted to a few runs that differ as much (P2).

    Parameters
    ----------
    run_to_run_ratio : float, >= 0
    num_settings : int, >= 1, runs that parameters were fitted to
    num_learned : int, >= 0, parameters that were fitted to them

    >>> of_runs_and_fit(0.08, 2)
    0.1131370849898476
    """
    return run_to_run_ratio * math.sqrt(1.0 + num_learned / num_settings)


def widened(own_ratio: Numeric, *doublings: Numeric, partitions: Numeric = 0.0) -> Array:
    """A spread, widened for doublings of several kinds, whose errors are independent (P2).

    Parameters
    ----------
    own_ratio, *doublings : float or (n,) array, >= 0
    partitions : float or (n,) array, >= 0, doublings of shuffle partitions

    >>> float(widened(0.0, 2.0)), float(widened(0.0, partitions=2.0))
    (0.24, 0.06)
    """
    of_partitions = SPREAD_PER_DOUBLING_OF_PARTITIONS_RATIO.value * np.asarray(partitions)
    spread = np.hypot(own_ratio, of_partitions)
    for num_doublings in doublings:
        spread = np.hypot(spread, SPREAD_PER_DOUBLING_RATIO.value * np.asarray(num_doublings))
    return spread


def doublings_outside(value: Numeric, low: float, high: float) -> Array:
    """How often a range must be doubled, or halved, until it contains a value; 0 inside (P2).

    Parameters
    ----------
    value : float or (n,) array, >= 0
    low, high : float, >= 0

    >>> doublings_outside([1.0, 3.0, 16.0], 2.0, 4.0)
    array([1., 0., 2.])
    """
    # Differences of logarithms, since a quotient with an infinite range would be zero.
    log_value = np.log2(np.maximum(np.asarray(value, dtype=np.float64), _LEAST))
    above = log_value - np.log2(max(high, _LEAST))
    below = np.log2(max(low, _LEAST)) - log_value
    return np.asarray(np.maximum(np.maximum(above, below), 0.0))


def doublings_beyond(
    profile: JobProfile,
    num_slots: Numeric,
    shuffle_partitions: Numeric,
    batch_rows: Numeric,
    *,
    model: DurationModel | None = None,
    score: float | None = None,
) -> tuple[Array, ...]:
    """Doublings of slots, shuffle partitions and rows per batch outside the profiled range (P2).

    Parameters
    ----------
    num_slots, shuffle_partitions, batch_rows : float or (n,) array
    model, score : optional, as in `spread_ratio`

    >>> from headway.formats.profile_file import load_profile
    >>> profile = load_profile("examples/word-count.profile.yaml")
    >>> [float(number) for number in doublings_beyond(profile, 8, 8, 16_000.0)]
    [2.0, 0.0, 0.0]
    """
    setting_values = (num_slots, shuffle_partitions, batch_rows)
    slots, partitions, rows = (
        doublings_outside(value, low, high)
        for value, (low, high) in zip(setting_values, _ranges(Identity(profile)), strict=True)
    )
    if profile.row_cost_half_range_ratio:
        of_row_cost = row_cost_doublings(profile, batch_rows, model=model, score=score)
        rows = np.maximum(rows, of_row_cost)
    return slots, partitions, rows


def fewest_rows(profile: JobProfile) -> float:
    """Rows of the smallest profiled batch, 0 if declared: below, predictions are less certain (P2).

    >>> from headway.formats.profile_file import load_profile
    >>> fewest_rows(load_profile("examples/word-count.profile.yaml"))
    3998.0
    """
    return profile.rows_per_batch_range[0] if profile.declared is None else 0.0


def is_calibrated(
    profile: JobProfile, num_slots: Numeric, shuffle_partitions: Numeric, batch_rows: Numeric
) -> BoolArray:
    """Whether settings are no further outside the profiled range than the evidence reaches (P2).

    Those of a declared job are not calibrated.

    Parameters
    ----------
    num_slots, shuffle_partitions, batch_rows : float or (n,) array

    >>> from headway.formats.profile_file import load_profile
    >>> profile = load_profile("examples/word-count.profile.yaml")
    >>> is_calibrated(profile, np.array([8, 16]), 8, 16_000.0).tolist()
    [True, False]
    """
    doublings = doublings_beyond(profile, num_slots, shuffle_partitions, batch_rows)
    by_kind = map(is_within_reach, doublings, _reach(profile))
    is_within = np.logical_and.reduce(np.broadcast_arrays(*by_kind))
    return is_within if profile.declared is None else np.zeros_like(is_within)


def is_within_reach(doublings: Numeric, reach: float = CALIBRATED_DOUBLINGS.value) -> BoolArray:
    """Whether the evidence reaches as far as some doublings of one kind (P2).

    Parameters
    ----------
    doublings : float or (n,) array, >= 0
    reach : float, >= 0

    >>> is_within_reach([0.0, 2.0, 2.1]).tolist()
    [True, True, False]
    """
    return np.asarray(np.asarray(doublings) <= reach + _LEAST)


def reasons_outside(
    profile: JobProfile, num_slots: int, shuffle_partitions: int, batch_rows: float
) -> Iterator[Finding]:
    """Why a setting is too far outside the profiled range; nothing if it is not (P2).

    There is a finding for each of slots, partitions and rows that is too far off, or one if all is
    declared.

    Parameters
    ----------
    num_slots, shuffle_partitions : int, >= 1
    batch_rows : float, >= 0

    >>> from headway.formats.profile_file import load_profile
    >>> profile = load_profile("examples/word-count.profile.yaml")
    >>> [finding.code.value for finding in reasons_outside(profile, 16, 8, 16_000.0)]
    ['slots_far_off']
    """
    if profile.declared is not None:
        yield Finding(code=FindingCode.DECLARED)
        return
    kinds = (
        (FindingCode.SLOTS_FAR_OFF, "slots", num_slots),
        (FindingCode.PARTITIONS_FAR_OFF, "shuffle_partitions", shuffle_partitions),
        (FindingCode.ROWS_FAR_OFF, "batch_rows", batch_rows),
    )
    all_doublings = doublings_beyond(profile, num_slots, shuffle_partitions, batch_rows)
    outside = zip(all_doublings, _ranges(Identity(profile)), _reach(profile), strict=True)
    for (code, name, value), (doublings, (low, high), reach) in zip(kinds, outside, strict=True):
        # Batches that grow without bound have no number of rows to report.
        if not is_within_reach(doublings, reach) and value < _NO_NUMBER:
            numbers = {name: value, "least": low, "most": high, "reach_doublings": reach}
            if code is FindingCode.ROWS_FAR_OFF and profile.row_cost_half_range_ratio:
                numbers["row_cost_half_range_ratio"] = profile.row_cost_half_range_ratio
            yield Finding(code=code, numbers=numbers)


def _reach(profile: JobProfile) -> tuple[float, float, float]:
    """Doublings of slots, shuffle partitions and rows per batch to which the evidence reaches.

    It is from profiles with tasks: durations of whole batches do not contain the cost of other
    slots or partitions.
    """
    knows_tasks = all(stage.separation != "totals" for stage in profile.stages)
    of_tasks = CALIBRATED_DOUBLINGS.value if knows_tasks else 0.0
    return of_tasks, of_tasks, CALIBRATED_DOUBLINGS.value


@lru_cache(maxsize=64)
def _ranges(of_profile: Identity) -> tuple[tuple[float, float], ...]:
    """The profiled ranges of slots, shuffle partitions and rows per batch."""
    profile: JobProfile = of_profile.nouns[0]
    if profile.declared is not None:
        return ((0.0, np.inf),) * 3
    sizes = [setting.configuration.size for setting in profile.settings]
    slots, partitions = ((min(counts), max(counts)) for counts in zip(*sizes, strict=True))
    has_exchange = any(
        stage.tasks_rule == "shuffle" or stage.separation == "totals" for stage in profile.stages
    )
    return slots, partitions if has_exchange else (0.0, np.inf), profile.rows_per_batch_range


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
    >>> open_cost = replace(profile, row_cost_half_range_ratio=1.0)
    >>> row_cost_doublings(open_cost, [1e5, 1e6, 1e7]).round(1)
    array([ 3.2,  9.5, 11.4])
    """
    rows = np.maximum(np.asarray(batch_rows, dtype=np.float64), _LEAST)
    half_range_ratio = profile.row_cost_half_range_ratio
    if not half_range_ratio:
        return np.zeros_like(rows)
    if model is None:
        model = duration_model(profile, *profile.baseline.size)
    nearest = np.maximum(np.clip(rows, *profile.rows_per_batch_range), _LEAST)
    nearest_ratio = model.mean_s(nearest) / model.mean_s(rows)
    scores = (-Z90, Z90) if score is None else (score,)
    doublings = [
        np.abs(_log_longer(half_range_ratio, nearest_ratio, rows / nearest, end))
        / max(abs(end) * SPREAD_PER_DOUBLING_RATIO.value, _LEAST)
        for end in scores
    ]
    return np.asarray(np.max(doublings, axis=0))


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
