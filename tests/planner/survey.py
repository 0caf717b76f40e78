"""What plans choose among settings that are equally good: a count over random questions.

python -m tests.planner.survey 104
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from functools import cache

import numpy as np

from headway.domain import Metric, Target
from headway.models.arrays import Array
from headway.models.job.calibration import is_calibrated
from headway.models.job.setting import settled_batch_rows
from headway.planner.candidates import BoolArray, Candidates, all_candidates
from headway.planner.fewest_nodes import fewest_nodes
from headway.planner.question import Question, SearchSpace
from headway.planner.search import chosen_at
from tests.planner.enumeration import random_profile

CALM_S = 0.5


@cache
def random_question(seed: int) -> Question:
    """Nothing is pinned, and up to 12 nodes may be bought."""
    random = np.random.default_rng(seed)
    profile = random_profile(random)
    rate_per_s = float(np.exp(random.uniform(np.log(100.0), np.log(1e6))))
    return Question(
        profile=replace(profile, arrivals=replace(profile.arrivals, rate_per_s=rate_per_s)),
        target=Target(
            metric=Metric.TUPLE,
            quantile=[None, 0.95, 0.99][int(random.integers(3))],
            limit_s=float(np.exp(random.uniform(np.log(0.5), np.log(10.0)))),
        ),
        also=(),
        space=SearchSpace(max_nodes=12, cores_per_executor=int(random.integers(1, 5))),
        confidence=0.95,
    )


@cache
def fewest_of(seed: int) -> int | None:
    """The nodes that the question takes; None if it is infeasible."""
    return fewest_nodes(random_question(seed)).nodes


@cache
def chosen_of(seed: int) -> Candidates:
    """The setting to run on them."""
    nodes = fewest_of(seed)
    assert nodes is not None
    return chosen_at(random_question(seed), nodes)


def calibrated(settings: Candidates) -> BoolArray:
    """Which settings the profile can speak for at the asked rate."""
    question = settings.question
    rows: Array = settled_batch_rows(settings.durations, question.rate_per_s, settings.trigger_s)
    slots = np.array([question.space.num_slots(nodes) for nodes in settings.nodes.tolist()])
    partitions = settings.partitions.astype(np.float64)
    inside = is_calibrated(question.profile, slots.astype(np.float64), partitions, rows)
    overruns = settings.expected_law(question.rate_per_s).overrun_probability
    return np.asarray(inside & ((settings.trigger_s == 0) | (overruns <= 0.5)))


def fills_slots(settings: Candidates) -> BoolArray:
    """Which settings have as many shuffle partitions as slots, or no use for them."""
    question = settings.question
    slots = np.array([question.space.num_slots(nodes) for nodes in settings.nodes.tolist()])
    shuffles = any(stage.tasks_rule == "shuffle" for stage in question.profile.stages)
    return np.asarray((settings.partitions >= slots) | (not shuffles))


def is_calm(settings: Candidates) -> BoolArray:
    """Which settings wait for a trigger of half a second or more, and nearly always keep to it."""
    law = settings.expected_law(settings.question.rate_per_s)
    seldom = law.overrun_probability <= 0.1
    return np.asarray((settings.trigger_s >= CALM_S) & seldom)


def survey(seeds: Iterable[int]) -> Counter[str]:
    """How many plans are what nobody would choose, and how many of them need not be."""
    counts: Counter[str] = Counter()
    for seed in seeds:
        question, nodes = random_question(seed), fewest_of(seed)
        if nodes is None:
            counts["infeasible"] += 1
            continue
        counts["plans"] += 1
        chosen = chosen_of(seed)
        every = all_candidates(question, (nodes,))
        met = every.take(every.meets_by_moments(question.rate_per_s))
        inside, filled = calibrated(met), fills_slots(met)
        if not calibrated(chosen)[0]:
            counts["not calibrated"] += 1
            counts["not calibrated, another is"] += bool(inside.any())
        alike = inside == bool(calibrated(chosen)[0])
        if not fills_slots(chosen)[0]:
            counts["fewer partitions than slots"] += 1
            counts["fewer partitions than slots, another has enough"] += bool(filled[alike].any())
        if chosen.trigger_s[0] == 0:
            calm = is_calm(met) & alike & (filled == bool(fills_slots(chosen)[0]))
            counts["as fast as possible"] += 1
            counts["as fast as possible, a calm trigger does too"] += bool(calm.any())
            longer = met.trigger_s >= CALM_S
            counts["as fast as possible, some trigger of 0.5 s and more does too"] += bool(
                longer.any()
            )
    return counts


if __name__ == "__main__":
    for what, count in survey(range(int(sys.argv[1]))).items():
        print(f"{count:5d}  {what}")
