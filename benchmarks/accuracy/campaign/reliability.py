"""Stated probabilities beside outcomes: random promises about runs whose outcome is on record.

Limits are drawn around what is predicted, without a look at what was measured, so that all
probabilities come up; each promise is asked of the setting that ran, as a plan asks it.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from pages import headed

from campaign.schedule import SEED
from headway.assumptions.planning import CONFIDENCE
from headway.domain import (
    Arrivals,
    Configuration,
    JobProfile,
    LatencyDistribution,
    Metric,
    Target,
    Verdict,
)
from headway.planner.candidates import candidates_at
from headway.planner.question import Question, SearchSpace
from headway.planner.verdict import kept_probability

QUANTILES = {"mean": None, "p95": 0.95, "p99": 0.99}
_FARTHEST = 0.5
"""Limits are up to e^0.5 times longer or shorter than what is predicted."""
FEWEST_OF_A_TENTH = 10
"""Fewer promises say nothing of the share that is kept."""
_DRAWS = 4_000
_EDGES = (0.0, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 1.0)
SAID = {
    "kept": "keeps it",
    "too close to tell": "too close to tell",
    "not kept": "does not keep it",
}


class Outcome(NamedTuple):
    """A promise: the probability that it is kept, as stated, and whether it was."""

    probability: float
    kept: bool


def outcomes_of(
    profile: JobProfile,
    configuration: Configuration,
    arrivals: Arrivals,
    predicted: LatencyDistribution,
    measured_s: Mapping[str, float],
    name: str,
) -> list[Outcome]:
    """One random promise of each statistic about a run; the same for the same name."""
    draw, found = random.Random(f"{SEED}-{name}"), []
    for statistic, quantile in QUANTILES.items():
        limit_s = predicted.statistics_s[statistic] * math.exp(draw.uniform(-_FARTHEST, _FARTHEST))
        question = Question(
            profile=replace(profile, arrivals=arrivals),
            target=Target(metric=Metric.TUPLE, quantile=quantile, limit_s=limit_s),
            space=SearchSpace(
                max_nodes=1,
                executors_per_node=configuration.executors,
                cores_per_executor=configuration.cores_per_executor,
            ),
            confidence=CONFIDENCE.value,
        )
        setting = (1, configuration.shuffle_partitions, configuration.trigger_s)
        probability = kept_probability(candidates_at(question, [setting]))
        found.append(Outcome(probability, measured_s[statistic] <= limit_s))
    return found


def reliability_table(outcomes: Iterable[Outcome]) -> Iterator[str]:
    """Stated beside observed, by class of the stated probability; then by verdict."""
    every = list(outcomes)
    yield from headed("| stated probability | promises | mean | kept | standard error |")
    for (low, high), of in by_class(every).items():
        yield _line(f"{100 * low:.0f} to {100 * high:.0f}%", of)
    yield ""
    yield from headed("| verdict | promises | mean stated probability | kept | standard error |")
    for verdict, name in SAID.items():
        of = [one for one in every if verdict_of(one.probability) == verdict]
        yield _line(name, of)
    yield ""


def regime_table(outcomes: Mapping[str, Sequence[Outcome]]) -> Iterator[str]:
    """Of each regime: the Brier score, and the largest gap between stated and observed.

    Beside both is the floor: what the same promises show if their probabilities are exact.
    """
    yield from headed(
        "| regime | promises | Brier score | floor | largest gap of a tenth | floor "
        "| gaps above two standard errors |"
    )
    for regime, of_regime in outcomes.items():
        gaps = [
            (abs(stated_less_kept(of_tenth)), 2.0 * chance_ratio(of_tenth))
            for of_tenth in by_tenth(of_regime)
        ]
        largest = max((gap for gap, _ in gaps), default=0.0)
        beyond = sum(gap > chance for gap, chance in gaps)
        yield (
            f"| {regime} | {len(of_regime)} | {brier_score(of_regime):.3f} "
            f"| {exact_brier_score(of_regime):.3f} | {largest:.0%} "
            f"| {exact_largest_gap_ratio(of_regime):.0%} | {beyond} of {len(gaps)} |"
        )
    yield ""


def exact_brier_score(outcomes: Sequence[Outcome]) -> float:
    """The expected Brier score of probabilities that are exact: of these, none can have less.

    Examples
    --------
    >>> exact_brier_score([Outcome(0.5, True), Outcome(1.0, True)])
    0.125
    """
    return statistics.fmean(
        outcome.probability * (1.0 - outcome.probability) for outcome in outcomes
    )


def exact_largest_gap_ratio(outcomes: Sequence[Outcome]) -> float:
    """Median of the largest gap of a tenth, were each promise kept exactly as likely as stated.

    Examples
    --------
    >>> exact_largest_gap_ratio([Outcome(1.0, True)] * 20)
    0.0
    """
    draw = np.random.default_rng(SEED)
    gap_ratios = np.zeros(_DRAWS)
    for of_tenth in by_tenth(outcomes):
        stated = np.array([outcome.probability for outcome in of_tenth])
        kept = (draw.random((_DRAWS, len(stated))) < stated).mean(axis=1)
        gap_ratios = np.maximum(gap_ratios, np.abs(kept - stated.mean()))
    return float(np.median(gap_ratios))


def by_tenth(outcomes: Sequence[Outcome]) -> list[list[Outcome]]:
    """Outcomes by tenth of the stated probability, where there are enough for a share."""
    tenths: dict[int, list[Outcome]] = {}
    for outcome in outcomes:
        tenths.setdefault(min(int(10 * outcome.probability), 9), []).append(outcome)
    return [tenths[tenth] for tenth in sorted(tenths) if len(tenths[tenth]) >= FEWEST_OF_A_TENTH]


def brier_score(outcomes: Sequence[Outcome]) -> float:
    """Mean squared difference between the stated probability and what happened, 1 or 0."""
    return statistics.fmean((outcome.probability - outcome.kept) ** 2 for outcome in outcomes)


def stated_less_kept(outcomes: Sequence[Outcome]) -> float:
    """Mean stated probability less the share that was kept."""
    return statistics.fmean(outcome.probability - outcome.kept for outcome in outcomes)


def by_class(outcomes: Iterable[Outcome]) -> dict[tuple[float, float], list[Outcome]]:
    """Outcomes by class of the stated probability."""
    every = list(outcomes)
    return {
        (low, high): [one for one in every if low < one.probability <= high]
        for low, high in pairwise(_EDGES)
    }


def verdict_of(probability: float) -> str:
    """At the usual confidence."""
    return str(Verdict.of(probability, CONFIDENCE.value))


def _line(name: str, of: list[Outcome]) -> str:
    if not of:
        return f"| {name} | 0 | - | - | - |"
    said = statistics.fmean(one.probability for one in of)
    kept = statistics.fmean(one.kept for one in of)
    return f"| {name} | {len(of)} | {said:.0%} | {kept:.0%} | {chance_ratio(of):.0%} |"


def chance_ratio(of: list[Outcome]) -> float:
    """Standard deviation of the share that is kept, were each kept as likely as is stated."""
    return math.sqrt(sum(one.probability * (1.0 - one.probability) for one in of)) / len(of)
