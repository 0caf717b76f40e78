"""Which runs would reduce the uncertainty of a profile most."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import product

import numpy as np

from headway.assumptions.advice import (
    ADVISED_PARTITIONS_RATIO,
    ADVISED_REPEATS,
    ADVISED_ROWS_RATIO,
    ADVISED_RUN_S,
    ADVISED_SHARES,
    ADVISED_TRIGGERS_S,
    ALIKE_LESSONS_RATIO,
    FEWEST_ADVISED_BATCHES,
    LEAST_NARROWING_RATIO,
    MANY_PARTITIONS,
    MOST_ADVISED_BATCHES,
    MOST_ADVISED_ROWS_RATIO,
    MOST_ADVISED_RUNS,
)
from headway.assumptions.fits import USUAL_PARTITION_S
from headway.domain import (
    AdvisedRun,
    Arrivals,
    Configuration,
    Interval,
    JobProfile,
    Metric,
    Narrowing,
    ObservedSetting,
    Prediction,
    Target,
)
from headway.lazy_classes import dataclass
from headway.limits import LONGEST_S
from headway.models.arrays import Array
from headway.models.estimation.experiment_design import d_optimal_design
from headway.models.estimation.regression import is_spread
from headway.models.job.calibration import arrival_time_s, middle_rows, size_to_vary
from headway.models.job.capacity import Capacity, sustainable_rate_per_s
from headway.models.job.fit_error import FitError, Shares
from headway.models.job.predict import predict
from headway.models.job.setting import duration_model, settled_batch_rows
from headway.units import counted


@dataclass(frozen=True, slots=True, kw_only=True)
class SettingLatency:
    """The user's own question: a latency of one setting."""

    configuration: Configuration
    arrivals: Arrivals
    metric: Metric = Metric.TUPLE
    statistic: str = "p99"
    interval_s: Interval | None = None  # of 90%, by the profile as it is, if predicted already

    @classmethod
    def of(cls, prediction: Prediction, target: Target | None = None) -> SettingLatency:
        """The question that a prediction answers; with a target, the latency of the target."""
        return cls(
            configuration=prediction.configuration,
            arrivals=prediction.arrivals,
            metric=Metric.TUPLE if target is None else target.metric,
            # Intervals are available for these two.
            statistic="mean" if target is not None and target.quantile is None else "p99",
        )

    def interval_in(self, prediction: Prediction) -> Interval | None:
        """The interval that is asked for, in a prediction of the setting."""
        latency = prediction.latency(self.metric)
        return None if latency is None else latency.intervals90_s.get(self.statistic)

    def interval_by(self, profile: JobProfile, metrics: Collection[Metric]) -> Interval | None:
        """The same by a profile; of all metrics there may be a prediction already."""
        return self.interval_in(
            predict(profile, self.configuration, self.arrivals, metrics=metrics)
        )

    def next_run(self, profile: JobProfile) -> AdvisedRun | None:
        """The run that narrows the answer most (E42); None if none does or nothing was measured."""
        if profile.declared is not None:
            return None
        return next(iter(advised_runs(profile, self, most_runs=1)), None)


def advised_runs(
    profile: JobProfile,
    question: SettingLatency | None = None,
    *,
    most_runs: int = MOST_ADVISED_RUNS.value,
) -> tuple[AdvisedRun, ...]:
    """What to run next, the most informative run first; empty if no run would help.

    Each is to be run twice, and states what it would add to those before it.

    Parameters
    ----------
    question : SettingLatency, optional, whose latency is asked for; by default all settings
    most_runs : int, >= 1

    **(E42)** Advice on runs. Candidates run as fast as possible, on the trigger of the last run, or
    on one of three times its interval: at most 5 s unless all batches had one size, as a query may
    be compiled only after the last of fewer than 24 batches in two minutes. They run at 30 or 60%
    of the sustainable rate (P3), or of the one that gives batches of 50 times the largest profiled
    rows on the longest of these triggers, if it is lower, with the shuffle partitions of the last
    run, those asked about, or four times as many (a quarter beyond 64), on the slots of the last
    run, or those asked about. Each counts as two repeats. With a question, the first advice is the
    run after which (E41) is smallest at the asked setting, the next one is the best run in addition
    to it, and so on, as long as the spread falls by 2%. Without a question, the mean variance over
    all candidates is minimised, and only candidates of the D-optimal design (E20) that complements
    the existing runs take part. Its columns are the shares of a batch that are fixed, in proportion
    to rows, and in proportion to partitions. If all runs had the same number of slots, a run on
    twice as many comes last. If all batches had one size, a run on the same slots and partitions
    whose rows differ comes first, and no run has a rate above that of (P28). If all batches of a
    join came at one interval, rows and state (E29) were in one proportion: a run at another
    interval comes first.

    >>> from headway.formats.profile_file import load_profile
    >>> first = advised_runs(load_profile("examples/word-count.profile.yaml"))[0]
    >>> first.configuration.shuffle_partitions, round(first.rate_per_s)
    (32, 85085)
    """
    candidates = dict(_candidates(profile, question))
    shares = _asked(profile, question, candidates)
    pool = list(candidates if question is not None else _far_apart(profile, candidates))
    settings = profile.settings
    runs: list[AdvisedRun] = []
    variance = _variance(profile, settings, shares)
    while pool and len(runs) < most_runs:
        eligible = pool if runs else _of_another_size(profile, candidates) or pool
        variances = [_variance(profile, _with(settings, choice), shares) for choice in eligible]
        # Among runs that add about as much, the first one, which changes least.
        alike = (1.0 + ALIKE_LESSONS_RATIO.value) * min(variances)
        best = int(np.argmax(np.array(variances) <= alike))
        if variances[best] > variance * (1.0 - LEAST_NARROWING_RATIO.value) ** 2:
            break
        best_run = eligible[best]
        pool = [candidate for candidate in pool if candidate is not best_run]
        after = _with(settings, best_run)
        run = _as_advised(profile, best_run)
        if question is not None:
            narrowing = _narrowing(profile, settings, after, question, shares[0])
            run = replace(run, narrowing=narrowing)
        runs.append(run)
        settings, variance = after, variances[best]
    if question is None and len({run.configuration.num_slots for run in profile.settings}) == 1:
        executors, rate_per_s = 2 * profile.baseline.executors, profile.settings[-1].rate_per_s
        larger = replace(profile.baseline, executors=executors, max_offsets_per_trigger=None)
        on_more_slots, _ = _candidate(profile, larger, rate_per_s)
        runs.append(_as_advised(profile, on_more_slots))
    return tuple(runs)


def _of_another_size(
    profile: JobProfile, candidates: Iterable[ObservedSetting]
) -> list[ObservedSetting]:
    """Runs on the same slots and partitions, with another of what all batches have in common."""
    size = size_to_vary(profile)
    if size is None:
        return []
    last, last_size = profile.baseline, size(profile.settings[-1])
    return [
        candidate
        for candidate in candidates
        if candidate.configuration.size == last.size
        and is_spread(np.array([last_size, size(candidate)]))
    ]


def _asked(
    profile: JobProfile,
    question: SettingLatency | None,
    candidates: Mapping[ObservedSetting, Shares],
) -> list[Shares]:
    if question is None:
        return [*candidates.values()]
    configuration = question.configuration
    # Above the sustainable rate batches grow without bound: the question is then about that rate.
    most_per_s = sustainable_rate_per_s(profile, configuration)
    rate_per_s = min(question.arrivals.rate_per_s, most_per_s or np.inf)
    model = duration_model(profile, *configuration.size).at_rate(rate_per_s)
    rows = float(settled_batch_rows(model, rate_per_s, configuration.trigger_s))
    return [Shares.of(profile, configuration, rows)]


def _variance(
    profile: JobProfile, settings: Sequence[ObservedSetting], asked_shares: Sequence[Shares]
) -> float:
    fit = FitError(profile=profile, settings=settings)
    return float(np.mean([fit.spread_ratio(shares) ** 2 for shares in asked_shares]))


def _with(
    settings: tuple[ObservedSetting, ...], candidate: ObservedSetting
) -> tuple[ObservedSetting, ...]:
    # In front, so that the last run remains the baseline.
    return (candidate,) * ADVISED_REPEATS.value + settings


def _narrowing(
    profile: JobProfile,
    before: tuple[ObservedSetting, ...],
    after: tuple[ObservedSetting, ...],
    question: SettingLatency,
    shares: Shares,
) -> Narrowing:
    now, after_runs = (_fitted_to(profile, runs) for runs in (before, after))
    interval_now_s = question.interval_s
    if interval_now_s is None or now != profile:
        interval_now_s = question.interval_by(now, tuple(Metric))
    return Narrowing(
        statistic=question.statistic,
        interval_now_s=interval_now_s,
        interval_after_s=question.interval_by(after_runs, (question.metric,)),
        error_now_ratio=FitError(profile=profile, settings=before).ratio(shares),
        error_after_ratio=FitError(profile=profile, settings=after).ratio(shares),
    )


def _fitted_to(profile: JobProfile, runs: tuple[ObservedSetting, ...]) -> JobProfile:
    """The profile with other runs; of two sizes they determine the cost of a row (E43)."""
    rows = np.array([middle_rows(run) for run in runs])
    half_range_ratio = None if is_spread(rows) else profile.row_cost_half_range_ratio
    return replace(profile, settings=runs, row_cost_half_range_ratio=half_range_ratio)


def _candidates(
    profile: JobProfile, question: SettingLatency | None
) -> Iterator[tuple[ObservedSetting, Shares]]:
    """Runs that could be made, as listed in (E42)."""
    baseline = replace(profile.baseline, max_offsets_per_trigger=None)
    clusters = [baseline]
    if question is not None and question.configuration.num_slots != baseline.num_slots:
        clusters.append(replace(question.configuration, max_offsets_per_trigger=None))
    last_s = max(baseline.trigger_s, profile.settings[-1].batch_duration_mean_s)
    most_rows = MOST_ADVISED_ROWS_RATIO.value * profile.rows_per_batch_range[1]
    has_one_size = bool(profile.row_cost_half_range_ratio)
    most_s = np.inf if has_one_size else ADVISED_RUN_S.value / FEWEST_ADVISED_BATCHES.value
    longer_s = min(ADVISED_ROWS_RATIO.value * last_s, most_s)
    triggers_s = [_trigger_beyond(last_s), _trigger_beyond(max(longer_s, last_s))]
    for cluster, partitions in product(clusters, _partition_choices(profile, question)):
        capacity = Capacity.of(profile, replace(cluster, shuffle_partitions=partitions))
        duration_s = float(capacity.model.mean_s(most_rows))
        fed_per_s = most_rows / max(*triggers_s, duration_s)
        most_per_s = min(capacity.printed_up_to_per_s, fed_per_s)
        if most_per_s <= 0:
            continue
        for trigger_s, share in product((0.0, *dict.fromkeys(triggers_s)), ADVISED_SHARES.value):
            configuration = replace(cluster, shuffle_partitions=partitions, trigger_s=trigger_s)
            yield _candidate(profile, configuration, share * most_per_s)


def _candidate(
    profile: JobProfile, configuration: Configuration, rate_per_s: float
) -> tuple[ObservedSetting, Shares]:
    """A possible run, as it would be in the profile, and the parts of its batch duration."""
    model = duration_model(profile, *configuration.size).at_rate(rate_per_s)
    rows = float(settled_batch_rows(model, rate_per_s, configuration.trigger_s))
    mean_s = float(model.mean_s(rows))
    num_batches = int(ADVISED_RUN_S.value / max(configuration.trigger_s, mean_s))
    setting = ObservedSetting(
        query_id="advised",
        configuration=configuration,
        rate_per_s=rate_per_s,
        num_batches=min(max(num_batches, FEWEST_ADVISED_BATCHES.value), MOST_ADVISED_BATCHES.value),
        num_batches_cut=0,
        jvm_age_s=profile.settings[-1].jvm_age_s,
        rows_per_batch_low=rows,
        rows_per_batch_high=rows,
        batch_duration_mean_s=mean_s,
        batch_duration_sd_s=mean_s * profile.noise.batch_ratio,
        modelled_duration_mean_s=mean_s,
    )
    return setting, Shares.of(profile, configuration, rows)


def _partition_choices(profile: JobProfile, question: SettingLatency | None) -> tuple[int, ...]:
    count = profile.baseline.shuffle_partitions
    if not _is_shuffled(profile):
        return (count,)
    ratio = ADVISED_PARTITIONS_RATIO.value
    other_count = count * ratio if count < MANY_PARTITIONS.value else max(count // ratio, 1)
    asked_count = count if question is None else question.configuration.shuffle_partitions
    return tuple(dict.fromkeys((asked_count, count, other_count)))


def _far_apart(
    profile: JobProfile, candidates: Mapping[ObservedSetting, Shares]
) -> list[ObservedSetting]:
    """The candidates that are most informative on all costs: a D-optimal design (E20)."""
    run_shares = [
        Shares.of(profile, run.configuration, middle_rows(run)) for run in profile.settings
    ]
    all_shares = [*run_shares, *candidates.values()]
    columns = np.array([_columns(profile, shares) for shares in all_shares])
    columns = columns[:, : 2 + _is_shuffled(profile)]
    num_run = len(run_shares)
    design = d_optimal_design(
        columns, min(MOST_ADVISED_RUNS.value, len(candidates)), already_run=np.arange(num_run)
    )
    # Existing runs may be chosen again; the best of the new ones is selected elsewhere.
    settings = [*candidates]
    return [settings[index - num_run] for index in design if index >= num_run]


def _columns(profile: JobProfile, shares: Shares) -> Array:
    """Shares of a batch that are fixed, in proportion to rows, and in proportion to partitions."""
    fixed, per_row, per_partition = shares.of_coefficients.T
    return np.array(
        [
            shares.of_driver + sum(fixed * [stage.task_fixed_s for stage in profile.stages]),
            sum(per_row * [stage.task_per_row_s for stage in profile.stages]),
            sum(per_partition) * USUAL_PARTITION_S.value,
        ]
    )


def _as_advised(profile: JobProfile, setting: ObservedSetting) -> AdvisedRun:
    configuration = setting.configuration
    interval_s = max(configuration.trigger_s, setting.batch_duration_mean_s)
    partitions = configuration.shuffle_partitions
    learns, why = _lesson(profile, setting)
    return AdvisedRun(
        learns=learns,
        why=why,
        configuration=configuration,
        rate_per_s=setting.rate_per_s,
        num_rows=setting.rows_per_batch_middle,
        num_batches=setting.num_batches,
        duration_s=max(ADVISED_RUN_S.value, setting.num_batches * interval_s),
        num_repeats=ADVISED_REPEATS.value,
        new_checkpoint=profile.state_partitions not in (None, partitions),
    )


def _lesson(profile: JobProfile, advised: ObservedSetting) -> tuple[str, str]:
    """What a run adds, and what the runs so far had; the rarest if there are several."""
    configuration, rows = advised.configuration, middle_rows(advised)
    slots = {setting.configuration.num_slots for setting in profile.settings}
    partitions = {setting.configuration.shuffle_partitions for setting in profile.settings}
    low, high = profile.rows_per_batch_range
    if configuration.num_slots not in slots:
        return "the gain from more slots, and their contention", _counts_of_runs(slots, "slot")
    if configuration.shuffle_partitions not in partitions and _is_shuffled(profile):
        return "the cost of a shuffle partition", _counts_of_runs(partitions, "shuffle partition")
    if profile.row_cost_half_range_ratio and not low <= rows <= high:
        why = f"all batches had about {high:,.0f} rows; these have about {rows:,.0f}"
        return "how much of the time of a batch is fixed, and how much is for its rows", why
    if size_to_vary(profile) is arrival_time_s:
        why = f"all batches had the rows of about {arrival_time_s(profile.settings[-1]):.3g} s"
        return "what a row of the state costs", f"{why}; these have {arrival_time_s(advised):.3g} s"
    if rows < low:
        why = f"no batch had fewer than {low:,.0f} rows; these have about {rows:,.0f}"
        return "the cost of small batches, which low latency needs", why
    if rows > high:
        why = f"no batch had more than {high:,.0f} rows; these have about {rows:,.0f}"
        return "the fixed cost of a batch and the cost per row", why
    if any(setting.configuration == configuration for setting in profile.settings):
        return "the difference between runs of one setting", "few configurations were run twice"
    why = f"{counted(len(profile.settings), 'run')} had {low:,.0f} to {high:,.0f} rows per batch"
    return f"what batches of about {rows:,.0f} rows take", why


def _counts_of_runs(counts: set[int], noun: str) -> str:
    if len(counts) == 1:
        return f"all runs had {counted(min(counts), noun)}"
    return f"runs had {min(counts)} to {counted(max(counts), noun)}"


def _is_shuffled(profile: JobProfile) -> bool:
    return any(stage.tasks_rule == "shuffle" for stage in profile.stages)


def _trigger_beyond(least_s: float) -> float:
    """The shortest usual trigger interval that is at least as long."""
    longest_s = min(least_s, LONGEST_S)
    return next(
        (choice for choice in ADVISED_TRIGGERS_S.value if choice >= least_s * 0.999), longest_s
    )
