"""What `headway schedule` says of each cell before it is measured."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from headway.domain import JobProfile, Policy, ScheduledQuery, Target, WindowGrid
from headway.formats.profile_file import load_profile
from headway.models.simulation.gate import QueryWork
from headway.turns.query_work import query_work
from headway.turns.scheduling import PolicyFigures, verdict
from real.cells import TARGETS, WAYS, WINDOW_S, Cell

_POLICIES = (Policy.STAGGER, Policy.FCFS, Policy.PROMISE, Policy.ECONOMY)


def verdict_of(
    cell: Cell, capacities_per_s: Mapping[str, float], profiles: Path, num_cores: int
) -> dict[str, Any]:
    """Predicted latencies of each way, the policy that is recommended, and its predicted gain."""
    known = {kind: load_profile(profiles / f"{kind}.profile.yaml") for kind in set(cell.kinds)}
    works = _works(cell, capacities_per_s, known, num_cores)
    triggers_s = [way.trigger_s for way in WAYS if way.is_fixed_trigger]
    found = verdict(works, float(num_cores), policies=_POLICIES)
    own = {
        f"trigger-{trigger_s:g}": _by_trigger(works, trigger_s, num_cores)
        for trigger_s in triggers_s
    }
    own["free"] = next(one for one in found.figures if one.policy is None and one.free_running)
    gated = {str(one.policy): one for one in found.figures if one.policy is not None}
    best_own_s = min(one.mean_s for one in own.values())
    best = found.recommended
    return {
        "cell": cell.name,
        "recorded": datetime.now(UTC).isoformat(timespec="seconds"),
        "capacities_per_s": dict(capacities_per_s),
        "pays": best is not None,
        "policy": None if best is None else str(best.policy),
        "aligned": found.aligned,
        "best_own_mean_s": best_own_s,
        "gain_ratio": {name: 1.0 - one.mean_s / best_own_s for name, one in gated.items()},
        "figures": {name: _figures(one) for name, one in {**own, **gated}.items()},
    }


def _works(
    cell: Cell,
    capacities_per_s: Mapping[str, float],
    known: Mapping[str, JobProfile],
    num_cores: int,
) -> list[QueryWork]:
    works = []
    rates = cell.rates_per_s(capacities_per_s)
    for number, (kind, rate_per_s) in enumerate(zip(cell.kinds, rates, strict=True)):
        target = Target.parse(TARGETS[kind])
        windows = None
        if kind == "windowed":
            windows = WindowGrid(slide_s=WINDOW_S, offset_s=cell.window_start_s(number))
        query = ScheduledQuery(
            name=f"{kind}{number}",
            trigger_s=1.0,
            windows=windows,
            window_target=None if windows is None else target,
            row_target=target if windows is None else None,
        )
        works.append(query_work(known[kind], query, rate_per_s, num_cores))
    return works


def _by_trigger(works: list[QueryWork], trigger_s: float, num_cores: int) -> PolicyFigures:
    """Spark by itself with another trigger."""
    other = [replace(one, query=replace(one.query, trigger_s=trigger_s)) for one in works]
    return verdict(other, float(num_cores), policies=()).ungated


def _figures(one: PolicyFigures) -> dict[str, Any]:
    return {
        "mean_s": one.mean_s,
        "p99_s": one.p99_s,
        "at_once": one.at_once,
        "busy_ratio": one.busy_ratio,
        "stable": one.keeps_up,
        "targets_met": one.num_met,
    }
