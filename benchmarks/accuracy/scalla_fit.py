"""What the costs of the VLDB'15 paper's jobs would have to be for its Table 4 to come out.

Costs are fitted to the half of the cells that ``results/scalla-table-4.csv`` calls fitted; the
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
from headway.planner.pipelines import latency_of

# No cost is looked for beyond this factor of the chosen one, up or down.
_REACH_RATIO = 30.0
_GENERATIONS, _POPULATION, _SEED = 40, 7, 1
# A wrong verdict weighs more than the worst value, whose log error counts up to 2.
_WORST_VALUE, _WRONG_VERDICT = 2.0, 4.0


def loss(cells: Sequence[Cell], costs: Mapping[str, float]) -> float:
    """Sum over cells: the log error of a value, and more for a wrong verdict.

    A wrong verdict costs the more the further the busiest part is from full, so that a search has
    a slope to follow.
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
    """Costs that bring these cells out best."""
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
    # All digits: where a cell is nearly full, three of them decide whether it is.
    written = {name: float(cost_s) for name, cost_s in costs.items()}
    FITTED.write_text(json.dumps({"costs": written}, indent=2) + "\n", encoding="utf-8")
    sys.stdout.write(f"{FITTED}\n")
