"""Fit the costs of the VLDB'15 paper's jobs to its Table 4.

Costs are fitted to the half of the cells that ``results/scalla-table-4.csv`` marks as fitted; the
other half judges them, on the page of `scalla_study`.

    python benchmarks/run.py scalla_fit           # writes results/scalla-costs.json
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Mapping, Sequence

import numpy as np
from scalla_costs import FITTED, Cell, chosen_costs, pipelines_of, table_4

from headway.models.arrays import Array
from headway.models.pipeline.parameters import Pipeline, pipeline_loads
from headway.planner.kinds.pipelines import latency_of

# The search covers this factor above and below each chosen cost.
_REACH_RATIO = 30.0
_GENERATIONS, _POPULATION, _SEED = 40, 7, 1
# A wrong verdict weighs more than the worst value, whose log error counts as at most 2.
_WORST_VALUE, _WRONG_VERDICT = 2.0, 4.0


def loss(cells: Sequence[Cell], costs: Mapping[str, float]) -> float:
    """Sum over cells: the log error of a value, and more for a wrong verdict.

    The penalty of a wrong verdict grows with the distance of the busiest part from full, so that a
    search has a slope to follow.
    """
    total = 0.0
    for _, places, pipeline in pipelines_of(cells, costs):
        means = np.broadcast_to(latency_of(pipeline).mean_s, len(places))
        busiest = np.broadcast_to(_busiest_ratio(pipeline), len(places))
        for mean_s, busy_ratio, place in zip(means, busiest, places, strict=True):
            true_s = cells[place].mean_s
            if true_s is not None and np.isfinite(mean_s):
                total += min(abs(np.log(mean_s / true_s)), _WORST_VALUE)
            elif true_s is not None or np.isfinite(mean_s):
                total += _WRONG_VERDICT + abs(np.log(max(float(busy_ratio), 1e-3)))
    return total


def _busiest_ratio(pipeline: Pipeline) -> Array:
    loads, at = pipeline_loads(pipeline), pipeline.setting
    cores = at.mappers_per_node * loads.map_busy + at.reducers_per_node * loads.reduce_busy
    parts = (loads.map_busy, loads.reduce_busy, loads.disk_busy, loads.fetch_busy)
    every = np.broadcast_arrays(*parts, cores / pipeline.nodes.num_cores)
    return np.asarray(np.max(every, axis=0))


def fit(cells: Sequence[Cell]) -> dict[str, float]:
    """Costs that reproduce these cells best."""
    from scipy.optimize import Bounds, differential_evolution, minimize

    start = chosen_costs()
    middle = np.log(list(start.values()))
    reach = math.log(_REACH_RATIO)

    def costs_at(logs: Array) -> dict[str, float]:
        return dict(zip(start, np.exp(np.clip(logs, middle - reach, middle + reach)), strict=True))

    def lost(logs: Array) -> float:
        return loss(cells, costs_at(logs))

    found = differential_evolution(
        lost,
        Bounds(middle - reach, middle + reach),
        x0=middle,
        maxiter=_GENERATIONS,
        popsize=_POPULATION,
        seed=_SEED,
        polish=False,
        tol=1e-6,
    )
    polished = minimize(lost, found.x, method="Nelder-Mead", options={"maxfev": 600})
    return costs_at(polished.x if polished.fun < found.fun else found.x)


def run(given: argparse.Namespace) -> None:  # noqa: ARG001
    """Fit, and write the file."""
    costs = fit([one for one in table_4() if one.is_fitted])
    # All digits: with only three, a nearly full cell could change its verdict.
    written = {name: float(cost_s) for name, cost_s in costs.items()}
    FITTED.write_text(json.dumps({"costs": written}, indent=2) + "\n", encoding="utf-8")
    sys.stdout.write(f"{FITTED}\n")
