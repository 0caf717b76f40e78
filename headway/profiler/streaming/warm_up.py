"""The first batches of runs in fresh JVMs -> cost of a restart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from headway.assumptions.fits import FRESH_JVM_S
from headway.domain import WarmUp, WarmUpPoint
from headway.models.estimation.warm_up import falling_ratios
from headway.models.job.duration import DurationModel, level_spans
from headway.profiler.streaming.fit import DurationFit
from headway.profiler.streaming.samples import QueryRun


class _Fresh(NamedTuple):
    start_age_s: float
    first_batch_extra_s: float
    steady_age_s: float
    ages_s: list[float]
    ratios: list[float]


def warm_up_of(runs: Sequence[QueryRun], fit: DurationFit) -> WarmUp | None:
    """Excess of the first batches over the fit; None if no fresh JVM is recorded.

    Notes
    -----
    theory.md (E30). The first query of each application counts, if it started within 30 s.
    """
    fresh = [
        _fresh(run, modelled_s, fit)
        for run, modelled_s in zip(runs, fit.modelled_mean_s, strict=True)
        if run.early and run.early[0].jvm_age_s <= FRESH_JVM_S.value
    ]
    if not fresh:
        return None
    start_age_s = float(np.mean([one.start_age_s for one in fresh]))
    ages_s = np.array([age_s for one in fresh for age_s in one.ages_s])
    points = falling_ratios(ages_s, np.array([ratio for one in fresh for ratio in one.ratios]))
    return WarmUp(
        start_age_s=min(start_age_s, *(point.jvm_age_s for point in points))
        if points
        else start_age_s,
        first_batch_extra_s=float(np.mean([one.first_batch_extra_s for one in fresh])),
        steady_age_s=max(one.steady_age_s for one in fresh),
        points=tuple(
            WarmUpPoint(
                jvm_age_s=point.jvm_age_s, duration_ratio=point.ratio, num_batches=point.num_batches
            )
            for point in points
        ),
    )


def _fresh(run: QueryRun, modelled_mean_s: float, fit: DurationFit) -> _Fresh:
    configuration = run.configuration
    model = DurationModel(
        sum(phase.mean_s for phase in fit.driver_phases),
        level_spans(fit.stages, configuration.num_slots, configuration.shuffle_partitions),
    )
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
