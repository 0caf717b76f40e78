"""Entry point: predicts from a profile, a configuration and arrivals."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import NamedTuple

import numpy as np

from headway.assumptions.fits import RUN_NOISE_RATIO
from headway.domain import (
    NOT_QUOTED,
    Z90,
    Arrivals,
    Configuration,
    Finding,
    FindingCode,
    Interval,
    JobProfile,
    LatencyDistribution,
    Metric,
    Prediction,
)
from headway.domain.later import later, with_changes
from headway.models.arrays import Array, Numeric
from headway.models.batches.microbatch import BoolArray
from headway.models.batches.windows import why_no_window_law, window_law
from headway.models.job.calibration import reasons_outside
from headway.models.job.capacity import Capacity, findings_of
from headway.models.job.certified import certified
from headway.models.job.declared import figures_at
from headway.models.job.duration import stacked
from headway.models.job.setting import (
    AFTER_COMMIT_PHASES,
    SettingLaw,
    duration_model,
    joined_laws,
    setting_law,
    settled_batch_rows,
)
from headway.models.job.upper_end import UpperEnd

_Law = Callable[[SettingLaw], tuple[Array, Callable[[Numeric], Array]]]


def predict(
    profile: JobProfile,
    configuration: Configuration,
    arrivals: Arrivals,
    *,
    jvm_age_s: float | None = None,
    metrics: Collection[Metric] = tuple(Metric),
) -> Prediction:
    """Latency of a job at a setting.

    Its 90% intervals are wider outside the profiled range; far outside it is not calibrated.

    Parameters
    ----------
    jvm_age_s : float or None, > 0, of executors; None is the age in the last profiled run [s]
    metrics : collection of Metric, latencies to predict besides that of tuples

    **(P1)** A prediction is the distribution of (T6), certified by (T4) if more than 2% of the
    batches overrun, for the asked configuration with `f = (age/age_0)^(-γ)` and driver phases by
    (E35). The mean tuple latency is split into the driver phases before the commit, the levels, and
    the wait. With `t` the interval in which a row arrives, solved from
    `E[L] = t/2 + Σ_j d_j + Σ_ℓ M_ℓ(n) + b(λ t-n)`, the wait is `t/2`, and each level has its share
    of the last term. The parts add up to `E[L]` exactly.

    >>> from headway.formats.profile_file import load_profile
    >>> profile = load_profile("examples/word-count.profile.yaml")
    >>> last = profile.settings[-1].configuration
    >>> prediction = predict(profile, last, Arrivals(rate_per_s=16_000.0))
    >>> prediction.stable, round(prediction.tuple_latency.p99_s, 2)
    (True, 2.39)
    """
    (prediction,) = predictions_at(
        profile,
        configuration,
        arrivals,
        (arrivals.rate_per_s,),
        jvm_age_s=jvm_age_s,
        metrics=metrics,
    )
    return prediction


def predictions_at(
    profile: JobProfile,
    configuration: Configuration,
    arrivals: Arrivals,
    rates_per_s: Sequence[float],
    *,
    jvm_age_s: float | None = None,
    metrics: Collection[Metric] = tuple(Metric),
) -> tuple[Prediction, ...]:
    """A setting at several rates: the predictions of `predict`, computed together (P1).

    Parameters
    ----------
    arrivals : Arrivals, the stream, at any rate
    rates_per_s : sequence of float, > 0, input rates, at least one [records/s]
    profile, configuration, jvm_age_s, metrics: as for `predict`

    >>> from headway.formats.profile_file import load_profile
    >>> profile = load_profile("examples/word-count.profile.yaml")
    >>> several = predictions_at(profile, profile.baseline, profile.arrivals, (16_000.0, 900e6))
    >>> [prediction.stable for prediction in several]
    [True, False]
    """
    if jvm_age_s is not None and not jvm_age_s > 0:
        raise ValueError(f"jvm_age_s is {jvm_age_s}; expected a positive number of seconds")
    # The asked stream, including its burstiness, replaces the profiled one.
    profile = replace(profile, arrivals=arrivals)
    question = _Asked(configuration, tuple(rates_per_s), jvm_age_s, frozenset(metrics), profile)
    return _predicted(question)


class _Asked(NamedTuple):
    """What is predicted. Profiles are soon compared, but to hash all that they have is slow."""

    configuration: Configuration
    rates_per_s: tuple[float, ...]
    jvm_age_s: float | None
    metrics: Collection[Metric]
    profile: JobProfile

    def __hash__(self) -> int:
        return hash(self[:-1])


@lru_cache(maxsize=4)  # advice on runs begins with the prediction that it narrows
def _predicted(question: _Asked) -> tuple[Prediction, ...]:
    configuration, rates_per_s, jvm_age_s, metrics, profile = question
    age_factor = 1.0
    if jvm_age_s is not None:
        age_factor, profile = profile.age_factor(jvm_age_s), profile.at_age(jvm_age_s)
    capacity = Capacity.of(profile, configuration, age_factor)
    rates = np.array(rates_per_s, dtype=np.float64)
    model = capacity.model.at_rate(rates)
    rows = settled_batch_rows(model, rates, configuration.trigger_s, age_factor).tolist()
    law = _law_at(capacity, rates)
    expected = certified(law.take(np.arange(len(rates))))
    laws = [expected.take(np.array([index])) for index in range(len(rates))]
    capacities = [capacity.at_rate(rate_per_s) for rate_per_s in rates_per_s]
    drafts = list(map(_draft, capacities, laws, rows))
    quoted = np.flatnonzero([is_quoted for _, is_quoted in drafts])
    latencies: Mapping[str, Sequence[LatencyDistribution]] = {}
    if len(quoted):
        ends = certified(law.take(np.concatenate([len(rates) + quoted, 2 * len(rates) + quoted])))
        latencies = _latencies(profile, expected.take(quoted).with_others(ends), metrics)
    predictions = [prediction for prediction, _ in drafts]
    for rank, index in enumerate(quoted.tolist()):
        predictions[index] = with_changes(
            predictions[index],
            phases_s=_phases_s(capacities[index], laws[index], rows[index]),
            **{name: distributions[rank] for name, distributions in latencies.items()},
        )
    return tuple(predictions)


def _draft(capacity: Capacity, law: SettingLaw, settled_rows: float) -> tuple[Prediction, bool]:
    """A prediction without its latencies, and whether it has any."""
    profile, configuration = capacity.profile, capacity.configuration
    arrivals = profile.arrivals
    growth = () if profile.growth is None else profile.growth.findings
    findings = (*growth, *findings_of(capacity, law))
    codes = {finding.code for finding in findings}
    stable = not capacity.is_over and FindingCode.RATE_LIMIT_TOO_LOW not in codes
    is_quoted = stable and not codes & NOT_QUOTED
    reasons = tuple(reasons_outside(profile, *configuration.size, settled_rows))
    overrun_probability = float(law.overrun_probability[0]) if configuration.trigger_s > 0 else 0.0
    prediction = Prediction(
        configuration=configuration,
        arrivals=arrivals,
        stable=stable,
        utilization_ratio=_utilization_ratio(law, configuration, arrivals),
        offered_load_ratio=float(law.offered_load_ratio[0]),
        calibrated=is_quoted and not reasons and FindingCode.MOSTLY_OVERRUNS not in codes,
        batch_duration=None,
        tuple_latency=None,
        window_latency=None,
        phases_s={},
        sustainable_rate_per_s=capacity.printed_up_to_per_s,
        overrun_probability=overrun_probability,
        findings=(
            *findings,
            *_slow_batches_left_out(profile),
            *reasons,
            *_findings_of_windows(profile),
        ),
        provenance=profile.provenance,
        stage_work=profile.stage_work,
        stability_is_sure=later(lambda: capacity.load_at_end(Z90) < 1.0),
    )
    return prediction, is_quoted


def _latencies(
    profile: JobProfile, law: SettingLaw, metrics: Collection[Metric]
) -> Mapping[str, Sequence[LatencyDistribution]]:
    """By field of a prediction, the distributions at settings in a row.

    The law is of these settings, then of the low ends of their durations, then of the high ends.
    """
    # A plan rejects a setting whose upper end is too close to saturation: the end is open there.
    num_settings = len(law.is_stable) // 3
    has_high = law.take(np.arange(2 * num_settings, 3 * num_settings)).is_quotable
    laws: dict[str, _Law] = {
        "tuple_latency": lambda law: (law.tuple_latency_mean_s(), law.tuple_latency_quantile_s)
    }
    if Metric.BATCH in metrics:
        laws["batch_duration"] = lambda law: (
            law.batch_duration_mean_s(),
            law.batch_duration_quantile_s,
        )
    has_windows = Metric.WINDOW in metrics and bool(profile.shape.windows)
    if has_windows and why_no_window_law(profile) is None:
        laws["window_latency"] = partial(_of_windows, profile)
    return {name: _distributions(law, of_law, has_high) for name, of_law in laws.items()}


def _slow_batches_left_out(profile: JobProfile) -> Iterator[Finding]:
    """That batches with other stages are not predicted, if they take longer than runs differ by."""
    last = profile.settings[-1] if profile.settings else None
    if last is None or not last.other_batches or last.other_batch_mean_s is None:
        return
    usual_s = last.batch_duration_mean_s
    if last.other_batch_mean_s > (1.0 + RUN_NOISE_RATIO.value) * usual_s:
        yield Finding(
            code=FindingCode.SLOW_BATCHES_LEFT_OUT,
            numbers={
                "num_left_out": float(last.other_batches),
                "num_batches": float(last.other_batches + last.num_batches),
                "left_out_mean_s": last.other_batch_mean_s,
                "usual_mean_s": usual_s,
            },
        )


def _findings_of_windows(profile: JobProfile) -> Iterator[Finding]:
    """Why there is no window latency, or what it contains besides the watermark delay."""
    unavailable, behind_s = why_no_window_law(profile), profile.shape.watermark_behind_s
    if unavailable is not None:
        yield unavailable
        return
    if profile.shape.output_mode == "append" and behind_s:
        yield Finding(code=FindingCode.WATERMARK_BEHIND, numbers={"behind_s": behind_s})
    arrivals, longest_s = profile.observed_arrivals, profile.shape.watermark_delay_s or 0.0
    longest_s += max((window.size_s for window in profile.shape.windows), default=0.0)
    lag_s = arrivals.event_time_lag_s if arrivals is not None else None
    # Without windows there is no latency that contains it.
    if profile.shape.windows and lag_s is not None and lag_s > longest_s:
        yield Finding(code=FindingCode.EVENT_TIMES_OLD, numbers={"lag_s": lag_s})


def _law_at(capacity: Capacity, rates_per_s: Array) -> SettingLaw:
    """The distributions at each rate, then those at the low and at the high end of 90%.

    Declared figures are at the same end of their ranges: theory.md (P19).
    """
    profile, configuration, model = capacity.profile, capacity.configuration, capacity.model
    trigger_s, age_factor = configuration.trigger_s, np.full_like(rates_per_s, capacity.age_factor)
    high_end = UpperEnd(
        profile=profile,
        durations=stacked([model] * len(rates_per_s)),
        num_slots=np.full_like(rates_per_s, configuration.num_slots),
        partitions=np.full_like(rates_per_s, configuration.shuffle_partitions),
        trigger_s=np.full_like(rates_per_s, trigger_s),
        score=Z90,
        age_factor=capacity.age_factor,
    )
    high_rates_per_s, high_factors = high_end.rate_and_factor(rates_per_s)
    low_factors = replace(high_end, score=-Z90).settled_factor(rates_per_s)
    rates = (rates_per_s, rates_per_s, high_rates_per_s)
    factors = (age_factor, low_factors, high_factors)
    if profile.declared is None:
        at = {"rate_per_s": np.concatenate(rates), "factor": np.concatenate(factors)}
        model = model.at_rate(np.tile(rates_per_s, len(rates)))
        return setting_law(profile, model, trigger_s=trigger_s, **at)
    laws = []
    for score, rate_per_s, factor in zip((0.0, -Z90, Z90), rates, factors, strict=True):
        at_end = figures_at(profile, score)
        end_model = duration_model(at_end, *configuration.size).at_rate(rates_per_s)
        at = {"rate_per_s": rate_per_s, "factor": factor}
        laws.append(setting_law(at_end, end_model, trigger_s=trigger_s, **at))
    return joined_laws(laws)


def _utilization_ratio(law: SettingLaw, configuration: Configuration, arrivals: Arrivals) -> float:
    """Share of time that the query is busy; always, if the backlog grows.

    A batch runs only if there are rows. Rows, or bursts of them, arrive at random, so none arrive
    in a time `t` with the probability `exp(-λt/I)` for a dispersion `I`; batches without rows, by
    which windows are closed, are not counted.
    """
    if not law.is_stable[0]:
        return 1.0
    bursts_per_s = arrivals.rate_per_s / max(arrivals.dispersion_ratio, 1.0)
    if configuration.trigger_s > 0:
        interval_s = float(law.mean_interval_s[0])
        return float(law.utilization_ratio[0]) * -math.expm1(-bursts_per_s * interval_s)
    batch_s = float(law.batch_duration_mean_s()[0])
    idle_s = math.exp(-bursts_per_s * batch_s) / bursts_per_s
    return batch_s / (batch_s + idle_s)


def _distributions(
    law: SettingLaw, of_law: _Law, has_high: BoolArray
) -> tuple[LatencyDistribution, ...]:
    """The expected distributions, and the ends of their means and p99: theory.md (P1)."""
    num_settings = len(has_high)
    mean_s, quantile_s = of_law(law)
    p99_s = quantile_s(0.99)
    _, expected_s = of_law(law.take(np.arange(num_settings)))
    p50_s, p95_s = expected_s(np.array([[0.5], [0.95]]))
    return tuple(
        LatencyDistribution(
            mean_s=float(mean_s[index]),
            p50_s=float(p50_s[index]),
            p95_s=float(p95_s[index]),
            p99_s=float(p99_s[index]),
            interval90_mean_s=_interval(mean_s[index::num_settings], bool(has_high[index])),
            interval90_p99_s=_interval(p99_s[index::num_settings], bool(has_high[index])),
        )
        for index in range(num_settings)
    )


def _of_windows(profile: JobProfile, law: SettingLaw) -> tuple[Array, Callable[[Numeric], Array]]:
    windows = window_law(profile, law)
    assert windows is not None  # the profile contains what they need
    return windows.mean_s, windows.quantile_s


def _interval(values: Array, has_high: bool) -> Interval:
    """Second and third are the values with all durations at the low and the high end."""
    return Interval(low=float(values[1]), high=float(values[2]) if has_high else math.inf)


def _phases_s(capacity: Capacity, law: SettingLaw, settled_rows: float) -> Mapping[str, float]:
    """The parts of the mean tuple latency, which add up to it exactly: theory.md (P1).

    A row arrives in an interval with a probability in proportion to its length, so its batch is the
    one that such an interval collects.
    """
    model, rate_per_s, age_factor = capacity.model, capacity.rate_per_s, capacity.age_factor
    slope_s = age_factor * float(model.slope_s(settled_rows))
    driver = {
        phase.name: age_factor * phase.mean_s
        for phase in capacity.profile.driver_phases
        if phase.name not in AFTER_COMMIT_PHASES
    }
    levels = {level.name: age_factor * float(level.at(settled_rows)) for level in model.levels}
    # The rest of the mean is the wait and the rows beyond the settled batch. Both grow with the
    # interval in which a row arrives: the wait is half of it, and it collects rate * interval rows.
    left_s = float(law.tuple_latency_mean_s()[0]) - sum(driver.values()) - sum(levels.values())
    per_interval = 0.5 + slope_s * rate_per_s
    met_interval_s = (left_s + slope_s * settled_rows) / per_interval
    extra_rows = rate_per_s * met_interval_s - settled_rows
    for level in model.levels:
        levels[level.name] += age_factor * float(level.slope_at(settled_rows)) * extra_rows
    return {"wait": met_interval_s / 2, **driver, **levels}
