"""The first batches of runs: which are a warm-up, and in fresh JVMs the cost of a restart."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from headway.domain import Z90, WarmUp
from headway.models.estimation.warm_up import falling_ratios, slower_start_length
from headway.models.job.calibration import doublings_outside, widened
from headway.profiler.streaming.fit import DurationFit
from headway.profiler.streaming.samples import BatchSample, QueryRun
from headway.profiler.streaming.state_loads import load_in_batch_s, state_load_of


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
    theory.md (E30), (Z2). The first query of each application counts, if it started within 30 s.
    """
    fresh_runs = [
        (run, modelled_s)
        for run, modelled_s in zip(runs, fit.modelled_mean_s, strict=True)
        if run.early and run.began_in_fresh_jvm
    ]
    if not fresh_runs:
        return None
    loaded = state_load_of([run for run, _ in fresh_runs])
    first_extra_s, ages_s, ratios = list[float](), list[float](), list[float]()
    for run, modelled_s in fresh_runs:
        model = fit.model(run.configuration)
        # A deviation of this run as a whole is not warm-up.
        run_ratio = float(np.mean([batch.duration_s for batch in run.batches])) / modelled_s
        expected_s = [run_ratio * float(model.mean_s(float(batch.num_rows))) for batch in run.early]
        first_s = run.early[0].duration_s - load_in_batch_s(run, loaded)
        first_extra_s.append(max(first_s - expected_s[0], 0.0))
        ages_s += [batch.jvm_age_s for batch in run.early[1:]]
        ratios += [
            batch.duration_s / usual_s
            for batch, usual_s in zip(run.early[1:], expected_s[1:], strict=True)
        ]
    points = falling_ratios(np.array(ages_s), np.array(ratios))
    start_age_s = float(np.mean([run.early[0].jvm_age_s for run, _ in fresh_runs]))
    return WarmUp(
        start_age_s=min([start_age_s, *(point.jvm_age_s for point in points)]),
        first_batch_extra_s=float(np.mean(first_extra_s)),
        steady_age_s=max(run.batches[0].jvm_age_s for run, _ in fresh_runs),
        points=points,
        loaded=loaded,
        executor_wait_s=float(np.mean([run.executor_wait_s for run, _ in fresh_runs])),
    )
