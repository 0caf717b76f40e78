"""How fast a large fleet is planned, as a Markdown page.

A thousand jobs, fifty node types, twenty-four hours: whole processes, from a spec file and the
profiles that it names to the answer; and the optimisation alone, shared and dedicated pools,
quotas, spot nodes and commitments, each alone and together. Run it on an idle machine:

    python benchmarks/run.py capacity --output docs/capacity-speed.md
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from fleet_files import NUM_PROFILES, STREAMING_SHARE, write_fleet
from pages import headed, made_by

from headway.fleet.nouns import Fleet, FleetOffer, FleetPlan, Quota, Supply
from headway.fleet.plan_fleet import plan_fleet
from headway.units import counted

NUM_JOBS, NUM_TYPES, NUM_HOURS = 1000, 50, 24
GAP_RATIO = 0.01
GOAL_S, PROCESS_GOAL_S = 10.0, 10.0


def a_fleet(
    *,
    seed: int,
    shared: bool,
    quotas: bool,
    spot_ratio: float = 0.0,
    commitments: bool = False,
    fixed: bool = False,
    failures: int = 0,
) -> Fleet:
    """A fleet of the promised size, with the same jobs for the same seed."""
    rng = np.random.default_rng(seed)
    cores = rng.choice([4, 8, 16, 32], size=NUM_TYPES)
    price = cores * 0.048 * rng.uniform(0.8, 1.25, NUM_TYPES)
    speed = rng.choice([0.8, 1.0, 1.2], size=NUM_TYPES)
    offers = tuple(
        FleetOffer(
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
        spot_ratio=spot_ratio,
        commitments=commitments,
    )


CASES = {
    "shared pools": {"shared": True, "quotas": False},
    "shared pools, four quotas": {"shared": True, "quotas": True},
    "dedicated pools, four quotas": {"shared": False, "quotas": True},
    "shared, quotas, 30% spot, commitments": {
        "shared": True,
        "quotas": True,
        "spot_ratio": 0.3,
        "commitments": True,
    },
    "shared, quotas, one size for the day": {
        "shared": True,
        "quotas": True,
        "fixed": True,
    },
    "shared, quotas, spot, commitments, one node in reserve": {
        "shared": True,
        "quotas": True,
        "spot_ratio": 0.3,
        "commitments": True,
        "failures": 1,
    },
}


PROCESSES = {
    "one shared pool": """\
  pools: [{name: main, cores_per_executor: 4}]
  schedule: hourly
  gap: 1%""",
    "shared and dedicated pools, two quotas": """\
  pools:
  - {name: main, cores_per_executor: 4}
  - {name: own, sharing: dedicated}
  quotas:
  - {name: ones, node_types: [type-1*], max_nodes: 400}
  - {name: twos, node_types: [type-2*], max_nodes: 400}
  schedule: hourly
  gap: 1%""",
    "shared, quotas, spot, commitments, one node in reserve": """\
  pools: [{name: main, cores_per_executor: 4, failures: 1}]
  quotas:
  - {name: ones, node_types: [type-1*], max_nodes: 400}
  - {name: twos, node_types: [type-2*], max_nodes: 400}
  purchasing: {max_spot_share: 30%, commitments: free}
  schedule: hourly
  gap: 1%""",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Timed:
    """What one plan took, its proved distance from the best, and its peak nodes."""

    wall_s: float
    processor_s: float
    gap_ratio: float
    most_nodes: int
    memory_bytes: int = 0


def page(num_seeds: int, num_processes: int) -> str:
    """Plan every case and report its time, and its proved distance from the best."""
    made = (
        f"{NUM_JOBS:,} jobs x {NUM_TYPES} node types x {NUM_HOURS} hours, proved to be within "
        f"{GAP_RATIO:.0%} of the minimum cost. "
        f"{made_by('make speed-capacity', 'cvxpy', 'highspy')}"
    )
    lines = [
        "# How fast a large fleet is planned",
        "",
        made,
        "",
        "## Whole processes",
        "",
        (
            "`headway capacity FLEET.yaml --json`, from start to exit. "
            f"{STREAMING_SHARE:.0%} of the jobs are streaming queries of {NUM_PROFILES} profiles, "
            "each with its own daily curve; the others are declared nightly batch jobs that all "
            "differ. Each core has a process that searches needs; the optimisation has one thread. "
            f"Goal: under {PROCESS_GOAL_S:.0f} s. Maximum time, gap and memory of a process, of "
            f"{counted(num_processes, 'random fleet')} of each kind."
        ),
        "",
        *headed("| fleet | time | processor time | gap | peak nodes | memory |"),
    ]
    for name, pools in PROCESSES.items():
        every = [process(seed, pools) for seed in range(1, num_processes + 1)]
        memory = max(one.memory_bytes for one in every) / 2**20
        lines.append(f"{_row(name, every)} {memory:.0f} MiB |")
        print(lines[-1], flush=True)
    lines += [
        "",
        "## The optimisation alone",
        "",
        (
            "In a process that knows the needs of all jobs and has loaded cvxpy, with one thread. "
            f"Goal: under {GOAL_S:.0f} s. Maximum time and gap of "
            f"{counted(num_seeds, 'random fleet')} of each kind."
        ),
        "",
        *headed("| fleet | time | processor time | gap | peak nodes |"),
    ]
    plan_fleet(a_fleet(seed=0, **CASES["shared pools"]), gap_ratio=GAP_RATIO)  # type: ignore[arg-type]
    for name, options in CASES.items():
        every = [timed(a_fleet(seed=seed, **options)) for seed in range(1, num_seeds + 1)]  # type: ignore[arg-type]  # options by name
        lines.append(_row(name, every))
        print(lines[-1], flush=True)
    return "\n".join([*lines, ""])


def _row(name: str, every: Sequence[Timed]) -> str:
    wall_s, processor_s = max(one.wall_s for one in every), max(one.processor_s for one in every)
    nodes = [one.most_nodes for one in every]
    return (
        f"| {name} | {wall_s:.1f} s | {processor_s:.1f} s | "
        f"{max(one.gap_ratio for one in every):.2%} | {min(nodes):,} to {max(nodes):,} |"
    )


def timed(fleet: Fleet) -> Timed:
    """The optimisation of one fleet.

    Raises
    ------
    RuntimeError
        If there is no plan: these fleets all have one.
    """
    wall_s, processor_s = time.perf_counter(), time.process_time()
    plan = plan_fleet(fleet, gap_ratio=GAP_RATIO)
    wall_s, processor_s = time.perf_counter() - wall_s, time.process_time() - processor_s
    if not isinstance(plan, FleetPlan):
        raise RuntimeError(f"no plan: {plan}")
    return Timed(
        wall_s=wall_s,
        processor_s=processor_s,
        gap_ratio=plan.gap_ratio,
        most_nodes=int(plan.bill.nodes.sum(axis=0).max()),
    )


def process(seed: int, pools: str) -> Timed:
    """One process, from the command line to its exit; files are written before.

    Raises
    ------
    RuntimeError
        If it fails, or does not serve every job.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = write_fleet(
            Path(folder), seed=seed, num_jobs=NUM_JOBS, num_types=NUM_TYPES, pools=pools
        )
        output = Path(folder) / "answer.json"
        command = [sys.executable, "-m", "headway", "capacity", str(path), "--json"]
        wall_s = time.perf_counter()
        with output.open("wb") as file:
            running = subprocess.Popen(command, stdout=file)
            _, status, used = os.wait4(running.pid, 0)
        wall_s = time.perf_counter() - wall_s
        running.returncode = os.waitstatus_to_exitcode(status)
        if running.returncode:
            raise RuntimeError(f"seed {seed}: headway capacity ended with {running.returncode}")
        answer = json.loads(output.read_text())
    by_type = [purchase["nodes"] for purchase in answer["purchases"]]
    return Timed(
        wall_s=wall_s,
        processor_s=used.ru_utime + used.ru_stime,
        gap_ratio=answer["gap"],
        most_nodes=max(map(sum, zip(*by_type, strict=True))),
        memory_bytes=used.ru_maxrss * 1024,
    )


def options(parser: argparse.ArgumentParser) -> None:
    """What may be given."""
    parser.add_argument("--fleets", type=int, default=10, help="random fleets of each kind")
    parser.add_argument("--processes", type=int, default=3, help="random fleets planned from files")


def text(given: argparse.Namespace) -> str:
    """The page."""
    return page(given.fleets, given.processes)
