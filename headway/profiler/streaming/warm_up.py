"""The first batches of runs: which are a warm-up, and in fresh JVMs the cost of a restart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from headway.domain import Z90, WarmUp, WarmUpPoint
from headway.models.estimation.warm_up import falling_ratios, slower_start_length
from headway.models.job.calibration import doublings_outside, widened
from headway.profiler.streaming.fit import DurationFit
from headway.profiler.streaming.samples import BatchSample, QueryRun


class _Fresh(NamedTuple):
    start_age_s: float
    first_batch_extra_s: float
    steady_age_s: float
    ages_s: list[float]
    ratios: list[float]


def num_warm_up_by_rows(samples: Sequence[BatchSample], steady: QueryRun, fit: DurationFit) -> int:
    """Batches of the warm-up of a run under a changing load.

    ``fit`` is that of ``steady``, a first guess of the part without warm-up.

    Notes
    -----
    theory.md (E1). For fewer or more rows than the steady part has, the fit is less certain (P2).
    """
    rows = np.array([float(sample.num_rows) for sample in samples])
    durations_s = np.array([sample.duration_s for sample in samples])
    steady_rows = [float(batch.num_rows) for batch in steady.batches]
    expected_s = np.asarray(fit.model(steady.configuration).mean_s(rows), dtype=np.float64)
    tolerance = Z90 * widened(0.0, doublings_outside(rows, min(steady_rows), max(steady_rows)))
    return slower_start_length(np.log(durations_s / expected_s), tolerance)


def warm_up_of(runs: Sequence[QueryRun], fit: DurationFit) -> WarmUp | None:
    """Excess of the first batches over the fit; None if no fresh JVM is recorded.

    Notes
    -----
    theory.md (E30). The first query of each application counts, if it started within 30 s.
    """
    fresh = [
        _fresh(run, modelled_s, fit)
        for run, modelled_s in zip(runs, fit.modelled_mean_s, strict=True)
        if run.early and run.began_in_fresh_jvm
    ]
    if not fresh:
        return None
    start_age_s = float(np.mean([fresh_run.start_age_s for fresh_run in fresh]))
    ages_s = np.array([age_s for fresh_run in fresh for age_s in fresh_run.ages_s])
    points = falling_ratios(
        ages_s, np.array([ratio for fresh_run in fresh for ratio in fresh_run.ratios])
    )
    return WarmUp(
        start_age_s=min(start_age_s, *(point.jvm_age_s for point in points))
        if points
        else start_age_s,
        first_batch_extra_s=float(np.mean([fresh_run.first_batch_extra_s for fresh_run in fresh])),
        steady_age_s=max(fresh_run.steady_age_s for fresh_run in fresh),
        points=tuple(
            WarmUpPoint(
                jvm_age_s=point.jvm_age_s, duration_ratio=point.ratio, num_batches=point.num_batches
            )
            for point in points
        ),
    )


def _fresh(run: QueryRun, modelled_mean_s: float, fit: DurationFit) -> _Fresh:
    model = fit.model(run.configuration)
    # A deviation of this run as a whole is not warm-up.
    run_ratio = float(np.mean([batch.duration_s for batch in run.batches])) / modelled_mean_s
    expected_s = [run_ratio * float(model.mean_s(float(batch.num_rows))) for batch in run.early]
    first, *others = run.early
    return _Fresh(
        start_age_s=first.jvm_age_s,
        first_batch_extra_s=max(first.duration_s - expected_s[0], 0.0),
        steady_age_s=run.batches[0].jvm_age_s,
        ages_s=[batch.jvm_age_s for batch in others],
        ratios=[
            batch.duration_s / usual_s
            for batch, usual_s in zip(others, expected_s[1:], strict=True)
        ],
    )
