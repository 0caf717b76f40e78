"""The one setting to run at a number of nodes, and its rate limit."""

from __future__ import annotations

import math

import numpy as np

from headway.domain import Metric
from headway.models.job.predict import LEAST_CATCH_UP_RATIO, Z90
from headway.models.job.setting import duration_model, settled_batch_rows
from headway.planner.candidates import Candidates
from headway.planner.frontier import best_of_each_node_count
from headway.planner.noise_free import noise_free_rate_per_s
from headway.planner.promised import PromisedLatency
from headway.planner.question import Question
from headway.planner.recovery import limited_recovery_s

_HEADROOM_RATIO = 1.25
_SELDOM_PROB = 0.1
_LEAST_LIMIT_RATIO = 1.5


def chosen_setting(at_nodes: Candidates) -> Candidates:
    """The one setting to run at the chosen node count: theory.md (P6).

    Of the settings that would carry a quarter more than asked: today's partitions first, which
    spares a new checkpoint, then batches that keep to their trigger, then the rarest batches.
    Where none has that much room, the one that sustains most.
    """
    question = at_nodes.question
    rate_per_s, today = question.rate_per_s, question.profile.baseline.shuffle_partitions
    possible = at_nodes.take(noise_free_rate_per_s(at_nodes) >= rate_per_s)
    met = possible.take(possible.meets(rate_per_s))
    roomy = met.take(met.meets(_HEADROOM_RATIO * rate_per_s))
    if not len(roomy):
        ((place, _),) = best_of_each_node_count(met).values()
        return met.take(np.array([place]))
    overruns = roomy.overrun_probability(rate_per_s) > _SELDOM_PROB
    order = sorted(
        range(len(roomy)),
        key=lambda place: (
            roomy.partitions[place] != today,
            overruns[place] and roomy.trigger_s[place] > 0,
            -roomy.trigger_s[place],
            roomy.partitions[place],
        ),
    )
    return roomy.take(np.array([order[0]]))


def rate_limit(question: Question, setting: Candidates) -> int | None:
    """The largest batch that by itself still meets the limit, to two digits: theory.md (P6).

    After an outage the backlog is worked off in batches of this size, none of which outlasts the
    promise. None where it would leave too little to catch up with, or too little for a promise
    to catch up.
    """
    rate_per_s, profile = question.rate_per_s, question.profile
    configuration = setting.configuration(0)
    model = duration_model(profile, configuration.num_slots, configuration.shuffle_partitions)
    settled = float(settled_batch_rows(model, rate_per_s, configuration.trigger_s))
    margin = math.exp(Z90 * profile.noise.run_to_run_ratio)
    low, high = settled, settled * 1e6
    longest_s = _longest_batch_s(question)
    for _ in range(60):
        middle = math.sqrt(low * high)
        fits = margin * float(model.mean_s(middle)) <= longest_s
        low, high = (middle, high) if fits else (low, middle)
    if low < max(_LEAST_LIMIT_RATIO * settled, 1.0):
        return None
    unit = 10.0 ** max(math.floor(math.log10(low)) - 1, 0)
    rounded = int(math.floor(low / unit) * unit)
    limit = rounded if rounded >= _LEAST_LIMIT_RATIO * settled else int(low)
    interval_s = max(configuration.trigger_s, float(model.mean_s(float(limit))))
    leaves_room = limit >= max(
        float(setting.most_burst_rows(rate_per_s)[0]),
        _LEAST_LIMIT_RATIO * settled,
        LEAST_CATCH_UP_RATIO * rate_per_s * interval_s,
    )
    factor, trigger_s = float(setting.planned_ratio(rate_per_s)[0]), configuration.trigger_s
    usual = float(settled_batch_rows(model, rate_per_s, trigger_s, factor))
    in_time = all(
        limited_recovery_s(model, rate_per_s, trigger_s, factor, outage_s, usual, float(limit))
        <= limit_s
        for limit_s, outage_s in question.outages
    )
    return limit if leaves_room and in_time else None


def _longest_batch_s(question: Question) -> float:
    """The longest batch that by itself breaks no promise [s]."""
    longest = []
    for target in question.latency_targets:
        promised = PromisedLatency(profile=question.profile, target=target)
        # A window in append mode waits for the batch that emits and for the one before.
        batches = 1.0 + (promised.wait_weight if target.metric is Metric.WINDOW else 0.0)
        longest.append((target.limit_s - promised.shift_s) / batches)
    return min(longest)
