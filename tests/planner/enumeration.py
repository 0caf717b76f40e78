"""Random questions to the planner, and their answers by enumeration."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
import pytest
from numpy.typing import NDArray
from scipy.special import ndtri

from headway.assumptions.predictions import HIGHEST_QUOTED_UTILIZATION_RATIO
from headway.domain import (
    Arrivals,
    Coalescing,
    Configuration,
    DefaultParallelism,
    DurationNoise,
    FileSplits,
    JobProfile,
    Metric,
    RecordSplits,
    RowsLaw,
    SourceTasks,
    StreamAnswer,
    Target,
)
from headway.models.arrays import Array, Numeric
from headway.models.job.calibration import spread_ratio
from headway.models.job.duration import DurationModel
from headway.models.job.setting import (
    duration_model,
    setting_law,
    settled_batch_rows,
)
from headway.planner.candidates import Candidates
from headway.planner.fewest_nodes import fewest_nodes
from headway.planner.question import Question, SearchSpace
from tests.factories import a_configuration, a_profile
from tests.planner.plans import plan


@dataclass(frozen=True)
class Case:
    """One question to the planner."""

    profile: JobProfile
    arrivals: Arrivals
    target: Target
    space: SearchSpace
    confidence: float

    @property
    def question(self) -> Question:
        """As the search is asked it."""
        return Question(
            profile=replace(self.profile, arrivals=self.arrivals),
            target=self.target,
            space=self.space,
            confidence=self.confidence,
        )

    def answer(self) -> StreamAnswer:
        return plan(
            self.profile, self.arrivals, self.target, self.space, confidence=self.confidence
        )


@lru_cache(maxsize=256)
def answer_of(seed: int) -> StreamAnswer:
    """The answer to a random question, at which several tests look."""
    return random_case(seed).answer()


def fewest_of(question: Question) -> int | None:
    """The nodes that the plan takes, None where it is infeasible, without what it says beside."""
    return fewest_nodes(question).nodes


def random_profile(random: np.random.Generator) -> JobProfile:
    exponent = float(random.choice([0.6, 0.8, 1.0]))
    rows = float(random.choice([500.0, 5000.0, 50000.0]))
    base = a_profile()
    stages = (
        replace(
            base.stages[0],
            num_source_tasks=int(random.integers(1, 9)),
            task_fixed_s=float(random.uniform(0.005, 0.05)),
            task_per_row_s=float(random.uniform(1e-6, 2e-5)),
            task_per_partition_s=float(random.choice([0.0, 2e-4])),
            task_noise_ratio=float(random.uniform(0.0, 0.6)),
        ),
        replace(
            base.stages[1],
            rows=RowsLaw(scale=rows ** (1 - exponent) * 0.8, exponent=exponent),
            task_fixed_s=float(random.uniform(0.01, 0.1)),
            task_per_row_s=float(random.uniform(1e-6, 5e-5)),
            task_noise_ratio=float(random.uniform(0.0, 0.6)),
        ),
    )
    seen = replace(
        base.settings[0],
        configuration=a_configuration(
            executors=int(random.integers(1, 4)),
            cores_per_executor=int(random.integers(1, 5)),
            shuffle_partitions=int(random.choice([2, 5, 8, 16])),
            trigger_s=float(random.choice([0.0, 0.5, 1.0, 4.0])),
        ),
        rows_per_batch_low=0.9 * rows,
        rows_per_batch_high=1.1 * rows,
    )
    return replace(
        base,
        stages=stages if random.random() < 0.85 else stages[:1],
        settings=(seen,),
        arrivals=Arrivals(rate_per_s=rows, dispersion_ratio=float(random.choice([0.0, 1.0, 50.0]))),
        noise=DurationNoise(
            batch_ratio=float(random.uniform(0.01, 0.3)),
            autocorrelation=float(random.choice([0.0, 0.3, 0.8])),
            run_to_run_ratio=float(random.uniform(0.01, 0.12)),
        ),
    )


def with_tasks_by_rows(profile: JobProfile, seed: int) -> JobProfile:
    """The tasks of its stages follow the rows: of files, of a limit per task, of an exchange."""
    random = np.random.default_rng(seed + 10_000)
    stages = list(profile.stages)
    of_source, are_merged = random.random() < 0.6, random.random() < 0.6
    if are_merged and len(stages) > 1:
        stages[1] = replace(
            stages[1],
            tasks_rule="coalesced",
            num_source_tasks=1,
            coalescing=Coalescing(
                exchange_bytes_per_row=float(10.0 ** random.uniform(0.0, 4.0)),
                advisory_bytes=int(2.0 ** random.uniform(16.0, 26.0)),
                smallest_bytes=int(2.0 ** random.uniform(12.0, 20.0)),
            ),
        )
    if of_source or stages == list(profile.stages):
        files = FileSplits(
            file_rows=float(10.0 ** random.uniform(1.0, 5.0)),
            file_bytes=float(10.0 ** random.uniform(4.0, 9.0)),
            max_split_bytes=int(2.0 ** random.uniform(22.0, 27.0)),
            open_cost_bytes=4 * 2**20,
            splits_files=bool(random.random() < 0.5),
        )
        records = RecordSplits(
            topic_partitions=int(random.integers(1, 6)),
            max_records=int(10.0 ** random.uniform(2.0, 5.0)),
        )
        stages[0] = replace(
            stages[0],
            source_tasks=SourceTasks(parallelism=DefaultParallelism(), files=files)
            if random.random() < 0.5
            else SourceTasks(records=records),
        )
    return replace(profile, stages=tuple(stages), state=None)


def random_case(seed: int, *, tasks_follow_rows: bool = False) -> Case:
    random = np.random.default_rng(seed)
    profile = random_profile(random)
    if tasks_follow_rows:
        profile = with_tasks_by_rows(profile, seed)
    rate_per_s = float(np.exp(random.uniform(np.log(50.0), np.log(1e6))))
    pinned_partitions, pinned_trigger = random.random(2) < 0.6
    # Enumeration takes its time where nothing is pinned.
    most_nodes = 5 if pinned_partitions or pinned_trigger else 2
    return Case(
        profile=profile,
        arrivals=replace(profile.arrivals, rate_per_s=rate_per_s),
        target=Target(
            metric=Metric.BATCH if random.random() < 0.3 else Metric.TUPLE,
            quantile=[None, 0.5, 0.95, 0.99][int(random.integers(4))],
            limit_s=float(np.exp(random.uniform(np.log(0.25), np.log(8.0)))),
        ),
        space=SearchSpace(
            max_nodes=int(random.integers(1, most_nodes + 1)),
            executors_per_node=int(random.integers(1, 3)),
            cores_per_executor=int(random.integers(1, 4)),
            shuffle_partitions=int(random.integers(1, 20)) if pinned_partitions else None,
            trigger_s=float(random.choice([0.0, 0.7, 2.0])) if pinned_trigger else None,
        ),
        confidence=float(random.choice([0.5, 0.8, 0.95, 0.99])),
    )


def holds_alone(
    case: Case, num_slots: int, partitions: int, trigger_s: Numeric, rates_per_s: Array
) -> NDArray[np.bool_]:
    """Whether a setting keeps the target at each of some rates, read off the latency law."""
    model = duration_model(case.profile, num_slots, partitions)
    rates, triggers = np.broadcast_arrays(rates_per_s, trigger_s)
    rows = settled_batch_rows(model, rates, triggers)
    factor = np.exp(
        ndtri(case.confidence) * spread_ratio(case.profile, num_slots, partitions, rows)
    )
    slower = settled_batch_rows(model, rates, triggers, factor)
    holds = rates * factor * model.slope_s(slower) <= HIGHEST_QUOTED_UTILIZATION_RATIO.value
    if holds.any():
        holds[holds] = law_holds(case, model, triggers[holds], rates[holds], factor[holds])
    return np.asarray(holds)


def holds_at(case: Case, configuration: Configuration, rate_per_s: float) -> bool:
    return bool(
        holds_alone(
            case,
            configuration.num_slots,
            configuration.shuffle_partitions,
            configuration.trigger_s,
            np.array([rate_per_s]),
        )[0]
    )


def search_by_moments(monkeypatch: pytest.MonkeyPatch) -> None:
    """The law of the search as `holds_alone` has it; test_near_limits.py looks at the other one."""
    monkeypatch.setattr(
        Candidates, "_certified_beyond", lambda candidates, law, **_: candidates._beyond(law)
    )


def law_holds(
    case: Case, model: DurationModel, trigger_s: Array, rates_per_s: Array, factor: Array
) -> NDArray[np.bool_]:
    law = setting_law(
        case.profile, model, rate_per_s=rates_per_s, trigger_s=trigger_s, factor=factor
    )
    quotable = law.is_quotable
    limit_s, quantile = case.target.limit_s, case.target.quantile
    if case.target.metric is Metric.BATCH:
        kept = (
            law.batch_duration_mean_s() <= limit_s
            if quantile is None
            else law.batch_duration_cdf(limit_s) >= quantile
        )
    elif quantile is None:
        kept = law.tuple_latency_mean_s() <= limit_s
    else:
        kept = law.tuple_latency_cdf(limit_s) >= quantile
    return np.asarray(quotable & kept)


def highest_rate(
    case: Case, num_slots: int, partitions: int, triggers_s: tuple[float, ...]
) -> float:
    """The last rate of a scan at which a setting keeps the target, the best of some triggers.

    What is known of a setting changes where its batches leave the profiled range at the lower
    end: the scan starts from there, both ways. It is refined twice, each trigger by itself.
    """
    model = duration_model(case.profile, num_slots, partitions)
    rows = case.profile.rows_per_batch_range[0]
    trigger_s = np.array(triggers_s)[:, np.newaxis]
    edge = rows / np.maximum(trigger_s, float(model.mean_s(rows)))
    # Close below the edge the uncertainty changes faster than the load: a closer look.
    steps = np.concatenate([np.arange(-12.0, -1.0, 0.5), np.arange(-1.0, 0.0, 0.05)])
    rates = edge * np.concatenate([2.0**steps, 1.5 ** np.arange(27.0)])
    best = np.zeros(len(trigger_s))
    for _ in range(3):
        holds = holds_alone(case, num_slots, partitions, trigger_s, rates)
        found = holds.any(axis=1)
        trigger_s, rates, holds = trigger_s[found], rates[found], holds[found]
        if not len(rates):
            break
        each = np.arange(len(rates))
        last = rates.shape[1] - 1 - np.argmax(holds[:, ::-1], axis=1)
        best = rates[each, last]
        beyond = rates[each, np.minimum(last + 1, rates.shape[1] - 1)]
        rates = np.geomspace(best, beyond, 10, axis=1)
    return float(best.max())


@lru_cache(maxsize=256)
def highest_rates(seed: int, *, tasks_follow_rows: bool = False) -> dict[int, float]:
    """Of every node count, the best that any of its settings sustains: enumeration."""
    case = random_case(seed, tasks_follow_rows=tasks_follow_rows)
    return {
        nodes: max(
            highest_rate(
                case,
                case.space.num_slots(nodes),
                partitions,
                case.space.trigger_choices_s(case.profile, case.target.limit_s),
            )
            for partitions in case.space.partition_choices(case.profile, nodes)
        )
        for nodes in range(1, case.space.max_nodes + 1)
    }
