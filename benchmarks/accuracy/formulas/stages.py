"""The span of a stage of lognormal tasks on cores."""

from __future__ import annotations

from itertools import product

from formulas.cells import Cell, Family, judged
from headway.models.stages.makespan import makespan_moments
from tests.oracles.list_scheduling import simulated_lognormal_makespans

_NUM_STAGES = 4_000
_NUM_REPLICATIONS = 4


def simulated(num_tasks: int, num_cores: int, cv: float) -> Cell:
    """One stage."""
    moments = makespan_moments(num_tasks, num_cores, cv)
    spans = [
        simulated_lognormal_makespans(
            num_tasks, num_cores, cv, num_replications=_NUM_STAGES, seed=seed
        )
        for seed in range(_NUM_REPLICATIONS)
    ]
    return {
        "mean": judged(float(moments.mean), [float(span.mean()) for span in spans]),
        "standard deviation": judged(float(moments.sd), [float(span.std()) for span in spans]),
    }


STAGES = Family(
    title="The span of a stage",
    equations="theory.md (M1)-(M5)",
    over="2-64 cores, 1-10 tasks per core, cv of a task 0.05-2",
    judge=f"{_NUM_REPLICATIONS} x {_NUM_STAGES:,} stages, list scheduling (S1)",
    cells={
        f"{num_tasks} tasks, {num_cores} cores, cv {cv:g}": (num_tasks, num_cores, cv)
        for num_cores, per_core, cv in product(
            (2, 4, 16, 64), (1.0, 1.25, 1.5, 2.0, 3.0, 5.0, 10.0), (0.05, 0.1, 0.3, 0.6, 1.0, 2.0)
        )
        for num_tasks in (round(num_cores * per_core),)
        if num_tasks == num_cores * per_core or num_cores == 2
    },
    simulate=simulated,
)
