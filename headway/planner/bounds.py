"""Upper bounds for all settings of a number of nodes, cheap enough for a thousand at once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import numpy as np
from numpy.typing import NDArray

from headway.assumptions.planning import MANY_NODES_MARGIN_RATIO
from headway.domain import JobProfile
from headway.models.arrays import Array
from headway.models.job.duration import DurationStack
from headway.models.job.setting import duration_model
from headway.models.stages.makespan import makespan_lower_bound
from headway.planner.candidates import Candidates
from headway.planner.noise_free import noise_free_rate_per_s
from headway.planner.question import Question


def most_rates_per_s(
    question: Question, node_counts: Sequence[int]
) -> tuple[list[tuple[int, int]], Array]:
    """Sizes (nodes, partitions) of the space, and an upper bound of the rate of each [records/s].

    Parameters
    ----------
    question : Question
        The promises and the space.
    node_counts : sequence of int
        Numbers of nodes to consider.

    Notes
    -----
    **(P9)** Many nodes. For each number of nodes and partitions, an upper bound of the rate is (P5)
    with the makespan (M6), `max(1, T/C)`, and without a trigger, which only makes rows wait; a
    tenth is added. Numbers whose bound is below the requested rate are excluded. If at most 64
    remain, they are tried in increasing order, so the plan is proven to be the minimum. If more
    remain, doubling steps find a feasible number, bisection finds the edge, and the dozen below the
    edge are tried; the plan then states the minimum that the bound allows, and its gap.

    A fixed trigger is kept.
    """
    space, profile = question.space, question.profile
    sizes = [
        (nodes, partitions)
        for nodes in node_counts
        for partitions in space.partition_choices(profile, nodes)
    ]
    nodes, partitions = np.array(sizes).T
    bounded = Candidates(
        question=question,
        nodes=nodes,
        partitions=partitions,
        trigger_s=np.full(len(sizes), space.trigger_s or 0.0),
        durations=_least_durations(profile, nodes * space.num_slots(1), partitions),
    )
    return sizes, noise_free_rate_per_s(bounded) * MANY_NODES_MARGIN_RATIO.value


def _least_durations(
    profile: JobProfile, slots: NDArray[np.int_], partitions: NDArray[np.int_]
) -> DurationStack:
    """Durations as if the work of a level were distributed evenly: theory.md (M6)."""
    fixed_s, per_row_s = [], []
    for _, grouped in groupby(profile.stages, key=lambda stage: stage.level):
        pool = list(grouped)
        num_tasks = [
            partitions
            if stage.num_source_tasks is None
            # Those whose tasks follow rows or cores have at least one.
            else np.full_like(partitions, 1 if stage.tasks_vary else stage.num_source_tasks)
            for stage in pool
        ]
        total = np.sum(num_tasks, axis=0)
        per_task = makespan_lower_bound(total.astype(np.float64), slots.astype(np.float64)) / total
        if any(stage.tasks_vary for stage in pool):
            per_task = 1.0 / slots.astype(np.float64)
        fixed_s.append(
            per_task
            * sum(
                count * (stage.task_fixed_s + stage.task_per_partition_s * partitions)
                for count, stage in zip(num_tasks, pool, strict=True)
            )
        )
        per_row_s += [per_task * stage.task_per_row_s for stage in pool]
    alike = duration_model(profile, num_slots=1, shuffle_partitions=1, batch_rows=1.0)
    no_bends = np.empty((0, len(slots)))
    return DurationStack(alike, np.array(fixed_s), np.array(per_row_s), (no_bends, no_bends))
