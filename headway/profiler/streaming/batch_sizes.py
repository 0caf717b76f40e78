"""How batches weigh in a fit, and whether they differ in size.

They do if their rows differ by more than what slow batches do to the rows after them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from headway.assumptions.fits import MOST_FEEDBACK_RATIO, STATE_GROWN_RATIO
from headway.models.arrays import Array
from headway.models.estimation.regression import is_spread
from headway.profiler.streaming.samples import QueryRun

_LEAST_ARRIVED = 1e-9


def batch_weights(runs: Sequence[QueryRun]) -> Array:
    """One for every run, however many batches it has."""
    return np.concatenate([np.full(len(run.batches), 1.0 / len(run.batches)) for run in runs])


def weighted_mean(values: Sequence[float] | Array, weights: Array) -> float:
    """The mean over batches by their weights."""
    return float(np.average(np.asarray(values, dtype=np.float64), weights=weights))


def has_one_size(runs: Sequence[QueryRun]) -> bool:
    """Whether all batches have about the same rows, by (E2)."""
    rows = np.array([float(batch.num_rows) for run in runs for batch in run.batches])
    return not is_spread(rows * without_feedback(runs))


def without_feedback(runs: Sequence[QueryRun]) -> Array:
    """What to multiply the rows of each batch by, so that batches before it do not show in them.

    **(E47)** At one rate, a query on no trigger, or on one that its batches overrun, has batches as
    large as the one before was long: durations whose slowness lasts for several batches look like a
    cost of rows, and nothing in them tells the two apart. So for (E2), a batch has the rows that
    would have arrived in the mean interval of its run, `n m/w` after the interval `w` whose mean is
    `m`, if these are closer to each other than its rows `n`. Rows with a coefficient of variation
    above 0.5 differ by more than slowness explains, as those of a query that falls behind; they
    count as they are, and so do those of batches that grow with their state.
    """
    return np.concatenate([_without_feedback(run) for run in runs])


def _without_feedback(run: QueryRun) -> Array:
    as_they_are = np.ones(len(run.batches))
    intervals_s = np.array([batch.interval_s or math.nan for batch in run.batches])
    rows = np.array([float(batch.num_rows) for batch in run.batches])
    sd_rows = rows.std()
    differ_much = sd_rows > MOST_FEEDBACK_RATIO.value * rows.mean()
    if differ_much or not (intervals_s > 0.0).all() or state_grows(run):
        return as_they_are
    factors = intervals_s.mean() / intervals_s
    factors *= rows.sum() / max(float(rows @ factors), _LEAST_ARRIVED)
    return factors if (rows * factors).std() < sd_rows else as_they_are


def state_grows(run: QueryRun, in_stage: Array | None = None) -> bool:
    """Whether the state of a query at least doubles within a run, or what a stage has of it."""
    rows = np.array([batch.state.num_rows for batch in run.batches], dtype=np.float64)
    if in_stage is not None:
        rows *= in_stage
    return bool(rows[-1] >= STATE_GROWN_RATIO.value * max(rows[0], 1.0))
