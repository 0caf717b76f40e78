"""How long a plan takes in process, from few nodes to a thousand, as a Markdown page.

python benchmarks/run.py planning --output docs/planning-speed.md
"""

from __future__ import annotations

import argparse
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from pages import headed, made_by

from headway import load_profile
from headway.domain import (
    Arrivals,
    JobProfile,
    NodeType,
    Objective,
    RateTrace,
    StreamAnswer,
    Target,
)
from headway.planner.playback import simulate_plan
from headway.planner.question import Question, SearchSpace
from headway.planner.relaxation import relaxed_nodes
from headway.planner.search import plan

PROFILE = Path(__file__).parents[2] / "examples" / "word-count.profile.yaml"
ROUNDS = 7
TARGET = Target.parse("p99 <= 8s")
TYPES = tuple(
    NodeType(name=f"{cores} cores", cores=cores, price_per_hour=0.05 * cores**0.95)
    for cores in (2, 4, 8, 16)
)


def wide(profile: JobProfile) -> JobProfile:
    """The word count, profiled on many nodes, with a source of two thousand partitions."""
    first, *others = profile.stages
    stages = (replace(first, num_source_tasks=2000, task_per_row_s=2e-4), *others)
    last = profile.settings[-1]
    large = replace(last.configuration, executors=200, shuffle_partitions=400)
    settings = (*profile.settings[:-1], replace(last, configuration=large))
    return replace(profile, stages=stages, settings=settings)


def planned(
    rate_per_s: float,
    max_nodes: int,
    *,
    objective: Objective = "nodes",
    node_types: Sequence[NodeType] = (),
) -> Callable[[], StreamAnswer]:
    """A question to time: all settings free."""
    question = Question(
        profile=replace(wide(load_profile(PROFILE)), arrivals=Arrivals(rate_per_s=rate_per_s)),
        target=TARGET,
        space=SearchSpace(max_nodes=max_nodes, cores_per_executor=2),
        confidence=0.95,
        objective=objective,
    )
    return lambda: plan(question, node_types=node_types)


def described(found: StreamAnswer) -> str:
    """Nodes and proof in words."""
    if not found.feasible:
        return "infeasible"
    assert found.optimality is not None
    if found.optimality.proved:
        return f"{found.nodes} nodes, proved"
    gap = found.optimality.gap_ratio(found.nodes)
    return f"{found.nodes} nodes, at most {gap:.0%} above the minimum"


def median_s(call: Callable[[], object], rounds: int) -> float:
    """Median processor time of several calls, after one call that loads late imports."""
    from headway.models.stages.makespan import _cached_moments

    call()
    times_s = []
    for _ in range(rounds):
        # Each round as in a new process: no stages are cached.
        _cached_moments.cache_clear()
        started_s = time.process_time()
        call()
        times_s.append(time.process_time() - started_s)
    return statistics.median(times_s)


def whole_process_s(rate: str, target: str, rounds: int) -> float:
    """Minimum processor time of the command, with start and imports."""
    command = [sys.executable, "-m", "headway", "plan", str(PROFILE)]
    command += ["--rate", rate, "--target", target]
    times_s = []
    for _ in range(rounds):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(command, stdout=subprocess.DEVNULL, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        times_s.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return min(times_s)


def page(rounds: int) -> str:
    """Time everything and report it."""
    questions = {
        "1-50 nodes, few needed": planned(5e3, 50),
        "1-50 nodes, most needed": planned(1.5e5, 50),
        "1-50 nodes, infeasible": planned(1e7, 50),
        "1-1,000 nodes, few needed": planned(5e3, 1000),
        "1-1,000 nodes at 1M/s": planned(1e6, 1000),
        "1-1,000 nodes at 3M/s": planned(3e6, 1000),
        "1-1,000 nodes, infeasible": planned(1e8, 1000),
        "1-200 nodes of four types, lowest cost": planned(
            3e5, 200, node_types=TYPES, objective="cost"
        ),
    }
    made = (
        f"Processor times; a load of {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores lengthened "
        "them, since it shared caches and cores. In process after imports, all settings free, "
        f"{rounds} rounds, nothing cached between them. "
        f"{made_by('make speed-planning')}"
    )
    lines = [
        "# How long a plan takes",
        "",
        made,
        "",
        *headed("| question | median | answer |"),
    ]
    for name, call in questions.items():
        print(name, file=sys.stderr)
        lines.append(f"| {name} | {median_s(call, rounds):.3f} s | {described(call())} |")
    found = planned(5e3, 50)()
    day = RateTrace(
        times_s=tuple(3600.0 * hour for hour in range(24)),
        rates_per_s=tuple(3000.0 + 150.0 * min(hour, 24 - hour) for hour in range(24)),
        end_s=86400.0,
    )
    lines.append(
        f"| a day simulated in 16 runs | {median_s(lambda: simulate_plan(found, day), 1):.1f} s | |"
    )
    question = Question(
        profile=replace(wide(load_profile(PROFILE)), arrivals=Arrivals(rate_per_s=1e6)),
        target=TARGET,
        space=SearchSpace(max_nodes=1000, cores_per_executor=2),
        confidence=0.95,
    )
    for rate, target in (("5k/s", "p99 <= 8s"), ("150k/s", "p99 <= 8s"), ("500k/s", "p99 <= 3s")):
        spent_s = whole_process_s(rate, target, rounds)
        name = f"`headway plan` as a process, 1-50 nodes, {target} at {rate}"
        lines.append(f"| {name} | {spent_s:.2f} s | |")
    relaxed = relaxed_nodes(question)
    spent_s = median_s(lambda: relaxed_nodes(question), 3)
    lines.append(f"| the convex relaxation at 1M/s | {spent_s:.2f} s | {relaxed:.3g} nodes |")
    return "\n".join([*lines, ""])


def options(parser: argparse.ArgumentParser) -> None:
    """What may be given."""
    parser.add_argument("--rounds", type=int, default=ROUNDS)


def text(given: argparse.Namespace) -> str:
    """The page."""
    return page(given.rounds)
