"""Why windows are late under Headway's rule on the judged traces of docs/tuning-simulated.md.

    python benchmarks/run.py lost_windows --frozen FROZEN_RULE --seen SEEN_RULE

Each trace is simulated again with the random seeds that it was judged with. A window of five
minutes with more than 1% late rows is counted under the first cause that applies to it.
"""

from __future__ import annotations

import argparse
from collections import Counter
from itertools import pairwise

import numpy as np
from result_lines import keep, lines_of
from tuning_simulated import LOST_WINDOWS, SEEDS, Unit, the_case, units_of
from tuning_simulated_page import CAUSES

from headway.models.simulation.closed_loop import LoopRun, LoopTrace
from headway.units import S_PER_DAY

WINDOW_S = 300.0
_OUTAGE_S, _BEFORE_S, _AFTER_S, _PAUSE_S = 900.0, 300.0, 120.0, 60.0
_HIGHER_RATIO, _NO_ROW = 1.02, 1e-3


def options(parser: argparse.ArgumentParser) -> None:
    """Which traces: those of the trees of the rule, as for the page."""
    parser.add_argument("--frozen", required=True)
    parser.add_argument("--seen", required=True)


def run(given: argparse.Namespace) -> None:
    """Simulate each trace that has no line yet."""
    done = {(line["rule"], line["part"], line["trace"]) for line in lines_of(LOST_WINDOWS)}
    for unit in units_of(given.frozen, given.seen):
        if unit.rule is not None and (unit.rule, unit.part, unit.named.name) not in done:
            keep(LOST_WINDOWS, line_of(unit))


def line_of(unit: Unit) -> dict[str, object]:
    """How many windows of a trace were late, by cause, over its random seeds."""
    case, trace = the_case(), unit.named.trace
    is_long = trace.edges_s[-1] - trace.edges_s[0] > S_PER_DAY
    causes: Counter[str] = Counter()
    num_windows = round((trace.edges_s[-1] - trace.edges_s[0]) / WINDOW_S)
    edges_s = np.linspace(trace.edges_s[0], trace.edges_s[-1], num_windows + 1)
    seeds = SEEDS[:1] if is_long else SEEDS
    for seed in seeds:
        loop_run = case.run(case.policy("headway", None)(), trace, seed)
        rows, late_rows = loop_run.late_by(edges_s)
        causes.update(
            cause_of(float(begin_s), trace, loop_run)
            for begin_s in edges_s[:-1][late_rows > (1.0 - case.table.quantile) * rows + _NO_ROW]
        )
    return {
        "rule": unit.rule, "part": unit.part, "trace": unit.named.name,
        "windows": num_windows * len(seeds), **{name: causes[name] for name in CAUSES},
    }  # fmt: skip


def cause_of(begin_s: float, trace: LoopTrace, loop_run: LoopRun) -> str:
    """The first of `CAUSES` that applies to a window."""
    end_s = begin_s + WINDOW_S
    changes = [
        (step.at_s, step.executors - last.executors) for last, step in pairwise(loop_run.steps)
    ]
    steps_up_s = [at_s for at_s, more in changes if more > 0]
    steps_down_s = [at_s for at_s, more in changes if more < 0]
    if any(start_s < end_s and stop_s > begin_s - _OUTAGE_S for start_s, stop_s in trace.outages_s):
        return "outage"
    if any(begin_s - _BEFORE_S <= at_s <= end_s + _AFTER_S for at_s in steps_up_s):
        before = highest_load(trace, -np.inf, begin_s)
        if highest_load(trace, begin_s, end_s) > _HIGHER_RATIO * before:
            return "new high"
        return "returned" if any(at_s < begin_s for at_s in steps_down_s) else "first size"
    is_paused = any(begin_s - _PAUSE_S <= at_s <= end_s for at_s in steps_down_s)
    return "step down" if is_paused else "no change"


def highest_load(trace: LoopTrace, begin_s: float, end_s: float) -> float:
    """The highest product of rate and cost between two moments; 0 before the trace begins.

    Examples
    --------
    >>> doubled = LoopTrace(
    ...     edges_s=np.array([0.0, 60.0, 120.0]), rates_per_s=np.array([5.0, 4.0]),
    ...     cost_ratio=((0.0, 1.0), (90.0, 2.0)))
    >>> highest_load(doubled, 0.0, 60.0), highest_load(doubled, 60.0, 120.0)
    (5.0, 8.0)
    >>> highest_load(doubled, -1.0, 0.0)
    0.0
    """
    cost_begins_s, cost_ratios = np.transpose(trace.cost_ratio)
    begins_s = np.union1d(trace.edges_s[:-1], cost_begins_s[cost_begins_s > trace.edges_s[0]])
    ends_s = np.append(begins_s[1:], trace.edges_s[-1])
    rates_per_s = trace.rates_per_s[np.searchsorted(trace.edges_s, begins_s, side="right") - 1]
    costs = cost_ratios[np.searchsorted(cost_begins_s, begins_s, side="right") - 1]
    is_between = (ends_s > begin_s) & (begins_s < end_s)
    return float(np.max(rates_per_s * costs, where=is_between, initial=0.0))
