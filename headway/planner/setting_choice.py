"""The setting to run at a number of nodes, and the effect of another trigger."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from headway.assumptions.planning import CALM_TRIGGER_S, CHOICES_CERTIFIED, ROOM_RATIO, SELDOM_RATIO
from headway.assumptions.predictions import HIGHEST_QUOTED_OVERRUN_RATIO
from headway.digits import format_money
from headway.domain import Advice
from headway.lazy_classes import dataclass
from headway.models.job.calibration import is_calibrated
from headway.models.job.setting import duration_model, settled_batch_rows
from headway.planner.bill import bill_per_hour, within_limits
from headway.planner.candidates import BoolArray, Candidates, all_candidates, candidates_at
from headway.planner.explained_setting import ExplainedSetting, is_worthwhile
from headway.planner.fewest_nodes import first_meeting, first_to_meet, not_ruled_out
from headway.planner.frontier import best_of_each_node_count
from headway.planner.noise_free import noise_free_rate_per_s
from headway.planner.purchase import Offer
from headway.units import HOURS_PER_MONTH, counted, format_duration


def chosen_setting(at_nodes: Candidates) -> Candidates:
    """The setting to run at the chosen node count: theory.md (P6).

    Today's partitions are preferred only if the checkpoint is kept.

    **(P6)** Of the settings with the chosen number of nodes that meet every target, a plan keeps,
    step by step and if there are any: those that are calibrated (P2); those with a shuffle
    partition for every slot, since a checkpoint fixes these for good, and those that keep today's
    checkpoint, if they sustain at least as much; those with a trigger of 0.5 s or more that batches
    of the expected duration overrun at most one time in ten; those that would sustain 1.25 times
    the rate. Of the remaining settings it takes today's partitions, then the
    longest trigger, then the fewest partitions; if none sustains 1.25 times the rate, it takes the
    setting with the highest rate. What is minimised comes before any of these preferences: the
    number of nodes, or, if write requests are priced and the cost is minimised, the bill (F4), so
    that only settings with the lowest bill of all that meet every target are left to choose from.
    If the plan has a trigger and would be faster without, it states by how much, and for both the
    share of slot time in which tasks run and the time between batches. If no setting meets the
    target, the floor is the lowest planned latency of all settings, and the plan names the setting
    with the fewest nodes within 2% of it. If the target can be met but not the other ones, it
    names, of the settings that meet it, the one that misses the others by least; if all of them can
    be met, but not within the budget or the limit of files, the one that meets them and exceeds
    these by least. Up to 64 numbers of nodes, all are tried; of more, as many that are spread over
    the range, which the plan states.
    """
    rate_per_s = at_nodes.question.rate_per_s
    if at_nodes.question.minimises_bill:
        at_nodes = _with_lowest_bill(at_nodes)
    is_possible = noise_free_rate_per_s(at_nodes) >= rate_per_s
    possible = at_nodes.take(is_possible & within_limits(at_nodes))
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Buy:
    """A number of nodes of an offer, and their setting if it was already searched.

    ``lowest_s`` is the lowest latency in reach if no setting meets the targets [s]; ``sought`` is
    close to it.
    """

    offer: Offer
    nodes: int
    sought: Candidates | None = None
    lowest_s: float = math.nan

    @property
    def cost(self) -> float | None:
        """Cost per hour of the nodes, and of write requests if priced; None without prices."""
        question = self.offer.question
        cost_per_hour = question.space.cost_per_hour(self.nodes)
        if cost_per_hour is None or question.store_price is None:
            return cost_per_hour
        return float(bill_per_hour(self.setting)[0])

    @property
    def setting(self) -> Candidates:
        """The setting to run on them."""
        if self.sought is not None:
            return self.sought
        return chosen_setting(all_candidates(self.offer.question, (self.nodes,)))

    @property
    def planned_s(self) -> float:
        """Its planned latency [s]."""
        return float(self.setting.latency_s(self.offer.question.rate_per_s)[0])

    @property
    def in_words(self) -> str:
        """The nodes, as text."""
        node_type = self.offer.node_type
        nodes = counted(self.nodes, "node")
        return nodes if node_type is None else f"{nodes} of {node_type.name}"


def cheapest(offer: Offer, fewest: int) -> Buy:
    """The nodes with the lowest bill, from the fewest that meet the targets on: theory.md (F4)."""
    question = offer.question
    best, best_per_hour = Buy(offer=offer, nodes=fewest), math.inf
    for nodes in range(fewest, question.space.max_nodes + 1):
        nodes_per_hour = question.space.cost_per_hour(nodes)
        if nodes_per_hour is None or nodes_per_hour >= best_per_hour:
            break
        setting = chosen_setting(all_candidates(question, (nodes,)))
        cost_per_hour = float(bill_per_hour(setting)[0])
        is_good = cost_per_hour < best_per_hour and within_limits(setting)[0]
        if is_good and setting.meets(question.rate_per_s)[0]:
            best = Buy(offer=offer, nodes=nodes, sought=setting)
            best_per_hour = cost_per_hour
    return best


def _is_setting(settings: Candidates, setting: Candidates) -> BoolArray:
    """Which settings are equal to a given one."""
    same = (settings.nodes == setting.nodes[0]) & (settings.partitions == setting.partitions[0])
    return np.asarray(same & (settings.trigger_s == setting.trigger_s[0]))


def _with_lowest_bill(settings: Candidates) -> Candidates:
    """Those with the lowest bill of all that meet every target; all of them if none does."""
    rate_per_s = settings.question.rate_per_s
    meeting = not_ruled_out(settings, rate_per_s)
    if not len(meeting):
        return settings
    bills = bill_per_hour(meeting)
    order = np.argsort(bills, kind="stable").tolist()
    lowest_index = first_to_meet(meeting, order, rate_per_s)
    if lowest_index is None:
        return settings
    return meeting.take(np.isclose(bills, bills[lowest_index], rtol=1e-9, atol=0.0))


def _most_preferred(best: Candidates) -> Candidates:
    """The setting to run, of those that meet every target by their moments."""
    if len(best) == 1:
        return best
    question = best.question
    for preferred in (_is_calibrated, _fills_slots_or_loses_no_room, _is_calm):
        best = _preferring(best, preferred(best))
    is_roomy = best.meets_by_moments(ROOM_RATIO.value * question.rate_per_s)
    if not is_roomy.any():
        ((setting_index, _),) = best_of_each_node_count(best).values()
        return best.alone(setting_index)
    roomy = best.take(is_roomy)
    roomy = _preferring(roomy, (roomy.trigger_s == 0) | _keeps_to_trigger(roomy))
    order = np.lexsort((roomy.partitions, -roomy.trigger_s, ~_keeps_checkpoint(roomy)))
    return roomy.take(order[:1])


def _keeps_checkpoint(settings: Candidates) -> BoolArray:
    """Whether a setting has today's partitions, where today's checkpoint is worth something."""
    question = settings.question
    if question.checkpoint == "new":
        return np.zeros(len(settings), dtype=bool)
    return np.asarray(settings.partitions == question.profile.todays_partitions)


def _fills_slots_or_loses_no_room(settings: Candidates) -> BoolArray:
    """Whether it fills its slots, or keeps the checkpoint and sustains as much as those that do."""
    filling = fills_slots(settings)
    keeping = _keeps_checkpoint(settings) & ~filling
    if not (filling.any() and keeping.any()):
        return filling
    highest_per_s, kept_per_s = (
        max(rate_per_s for _, rate_per_s in best_of_each_node_count(settings.take(mask)).values())
        for mask in (filling, keeping)
    )
    return filling | keeping if kept_per_s >= highest_per_s else filling


def _preferring(settings: Candidates, preferred: BoolArray) -> Candidates:
    """The preferred ones, if there are any."""
    return settings.take(preferred) if preferred.any() else settings


def _is_calibrated(settings: Candidates) -> BoolArray:
    """Whether a prediction at the requested rate is calibrated: theory.md (P2)."""
    question = settings.question
    model = settings.durations
    rows = settled_batch_rows(model, question.rate_per_s, settings.trigger_s)
    slots = settings.num_slots.astype(np.float64)
    partitions = settings.partitions.astype(np.float64)
    in_reach = is_calibrated(question.profile, slots, partitions, rows)
    overruns = settings.expected_law(question.rate_per_s).overrun_probability
    on_grid = (settings.trigger_s == 0) | (overruns <= HIGHEST_QUOTED_OVERRUN_RATIO.value)
    return np.asarray(in_reach & on_grid)


def fills_slots(settings: Candidates) -> BoolArray:
    """Whether the stages behind exchanges have a task for every slot."""
    stages = settings.question.profile.stages
    if not any(stage.tasks_rule == "shuffle" for stage in stages):
        return np.ones(len(settings), dtype=bool)
    return np.asarray(settings.partitions >= settings.num_slots)


def _is_calm(settings: Candidates) -> BoolArray:
    return np.asarray((settings.trigger_s >= CALM_TRIGGER_S.value) & _keeps_to_trigger(settings))


def _keeps_to_trigger(settings: Candidates) -> BoolArray:
    """Which settings seldom have a batch that overruns its trigger, at expected durations."""
    law = settings.expected_law(settings.question.rate_per_s)
    return np.asarray(law.overrun_probability <= SELDOM_RATIO.value)


def as_fast_as_possible(setting: ExplainedSetting) -> Iterator[Advice]:
    """Gain of the plan without its trigger, and the cost of that: theory.md (P6)."""
    question, (nodes, partitions, trigger_s) = setting.question, setting.size
    if trigger_s == 0 or question.space.trigger_s is not None:
        return
    fastest = candidates_at(question, [(nodes, partitions, 0.0)])
    fastest_s = float(fastest.latency_s(question.rate_per_s)[0])
    is_met = fastest.meets(question.rate_per_s)[0] and within_limits(fastest)[0]
    if not is_met or not is_worthwhile(fastest_s, setting.latency_s):
        return
    busy_ratio, interval_s = _busy_ratio(setting, trigger_s)
    fastest_busy_ratio, fastest_interval_s = _busy_ratio(setting, 0.0)
    planned = setting.under(question)
    text = (
        f"running as fast as possible would give {question.target.statistic} up to "
        f"{format_duration(fastest_s)} instead of {format_duration(setting.latency_s)}, at "
        f"{fastest_busy_ratio:.0%} busy cores instead of {busy_ratio:.0%}, with a checkpoint every "
        f"{format_duration(fastest_interval_s)} instead of {format_duration(interval_s)}, and "
        f"10% longer batches would make the latency {0.1 * _gain(fastest):.0%} longer instead of "
        f"{0.1 * _gain(planned):.0%}"
    )
    if question.store_price is not None and question.store_price.price_per_write:
        bills = [float(bill_per_hour(settings)[0]) for settings in (fastest, planned)]
        currency = question.store_price.currency
        then, now = (format_money(bill * HOURS_PER_MONTH, currency=currency) for bill in bills)
        text += f"; the bill would be {then} per month instead of {now}"
    yield Advice(text=text, latency_s=fastest_s)


def _busy_ratio(setting: ExplainedSetting, trigger_s: float) -> tuple[float, float]:
    """Share of slot time in which tasks run, and the time between batches [s]."""
    question, configuration = setting.question, setting.configuration
    rows = float(settled_batch_rows(setting.model, question.rate_per_s, trigger_s))
    interval_s = max(trigger_s, float(setting.model.mean_s(rows)))
    # On a single slot tasks run one after another, so their total time is all the work.
    on_one_slot = duration_model(question.profile, 1, configuration.shuffle_partitions)
    work_s = sum(float(level.at(rows)) for level in on_one_slot.levels)
    return work_s / (configuration.num_slots * interval_s), interval_s


def _gain(setting: Candidates) -> float:
    """Factor by which an error in batch durations affects the mean latency of a setting.

    **(P25)** Gain of errors: if batches run as fast as possible, an error `e` in all durations
    becomes `e/(1-r)` in the latency, since a longer batch collects more rows. With a trigger
    interval that batches do not overrun it becomes `e E[D]/E[L]`, since the rest of the latency is
    the wait for the trigger.
    """
    law = setting.expected_law(setting.question.rate_per_s)
    if setting.trigger_s[0] == 0:
        return float(1.0 / (1.0 - law.offered_load_ratio[0]))
    return float(law.batch_duration_mean_s()[0] / law.tuple_latency_mean_s()[0])
