"""Speed of the formulas and the simulation of ordered pipelines.

    python benchmarks/run.py ordered_chains --output docs/ordered-chains-speed.md

Medians of several rounds on one core.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable, Iterator
from typing import get_args

import numpy as np
from pages import headed, made_by

from headway.domain.ordered import (
    Operator,
    OperatorType,
    OrderedPipeline,
    QueueScheme,
    Reordering,
    Scheduler,
)
from headway.models.ordered.chain import most_workers, pipeline_allocation
from headway.models.ordered.exit_laws import ServiceLaw, hybrid_exit_law, partitioned_exit_law
from headway.models.ordered.placement import first_bucket_ids, placed_keys
from headway.models.ordered.tuple_queues import simulate_queues
from headway.models.simulation.ordered_schedulers import simulate_scheduler
from headway.models.stages.skew import zipf_key_shares
from tests.oracles.ordered_reordering import simulate_reordering

_TYPES: tuple[OperatorType, ...] = (
    "stateless", "partitioned", "stateless", "partitioned", "stateful"
)  # fmt: skip
_COSTS_S = (1e-5, 2e-5, 1.5e-5, 1e-5, 2e-6)


def options(parser: argparse.ArgumentParser) -> None:
    """The options."""
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--tuples", type=int, default=1_000_000)


def text(given: argparse.Namespace) -> str:
    """The page."""
    return "\n".join(_lines(given.rounds, given.tuples)) + "\n"


def chain(rate_per_s: float | None = None) -> OrderedPipeline:
    """Five operators on 16 workers."""
    operators = tuple(
        Operator(name=f"o{at}", type=kind, cost_s=cost_s)
        for at, (kind, cost_s) in enumerate(zip(_TYPES, _COSTS_S, strict=True))
    )
    return OrderedPipeline(num_workers=16, operators=operators, rate_per_s=rate_per_s)


def _lines(rounds: int, num: int) -> Iterator[str]:
    yield "# Speed of ordered pipelines\n"
    yield made_by("make speed-ordered-chains", "numpy") + "\n"
    yield from headed("| what | measured | goal |")
    most = [most_workers(one, 16) for one in chain().operators]
    best = pipeline_allocation(chain(), reordered=False).throughput_per_s
    schedulers: tuple[Scheduler, ...] = ("CT keep", "LP", "QST", "ET")
    for scheduler in schedulers:
        for said, rate_per_s in (
            ("unlimited input", None),
            ("input at 0.9 of the maximum", 0.9 * best),
        ):
            took_s = _median_s(
                lambda s=scheduler, r=rate_per_s: simulate_scheduler(  # type: ignore[misc]
                    chain(r), s, most, num_tuples=num
                ),
                rounds,
            )
            yield (
                f"| {num:,} tuples through 5 operators and 16 workers, {scheduler}, {said} | "
                f"{took_s:.2f} s | 5 s |"
            )
    random = np.random.default_rng(1)
    service, places = random.gamma(11.1, 0.09, num), random.integers(100, size=num)
    for scheme in get_args(QueueScheme):
        took_s = _median_s(
            lambda s=scheme: simulate_queues(s, service, places, 16),  # type: ignore[misc]
            rounds,
        )
        yield f"| {num:,} tuples of one operator, {scheme} | {took_s:.2f} s | 5 s |"
    took_s = _median_s(lambda: simulate_reordering(1e-5 * service, 16, Reordering()), rounds)
    yield f"| {num:,} tuples put in order | {took_s:.2f} s | 5 s |"
    took_s = _median_s(lambda: pipeline_allocation(chain()), rounds)
    yield f"| throughput of the chain, (O10) | {1000 * took_s:.1f} ms | - |"
    law, even = ServiceLaw(mean_s=1.0, cv=0.3), np.full(16, 1 / 16)
    took_s = _median_s(lambda: partitioned_exit_law(law, even, 16, 0.9), rounds)
    yield f"| latency of partitioned queues, (O6) | {1000 * took_s:.1f} ms | - |"
    took_s = _median_s(lambda: hybrid_exit_law(law, 16, 100, 0.9), rounds)
    yield f"| latency of hybrid queues, (O7) | {1000 * took_s:.1f} ms | - |"
    shares = zipf_key_shares(100_000, 1.0).share[:1000]
    took_s = _median_s(lambda: (placed_keys(shares, 200), first_bucket_ids(200)), rounds)
    yield f"| 1,000 keys placed on 200 partitions | {1000 * took_s:.1f} ms | - |"


def _median_s(work: Callable[[], object], rounds: int) -> float:
    times_s = []
    for _ in range(rounds):
        began_s = time.perf_counter()
        work()
        times_s.append(time.perf_counter() - began_s)
    return statistics.median(times_s)
