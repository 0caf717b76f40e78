"""Settings that a checkpoint fixes, and the gain of a new checkpoint."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from headway.assumptions.planning import WORTHWHILE_CHECKPOINT_RATIO
from headway.domain import Advice, Applies, Change, Configuration, JobProfile
from headway.domain.target import targets_text
from headway.errors import InputError, argument
from headway.planner.bill import within_limits
from headway.planner.candidates import all_candidates
from headway.planner.explained_setting import ExplainedSetting
from headway.planner.fewest_nodes import fewest_nodes
from headway.planner.noise_free import lowest_latency
from headway.planner.profiled_memory import before_words, same_value
from headway.planner.question import Question
from headway.planner.setting_choice import chosen_setting, fills_slots
from headway.planner.spark_settings import profiled_values
from headway.sparkconf import KNOBS, Knob, applies_when, knob_of
from headway.units import counted, format_duration, spark_trigger_text

_REPARTITION_SINCE = (4, 2)


def pinned_partitions(profile: JobProfile) -> int | None:
    """The shuffle partitions that the job's checkpoint fixes; None if it fixes none.

    A query without state on Spark 4.1 or newer uses a new number from its next start on; with
    state, the checkpoint keeps the number that it started with.
    """
    if when_applied(KNOBS["shuffle_partitions"], profile) != "new checkpoint":
        return None
    return profile.state_partitions or profile.todays_partitions


def held_by_checkpoint(question: Question) -> Question:
    """The question with what its checkpoint fixes; an InputError if the space contradicts it."""
    if question.checkpoint != "existing":
        return question
    profile, partitions = question.profile, question.space.shuffle_partitions
    if (
        partitions is None
        and profile.todays_partitions is None
        and profile.shape.stateful_operators
    ):
        raise InputError(
            "an existing checkpoint fixes the shuffle partitions of the query, and the declared "
            "costs do not state them; add shuffle_partitions"
        )
    pinned = pinned_partitions(profile)
    if pinned is None:
        return question
    if partitions is not None and partitions != pinned:
        raise InputError(
            f"{argument('partitions')} {partitions} contradicts {argument('checkpoint')} existing: "
            f"the checkpoint fixes {counted(pinned, 'shuffle partition')}; leave "
            f"{argument('partitions')} out, or plan for a new checkpoint with "
            f"{argument('checkpoint')} new"
        )
    return replace(question, space=replace(question.space, shuffle_partitions=pinned))


def new_checkpoint_advice(
    planned: ExplainedSetting, *, most_nodes: int, is_feasible: bool
) -> Iterator[Advice]:
    """Gain of a new checkpoint, or of repartitioning the existing one offline, if it is worthwhile.

    The existing one fixes the shuffle partitions of the planned setting. Only if the question keeps
    it can a new one need fewer nodes, or meet targets that are infeasible: without that, the search
    has tried new ones. Up to ``most_nodes`` are tried. The latency with other partitions is that at
    the same trigger interval.
    """
    question, pinned = planned.question, pinned_partitions(planned.question.profile)
    is_held = question.checkpoint == "existing"
    is_free = question.checkpoint is None and question.space.shuffle_partitions is None
    if not (is_held or is_free) or planned.configuration.shuffle_partitions != pinned:
        return
    free = replace(question, space=replace(question.space, shuffle_partitions=None))
    fewest = None
    if is_held and (question.minimises_nodes or not is_feasible):
        bounded = replace(free, space=replace(free.space, max_nodes=most_nodes))
        fewest = fewest_nodes(bounded).nodes
    if fewest is not None and not (is_feasible and fewest == most_nodes):
        best = chosen_setting(all_candidates(free, (fewest,)))
        best_s = float(best.latency_s(question.rate_per_s)[0])
        nodes = counted(fewest, "node")
        targets = targets_text(question.promises)
        gain = f"would need only {nodes}" if is_feasible else f"would meet {targets} with {nodes}"
    else:
        # A shorter trigger would need no new checkpoint; fewer tasks than slots would stay.
        at_nodes = all_candidates(free, (most_nodes,))
        is_at_trigger = at_nodes.trigger_s == planned.configuration.trigger_s
        best = at_nodes.take(is_at_trigger & fills_slots(at_nodes) & within_limits(at_nodes))
        if not len(best):
            return
        setting_index, best_s = lowest_latency(best)
        if best_s >= WORTHWHILE_CHECKPOINT_RATIO.value * planned.latency_s:
            return
        best = best.alone(setting_index)
        gain = f"would lower {question.target.statistic} to {format_duration(best_s)}"
        if most_nodes != planned.nodes:
            gain += f" on {counted(most_nodes, 'node')}"
    partitions = counted(int(best.partitions[0]), "shuffle partition")
    text = f"the checkpoint fixes {counted(pinned, 'shuffle partition')}; a new one with "
    text += f"{partitions} {gain}"
    if question.profile.application.release >= _REPARTITION_SINCE:
        text += "; Spark 4.2 and newer can also repartition the state of the stopped query"
    yield Advice(text=text, latency_s=best_s)


def changes_from_today(
    profile: JobProfile, planned: Configuration, spark_conf: Mapping[str, str]
) -> Iterator[Change]:
    """The settings that differ from the profiled ones, and what it takes to apply each change.

    Every key of the plan is compared with its value in the profiled run; if that was not recorded,
    the change says so. A declared job has no run to compare with.
    """
    if profile.provenance == "declared":
        return
    today, profiled = profile.baseline, profiled_values_of_query(profile)

    def change(knob: Knob, before: str, after: str) -> Change:
        applies = when_applied(knob, profile)
        return Change(setting=knob.label, before=before, after=after, applies=applies)

    for name, knob in KNOBS.items():
        before, after = getattr(today, name, None), getattr(planned, name, None)
        if before != after:
            before_text = _in_words(name, before, "not recorded")
            yield change(knob, before_text, _in_words(name, after, "none"))
    for key, value in spark_conf.items():
        knob = knob_of(key)
        if not (hasattr(today, knob.setting) or same_value(key, profiled.get(key), value)):
            yield change(knob, before_words(key, profiled), value)


def profiled_values_of_query(profile: JobProfile) -> dict[str, str]:
    """Values of a plan's keys in the profiled run, also of those that only a query has."""
    if profile.provenance == "declared":
        return {}
    today = profile.baseline
    return {
        **profiled_values(profile),
        KNOBS["shuffle_partitions"].key: str(today.shuffle_partitions),
        KNOBS["trigger_s"].key: spark_trigger_text(today.trigger_s),
    }


def when_applied(knob: Knob, profile: JobProfile) -> Applies:
    """What it takes for a changed setting to reach the profiled query."""
    version = profile.applications[-1].spark_version
    return applies_when(
        knob,
        stateful=bool(profile.shape.stateful_operators),
        # An unknown version is taken to fix the same settings as the oldest one.
        spark_version=version if version[:1].isdigit() else "2.0",
    )


def _in_words(name: str, value: float | None, if_none: str) -> str:
    if value is None:
        return if_none
    return spark_trigger_text(value) if name == "trigger_s" else str(value)
