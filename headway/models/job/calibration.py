"""What a profile can speak for, and how much less certain it is beyond."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from headway.domain import JobProfile, Separation, TasksRule
from headway.models.arrays import Array, Numeric

_ROWS_MARGIN = 1.5
# Spread (of the logarithm of durations) added for every doubling beyond what was profiled: a
# rule, not a measurement, until enough runs far outside of profiles are published.
_SPREAD_PER_DOUBLING = 0.1
_NUM_LEARNED = 2  # what runs of several settings tell: fixed time and time per row
_LEAST = 1e-9
_NO_NUMBER = 1e15


def spread_ratio(
    profile: JobProfile, num_slots: Numeric, shuffle_partitions: Numeric, batch_rows: Numeric
) -> Array:
    """Standard deviation of the logarithm of the true over the predicted mean duration.

    Parameters
    ----------
    profile : JobProfile
        The job.
    num_slots, shuffle_partitions, batch_rows : float or (n,) array
        The settings, and the rows of their batches.

    Notes
    -----
    theory.md (P2). The spread between runs of one setting, of which the run asked about is one and
    which the fit on a few of them inherits, and what is added beyond the range.
    """
    doublings = sum(
        _doublings(np.asarray(asked, dtype=np.float64), low, high)
        for asked, (low, high) in zip(
            (num_slots, shuffle_partitions, batch_rows), _ranges(profile), strict=True
        )
    )
    of_run_and_fit = profile.noise.run_to_run_ratio * math.sqrt(
        1.0 + _NUM_LEARNED / len(profile.settings)
    )
    return np.hypot(of_run_and_fit, _SPREAD_PER_DOUBLING * np.asarray(doublings))


def fewest_rows(profile: JobProfile) -> float:
    """Rows of the smallest batch that the profile can speak for.

    Notes
    -----
    theory.md (P2).
    """
    low, _ = profile.rows_per_batch_range
    return low / _ROWS_MARGIN


def reasons_outside(
    profile: JobProfile, num_slots: int, shuffle_partitions: int, batch_rows: float
) -> Iterator[str]:
    """Why a setting is beyond what the profile can speak for; nothing if it is not.

    Notes
    -----
    theory.md (P2).
    """
    asked = (num_slots, shuffle_partitions, batch_rows)
    for value, (low, high), what, one, why in zip(
        asked,
        _ranges(profile),
        ("slots", "shuffle partitions", "rows per batch"),
        ("slot", "shuffle partition", "row per batch"),
        (
            "contention between tasks and the network of more executors were not seen",
            "the cost per partition was not seen there",
            "the cost per row was not seen there",
        ),
        strict=True,
    ):
        # Batches that grow without bound have no number of rows to tell.
        if not low <= value <= high and value < _NO_NUMBER:
            profiled = _rounded(low) if low == high else f"{_rounded(low)} to {_rounded(high)}"
            yield f"{_rounded(value)} {what if value != 1 else one}, profiled for {profiled}: {why}"


def _rounded(value: float) -> str:
    return f"{float(f'{value:.4g}'):,.10g}"


def _ranges(profile: JobProfile) -> tuple[tuple[float, float], ...]:
    seen = [setting.configuration for setting in profile.settings]
    slots = [one.num_slots for one in seen]
    partitions = [one.shuffle_partitions for one in seen]
    if all(
        stage.tasks_rule is TasksRule.SOURCE and stage.separation is not Separation.TOTALS
        for stage in profile.stages
    ):
        partition_range: tuple[float, float] = (0.0, np.inf)
    else:
        partition_range = (min(partitions), max(partitions))
    rows_range = (fewest_rows(profile), profile.rows_per_batch_range[1] * _ROWS_MARGIN)
    return (min(slots), max(slots)), partition_range, rows_range


def _doublings(asked: Array, low: float, high: float) -> Array:
    # Differences of logarithms: the quotient by a range without end would be zero.
    log_asked = np.log2(np.maximum(asked, _LEAST))
    above = log_asked - np.log2(max(high, _LEAST))
    below = np.log2(max(low, _LEAST)) - log_asked
    return np.asarray(np.maximum(np.maximum(above, below), 0.0))
