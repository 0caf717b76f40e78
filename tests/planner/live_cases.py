"""A job on one to twelve executors, for tests of live tuning."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

from headway.domain import DriverPhase, JobProfile, RowsLaw, Target
from headway.domain.live import Bounds
from headway.planner.question import Question, SearchSpace
from headway.planner.search import question_of
from headway.tuner.rule.loop import LoopCase
from tests.factories import a_configuration, a_profile

TRIGGER_S = 1.5
BOUNDS = Bounds(min_executors=1, max_executors=12)


@cache
def waves_profile() -> JobProfile:
    """48 tasks in two stages, profiled on 1 and on 12 executors."""
    profile = a_profile()
    scan, aggregate = profile.stages
    law = RowsLaw(scale=1.0, exponent=1.0)
    costs: dict[str, Any] = {"rows": law, "task_per_row_s": 25e-6, "task_noise_ratio": 0.1}
    costs |= {"task_per_partition_s": 0.0}
    return replace(
        profile,
        driver_phases=(DriverPhase(name="query_planning", mean_s=0.12, sd_s=0.01),),
        stages=(
            replace(scan, num_source_tasks=48, task_fixed_s=0.012, **costs),
            replace(aggregate, task_fixed_s=0.030, **costs),
        ),
        settings=tuple(
            replace(
                profile.settings[0],
                query_id=f"00000000-0000-0000-0000-{executors:012d}",
                configuration=a_configuration(
                    executors=executors, shuffle_partitions=48, trigger_s=TRIGGER_S
                ),
                rows_per_batch_low=3e4,
                rows_per_batch_high=5e5,
            )
            for executors in (1, 12)
        ),
    )


@cache
def the_question(target: str = "p99 <= 3s") -> Question:
    """That target on 12 nodes of one executor."""
    space = SearchSpace(max_nodes=12, cores_per_executor=4, shuffle_partitions=48)
    return question_of(waves_profile(), Target.parse(target), space, 0.95)


@cache
def the_case() -> LoopCase:
    """The closed loop of that job."""
    return LoopCase.of(the_question(), BOUNDS, TRIGGER_S)
