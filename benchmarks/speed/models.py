"""Speed of the models: settings per second, and simulated jobs per second of Headway, SimPy, Ciw.

Everything runs on one core in one process, in turn, for several rounds; the page has the medians.
The speed of a simulator counts only if its mean wait agrees with the exact one.

    python benchmarks/run.py models --output docs/models-speed.md
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

import ciw
import numpy as np
import simpy
from pages import headed, made_by

from headway.models.arrays import Array
from headway.models.batches.microbatch import AffineDuration, steady_state
from headway.models.batches.tuple_latency import tuple_latency_cdf, tuple_latency_quantile
from headway.models.queues.queueing import pollaczek_khinchine_wait
from headway.models.queues.times import constant_time, lognormal_time
from headway.models.queues.wait import queue_wait
from tests.oracles.microbatch import simulate_microbatch
from tests.oracles.queue import correlated_lognormal_s, simulate_queue

ROUNDS = 7
NUM_SETTINGS = 100_000
RATE_PER_S = 10_000.0
MEAN_SERVICE_S, SERVICE_CV, INTERARRIVAL_S = 0.8, 0.5, 1.0
NUM_JOBS = {"Headway": 4_000_000, "SimPy": 100_000, "Ciw": 50_000}
_SETTLING_JOBS = 1_000
_MOST_ERROR_RATIO = 0.15
"""Allowed error of a mean wait; with 50,000 jobs at 80% load, chance alone is about 5%."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SimulatedQueue:
    """The mean wait that a simulator found, and its speed."""

    mean_wait_s: float
    jobs_per_s: float


def settings(seed: int) -> tuple[AffineDuration, Array, Array]:
    """Random settings: a fifth free running, the others from light load to overruns."""
    random = np.random.default_rng(seed)
    fixed_s = random.uniform(0.2, 3.0, NUM_SETTINGS)
    offered_load = random.uniform(0.05, 0.9, NUM_SETTINGS)
    utilization = random.uniform(0.3, 1.2, NUM_SETTINGS)
    trigger_s = np.where(
        utilization > offered_load, fixed_s / np.maximum(utilization - offered_load, 0.01), 0.0
    )
    noise = random.uniform(0.02, 0.3, NUM_SETTINGS)
    duration = AffineDuration(fixed_s, offered_load / RATE_PER_S, noise)
    return duration, trigger_s, utilization


def per_second(work: Callable[[], object], num_items: int) -> float:
    """Items per second of one call."""
    started_s = time.perf_counter()
    work()
    return num_items / (time.perf_counter() - started_s)


def headway_queue(is_clocked: bool, seed: int) -> SimulatedQueue:
    """Headway, including the generation of random numbers."""
    num_jobs = NUM_JOBS["Headway"]
    started_s = time.perf_counter()
    random = np.random.default_rng(seed)
    between = (
        np.array(INTERARRIVAL_S) if is_clocked else random.exponential(INTERARRIVAL_S, num_jobs)
    )
    service = correlated_lognormal_s(
        MEAN_SERVICE_S, SERVICE_CV, 0.0, num_values=num_jobs, seed=seed + 1
    )
    trace = simulate_queue(between, service, num_warmup=_SETTLING_JOBS)
    return SimulatedQueue(
        mean_wait_s=trace.mean_s, jobs_per_s=num_jobs / (time.perf_counter() - started_s)
    )


def simpy_queue(is_clocked: bool, seed: int) -> SimulatedQueue:
    """A resource of capacity one, as SimPy's documentation shows it."""
    num_jobs = NUM_JOBS["SimPy"]
    random = np.random.default_rng(seed)
    log_sd = float(np.sqrt(np.log1p(SERVICE_CV**2)))
    log_mean = float(np.log(MEAN_SERVICE_S) - log_sd**2 / 2.0)
    waits: list[float] = []
    environment = simpy.Environment()
    server = simpy.Resource(environment, capacity=1)

    def job() -> Iterator[simpy.Event]:
        arrived_s = environment.now
        with server.request() as turn:
            yield turn
            waits.append(environment.now - arrived_s)
            yield environment.timeout(random.lognormal(log_mean, log_sd))

    def arrivals() -> Iterator[simpy.Event]:
        for _ in range(num_jobs):
            environment.process(job())
            yield environment.timeout(
                INTERARRIVAL_S if is_clocked else random.exponential(INTERARRIVAL_S)
            )

    started_s = time.perf_counter()
    environment.process(arrivals())
    environment.run()
    elapsed_s = time.perf_counter() - started_s
    return SimulatedQueue(
        mean_wait_s=float(np.mean(waits[_SETTLING_JOBS:])), jobs_per_s=num_jobs / elapsed_s
    )


def ciw_queue(is_clocked: bool, seed: int) -> SimulatedQueue:
    """One node with one server."""
    num_jobs = NUM_JOBS["Ciw"]
    network = ciw.create_network(
        arrival_distributions=[
            ciw.dists.Deterministic(INTERARRIVAL_S)
            if is_clocked
            else ciw.dists.Exponential(1.0 / INTERARRIVAL_S)
        ],
        service_distributions=[
            ciw.dists.Lognormal(
                float(np.log(MEAN_SERVICE_S) - np.log1p(SERVICE_CV**2) / 2.0),
                float(np.sqrt(np.log1p(SERVICE_CV**2))),
            )
        ],
        number_of_servers=[1],
    )
    ciw.seed(seed)
    started_s = time.perf_counter()
    simulation = ciw.Simulation(network)
    simulation.simulate_until_max_customers(num_jobs)
    elapsed_s = time.perf_counter() - started_s
    records = sorted(simulation.get_all_records(), key=lambda record: record.arrival_date)
    waits = [record.waiting_time for record in records[_SETTLING_JOBS:]]
    return SimulatedQueue(mean_wait_s=float(np.mean(waits)), jobs_per_s=num_jobs / elapsed_s)


SIMULATORS: Mapping[str, Callable[[bool, int], SimulatedQueue]] = {
    "Headway": headway_queue,
    "SimPy": simpy_queue,
    "Ciw": ciw_queue,
}


def exact_wait_s(is_clocked: bool) -> float:
    """By Pollaczek-Khinchine, or on the lattice for constant intervals."""
    service = lognormal_time(MEAN_SERVICE_S, SERVICE_CV)
    if is_clocked:
        return float(queue_wait(constant_time(INTERARRIVAL_S), service).mean_s)
    second = MEAN_SERVICE_S**2 * (1.0 + SERVICE_CV**2)
    third = MEAN_SERVICE_S**3 * (1.0 + SERVICE_CV**2) ** 3
    return float(pollaczek_khinchine_wait(INTERARRIVAL_S, MEAN_SERVICE_S, second, third).mean_s)


def _settings_lines(rounds: int) -> Iterator[str]:
    duration, trigger_s, _ = settings(seed=1)
    state = steady_state(duration, RATE_PER_S, trigger_s)
    limit_s = tuple_latency_quantile(state, 0.99)
    ways: dict[str, Callable[[], object]] = {
        "steady state: durations, intervals, stability": lambda: steady_state(
            duration, RATE_PER_S, trigger_s
        ),
        "steady state and p99 of the latency": lambda: tuple_latency_quantile(
            steady_state(duration, RATE_PER_S, trigger_s), 0.99
        ),
        "steady state and whether a limit on p99 is met": lambda: tuple_latency_cdf(
            steady_state(duration, RATE_PER_S, trigger_s), limit_s
        ),
    }
    found: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            found[name].append(per_second(way, NUM_SETTINGS))
    overrun = state.overrun_probability
    yield (
        f"{NUM_SETTINGS:,} random settings at once: noise 0.02-0.3, offered load up to 0.9, "
        f"{np.mean(trigger_s == 0.0):.0%} free running, "
        f"{np.mean((overrun > 0.01) & (overrun < 0.99)):.0%} in the transition where 1-99% of the "
        "batches overrun."
    )
    yield ""
    yield from headed("| computed | settings per second: minimum | median | maximum |")
    for name, rates in found.items():
        yield (
            f"| {name} | {min(rates):,.0f} | {statistics.median(rates):,.0f} | {max(rates):,.0f} |"
        )


def _simulation_lines(rounds: int) -> Iterator[str]:
    yield from headed(
        "| queue | simulator | jobs | mean wait | exact | jobs per second (median) | Headway is |"
    )
    for is_clocked in (False, True):
        exact = exact_wait_s(is_clocked)
        found: dict[str, list[SimulatedQueue]] = {name: [] for name in SIMULATORS}
        for number in range(rounds):
            for name, simulator in SIMULATORS.items():
                print(f"{name}, round {number + 1} of {rounds}", file=sys.stderr)
                found[name].append(simulator(is_clocked, number))
        rate = {
            name: statistics.median(one.jobs_per_s for one in simulated)
            for name, simulated in found.items()
        }
        for name, simulated in found.items():
            mean_s = statistics.fmean(one.mean_wait_s for one in simulated)
            if abs(mean_s / exact - 1.0) > _MOST_ERROR_RATIO:
                raise SystemExit(f"{name} waits {mean_s:.3f} s, exactly {exact:.3f} s")
            times = rate["Headway"] / rate[name]
            yield (
                f"| {'D/G/1' if is_clocked else 'M/G/1'} | {name} | {NUM_JOBS[name]:,} "
                f"| {mean_s:.4f} s | {exact:.4f} s | {rate[name]:,.0f} "
                f"| {'' if name == 'Headway' else f'{times:,.0f} times as fast'} |"
            )


def _microbatch_line() -> str:
    num_batches = 100_000
    rate = per_second(
        lambda: simulate_microbatch(
            AffineDuration(2.0, 3e-4, 0.1), 1500.0, 8.0, num_batches=num_batches, seed=1
        ),
        num_batches,
    )
    return f"The micro-batch simulation computes {rate:,.0f} batches per second."


def page(rounds: int) -> str:
    """Measure everything and return the page."""
    made = (
        f"One core, one process, {rounds} rounds in turn. "
        f"{made_by('make speed-models', 'NumPy', 'SimPy', 'Ciw')}"
    )
    queues = (
        f"One server, lognormal service times with a mean of {MEAN_SERVICE_S} s and cv "
        f"{SERVICE_CV}, one job every {INTERARRIVAL_S:g} s (M: Poisson arrivals, D: constant "
        "intervals). The times include the generation of random numbers."
    )
    lines = ["# How fast the models answer", "", made, "", "## Micro-batch settings", ""]
    lines += [*_settings_lines(rounds), "", "## Simulation", "", queues, ""]
    lines += [*_simulation_lines(rounds), "", _microbatch_line(), ""]
    return "\n".join(lines)


def options(parser: argparse.ArgumentParser) -> None:
    """The options."""
    parser.add_argument("--rounds", type=int, default=ROUNDS)


def text(given: argparse.Namespace) -> str:
    """The page."""
    return page(given.rounds)
