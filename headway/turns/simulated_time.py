"""How long a policy is simulated, and what a simulation of that length tells of a target."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from headway.assumptions.turns import (
    FEWEST_SIMULATED_PARTS,
    LOAD_SIMULATED_LONGER_RATIO,
    LONGEST_SIMULATED_S,
    MOST_SIMULATED_BATCHES,
    RELAXATIONS_OF_PART,
    RELAXATIONS_SIMULATED,
    SIMULATED_PARTS,
    SIMULATED_S,
    SIMULATED_WARM_UP_S,
    WINDOWS_SIMULATED,
)
from headway.domain import Z90
from headway.domain.plan_parts import Verdict
from headway.models.arrays import Array
from headway.models.simulation.gate import QueryWork


def load_ratio(works: Sequence[QueryWork], cores: float, at_once: int) -> float:
    """Work on rows over what can be done: in total, by each query, and by those at once. [-]

    From 1 on, the backlog grows, however large batches become. Fixed times of batches do not
    count: they become rare as batches become larger.
    """
    core_loads = [work.rate_per_s * work.per_row_core_s for work in works]
    time_ratios = [
        core_load / min(work.most_cores, cores)
        for core_load, work in zip(core_loads, works, strict=True)
    ]
    return max(sum(core_loads) / cores, sum(time_ratios) / at_once, *time_ratios)


def simulated_times(
    works: Sequence[QueryWork], cores: float, at_once: int
) -> tuple[float, float, int]:
    """Simulated time and the warm-up in it [s], and the parts of it that tell errors apart.

    A batch is as long as the one before was, times the load and noise, plus fixed times. So the
    square of a disturbance fades by ``load^2 (1 + cv^2)`` from batch to batch, and batches become
    longer as ``1 / (1 - load)``: the relaxation time grows about as ``1 / (1 - load)^2``, and at
    high loads the simulated time with it, within a number of batches. If squares do not fade,
    no length is enough, and there are no parts.
    """
    slides_s = [work.query.windows.slide_s for work in works if work.query.windows is not None]
    warm_up_s, num_parts = SIMULATED_WARM_UP_S.value, int(SIMULATED_PARTS.value)
    windows_s = warm_up_s + WINDOWS_SIMULATED.value * max(slides_s, default=0.0)
    length_s = min(max(SIMULATED_S.value, windows_s), LONGEST_SIMULATED_S.value)
    load = load_ratio(works, cores, at_once)
    if not LOAD_SIMULATED_LONGER_RATIO.value <= load < 1.0:
        return length_s, warm_up_s, num_parts
    cycle_s = _overhead_s(works, cores, at_once) / (1.0 - load)
    intervals_s = [max(work.query.trigger_s, cycle_s) for work in works]
    faded_ratio = 1.0 - load**2 * (1.0 + _noise_ratio(works) ** 2)
    relaxation_s = 2.0 * max(intervals_s) / faded_ratio if faded_ratio > 0.0 else math.inf
    longest_s = MOST_SIMULATED_BATCHES.value / sum(1.0 / interval for interval in intervals_s)
    needed_s = min(RELAXATIONS_SIMULATED.value * relaxation_s, longest_s)
    growth_ratio = max(needed_s / (length_s - warm_up_s), 1.0)
    num_relaxed = growth_ratio * (length_s - warm_up_s) / relaxation_s
    return (
        growth_ratio * length_s,
        growth_ratio * warm_up_s,
        min(num_parts, int(num_relaxed / RELAXATIONS_OF_PART.value)),
    )


def verdict_on_late(late: Array, weights: Array, allowed: float, num_parts: int) -> Verdict:
    """Whether at most a share is late, of windows or batches in the order of their times.

    ``late`` is what is late of each weight. Too close to tell within the statistical error, which
    consecutive parts show, and if there are too few of them.

    >>> late, weights = np.array([0.0, 1.0, 0.0, 0.0] * 5), np.ones(20)
    >>> [str(verdict_on_late(late, weights, allowed, 10)) for allowed in (0.1, 0.3, 0.5)]
    ['not kept', 'too close to tell', 'kept']
    """
    if num_parts < FEWEST_SIMULATED_PARTS.value:
        return Verdict.TOO_CLOSE
    share = float(late.sum() / weights.sum())
    num_parts = min(num_parts, len(weights))
    residuals = np.array([part.sum() for part in np.array_split(late - share * weights, num_parts)])
    variance = float(residuals @ residuals) * num_parts / max(num_parts - 1, 1)
    if abs(share - allowed) < Z90 * variance**0.5 / float(weights.sum()):
        return Verdict.TOO_CLOSE
    return Verdict.KEPT if share <= allowed else Verdict.NOT_KEPT


def _noise_ratio(works: Sequence[QueryWork]) -> float:
    """Coefficient of variation of the work of all queries together. [-]"""
    core_loads = np.array([work.rate_per_s * work.per_row_core_s for work in works])
    noise_ratios = np.array([work.noise_ratio for work in works])
    return float(np.linalg.norm(core_loads * noise_ratios) / core_loads.sum())


def _overhead_s(works: Sequence[QueryWork], cores: float, at_once: int) -> float:
    """Fixed time of a batch, or of a round of batches if few run at once. [s]"""
    drivers_s = [work.before_s + work.after_s for work in works]
    fixed_s = sum(work.fixed_core_s for work in works) / cores
    return max(max(drivers_s), sum(drivers_s) / at_once) + fixed_s
