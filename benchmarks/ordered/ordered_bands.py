"""How far formulas may differ from simulations, set beforehand: met, or missed and why."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import product
from typing import NamedTuple

import numpy as np
import ordered_figures as figures
from pages import headed

from headway.domain.ordered import Reordering, ReorderScheme
from headway.models.arrays import Array
from headway.models.ordered.chain import pipeline_allocation
from headway.models.ordered.exit_laws import (
    ServiceLaw,
    hybrid_exit_law,
    is_hybrid_law_in_range,
    ordered_exit_law,
    partitioned_exit_law,
    reordered_throughput_per_s,
    saturated_latency_s,
)
from headway.models.ordered.tuple_queues import simulate_queues
from tests.oracles.ordered_reordering import simulate_reordering

SEEDS = range(5)
WORKERS = (1, 2, 4, 8, 16, 32)
SPREADS = (0.0, 0.1, 0.3, 1.0)
UTILIZATIONS = (0.3, 0.6, 0.9)
_SCHEMES: tuple[ReorderScheme, ...] = ("non-blocking", "lock")
#: Work and time to send of a tuple [us]; 0.1 us to store and to lock.
COSTS_US = ((10.0, 0.5), (10.0, 1.0), (100.0, 25.0))


class Band(NamedTuple):
    """A claim, the band that was set for it, and what was found."""

    claim: str
    expected: str
    found: str
    is_met: bool
    why: str = ""

    def row(self) -> str:
        """A line of the table, with the reason if the band is missed."""
        verdict = "met" if self.is_met else f"missed: {self.why}"
        return f"| {self.claim} | {self.expected} | {self.found} | {verdict} |"


def bands(num: int) -> Iterator[str]:
    """This part of the page; ``num`` tuples over all seeds of a point, a fifth for outputs."""
    yield "## Bands set beforehand\n"
    yield (
        "Errors of formulas relative to simulations: 1 to 32 workers, coefficients of variation 0 "
        "to 1, utilisations 0.3 to 0.9, five random seeds each. The bands were set before the "
        "comparison, those within and beyond the range of (O7) together with it; a missed band is "
        "explained.\n"
    )
    yield from headed("| claim | expected | found | |")
    for one in (*formulas(num), *of_figures(num)):
        yield one.row()
    yield (
        "| rows of `headway.ordered` on Spark equal those of a serial program | every row | "
        "[rows in order](ordered-streams.md#how-it-is-checked) | met |"
    )
    yield (
        "| real runs: gain from buckets and placed keys, p99 of plans | | "
        "[speed](ordered-speed.md), [plans of jobs with heavy keys](skewed-plans.md) | see there |"
    )
    yield ""


def formulas(num: int) -> Iterator[Band]:
    """(O3) to (O7) over a grid; (O1) and (O8) are compared in the figures."""
    each = max(num // len(SEEDS) // 5, 2_000)
    free, locked = (reordering_errors(scheme, each) for scheme in _SCHEMES)
    yield Band(
        "throughput without blocking (O3)", "0.5%", _range(free.values()),
        _most(free.values()) <= 0.005,
        "near the knee. The formula is the lower of two bounds; near the point where they cross, a "
        f"worker sometimes waits for the sender. Away from it {_range(_away(free))}",
    )  # fmt: skip
    yield Band(
        "throughput with the lock (O3)", "5%", _range(locked.values()),
        _most(locked.values()) <= 0.05,
        "a late output sends all outputs that wait for it, so the lock is held for very different "
        "times, but mean value analysis takes these as equal. Up to cv 0.3 "
        f"{_range(error for (_, _, cv), error in locked.items() if cv <= 0.3)}",
    )  # fmt: skip
    full = list(buffer_errors(each))
    yield Band("latency of a full buffer (O4)", "10%", _range(full), _most(full) <= 0.1)
    exits = list(exit_errors(each))
    yield Band("ordered exit of busy workers (O5), mean", "2%", _range(exits), _most(exits) <= 0.02)
    hybrid, apart = queue_errors(5 * each)
    worst = {key: error for key, error in apart.items() if key[1] < 0.9}
    yield Band(
        "partitioned queues (O6), mean", "3%", _range(apart.values()),
        _most(apart.values()) <= 0.03,
        "the formula is exact, but there are too few simulated tuples for a queue that is 90% "
        f"busy. Up to 60% busy {_range(worst.values())}",
    )  # fmt: skip
    errors = np.array([*hybrid.values()])
    yield Band(
        "hybrid queues (O7), mean", "-5% to 6%", _range(errors.tolist()),
        bool(errors.min() >= -0.05 and errors.max() <= 0.06),
        "tuples left to a busy partition also wait for those left before them, which the formula "
        "neglects. This matters at cv 1 only; below "
        f"{_range(e for (cv, _), e in hybrid.items() if cv < 1.0)}",
    )  # fmt: skip
    means, tails = zip(*hybrid_errors(5 * each, inside=True), strict=True)
    yield Band(
        "hybrid queues within the range of (O7), mean", "6%", _range(means), _most(means) <= 0.06
    )
    yield Band("the same, p99", "6%", _range(tails), _most(tails) <= 0.06)
    means, tails = zip(*hybrid_errors(5 * each, inside=False), strict=True)
    yield Band(
        "the same beyond its range, p99", "6%", _range(tails), _most(tails) <= 0.06,
        "tuples left to a busy partition wait for each other, or the number of busy workers "
        f"varies; the mean {_range(means)}. `headway predict` simulates there",
    )  # fmt: skip


def reordering_errors(
    scheme: ReorderScheme, each: int
) -> dict[tuple[int, tuple[float, float], float], float]:
    """(O3) over its simulation, minus one, by workers, costs and cv."""
    found = {}
    for number in WORKERS:
        for cost_us, send_us in COSTS_US:
            given = Reordering(
                scheme=scheme, num_buffered=4 * number, store_s=1e-7, lock_s=1e-7,
                send_s=send_us * 1e-6,
            )  # fmt: skip
            formula = reordered_throughput_per_s(number, cost_us * 1e-6, given)
            for cv in SPREADS:
                simulated = np.mean([
                    simulate_reordering(
                        _service(cost_us * 1e-6, cv, each, seed), number, given
                    ).throughput_per_s
                    for seed in SEEDS
                ])  # fmt: skip
                found[number, (cost_us, send_us), cv] = float(formula / simulated - 1.0)
    return found


def _away(errors: dict[tuple[int, tuple[float, float], float], float]) -> list[float]:
    """Errors with less than half or more than twice the number of workers at the knee."""
    return [
        error for (number, (cost_us, send_us), _), error in errors.items()
        if not 0.5 < number / ((cost_us + 0.1 + send_us) / send_us) < 2.0
    ]  # fmt: skip


def buffer_errors(each: int) -> Iterator[float]:
    """(O4) over its simulation, minus one, far beyond the knee."""
    for number, cost_us, send_us, size in (
        (16, 10.0, 1.0, 16), (16, 10.0, 1.0, 64), (16, 10.0, 1.0, 1024), (8, 100.0, 25.0, 64),
    ):  # fmt: skip
        given = Reordering(num_buffered=size, store_s=1e-7, lock_s=1e-7, send_s=send_us * 1e-6)
        # A buffer of a thousand takes a while to fill.
        simulated = [
            simulate_reordering(
                _service(cost_us * 1e-6, 0.3, max(each, 20 * size), seed), number, given
            ).mean_s
            for seed in SEEDS
        ]
        yield float(saturated_latency_s(number, cost_us * 1e-6, given) / np.mean(simulated) - 1.0)


def exit_errors(each: int) -> Iterator[float]:
    """(O5) over the simulation of workers that put outputs in order at no cost, minus one."""
    for number in WORKERS[2:]:
        for cv in SPREADS[1:]:
            given = Reordering(num_buffered=each, store_s=0.0, lock_s=0.0, send_s=0.0)
            simulated = [
                simulate_reordering(_service(1e-5, cv, each, seed), number, given).mean_s
                for seed in SEEDS
            ]
            law = ordered_exit_law(ServiceLaw(mean_s=1e-5, cv=cv), float(number))
            yield float(law.mean_s / np.mean(simulated) - 1.0)


def queue_errors(
    each: int,
) -> tuple[dict[tuple[float, float], float], dict[tuple[float, float], float]]:
    """(O7) from start and (O6) from arrival over their simulations, minus one, by cv and load."""
    hybrid, apart = {}, {}
    for cv in SPREADS:
        for ratio in UTILIZATIONS:
            law, seen = ServiceLaw(mean_s=1.0, cv=cv), []
            for seed in SEEDS:
                random = np.random.default_rng([seed, 6])
                arrival = np.cumsum(random.exponential(1.0 / (16 * ratio), each))
                service, kept = _service(1.0, cv, each, seed), slice(each // 10, None)
                runs = [
                    simulate_queues(
                        scheme, service, random.integers(number, size=each), 16, arrival_s=arrival
                    )
                    for scheme, number in zip(figures.SCHEMES, (100, 16), strict=True)
                ]
                seen.append((
                    (runs[0].exit_s - runs[0].start_s)[kept].mean(),
                    (runs[1].exit_s - arrival)[kept].mean(),
                ))  # fmt: skip
            means = np.mean(seen, axis=0)
            hybrid[cv, ratio] = float(hybrid_exit_law(law, 16, 100, ratio).mean_s / means[0] - 1.0)
            even = np.full(16, 1.0 / 16.0)
            apart[cv, ratio] = float(
                partitioned_exit_law(law, even, 16, ratio).mean_s / means[1] - 1.0
            )
    return hybrid, apart


_PARTITIONS_PER_WORKER = (2, 6, 25)


def hybrid_errors(each: int, *, inside: bool) -> Iterator[tuple[float, float]]:
    """(O7) over its simulation, minus one, mean and p99, inside or outside its range."""
    for workers, per_worker, cv, ratio in product(
        (4, 16, 32), _PARTITIONS_PER_WORKER, SPREADS, UTILIZATIONS
    ):
        number = workers * per_worker
        even = np.full(number, 1.0 / number)
        if is_hybrid_law_in_range(even, ratio * workers) is not inside:
            continue
        seen = []
        for seed in SEEDS:
            random = np.random.default_rng([seed, 7])
            arrival = np.cumsum(random.exponential(1.0 / (workers * ratio), each))
            run = simulate_queues(
                "hybrid", _service(1.0, cv, each, seed),
                random.integers(number, size=each), workers, arrival_s=arrival,
            )  # fmt: skip
            left = (run.exit_s - run.start_s)[each // 10 :]
            seen.append((left.mean(), np.quantile(left, 0.99)))
        law = hybrid_exit_law(ServiceLaw(mean_s=1.0, cv=cv), workers, number, ratio)
        mean, tail = np.mean(seen, axis=0)
        yield float(law.mean_s / mean - 1.0), float(law.quantile_s(0.99) / tail - 1.0)


def of_figures(num: int) -> Iterator[Band]:
    """The bands of the paper's figures."""
    share = {}
    for name in figures.CHAINS:
        peak = figures.peak_workers(name)
        best = pipeline_allocation(figures.chain(name, peak)).throughput_per_s
        runs = {one: figures.scheduled(name, peak, one, num=num) for one in figures.SCHEDULERS}
        share[name] = {one: run.throughput_per_s / best for one, run in runs.items()}
    keep = {name: of["CT keep"] - 1.0 for name, of in share.items()}
    yield Band(
        "figure 8: CT keep reaches (O1)", "2%", _range(keep.values()),
        _most(keep.values()) <= 0.02,
        "on Q3, where one key allows 3.5 workers: three or four work, and four share the capacity "
        f"of 3.5. Elsewhere {_range(error for name, error in keep.items() if name != 'Q3')}",
    )  # fmt: skip
    last = [share[name]["LP"] / share[name]["CT"] for name in ("Q1", "Q15")]
    yield Band(
        "figure 8: LP within 10% of CT on Q1 and Q15", "0.90", f"{min(last):.2f}", min(last) >= 0.9
    )
    worst = max(of["ET"] for of in share.values())
    yield Band(
        "figure 8: ET has the lowest throughput if saturated", "lowest", f"{worst:.0%}", worst < 0.5
    )
    skews = figures.skews(num)
    off = [one.partitioned / one.partitioned_simulated - 1.0 for one in skews] + [
        one.hybrid / one.hybrid_simulated - 1.0 for one in skews
    ]
    yield Band("figure 9: busy workers by (O8)", "4%", _range(off), _most(off) <= 0.04)
    steady = [one.hybrid_simulated for one in skews if one.sigma >= 0.2]
    flat = min(steady) / skews[0].hybrid_simulated
    yield Band("figure 9: hybrid flat down to sigma 0.2", "5%", f"{flat - 1.0:+.1%}", flat >= 0.95)
    busy = [one for one in figures.latencies(num) if one.utilization_ratio == 0.9]
    near = max(one.hybrid_simulated_s / (one.cost_us * 1e-6) for one in busy)
    far = min(one.partitioned_start_s / one.hybrid_simulated_s for one in busy)
    yield Band("figure 10: hybrid, start to exit", "1.6 E[S]", f"{near:.2f} E[S]", near <= 1.6)
    yield Band("figure 10: partitioned over hybrid", "5", f"{far:.1f}", far >= 5.0)
    gains = [
        gain
        for cost_us, send_us, selectivity in figures.REORDERED
        for gain in lock_gains(figures.reordered(cost_us, send_us, num, selectivity))
    ]
    yield Band(
        "figures 12, 13: never below the lock", "1.00", f"{min(gains):.3f}", min(gains) >= 0.995
    )
    yield Band(
        "figures 12, 13: more than the lock at the knee", "1.1 to 1.3", f"{max(gains):.2f}",
        1.1 <= max(gains) <= 1.3,
        "few outputs wait if the buffer has four places per worker",
    )  # fmt: skip


def lock_gains(found: Sequence[figures.Reordered]) -> list[float]:
    """Simulated speedup without blocking over that with the lock."""
    by = {(one.num_workers, one.scheme): one.speedup_simulated for one in found}
    numbers = sorted({number for number, _ in by})
    return [by[number, "non-blocking"] / by[number, "lock"] for number in numbers]


def _service(mean_s: float, cv: float, num: int, seed: int) -> Array:
    """Gamma times."""
    if cv == 0.0:
        return np.full(num, mean_s)
    shape = cv**-2
    return np.random.default_rng([seed, 5]).gamma(shape, mean_s / shape, num)


def _most(errors: Iterable[float]) -> float:
    return max(abs(error) for error in errors)


def _range(errors: Iterable[float]) -> str:
    seen = list(errors)
    return f"{min(seen):+.1%} to {max(seen):+.1%}"
