"""Whether a gate between queries is worthwhile, and with which policy, by simulation beforehand."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain

import numpy as np

from headway.assumptions.turns import LEAST_GAIN_RATIO, NEARLY_ALL_BUSY_RATIO
from headway.domain import Policy, plan_parts
from headway.domain.plan_parts import PlannedDriver
from headway.domain.result import Result
from headway.models.scheduling.stagger import num_at_once, stagger_offsets_s
from headway.models.simulation.gate import GateOutcome, QueryOutcome, QueryWork, simulate_gate
from headway.turns.query_work import require_windows_seen
from headway.turns.simulated_time import load_ratio, simulated_times, verdict_on_late

ASKED = (Policy.STAGGER, Policy.FCFS, Policy.PROMISE, Policy.ECONOMY)
"""Policies that a verdict compares with Spark without a gate."""
ALL_POLICIES = tuple(policy for policy in Policy if policy is not Policy.AUTO)

_MOST_NODES = 64
_FREE_RUNNING_S = 0.001
_SEED = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryFigures:
    """Predicted latencies of one query under one policy [s].

    None without windows or rows, and while the backlog grows. ``verdict`` is on all of its targets.
    """

    name: str
    has_windows: bool
    window_mean_s: float | None
    window_p99_s: float | None
    row_mean_s: float | None
    row_p99_s: float | None
    windows_late_ratio: float
    meets_targets: bool
    verdict: plan_parts.Verdict


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyFigures:
    """Simulation results of a policy.

    ``policy`` None is Spark without a gate, with its triggers or (``free_running``) without.
    ``simulated_s`` is the time that was simulated.
    """

    policy: Policy | None
    free_running: bool = False
    at_once: int
    queries: tuple[QueryFigures, ...]
    mean_s: float
    p99_s: float
    busy_ratio: float
    keeps_up: bool
    simulated_s: float

    @property
    def num_met(self) -> int:
        return sum(query.meets_targets for query in self.queries)

    @property
    def num_too_close(self) -> int:
        return sum(query.verdict is plan_parts.Verdict.TOO_CLOSE for query in self.queries)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Verdict(Result):
    """Whether a gate is worthwhile.

    ``mean_s`` of the figures is the mean window latency beyond the watermark delay, or the mean
    latency of rows if no query has windows.
    ``driver`` is the driver that the queries share.
    """

    result_kind = "schedule"
    gain_ratio: float
    cores: float
    figures: tuple[PolicyFigures, ...] = field(metadata={"key": None})
    recommended: PolicyFigures | None = field(metadata={"key": None})
    offsets_s: tuple[float, ...] = field(metadata={"key": None})
    aligned: bool
    spread_mean_s: float | None = field(metadata={"key": "mean_s_if_spread"})
    nodes_without: int | None
    nodes_with: int | None
    driver: PlannedDriver | None = None

    @property
    def ungated(self) -> PolicyFigures:
        """Spark as it is."""
        return self.figures[0]

    @property
    def sparks_best(self) -> PolicyFigures:
        """The better of Spark with its triggers and as fast as possible."""
        return min(self.figures[:2], key=_rank)


def verdict(
    works: Sequence[QueryWork],
    cores: float,
    *,
    policies: Sequence[Policy] = ASKED,
    cores_per_node: int | None = None,
) -> Verdict:
    """Simulate Spark without a gate and with each policy, and choose the best.

    ``cores`` are those of all executors. With ``cores_per_node``, the nodes required with and
    without the policy are counted.
    """
    by_itself = [_by_itself(works, cores, free) for free in (False, True)]
    gated = [_best(works, policy, cores) for policy in policies]
    sparks_best = min(by_itself, key=_rank)
    best = min(gated, key=_rank, default=sparks_best)
    gain = 1.0 - best.mean_s / sparks_best.mean_s if sparks_best.mean_s > 0.0 else 0.0
    pays = best.keeps_up and (
        best.num_met > sparks_best.num_met
        or not sparks_best.keeps_up
        or (best.num_met == sparks_best.num_met and gain > LEAST_GAIN_RATIO.value)
    )
    aligned = are_aligned(works)
    return Verdict(
        cores=cores,
        figures=(*by_itself, *gated),
        recommended=best if pays else None,
        gain_ratio=gain if math.isfinite(gain) else 0.0,
        offsets_s=offsets_s(works, cores),
        aligned=aligned,
        spread_mean_s=_best(spread_out(works), Policy.PROMISE, cores).mean_s if aligned else None,
        nodes_without=_nodes(works, None, cores_per_node),
        nodes_with=_nodes(works, best.policy, cores_per_node) if pays else None,
    )


def choose(works: Sequence[QueryWork], cores: float, requested: Policy) -> tuple[Policy, int]:
    """The policy preferred by simulation, and the batches at the same time, for a running gate."""
    policies = ASKED if requested is Policy.AUTO else (requested,)
    best = min((_best(works, policy, cores) for policy in policies), key=_rank)
    assert best.policy is not None
    return best.policy, best.at_once


def are_aligned(works: Sequence[QueryWork]) -> bool:
    """Whether several queries have windows that all end at the same time."""
    grids = [work.query.windows for work in works if work.query.windows is not None]
    if len(grids) < 2:
        return False
    slide_s = max(grid.slide_s for grid in grids)
    phases = {round((grid.offset_s + grid.watermark_delay_s) % grid.slide_s, 3) for grid in grids}
    return len(phases) == 1 and all((slide_s / grid.slide_s).is_integer() for grid in grids)


def spread_out(works: Sequence[QueryWork]) -> list[QueryWork]:
    """The same queries with the ends of their windows spread evenly."""
    num_windowed = sum(work.query.windows is not None for work in works)
    spread, window_index = [], 0
    for work in works:
        grid = work.query.windows
        if grid is None:
            spread.append(work)
            continue
        offset_s = grid.offset_s + grid.slide_s * window_index / num_windowed
        moved = replace(grid, offset_s=offset_s)
        spread.append(replace(work, query=replace(work.query, windows=moved)))
        window_index += 1
    return spread


def offsets_s(works: Sequence[QueryWork], cores: float) -> tuple[float, ...]:
    """Offsets of each query's ticks on its trigger grid so that few batches collide [s]."""
    return stagger_offsets_s(
        [work.query.trigger_s for work in works],
        [_usual_batch_s(work, cores) for work in works],
        [_best_tick_s(work) for work in works],
    )


def _best_tick_s(work: QueryWork) -> float:
    grid = work.query.windows
    if grid is None:
        return 0.0
    return grid.offset_s + grid.watermark_delay_s + work.closing_delay_s


def _by_itself(works: Sequence[QueryWork], cores: float, free_running: bool) -> PolicyFigures:
    """Spark without a gate, with the given triggers or as fast as possible."""
    if free_running:
        works = [
            replace(work, query=replace(work.query, trigger_s=_FREE_RUNNING_S)) for work in works
        ]
    return replace(_simulated(works, None, cores, len(works)), free_running=free_running)


def _best(works: Sequence[QueryWork], policy: Policy, cores: float) -> PolicyFigures:
    """A policy with the best of one to three batches at a time."""
    if policy is Policy.STAGGER:
        return _simulated(works, policy, cores, len(works))
    usual = _usual_at_once(works, cores)
    tried = {max(usual - 1, 1), usual, min(usual + 1, len(works))}
    return min(
        (_simulated(works, policy, cores, num_batches) for num_batches in sorted(tried)), key=_rank
    )


def _usual_at_once(works: Sequence[QueryWork], cores: float) -> int:
    total_s = sum(_usual_batch_s(work, cores) for work in works)
    on_cores_s = max(total_s - sum(work.before_s + work.after_s for work in works), 1e-3)
    driver_ratio = max(work.driver_cores for work in works) / cores
    return num_at_once(total_s, on_cores_s, len(works), driver_ratio=driver_ratio)


def _usual_batch_s(work: QueryWork, cores: float) -> float:
    return work.duration_s(work.rate_per_s * work.query.trigger_s, cores)


def _simulated(
    works: Sequence[QueryWork], policy: Policy | None, cores: float, at_once: int
) -> PolicyFigures:
    length_s, warm_up_s, num_parts = simulated_times(works, cores, at_once)
    run = simulate_gate(
        works,
        policy,
        cores=cores,
        at_once=at_once,
        length_s=length_s,
        warm_up_s=warm_up_s,
        seed=_SEED,
        offsets_s=offsets_s(works, cores) if policy is Policy.STAGGER else None,
    )
    keeps_up = load_ratio(works, cores, at_once) < 1.0 and (
        run.busy_ratio < NEARLY_ALL_BUSY_RATIO.value or not _falls_behind(run)
    )
    queries = []
    for work, outcome in zip(works, run.queries, strict=True):
        require_windows_seen(work, outcome, length_s)
        queries.append(_figures(work, outcome, num_parts) if keeps_up else _growing(work))
    mean_s, p99_s = _overall(run)
    return PolicyFigures(
        policy=policy,
        at_once=at_once,
        queries=tuple(queries),
        mean_s=mean_s,
        p99_s=p99_s,
        busy_ratio=run.busy_ratio,
        keeps_up=keeps_up,
        simulated_s=length_s,
    )


def _overall(run: GateOutcome) -> tuple[float, float]:
    latency_s = run.window_latency_s
    if len(latency_s):
        return float(latency_s.mean()), float(np.quantile(latency_s, 0.99))
    with_rows = [outcome for outcome in run.queries if len(outcome.row_wait_s)]
    if not with_rows:
        return math.inf, math.inf
    return (
        float(np.mean([outcome.row_latency_mean_s for outcome in with_rows])),
        max(outcome.row_latency_quantile_s(0.99) for outcome in with_rows),
    )


def _falls_behind(run: GateOutcome) -> bool:
    """Whether batches take ever longer: their oldest rows are half as old again at the end."""
    for outcome in run.queries:
        oldest_s = outcome.row_wait_s[:, 1]
        quarter = len(oldest_s) // 4
        if quarter < 2 or oldest_s[-quarter:].mean() > 1.5 * oldest_s[:quarter].mean():
            return True
    return False


def _figures(work: QueryWork, outcome: QueryOutcome, num_parts: int) -> QueryFigures:
    query, latency_s = work.query, outcome.window_latency_s
    window, rows = query.window_target, query.row_target
    windows_late, verdicts = 0.0, [plan_parts.Verdict.KEPT]
    has_windows, has_rows = len(latency_s) > 0, len(outcome.row_wait_s) > 0
    if window is not None and query.windows is not None:
        limit_s = max(window.limit_s - query.windows.watermark_delay_s, 0.0)
        late = np.asarray(latency_s > limit_s, dtype=float) if has_windows else np.ones(1)
        windows_late, allowed = float(late.mean()), 1.0 - (window.quantile or 0.5)
        verdicts.append(verdict_on_late(late, np.ones(len(late)), allowed, num_parts))
    if rows is not None:
        late, num_rows = outcome.rows_late(rows.limit_s) if has_rows else (np.ones(1), np.ones(1))
        allowed = 1.0 - (rows.quantile or 0.5)
        verdicts.append(verdict_on_late(late, num_rows, allowed, num_parts))
    verdict = _worst(verdicts)
    return QueryFigures(
        name=query.name,
        has_windows=query.windows is not None,
        window_mean_s=float(latency_s.mean()) if has_windows else None,
        window_p99_s=float(np.quantile(latency_s, 0.99)) if has_windows else None,
        row_mean_s=outcome.row_latency_mean_s if has_rows else None,
        row_p99_s=outcome.row_latency_quantile_s(0.99) if has_rows else None,
        windows_late_ratio=windows_late,
        meets_targets=verdict is plan_parts.Verdict.KEPT,
        verdict=verdict,
    )


def _growing(work: QueryWork) -> QueryFigures:
    """Of a query while the backlog grows: there is no latency to quote, and targets are missed."""
    query = work.query
    has_target = query.row_target is not None or query.window_target is not None
    return QueryFigures(
        name=query.name,
        has_windows=query.windows is not None,
        window_mean_s=None,
        window_p99_s=None,
        row_mean_s=None,
        row_p99_s=None,
        windows_late_ratio=0.0 if query.window_target is None else 1.0,
        meets_targets=not has_target,
        verdict=plan_parts.Verdict.NOT_KEPT if has_target else plan_parts.Verdict.KEPT,
    )


def _worst(verdicts: Sequence[plan_parts.Verdict]) -> plan_parts.Verdict:
    order = (plan_parts.Verdict.NOT_KEPT, plan_parts.Verdict.TOO_CLOSE, plan_parts.Verdict.KEPT)
    return min(verdicts, key=order.index)


def _rank(figures: PolicyFigures) -> tuple[bool, int, float]:
    """Rank by keeping up, then targets met, then latency; of two equal ones, the first listed."""
    return not figures.keeps_up, -figures.num_met, figures.mean_s


def fewest_nodes(
    works_on: Callable[[int], Sequence[QueryWork]],
    policies: Sequence[Policy],
    cores_per_node: int,
    *,
    most_nodes: int = _MOST_NODES,
) -> int | None:
    """Fewest nodes on which all targets are met by Spark without a gate or one of some policies.

    None if even the maximum is not enough. ``works_on`` gives the queries and the costs of their
    batches on a number of cores; ``policies`` are tried besides Spark without a gate.
    """

    def are_enough(nodes: int) -> bool:
        cores = nodes * cores_per_node
        works = works_on(cores)
        # One after the other; the first sufficient one decides.
        tried = chain(
            (_by_itself(works, cores, free) for free in (False, True)),
            (_best(works, policy, cores) for policy in policies),
        )
        return any(figures.keeps_up and figures.num_met == len(works) for figures in tried)

    low, high = 0, 1
    if not are_enough(most_nodes):
        return None
    while not are_enough(high):
        low, high = high, min(2 * high, most_nodes)
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if are_enough(middle) else (middle, high)
    return high


def _nodes(
    works: Sequence[QueryWork], policy: Policy | None, cores_per_node: int | None
) -> int | None:
    """Fewest nodes with a policy, or without a gate; None if no query has a target."""
    has_target = any(
        work.query.row_target is not None or work.query.window_target is not None for work in works
    )
    if cores_per_node is None or not has_target:
        return None
    policies = () if policy is None else (policy,)
    return fewest_nodes(lambda _: works, policies, cores_per_node)
