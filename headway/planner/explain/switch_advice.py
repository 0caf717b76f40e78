"""What switches of Spark and faster checkpoints would gain, each with its number."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from headway.assumptions.advice import MUCH_RATIO, SLOW_COMMIT_S
from headway.domain import Advice, JobProfile
from headway.domain.profile import CHECKPOINT_PHASES
from headway.domain.switches import Switch
from headway.models.job.turned import with_times_saved
from headway.planner.explained_setting import ExplainedSetting, is_worthwhile
from headway.planner.switches import setting_of_switch, turned_ends, why_not
from headway.units import counted, format_duration

# What adaptive execution merges has advice of its own, and empty batches save no time.
_ADVISED = (
    *(Switch.ASYNC_PROGRESS, Switch.CHANGELOG, Switch.ROCKSDB, Switch.FILE_MANAGER),
    *(Switch.KEEP_LOADED, Switch.ADAPTIVE),
)
_FASTER_STORE = "a faster checkpoint store"


def switch_advice(setting: ExplainedSetting) -> Iterator[Advice]:
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
        keys = ", ".join(f"{key}={value}" for key, value in switch_setting.settings.items())
        caution = f"; {switch_setting.caution}" if switch_setting.caution else ""
        text = (
            f"{switch_setting.label} ({keys}) would lower {setting.statistic} to "
            f"{format_duration(improved_s)} (90% interval {span_text(shortest_s, longest_s)}): "
            f"headway plan --allow {switch} plans with it{caution}"
        )
        yield Advice(text=text, latency_s=improved_s)


def faster_checkpoint(setting: ExplainedSetting) -> Iterator[Advice]:
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


def fewer_collections(setting: ExplainedSetting) -> Iterator[Advice]:
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


def span_text(low_s: float, high_s: float) -> str:
    """Both ends of what may be saved, or of what a latency may be."""
    low = f"{'-' if low_s < 0 else ''}{format_duration(abs(low_s))}"
    return f"{low} to {'no end' if math.isinf(high_s) else format_duration(high_s)}"
