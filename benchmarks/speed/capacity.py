"""How fast a large fleet is planned, as a Markdown page.

A thousand jobs, fifty node types, twenty-four hours; shared and dedicated pools, quotas, spot
nodes and commitments, each alone and together.

    python benchmarks/speed/capacity.py --output docs/capacity-speed.md
"""

from __future__ import annotations

import argparse
import platform
import time
from datetime import UTC, datetime
from importlib.metadata import version as package_version
from pathlib import Path

import numpy as np

from headway.fleet.nouns import Fleet, FleetPlan, Infeasible, Offer, Purchasing, Quota, Supply
from headway.fleet.plan_fleet import plan_fleet
from headway.version import __version__

NUM_JOBS, NUM_TYPES, NUM_HOURS = 1000, 50, 24
GAP_RATIO = 0.01
GOAL_S = 10.0


def a_fleet(
    *,
    seed: int,
    shared: bool,
    quotas: bool,
    purchasing: Purchasing,
    fixed: bool = False,
    failures: int = 0,
) -> Fleet:
    """A fleet of the size that is promised, with the same jobs for the same seed."""
    rng = np.random.default_rng(seed)
    cores = rng.choice([4, 8, 16, 32], size=NUM_TYPES)
    price = cores * 0.048 * rng.uniform(0.8, 1.25, NUM_TYPES)
    speed = rng.choice([0.8, 1.0, 1.2], size=NUM_TYPES)
    offers = tuple(
        Offer(
            name=f"type-{at}",
            cores=int(cores[at]),
            price=float(price[at]),
            spot_price=float(price[at] * 0.35),
            committed_price=float(price[at] * 0.63),
        )
        for at in range(NUM_TYPES)
    )
    per_node = cores // 4
    supplies = tuple(
        Supply(
            pool="shared" if shared else "own",
            zone="-",
            offer=at,
            shared=shared,
            units_per_node=int(per_node[at]) if shared else 1,
            failures=failures,
        )
        for at in range(NUM_TYPES)
    )
    peak = rng.lognormal(2.0, 1.0, NUM_JOBS)
    phase = rng.uniform(0, 24, NUM_JOBS)
    hours = np.arange(NUM_HOURS)
    curve = 0.6 + 0.4 * np.cos((hours[None, :] - phase[:, None]) / 24 * 2 * np.pi)
    executors = np.ceil(peak[:, None, None] * curve[:, None, :] / speed[None, :, None]).astype(int)
    units = executors if shared else -(-executors // per_node[None, :, None])
    allowed = rng.random((NUM_JOBS, NUM_TYPES)) < 0.7
    allowed[:, 0] = True
    if fixed and not shared:
        units = np.repeat(units.max(axis=2, keepdims=True), NUM_HOURS, axis=2)
    limits = []
    if quotas:
        total = executors.sum() / NUM_HOURS / per_node.mean()
        limits = [
            Quota(
                name=f"family-{family}",
                unit="nodes",
                weights=(np.arange(NUM_TYPES) % 5 == family).astype(float),
                limit=float(round(total / 5)),
            )
            for family in range(4)
        ]
    return Fleet(
        jobs=tuple(f"job-{at}" for at in range(NUM_JOBS)),
        weights=np.ones(NUM_JOBS),
        offers=offers,
        supplies=supplies,
        units=units,
        allowed=allowed,
        period_of=np.zeros(NUM_HOURS, int) if fixed else hours,
        hours=np.array([24.0]) if fixed else np.ones(NUM_HOURS),
        quotas=tuple(limits),
        purchasing=purchasing,
    )


CASES = {
    "shared pools": {"shared": True, "quotas": False, "purchasing": Purchasing()},
    "shared pools, four quotas": {"shared": True, "quotas": True, "purchasing": Purchasing()},
    "dedicated pools, four quotas": {"shared": False, "quotas": True, "purchasing": Purchasing()},
    "shared, quotas, 30 % spot, commitments": {
        "shared": True,
        "quotas": True,
        "purchasing": Purchasing(spot_ratio=0.3, commitments=True),
    },
    "shared, quotas, one size for the day": {
        "shared": True,
        "quotas": True,
        "purchasing": Purchasing(),
        "fixed": True,
    },
    "shared, quotas, spot, commitments, one node in reserve": {
        "shared": True,
        "quotas": True,
        "purchasing": Purchasing(spot_ratio=0.3, commitments=True),
        "failures": 1,
    },
}


def page(num_seeds: int) -> str:
    """Plan every case and tell how long it took, and how close to the best it is proved to be."""
    made = (
        f"{NUM_JOBS:,} jobs x {NUM_TYPES} node types x {NUM_HOURS} hours, proved within "
        f"{GAP_RATIO:.0%} of the least cost. Goal: under {GOAL_S:.0f} s. Made "
        f"{datetime.now(UTC):%Y-%m-%d} by `make speed-capacity`, headway {__version__}, "
        f"cvxpy {package_version('cvxpy')} with HiGHS, Python {platform.python_version()}, "
        f"{platform.machine()}, one thread. Of {num_seeds} random fleets of each kind the slowest "
        "and the largest gap. The time is that of the optimisation; imports are not part of it."
    )
    lines = [
        "# How fast a large fleet is planned",
        "",
        made,
        "",
        "| fleet | time | processor time | gap | nodes at most |",
        "|---|---|---|---|---|",
    ]
    plan_fleet(a_fleet(seed=0, **CASES["shared pools"]), gap_ratio=GAP_RATIO)  # type: ignore[arg-type]
    for name, options in CASES.items():
        every = [timed(a_fleet(seed=seed, **options)) for seed in range(1, num_seeds + 1)]  # type: ignore[arg-type]  # options by name
        wall_s, processor_s = max(one[0] for one in every), max(one[1] for one in every)
        plans = [plan for _, _, plan in every]
        told = "no plan | "
        if all(isinstance(plan, FleetPlan) for plan in plans):
            gap = max(plan.gap_ratio for plan in plans if isinstance(plan, FleetPlan))
            nodes = [
                int(plan.bill.nodes.sum(axis=0).max())
                for plan in plans
                if isinstance(plan, FleetPlan)
            ]
            told = f"{gap:.2%} | {min(nodes):,} to {max(nodes):,}"
        lines.append(f"| {name} | {wall_s:.1f} s | {processor_s:.1f} s | {told} |")
        print(lines[-1], flush=True)
    return "\n".join([*lines, ""])


def timed(fleet: Fleet) -> tuple[float, float, FleetPlan | Infeasible]:
    """Wall time, processor time and the plan."""
    wall_s, processor_s = time.perf_counter(), time.process_time()
    plan = plan_fleet(fleet, gap_ratio=GAP_RATIO)
    return time.perf_counter() - wall_s, time.process_time() - processor_s, plan


def main() -> None:
    """Write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--output", type=Path, help="Markdown file; printed if not given")
    parser.add_argument("--fleets", type=int, default=5, help="random fleets of each kind")
    arguments = parser.parse_args()
    text = page(arguments.fleets)
    if arguments.output is not None:
        arguments.output.write_text(text)


if __name__ == "__main__":
    main()
