"""The one door: a profile, a configuration and arrivals make a prediction."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

import numpy as np

from headway.domain import (
    Arrivals,
    Configuration,
    Interval,
    JobProfile,
    LatencyDistribution,
    Prediction,
)
from headway.models.arrays import Array
from headway.models.job.calibration import reasons_outside, spread_ratio
from headway.models.job.duration import DurationModel
from headway.models.job.setting import (
    AFTER_COMMIT_PHASES,
    MOST_BATCH_ROWS,
    SettingLaw,
    duration_model,
    load_ratio,
    setting_law,
    settled_batch_rows,
)
from headway.models.job.window_law import why_no_window_law, window_law
from headway.units import format_rate

Z90 = 1.6449  # half of a 90 % interval in standard deviations
HIGHEST_QUOTED_INFLATION = 0.9
LEAST_CATCH_UP_RATIO = 1.2  # below, a rate limit leaves nothing to catch up with
_HIGHEST_QUOTED_OVERRUN = 0.5
_LOWEST_RATE_PER_S, _HIGHEST_RATE_PER_S = 1e-6, 1e12
_RATE_TOLERANCE_RATIO = 1e-4


def predict(
    profile: JobProfile,
    configuration: Configuration,
    arrivals: Arrivals,
    *,
    jvm_age_s: float | None = None,
) -> Prediction:
    """Latency of a job at a setting.

    Parameters
    ----------
    profile : JobProfile
        The job.
    configuration : Configuration
        The setting asked about.
    arrivals : Arrivals
        The stream asked about.
    jvm_age_s : float or None, > 0
        Seconds since the executors started; a young JVM is slower. None is the age at which the
        last profiled run ran.

    Returns
    -------
    Prediction
        With 90 % intervals, wider outside of what was profiled; not calibrated far outside.

    Notes
    -----
    theory.md (P1)-(P3).
    """
    if jvm_age_s is not None and not jvm_age_s > 0:
        raise ValueError(f"jvm_age_s is {jvm_age_s}; expected a positive number of seconds")
    # The stream asked about, its burstiness included, stands in for the profiled one.
    profile = replace(profile, arrivals=arrivals)
    age_factor = 1.0 if jvm_age_s is None else profile.age_factor(jvm_age_s)
    model = duration_model(profile, configuration.num_slots, configuration.shuffle_partitions)
    settled = float(
        settled_batch_rows(model, arrivals.rate_per_s, configuration.trigger_s, age_factor)
    )
    setting = (configuration.num_slots, configuration.shuffle_partitions, settled)
    spread = float(spread_ratio(profile, *setting))
    warnings = list(reasons_outside(profile, *setting))
    in_range = not warnings
    law = setting_law(
        profile,
        model,
        rate_per_s=arrivals.rate_per_s,
        trigger_s=configuration.trigger_s,
        factor=age_factor * np.exp(Z90 * spread * np.array([0.0, -1.0, 1.0])),
    )
    is_bounded = bool(law.is_stable[0])
    if not is_bounded:
        warnings.insert(
            0, f"over capacity at {format_rate(arrivals.rate_per_s)}: the backlog grows"
        )
    quotable = _add_load_warnings(warnings, law, configuration)
    limit_holds = _limit_holds(model, configuration, arrivals, age_factor, warnings)
    stable = limit_holds and is_bounded
    windows = window_law(profile, law)
    if (untold := why_no_window_law(profile)) is not None:
        warnings.append(untold)
    warnings += _state_growth(profile, configuration, model)
    return Prediction(
        configuration=configuration,
        arrivals=arrivals,
        stable=stable,
        utilization_ratio=_utilization_ratio(law, configuration),
        calibrated=in_range and quotable and stable,
        warnings=tuple(warnings),
        batch_duration=_distribution(law.batch_duration_mean_s(), law.batch_duration_quantile_s)
        if stable
        else None,
        tuple_latency=_distribution(law.tuple_latency_mean_s(), law.tuple_latency_quantile_s)
        if stable
        else None,
        window_latency=_distribution(windows.mean_s(), windows.quantile_s)
        if stable and windows is not None
        else None,
        phases_s=_phases_s(profile, model, law, arrivals, settled, age_factor) if stable else {},
        sustainable_rate_per_s=sustainable_rate_per_s(
            profile, configuration, age_factor=age_factor
        ),
    )


def sustainable_rate_per_s(
    profile: JobProfile, configuration: Configuration, *, age_factor: float = 1.0
) -> float:
    """Highest rate at which the backlog stays bounded with a tenth of the slots' time to spare.

    Parameters
    ----------
    profile : JobProfile
        The job.
    configuration : Configuration
        The setting asked about.
    age_factor : float, > 0
        Multiplies every duration, for the age of the JVM. [-]

    Returns
    -------
    float
        To a part in ten thousand; 0 if there is none. [records/s]

    Notes
    -----
    theory.md (P3): inflation of at most 0.9 on average, and a finite variance at every level of
    the slow noise. The rate limit, where there is one, may bind first.
    """
    model = duration_model(profile, configuration.num_slots, configuration.shuffle_partitions)
    rates, ratio = np.geomspace(_LOWEST_RATE_PER_S, _HIGHEST_RATE_PER_S, 64), math.inf
    while ratio > 1.0 + _RATE_TOLERANCE_RATIO:
        load = load_ratio(
            profile,
            model,
            rate_per_s=rates,
            trigger_s=configuration.trigger_s,
            factor=age_factor,
            highest_inflation=HIGHEST_QUOTED_INFLATION,
        )
        holds = load <= 1.0
        if not holds[0]:
            return 0.0
        last = len(rates) - 1 if holds.all() else int(np.argmin(holds)) - 1
        low, high = rates[last], rates[min(last + 1, len(rates) - 1)]
        ratio = high / low
        rates = np.geomspace(low, high, 32)
    limit = configuration.max_offsets_per_trigger
    if limit is None:
        return float(low)
    full_batch_s = age_factor * float(model.mean_s(float(limit)))
    return min(float(low), limit / max(configuration.trigger_s, full_batch_s))


def _utilization_ratio(law: SettingLaw, configuration: Configuration) -> float:
    """Share of time in which a batch runs; the inflation where a batch always runs."""
    if configuration.trigger_s > 0 and law.is_stable[0]:
        return float(law.utilization_ratio[0])
    return float(law.inflation_ratio[0])


def _distribution(mean_s: Array, quantile_s: Callable[[Array], Array]) -> LatencyDistribution:
    p50_s, p95_s, p99_s = quantile_s(np.array([[0.5], [0.95], [0.99]]))
    return LatencyDistribution(
        mean_s=float(mean_s[0]),
        p50_s=float(p50_s[0]),
        p95_s=float(p95_s[0]),
        p99_s=float(p99_s[0]),
        interval90_mean_s=_interval(mean_s),
        interval90_p99_s=_interval(p99_s),
    )


def _interval(values: Array) -> Interval:
    """Second and third are the values with all durations at the low and the high end."""
    return Interval(low=float(values[1]), high=float(values[2]))


def _phases_s(
    profile: JobProfile,
    model: DurationModel,
    law: SettingLaw,
    arrivals: Arrivals,
    settled: float,
    age_factor: float,
) -> Mapping[str, float]:
    """The mean tuple latency, split; adds up to it exactly: theory.md (P1).

    A row meets intervals in proportion to their length, so the batch it lands in is the one
    that such an interval collects.
    """
    slope_s = age_factor * float(model.slope_s(settled))
    driver = {
        phase.name: age_factor * phase.mean_s
        for phase in profile.driver_phases
        if phase.name not in AFTER_COMMIT_PHASES
    }
    levels = {level.name: age_factor * float(level.at(settled)) for level in model.levels}
    # What is left of the mean are the wait and the rows beyond the settled batch, both of which
    # grow with the interval a row meets: half of it is waited, and it brings rate * interval rows.
    left_s = float(law.tuple_latency_mean_s()[0]) - sum(driver.values()) - sum(levels.values())
    per_interval = 0.5 + slope_s * arrivals.rate_per_s
    met_interval_s = (left_s + slope_s * settled) / per_interval
    extra_rows = arrivals.rate_per_s * met_interval_s - settled
    for level in model.levels:
        levels[level.name] += age_factor * float(level.slope_at(settled)) * extra_rows
    return {"wait": met_interval_s / 2, **driver, **levels}


def _add_load_warnings(warnings: list[str], law: SettingLaw, configuration: Configuration) -> bool:
    """Whether the load is low enough for the numbers to be quoted with confidence."""
    if not law.is_stable[0]:
        return False
    inflation = float(law.inflation_ratio[0])
    overrun = float(law.overrun_probability[0])
    if inflation > HIGHEST_QUOTED_INFLATION:
        warnings.append(
            f"close to saturation: a second of input takes {inflation:.2f} s of work; "
            "small errors in the cost per row move the latency a lot"
        )
        return False
    if configuration.trigger_s > 0 and overrun > _HIGHEST_QUOTED_OVERRUN:
        warnings.append(
            f"{overrun:.0%} of the batches outlast the trigger interval: the query runs as fast as "
            "it can; a longer trigger or more slots would bring it back on its grid"
        )
        return False
    return True


def _state_growth(
    profile: JobProfile, configuration: Configuration, model: DurationModel
) -> Iterator[str]:
    """For which size of a growing state this is said; nothing where its size costs nothing."""
    state = profile.state
    if state is None or state.growth_per_s <= 0:
        return
    grown = replace(profile, state=replace(state, rows=state.rows + 1_000_000))
    setting = (configuration.num_slots, configuration.shuffle_partitions)
    longer_s = float(duration_model(grown, *setting).mean_s(0.0) - model.mean_s(0.0))
    if longer_s > 0:
        yield (
            f"the state grows by {format_rate(state.growth_per_s)}: this is for the "
            f"{state.rows:,} rows it was left with, and every million more makes a batch "
            f"{1e3 * longer_s:.0f} ms longer"
        )


def _limit_holds(
    model: DurationModel,
    configuration: Configuration,
    arrivals: Arrivals,
    age_factor: float,
    warnings: list[str],
) -> bool:
    """Whether the rate limit lets through what arrives (theory.md (B12))."""
    limit = configuration.max_offsets_per_trigger
    if limit is None:
        return True
    interval_s = max(configuration.trigger_s, age_factor * float(model.mean_s(float(limit))))
    needed = arrivals.rate_per_s * interval_s
    if limit <= needed:
        enough_rows = float(
            settled_batch_rows(
                model,
                LEAST_CATCH_UP_RATIO * arrivals.rate_per_s,
                configuration.trigger_s,
                age_factor,
            )
        )
        warnings.append(
            f"the rate limit of {limit} rows per batch lets through "
            f"{format_rate(limit / interval_s)}, less than the {format_rate(arrivals.rate_per_s)} "
            "that arrive: the backlog grows"
            + (f"; {math.ceil(enough_rows)} rows would do" if enough_rows < MOST_BATCH_ROWS else "")
        )
        return False
    if limit < LEAST_CATCH_UP_RATIO * needed:
        warnings.append(
            f"the rate limit of {limit} rows per batch leaves under 20 % to catch up with"
        )
    return True
