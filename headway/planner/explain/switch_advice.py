"""What switches of Spark and faster checkpoints would gain, each with its number."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace

from headway.assumptions.advice import MUCH_RATIO, SLOW_COMMIT_S
from headway.domain import Advice, JobProfile
from headway.domain.profile import CHECKPOINT_PHASES
from headway.domain.switches import Switch
from headway.models.job.turned import TimesSaved, with_times_saved
from headway.planner.explained_setting import ExplainedSetting, is_worthwhile
from headway.planner.switches import setting_of_switch, turned_ends, why_not
from headway.units import counted, format_duration

# What adaptive execution merges has advice of its own, and empty batches save no time.
_ADVISED = (
    *(Switch.ASYNC_PROGRESS, Switch.CHANGELOG, Switch.ROCKSDB, Switch.FILE_MANAGER),
    *(Switch.KEEP_LOADED, Switch.ADAPTIVE),
)


def switch_advice(setting: ExplainedSetting) -> Iterator[Advice]:
    """Each switch that would lower the latency, with the 90% interval of the latency then.

    Notes
    -----
    theory.md (Y1)-(Y8), (P14).
    """
    question, statistic = setting.question, setting.question.target.statistic
    for switch in _ADVISED:
        if why_not(question.profile, switch) is not None:
            continue
        job = turned_ends(question.profile, switch)
        if isinstance(job, str):
            continue
        improved_s, longest_s, shortest_s = map(setting.latency_with, job)
        if not is_worthwhile(improved_s, setting.latency_s):
            continue
        switch_setting = setting_of_switch(question.profile, switch)
        keys = ", ".join(f"{key}={value}" for key, value in switch_setting.settings.items())
        caution = f"; {switch_setting.caution}" if switch_setting.caution else ""
        yield Advice(
            text=(
                f"{switch_setting.label} ({keys}) would lower {statistic} to "
                f"{format_duration(improved_s)} (90% interval {_span(shortest_s, longest_s)}): "
                f"headway plan --allow {switch} plans with it{caution}"
            ),
            latency_s=improved_s,
        )


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
        yield from _at_best(
            setting,
            f"the offset and commit logs take {setting.share_text(writes_s)}",
            with_times_saved(profile, TimesSaved(logs, {})),
        )
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
    saved = TimesSaved({}, dict.fromkeys(stateful[-1:], commit_s))
    yield from _at_best(
        setting,
        f"committing state takes {format_duration(commit_s)} per partition, "
        f"{format_duration(commit_s * waves)} per batch in {counted(waves, 'wave')} of tasks",
        with_times_saved(profile, saved),
    )


def _at_best(setting: ExplainedSetting, fact: str, job: JobProfile) -> Iterator[Advice]:
    """A store without any time of its own is a bound of what a faster one gains."""
    improved_s = setting.latency_with(job)
    if is_worthwhile(improved_s, setting.latency_s):
        yield Advice(
            text=(
                f"{fact}: a faster checkpoint store would lower "
                f"{setting.question.target.statistic} to {format_duration(improved_s)} at best"
            ),
            latency_s=improved_s,
        )


def fewer_collections(setting: ExplainedSetting) -> Iterator[Advice]:
    """What stages without garbage collections would gain, where these take much."""
    profile = setting.question.profile
    for index, stage in enumerate(profile.stages):
        gc_ratio = 0.0 if stage.observed is None else stage.observed.gc_ratio
        saved_s = gc_ratio * setting.stage_s(stage)
        if not (gc_ratio > MUCH_RATIO.value and setting.is_much(saved_s)):
            continue
        free = tuple(
            other.with_task_times(1.0 - gc_ratio) if number == index else other
            for number, other in enumerate(profile.stages)
        )
        improved_s = setting.latency_with(replace(profile, stages=free))
        yield Advice(
            text=(
                f"{stage.called} spends {gc_ratio:.0%} of its time in garbage collection, "
                f"{setting.share_text(saved_s)}: a larger heap would lower "
                f"{setting.question.target.statistic} to {format_duration(improved_s)} at best"
            ),
            latency_s=improved_s,
        )


def _span(low_s: float, high_s: float) -> str:
    high = "no end" if math.isinf(high_s) else format_duration(high_s)
    return f"{format_duration(low_s)} to {high}"
