"""Threads on shared servers: by hand, against time slices, and against the fixed points."""

from __future__ import annotations

import heapq
import math

import numpy as np
import pytest

from headway.models.simulation.fair_share import FairShare
from headway.models.stages.shared_resources import (
    ThreadGroup,
    alternating_slowdown,
    clocked_slowdowns,
)


def finish_all(servers: FairShare[str]) -> list[tuple[str, float, float]]:
    done = []
    while servers.next_end_s < math.inf:
        done.append(servers.finish_next())
    return done


def test_jobs_of_one_thread_are_served_in_turn() -> None:
    cores = FairShare[str](4.0, 1)
    for name in "abc":
        cores.submit(0.0, 0, 1.0, name)
    assert finish_all(cores) == [("a", 0.0, 1.0), ("b", 1.0, 2.0), ("c", 2.0, 3.0)]


def test_three_threads_on_two_servers() -> None:
    cores = FairShare[str](2.0, 3)
    cores.submit(0.0, 0, 1.0, "a")
    cores.submit(0.0, 1, 2.0, "b")
    cores.submit(0.6, 2, 1.0, "c")
    # Alone until 0.6, then at 2/3: a has 0.4 left and ends at 1.2; then b and c have a server each.
    done = finish_all(cores)
    assert [name for name, _, _ in done] == ["a", "c", "b"]
    assert [end for _, _, end in done] == pytest.approx([1.2, 1.8, 2.2])


def test_a_link_slower_than_one_stream() -> None:
    link = FairShare[str](0.5, 2)
    link.submit(0.0, 0, 1.0, "a")
    assert link.next_end_s == pytest.approx(2.0)
    current = link.current(1.0, 0)
    assert current is not None
    assert current[0] == "a"
    assert current[1] == pytest.approx(0.5)
    assert link.current(1.0, 1) is None


def test_version_tells_when_the_next_end_moves() -> None:
    cores = FairShare[str](1.0, 2)
    cores.submit(0.0, 0, 1.0, "a")
    before = cores.version
    cores.submit(0.1, 0, 1.0, "queued behind")
    assert cores.version == before
    cores.submit(0.1, 1, 1.0, "beside")
    assert cores.version > before
    assert cores.next_end_s == pytest.approx(1.9)


def test_against_time_slices() -> None:
    random = np.random.default_rng(4)
    num_servers, num_threads, num_jobs = 2.0, 4, 60
    arrivals = np.sort(random.random(num_jobs) * 20.0)
    threads = random.integers(num_threads, size=num_jobs)
    works = random.exponential(0.6, num_jobs)
    ends = simulated(num_servers, num_threads, arrivals, threads, works)
    step, now = 1e-3, 0.0
    left, queues = works.copy(), [list(np.flatnonzero(threads == t)) for t in range(num_threads)]
    sliced = np.full(num_jobs, np.inf)
    while np.isinf(sliced).any():
        heads = [q[0] for q in queues if q and arrivals[q[0]] <= now]
        rate = min(1.0, num_servers / max(len(heads), 1))
        now += step
        for job in heads:
            left[job] -= rate * step
            if left[job] <= 0.0:
                sliced[job] = now
                queues[threads[job]].pop(0)
    assert ends == pytest.approx(sliced, abs=0.08)
    assert np.abs(ends - sliced).mean() < 0.02


def simulated(
    num_servers: float,
    num_threads: int,
    arrivals: np.ndarray[tuple[int], np.dtype[np.float64]],
    threads: np.ndarray[tuple[int], np.dtype[np.int64]],
    works: np.ndarray[tuple[int], np.dtype[np.float64]],
) -> np.ndarray[tuple[int], np.dtype[np.float64]]:
    servers = FairShare[int](num_servers, num_threads)
    ends = np.full(len(arrivals), np.inf)
    number = 0
    while np.isinf(ends).any():
        if number < len(arrivals) and arrivals[number] <= servers.next_end_s:
            servers.submit(
                float(arrivals[number]), int(threads[number]), float(works[number]), number
            )
            number += 1
        else:
            job, _, end = servers.finish_next()
            ends[job] = end
    return ends


@pytest.mark.parametrize(("cores", "others", "busy"), [(4, 7, 0.5), (4, 12, 0.25), (8, 15, 0.4)])
def test_alternating_threads_against_the_fixed_point(cores: int, others: int, busy: float) -> None:
    # Thread 0 is followed; each works for an exponential time and rests for a time of its own.
    random = np.random.default_rng(7)
    shares = [0.3] + [busy] * others
    servers = FairShare[float](float(cores), others + 1)
    wake = [(float(random.random()), thread) for thread in range(others + 1)]
    heapq.heapify(wake)
    worked = took = 0.0
    threads: dict[float, int] = {}
    for _ in range(60_000):
        if wake and wake[0][0] <= servers.next_end_s:
            now, thread = heapq.heappop(wake)
            work = float(random.exponential())
            threads[work] = thread
            servers.submit(now, thread, work, work)
            continue
        work, start, end = servers.finish_next()
        thread = threads.pop(work)
        if thread == 0:
            worked, took = worked + work, took + end - start
        rest = (1.0 - shares[thread]) / shares[thread]
        heapq.heappush(wake, (end + rest * float(random.exponential()), thread))
    group = ThreadGroup(num_threads=others, busy_ratio=busy)
    assert float(alternating_slowdown(cores, group)) == pytest.approx(took / worked, rel=0.05)


@pytest.mark.parametrize(("cores", "each", "busy"), [(4, 8, 0.3), (4, 8, 0.42), (2, 3, 0.5)])
def test_clocked_threads_against_the_fixed_point(cores: int, each: int, busy: float) -> None:
    worked = took = 0.0
    for seed in range(12):
        phases = np.random.default_rng(seed).random(each)
        arrivals = (phases + np.arange(30)[:, np.newaxis]).ravel()
        threads = np.tile(np.arange(each), 30)
        order = np.argsort(arrivals)
        servers = FairShare[int](float(cores), each)
        number = 0
        while number < len(order) or servers.next_end_s < math.inf:
            if number < len(order) and arrivals[order[number]] <= servers.next_end_s:
                job = order[number]
                servers.submit(float(arrivals[job]), int(threads[job]), busy, number)
                number += 1
            else:
                _, start, end = servers.finish_next()
                worked, took = worked + busy, took + end - start
    (slowdown,) = clocked_slowdowns(cores, [ThreadGroup(num_threads=each, busy_ratio=busy)])
    assert float(slowdown) == pytest.approx(took / worked, rel=0.06)


def test_refusals() -> None:
    with pytest.raises(ValueError, match="num_servers"):
        FairShare[str](0.0, 1)
    with pytest.raises(ValueError, match="num_threads"):
        FairShare[str](1.0, 0)
