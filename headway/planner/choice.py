"""The setting to run at a number of nodes, and the effect of another trigger."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from headway.assumptions.planning import (
    CALM_TRIGGER_S,
    CHOICES_CERTIFIED,
    ROOM_RATIO,
    SELDOM_RATIO,
    WORTHWHILE_LATENCY_RATIO,
)
from headway.assumptions.predictions import HIGHEST_QUOTED_OVERRUN_RATIO
from headway.domain import Advice, Configuration, TasksRule
from headway.models.arrays import Array
from headway.models.job.calibration import is_calibrated
from headway.models.job.setting import duration_model, settled_batch_rows
from headway.planner.candidates import BoolArray, Candidates, candidates_at
from headway.planner.fewest import first_meeting
from headway.planner.frontier import best_of_each_node_count
from headway.planner.noise_free import noise_free_rate_per_s
from headway.planner.question import Question
from headway.units import format_duration


def chosen_setting(at_nodes: Candidates) -> Candidates:
    """The setting to run at the chosen node count: theory.md (P6).

    Today's partitions are preferred only if the checkpoint is kept.

    Notes
    -----
    **(P6)** Of the settings with the chosen number of nodes that meet every target, a plan keeps,
    step by step and if there are any: those that are calibrated (P2); those with a shuffle
    partition for every slot, since a checkpoint fixes these for good; those with a trigger of 0.5 s
    or more that batches of the expected duration overrun at most one time in ten; those that would
    sustain 1.25 times the rate. Of the remaining settings it takes today's partitions, then the
    longest trigger, then the fewest partitions; if none sustains 1.25 times the rate, it takes the
    setting with the highest rate. The number of nodes is minimised before any of these preferences.
    If the plan has a trigger and would be faster without, it states by how much, and for both the
    share of slot time in which tasks run and the time between batches. If no setting meets the
    target, the floor is the lowest planned latency of all settings, and the plan names the setting
    with the fewest nodes within 2% of it. If the target can
    be met but not the other ones, it names, of the settings that meet it, the one that misses the
    others by least. Up to 64 numbers of nodes, all are tried; of more, as many that are spread over
    the range, which the plan states.
    """
    rate_per_s = at_nodes.question.rate_per_s
    possible = at_nodes.take(noise_free_rate_per_s(at_nodes) >= rate_per_s)
    meeting = possible.take(possible.meets_by_moments(rate_per_s))
    preferred = []
    for _ in range(CHOICES_CERTIFIED.value):
        if not len(meeting):
            break
        preferred.append(_most_preferred(meeting))
        if preferred[-1].certified_excess(rate_per_s) <= 0.0:
            return preferred[-1]
        meeting = meeting.take(~_is_setting(meeting, preferred[-1]))
    # Moments may be wrong about the preferred ones; the others are tried in the order of room.
    setting = first_meeting(at_nodes)
    if setting is not None:
        return setting
    return preferred[0] if preferred else at_nodes.alone(0)


def _is_setting(settings: Candidates, setting: Candidates) -> BoolArray:
    """Which settings are equal to a given one."""
    same = (settings.nodes == setting.nodes[0]) & (settings.partitions == setting.partitions[0])
    return np.asarray(same & (settings.trigger_s == setting.trigger_s[0]))


def _most_preferred(best: Candidates) -> Candidates:
    """The setting to run, of those that meet every target by their moments."""
    question = best.question
    for preferred in (_is_calibrated, _fills_slots, _is_calm):
        best = _preferring(best, preferred(best))
    is_roomy = best.meets_by_moments(ROOM_RATIO.value * question.rate_per_s)
    if not is_roomy.any():
        ((setting_index, _),) = best_of_each_node_count(best).values()
        return best.alone(setting_index)
    roomy = best.take(is_roomy)
    roomy = _preferring(roomy, (roomy.trigger_s == 0) | _keeps_to_trigger(roomy))
    costs_checkpoint = roomy.partitions != question.profile.todays_partitions
    if question.starts_anew:
        costs_checkpoint = np.zeros_like(costs_checkpoint)
    order = np.lexsort((roomy.partitions, -roomy.trigger_s, costs_checkpoint))
    return roomy.take(order[:1])


def _preferring(settings: Candidates, preferred: BoolArray) -> Candidates:
    """The preferred ones, if there are any."""
    return settings.take(preferred) if preferred.any() else settings


def _is_calibrated(settings: Candidates) -> BoolArray:
    """Whether a prediction at the requested rate is calibrated: theory.md (P2)."""
    question = settings.question
    model = settings.durations.model(num_axes=1)
    rows = settled_batch_rows(model, question.rate_per_s, settings.trigger_s)
    partitions = settings.partitions.astype(np.float64)
    in_reach = is_calibrated(question.profile, _slots(settings), partitions, rows)
    overruns = settings.expected_law(question.rate_per_s).overrun_probability
    on_grid = (settings.trigger_s == 0) | (overruns <= HIGHEST_QUOTED_OVERRUN_RATIO.value)
    return np.asarray(in_reach & on_grid)


def _fills_slots(settings: Candidates) -> BoolArray:
    stages = settings.question.profile.stages
    if not any(stage.tasks_rule is TasksRule.SHUFFLE for stage in stages):
        return np.ones(len(settings), dtype=bool)
    return np.asarray(settings.partitions >= _slots(settings))


def _is_calm(settings: Candidates) -> BoolArray:
    return np.asarray((settings.trigger_s >= CALM_TRIGGER_S.value) & _keeps_to_trigger(settings))


def _keeps_to_trigger(settings: Candidates) -> BoolArray:
    """Which settings seldom have a batch that overruns its trigger, at expected durations."""
    law = settings.expected_law(settings.question.rate_per_s)
    return np.asarray(law.overrun_probability <= SELDOM_RATIO.value)


def _slots(settings: Candidates) -> Array:
    return settings.nodes.astype(np.float64) * settings.question.space.num_slots(1)


def as_fast_as_possible(
    question: Question, configuration: Configuration, nodes: int, latency_s: float
) -> Iterator[Advice]:
    """Gain of the plan without its trigger, and the cost of that: theory.md (P6)."""
    if configuration.trigger_s == 0 or question.space.trigger_s is not None:
        return
    fastest = candidates_at(question, [(nodes, configuration.shuffle_partitions, 0.0)])
    fastest_s = float(fastest.latency_s(question.rate_per_s)[0])
    if (
        not fastest_s < WORTHWHILE_LATENCY_RATIO.value * latency_s
        or not fastest.meets(question.rate_per_s)[0]
    ):
        return
    (busy_ratio, interval_s), (fastest_busy_ratio, fastest_interval_s) = (
        _busy_ratio(question, configuration, trigger_s)
        for trigger_s in (configuration.trigger_s, 0.0)
    )
    planned = candidates_at(
        question, [(nodes, configuration.shuffle_partitions, configuration.trigger_s)]
    )
    text = (
        f"running as fast as possible would give {question.target.statistic} up to "
        f"{format_duration(fastest_s)} instead of {format_duration(latency_s)}, at "
        f"{fastest_busy_ratio:.0%} busy cores instead of {busy_ratio:.0%}, with a checkpoint every "
        f"{format_duration(fastest_interval_s)} instead of {format_duration(interval_s)}, and "
        f"errors in batch durations would count {_gain(fastest):.1f} times in the latency instead "
        f"of {_gain(planned):.1f} times"
    )
    yield Advice(text=text, latency_s=fastest_s)


def _busy_ratio(
    question: Question, configuration: Configuration, trigger_s: float
) -> tuple[float, float]:
    """Share of slot time in which tasks run, and the time between batches [s]."""
    profile, partitions, slots = (
        question.profile,
        configuration.shuffle_partitions,
        configuration.num_slots,
    )
    model = duration_model(profile, slots, partitions)
    rows = float(settled_batch_rows(model, question.rate_per_s, trigger_s))
    interval_s = max(trigger_s, float(model.mean_s(rows)))
    # On a single slot tasks run one after another, so their total time is all the work.
    work_s = sum(float(level.at(rows)) for level in duration_model(profile, 1, partitions).levels)
    return work_s / (slots * interval_s), interval_s


def _gain(setting: Candidates) -> float:
    """Factor by which an error in batch durations affects the mean latency of a setting.

    Notes
    -----
    **(P25)** Gain of errors: if batches run as fast as possible, an error `e` in all durations
    becomes `e/(1-r)` in the latency, since a longer batch collects more rows. With a trigger
    interval that batches do not overrun it becomes `e E[D]/E[L]`, since the rest of the latency is
    the wait for the trigger.
    """
    law = setting.expected_law(setting.question.rate_per_s)
    if setting.trigger_s[0] == 0:
        return float(1.0 / (1.0 - law.offered_load_ratio[0]))
    return float(law.batch_duration_mean_s()[0] / law.tuple_latency_mean_s()[0])
