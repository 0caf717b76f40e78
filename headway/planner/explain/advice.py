"""Improvements outside the settings of a plan, with the size of their effect."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from headway.assumptions.advice import (
    AVAILABLE_NOW_START_S,
    AVAILABLE_NOW_USED_RATIO,
    BURSTY_RATIO,
    MUCH_RATIO,
    SKEWED_RATIO,
    SLOW_COMMIT_S,
    SLOWER_WHEN_YOUNG_RATIO,
    YOUNG_JVM_S,
)
from headway.assumptions.resources import MEASURED_LAUNCHES_PER_S
from headway.domain import Advice, JobProfile, Metric
from headway.domain.profile import CHECKPOINT_PHASES
from headway.domain.switches import Switch
from headway.models.job.switches import without_coalescing
from headway.models.job.turned import with_times_saved
from headway.planner.explained_setting import ExplainedSetting, is_worthwhile
from headway.planner.question import Question
from headway.planner.switches import setting_of_switch, turned_ends, why_not
from headway.planner.tasks import most_launches_per_s, short_of_tasks, with_source_partitions
from headway.units import counted, format_duration, format_rate, ms_to_s

_LEAST_STEP_S = ms_to_s(1)
_STATE_BY_KEY = ("FlatMapGroupsInPandasWithState", "TransformWithState")  # Spark's operators
_COALESCE_KEY = "spark.sql.adaptive.coalescePartitions.enabled"
# What adaptive execution merges has advice of its own, and empty batches save no time.
_ADVISED = (
    *(Switch.ASYNC_PROGRESS, Switch.CHANGELOG, Switch.ROCKSDB, Switch.FILE_MANAGER),
    *(Switch.KEEP_LOADED, Switch.ADAPTIVE),
)
_FASTER_STORE = "a faster checkpoint store"


def advice_of(setting: ExplainedSetting) -> tuple[Advice, ...]:
    """Advice in the order of certainty: advice with a computed effect comes first.

    **(P14)** The effect of advice is computed if possible, for the plan with the watermark delay
    shortened by `(w+δ) mod B` and a millisecond (W7); with as many source tasks as slots; without
    coalescing, if a coalesced stage (T7) has fewer tasks than slots and partitions; with each
    switch that can be turned (Y1)-(Y8); without the times of the offset and commit logs, of state
    commits, and of collections, which bounds what a faster store or a larger heap gains; and with
    overlapping windows counted from shared panes, fused or from a log, whichever has the shortest
    batches. For a limit `L` on tuples, it is also computed for a query that is started every
    `I = (L-S-f)/(1+ρ)` with an available-now trigger, with `S` the time to start it, and `f` and
    `ρ` the fixed time and the load of batches of the planned size: rows wait up to `I` and then
    `S+f+ρI`, during which the query uses the nodes. Where an effect cannot be computed, only the
    measured number is stated: for skew, and a drift (the factor of durations by age) by which
    batches 30 s after a start take a tenth longer than the plan covers.
    """
    return (
        *_lower_watermark(setting),
        *_more_source_partitions(setting),
        *_coalescing_off(setting),
        *_salted_keys(setting),
        *_switch_advice(setting),
        *_faster_checkpoint(setting),
        *(Advice(text=text) for text in _without_a_latency(setting)),
        *_fewer_collections(setting),
    )


def _without_a_latency(setting: ExplainedSetting) -> Iterator[str]:
    """Advice of which the latency that it would lead to is not computed."""
    profile = setting.question.profile
    yield from _available_now(setting)
    yield from _launches(setting)
    yield from _skew(setting)
    yield from _python_by_key(profile)
    yield from _bursts(setting.question)
    yield from _overlapping_windows(setting)
    yield from _young_jvm(profile)
    if profile.memory is not None and profile.memory.spilled_bytes > 0:
        yield "tasks spilled to disk: more memory per task would avoid that"


def _lower_watermark(setting: ExplainedSetting) -> Iterator[Advice]:
    """A watermark that is passed just after a trigger waits for the next trigger: theory.md (W7).

    **(W7)** On the grid, `L_w` is a step function of `w`. If `h` is a multiple of `B`, reducing `w`
    by a millisecond more than `(e+w+δ) mod B` reduces `L_w` by `B`; of several `δ`, the median
    counts.
    """
    target, profile = setting.question.target, setting.question.profile
    delay_s, trigger_s = profile.shape.watermark_delay_s, setting.configuration.trigger_s
    waits = target.metric is Metric.WINDOW and profile.shape.output_mode == "append"
    if not waits or delay_s is None or not trigger_s > 0:
        return
    assert profile.observed_arrivals is not None  # checked by require_predictable
    assert profile.shape.windows_wait_s is not None
    lag_s = profile.observed_arrivals.event_time_lag_s or 0.0
    reduction_s = (profile.shape.windows_wait_s + lag_s) % trigger_s + _LEAST_STEP_S
    if reduction_s > delay_s:
        return
    shape = replace(profile.shape, watermark_delay_s=delay_s - reduction_s)
    improved_s = setting.latency_with(replace(profile, shape=shape))
    if setting.latency_s - improved_s > 0.5 * trigger_s:
        text = (
            f"a watermark delay shorter by {format_duration(reduction_s)} saves one trigger "
            f"interval: window {target.statistic} up to {format_duration(improved_s)}"
        )
        yield Advice(text=text, latency_s=improved_s)


def _more_source_partitions(setting: ExplainedSetting) -> Iterator[Advice]:
    """Slots without a task in the first stages are paid for but idle."""
    profile, slots = setting.question.profile, setting.configuration.num_slots
    short = [num_tasks for _, num_tasks in short_of_tasks(profile, slots, setting.rows)]
    if short:
        yield from setting.if_worthwhile(
            with_source_partitions(profile, slots),
            lambda latency: (
                f"{slots} source partitions (or that many input splits, Kafka's minPartitions) "
                f"instead of {short[0]} would use every slot: {setting.statistic} up to {latency}"
            ),
        )


def _coalescing_off(setting: ExplainedSetting) -> Iterator[Advice]:
    """Adaptive execution may leave slots without a task, to have tasks of some size."""
    profile, slots = setting.question.profile, setting.configuration.num_slots
    partitions = setting.configuration.shuffle_partitions
    for stage in profile.stages:
        if stage.coalescing is None:
            continue
        num_tasks = setting.num_tasks(stage)
        if num_tasks >= min(slots, stage.coalescing.most_tasks(partitions)):
            continue
        improved_s = setting.latency_with(without_coalescing(profile))
        if is_worthwhile(improved_s, setting.latency_s):
            text = (
                f"adaptive execution merges the {partitions} partitions of "
                f"{stage.called} into {counted(num_tasks, 'task')} on {counted(slots, 'slot')}: "
                f"without it ({_COALESCE_KEY}=false), {setting.statistic} would be up to "
                f"{format_duration(improved_s)}, {1.0 - improved_s / setting.latency_s:.0%} less"
            )
            yield Advice(text=text, latency_s=improved_s)
            return


def _salted_keys(setting: ExplainedSetting) -> Iterator[Advice]:
    """A hot key keeps one task busy, regardless of the number of tasks."""
    profile = setting.question.profile
    worst = max(profile.stages, key=lambda stage: stage.hot_share_ratio)
    if worst.hot_share_ratio > 0.0:
        stages = tuple(replace(stage, hot_share_ratio=0.0) for stage in profile.stages)
        yield from setting.if_worthwhile(
            replace(profile, stages=stages),
            lambda latency: (
                f"one task of {worst.name} gets {worst.hot_share_ratio:.0%} of the rows whatever "
                "the number of tasks, as with one hot key: salting that key would lower "
                f"{setting.statistic} to {latency} at best"
            ),
        )


def _available_now(setting: ExplainedSetting) -> Iterator[str]:
    """A limit of many minutes does not need a query that runs all the time: theory.md (P14)."""
    target, rows = setting.question.target, setting.rows
    if target.metric is not Metric.TUPLE or setting.question.of_change:
        return
    start_s = AVAILABLE_NOW_START_S.value
    # Difference between twice the rows and once: the time per row at the planned batch size.
    twice_s = float(setting.model.mean_s(2.0 * rows))
    fixed_s = 2.0 * setting.duration_s - twice_s
    busy_ratio = (twice_s - setting.duration_s) / rows * setting.question.rate_per_s
    start_interval_s = (target.limit_s - start_s - max(fixed_s, 0.0)) / (1.0 + busy_ratio)
    if start_interval_s <= 0.0:
        return
    used_ratio = (start_s + max(fixed_s, 0.0)) / start_interval_s + busy_ratio
    if used_ratio < AVAILABLE_NOW_USED_RATIO.value:
        yield (
            f"a limit of {format_duration(target.limit_s)} leaves room to start the query every "
            f"{format_duration(start_interval_s)} with Trigger.AvailableNow, instead of running it "
            f"all the time: it would use the nodes for {used_ratio:.0%} of the time"
        )


def _launches(setting: ExplainedSetting) -> Iterator[str]:
    profile = setting.question.profile
    interval_s = max(setting.configuration.trigger_s, setting.duration_s)
    launched_per_s = sum(map(setting.num_tasks, profile.stages)) / interval_s
    if launched_per_s <= MEASURED_LAUNCHES_PER_S.value:
        return
    text = (
        f"the driver launches {launched_per_s:,.0f} tasks/s; Spark's scheduler reached "
        f"{MEASURED_LAUNCHES_PER_S.value:,.0f} (Ousterhout 2013), and a plan allows up to "
        f"{most_launches_per_s(profile):,.0f} in batches of the planned length"
    )
    # Larger batches may have as many more tasks, if these follow the rows.
    if not any(stage.follows_rows for stage in profile.stages):
        longer_s = interval_s * launched_per_s / MEASURED_LAUNCHES_PER_S.value
        trigger = format_duration(longer_s)
        text += f"; a trigger interval of {trigger} would bring it down to what was reached"
    yield text


def _skew(setting: ExplainedSetting) -> Iterator[str]:
    """Tasks with more rows than others, if these rows take much of the planned batch."""
    profile = setting.question.profile
    for stage in profile.stages:
        ratio = 1.0 if stage.observed is None else stage.observed.largest_task_ratio
        excess_s = setting.rows_s(stage, (ratio - 1.0) / setting.num_tasks(stage))
        if ratio > SKEWED_RATIO.value and setting.is_much(excess_s):
            cure = "an even distribution of the rows over source partitions does"
            if not (stage.reads_source or stage.is_static):
                cure = "salting the keys does; 'headway ordered' shows what placing saves"
            yield (
                f"skew: the largest task of {stage.called} reads {ratio:.1f} times the rows of "
                f"the mean task, which takes up to {setting.share_text(excess_s)}; more slots do "
                f"not help, {cure}"
            )
    arrivals = profile.observed_arrivals
    share = None if arrivals is None else arrivals.largest_partition_share
    readers = [stage for stage in profile.stages if stage.reads_source]
    sources = max((stage.num_source_tasks or 1 for stage in readers), default=1)
    if share is None or sources == 1 or share * sources <= SKEWED_RATIO.value:
        return
    excess_s = sum(setting.rows_s(stage, max(share - 1.0 / sources, 0.0)) for stage in readers)
    if setting.is_much(excess_s):
        yield (
            f"skew: one of {sources} source partitions has {share:.0%} of the rows, which takes up "
            f"to {setting.share_text(excess_s)}; a partition key with an even distribution would "
            "spread them"
        )


def _python_by_key(profile: JobProfile) -> Iterator[str]:
    """Each key of a batch is a call into Python; there are fewer buckets of keys."""
    by_key = [name for name in profile.shape.python_operators if name.startswith(_STATE_BY_KEY)]
    if by_key:
        yield (
            f"{by_key[0]} calls Python for each group of a batch: if groups are keys, "
            "headway.ordered calls it per bucket of keys, and 'headway ordered' chooses the "
            "shuffle partitions and places heavy keys"
        )


def _bursts(question: Question) -> Iterator[str]:
    """Recorded behaviour of the stream that a mean rate does not show."""
    observed = question.profile.observed_arrivals
    if observed is None or observed.rate_p50_per_s <= 0.0 or question.of_change:
        return
    ratio = observed.rate_max_per_s / observed.rate_p50_per_s
    if ratio > BURSTY_RATIO.value:
        peak = format_rate(ratio * question.rate_per_s)
        yield (
            f"the profiled stream had bursts of up to {ratio:.1f} times its median rate, which "
            f"would be {peak} here: headway plan --burst {peak}:DURATION plans for them"
        )


def _overlapping_windows(setting: ExplainedSetting) -> Iterator[str]:
    """Saving or cost of counting each row once, in the cheapest way: theory.md (P14)."""
    question, profile = setting.question, setting.question.profile
    if not profile.shape.windows:
        return
    # Most queries count no windows, so these modules are loaded only for those that do.
    from headway.models.sharing.job_gain import sharing_ways
    from headway.models.sharing.profiled_windows import windows_of

    windows = windows_of(profile)
    if windows is None or windows.num_copies <= 1.0:
        return
    direct, *shared = sharing_ways(profile, setting.configuration, windows, question.rate_per_s)
    best = max(shared, key=lambda way: way.saved_s)
    copied = f"each row is copied into {windows.num_copies:.3g} windows before aggregation: "
    if best.pays:
        yield (
            f"{copied}{best.how} of {format_duration(ms_to_s(windows.pane_ms))} would save "
            f"{format_duration(best.saved_s)} of {format_duration(direct.batch_mean_s)} per batch "
            f"({_span_text(best.saved_low_s, best.saved_high_s)}); see headway windows"
        )
    else:
        yield (
            f"{copied}sharing panes would not pay off here, {best.how} cost "
            f"{format_duration(-best.saved_s)} more per batch; see headway windows"
        )


def _young_jvm(profile: JobProfile) -> Iterator[str]:
    """What the drift of warm batches implies for a young JVM, if no first batches are recorded."""
    slower_ratio = profile.age_factor(YOUNG_JVM_S.value) - 1.0
    if profile.warm_up is None and slower_ratio > SLOWER_WHEN_YOUNG_RATIO.value:
        yield (
            f"{YOUNG_JVM_S.value:.0f} s after a start, batches take {slower_ratio:.0%} longer than "
            f"at the JVM age of {format_duration(profile.drift.reference_age_s)} that this plan "
            "assumes (extrapolated from later batches), and the first ones even longer; headway "
            f"predict --jvm-age {YOUNG_JVM_S.value:.0f}s shows the latency until then"
        )


def _switch_advice(setting: ExplainedSetting) -> Iterator[Advice]:
    """Each switch that would lower the latency, with the 90% interval of the latency then.

    It is the latency of (P14), with the gains of (Y1)-(Y8) in theory.md.
    """
    profile = setting.question.profile
    for switch in _ADVISED:
        if why_not(profile, switch) is not None:
            continue
        job = turned_ends(profile, switch)
        if isinstance(job, str):
            continue
        improved_s, longest_s, shortest_s = map(setting.latency_with, job)
        if not is_worthwhile(improved_s, setting.latency_s):
            continue
        switch_setting = setting_of_switch(profile, switch)
        keys = ", ".join(f"{key} = {value}" for key, value in switch_setting.settings.items())
        caution = f"; {switch_setting.caution}" if switch_setting.caution else ""
        text = (
            f"{switch_setting.label} ({keys}) would lower {setting.statistic} to "
            f"{format_duration(improved_s)} (90% interval {_span_text(shortest_s, longest_s)}): "
            f"headway plan --allow {switch} plans with it{caution}"
        )
        yield Advice(text=text, latency_s=improved_s)


def _faster_checkpoint(setting: ExplainedSetting) -> Iterator[Advice]:
    """What a checkpoint store would gain that takes no time, where the store takes much."""
    profile = setting.question.profile
    logs = {
        phase.name: phase.mean_s
        for phase in profile.driver_phases
        if phase.name in CHECKPOINT_PHASES
    }
    writes_s = sum(logs.values())
    if writes_s > MUCH_RATIO.value * setting.duration_s:
        fact = f"the offset and commit logs take {setting.share_text(writes_s)}"
        job = with_times_saved(profile, (logs, {}))
        yield from _at_best(setting, fact, _FASTER_STORE, job)
    yield from _state_commits(setting)


def _state_commits(setting: ExplainedSetting) -> Iterator[Advice]:
    profile, configuration = setting.question.profile, setting.configuration
    if profile.state is None or profile.state.commit_per_partition_s < SLOW_COMMIT_S.value:
        return
    waves = -(-configuration.shuffle_partitions // configuration.num_slots)
    commit_s = profile.state.commit_per_partition_s
    if not setting.is_much(waves * commit_s):
        return
    stateful = [index for index, stage in enumerate(profile.stages) if not stage.reads_source]
    tasks_s = dict.fromkeys(stateful[-1:], commit_s)
    fact = (
        f"committing state takes {format_duration(commit_s)} per partition, "
        f"{format_duration(commit_s * waves)} per batch in {counted(waves, 'wave')} of tasks"
    )
    yield from _at_best(setting, fact, _FASTER_STORE, with_times_saved(profile, ({}, tasks_s)))


def _at_best(setting: ExplainedSetting, fact: str, cure: str, job: JobProfile) -> Iterator[Advice]:
    """Stages or a store without any time for something are a bound of what a cure gains."""
    lowers = f"{fact}: {cure} would lower {setting.statistic}"
    return setting.if_worthwhile(job, lambda latency: f"{lowers} to {latency} at best")


def _fewer_collections(setting: ExplainedSetting) -> Iterator[Advice]:
    """What stages without garbage collections would gain, where these take much."""
    stages = setting.question.profile.stages
    for index, stage in enumerate(stages):
        gc_ratio = 0.0 if stage.observed is None else stage.observed.gc_ratio
        saved_s = gc_ratio * setting.stage_s(stage)
        if gc_ratio > MUCH_RATIO.value and setting.is_much(saved_s):
            free = (*stages[:index], stage.with_task_times(1.0 - gc_ratio), *stages[index + 1 :])
            fact = (
                f"{stage.called} spends {gc_ratio:.0%} of its time in garbage collection, "
                f"{setting.share_text(saved_s)}"
            )
            job = replace(setting.question.profile, stages=free)
            yield from _at_best(setting, fact, "a larger heap", job)


def _span_text(low_s: float, high_s: float) -> str:
    """Both ends of what may be saved, or of what a latency may be."""
    low = f"{'-' if low_s < 0 else ''}{format_duration(abs(low_s))}"
    return f"{low} to {'no end' if math.isinf(high_s) else format_duration(high_s)}"
