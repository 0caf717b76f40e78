"""The simulated job keeps Spark's rules: compared with a plain event loop and with its bounds."""

from __future__ import annotations

import numpy as np
import pytest

from headway.models.arrays import Array
from tests.oracles.list_scheduling import list_scheduling_makespan
from tests.oracles.stage_dag import (
    simulate_stage_dag,
    simulated_lognormal_stage_dag,
)

PARENTS: list[list[list[int]]] = [
    [[]],
    [[], [0], [1]],
    [[], [], [0, 1]],
    [[], [0], [0], [1, 2], []],
    [[], [], [0], [1], [2, 3], [1]],
]


def by_events(times: list[Array], parents: list[list[int]], num_cores: int, gap: float) -> float:
    """One replication in small steps of the clock's events, with sets instead of arrays."""
    running: list[tuple[float, int]] = []
    ended = dict.fromkeys(range(len(times)), 0)
    launched = dict.fromkeys(range(len(times)), 0)
    ready = {number: gap for number, above in enumerate(parents) if not above}
    now = 0.0
    while any(ended[number] < len(stage) for number, stage in enumerate(times)):
        for number in sorted(ready):
            while (
                ready[number] <= now
                and launched[number] < len(times[number])
                and len(running) < num_cores
            ):
                running.append((now + float(times[number][launched[number]]), number))
                launched[number] += 1
        upcoming = [end for end, _ in running] + [time for time in ready.values() if time > now]
        now = min(upcoming)
        for end, number in [item for item in running if item[0] == now]:
            running.remove((end, number))
            ended[number] += 1
        for number, above in enumerate(parents):
            if number not in ready and all(ended[one] == len(times[one]) for one in above):
                ready[number] = now + gap
    return now


@pytest.mark.parametrize("parents", PARENTS)
@pytest.mark.parametrize("num_cores", [1, 3, 8])
@pytest.mark.parametrize("gap", [0.0, 0.3])
def test_against_an_event_loop(parents: list[list[int]], num_cores: int, gap: float) -> None:
    generator = np.random.default_rng(len(parents) + num_cores)
    counts = generator.integers(1, 9, len(parents))
    times = [generator.exponential(1.0, (20, count)) for count in counts]
    simulated = simulate_stage_dag(times, parents, num_cores, driver_gap_s=gap).run_time_s
    for row in range(20):
        assert simulated[row] == pytest.approx(
            by_events([stage[row] for stage in times], parents, num_cores, gap)
        )


def test_one_stage_is_list_scheduling() -> None:
    times = np.random.default_rng(2).lognormal(0.0, 0.5, (50, 30))
    simulated = simulate_stage_dag([times], [[]], 7)
    assert simulated.run_time_s == pytest.approx(list_scheduling_makespan(times, 7))
    assert np.all(simulated.ready_s == 0.0)


@pytest.mark.parametrize("parents", PARENTS)
def test_every_run_keeps_the_bounds(parents: list[list[int]]) -> None:
    generator = np.random.default_rng(4)
    times = [generator.lognormal(0.0, 1.0, (200, count)) for count in generator.integers(1, 9, 6)]
    times, num_cores, gap = times[: len(parents)], 4, 0.2
    run_time = simulate_stage_dag(times, parents, num_cores, driver_gap_s=gap).run_time_s
    work = sum(stage.sum(axis=1) for stage in times) / num_cores
    longest, chain = np.zeros((200, len(parents))), np.zeros((200, len(parents)))
    for number, above in enumerate(parents):
        alone = list_scheduling_makespan(times[number], num_cores)
        idle = (1.0 - 1.0 / num_cores) * times[number].max(axis=1)
        longest[:, number] = gap + alone + (longest[:, above].max(axis=1) if above else 0.0)
        chain[:, number] = gap + idle + (chain[:, above].max(axis=1) if above else 0.0)
    assert np.all(run_time >= np.maximum(longest.max(axis=1), gap + work) - 1e-9)
    assert np.all(run_time <= work + chain.max(axis=1) + 1e-9)


def test_older_stages_go_first() -> None:
    long, short = np.full((1, 4), 2.0), np.full((1, 2), 1.0)
    trace = simulate_stage_dag([long, short], [[], []], 2)
    assert trace.end_s.tolist() == [[4.0, 5.0]]
    trace = simulate_stage_dag([short, long], [[], []], 2)
    assert trace.end_s.tolist() == [[1.0, 5.0]]


def test_the_seed_decides() -> None:
    first, again, other = (
        simulated_lognormal_stage_dag(
            [(5, 1.0, 0.5), (3, 2.0, 0.1)], [[], [0]], 2, num_replications=3, seed=seed
        ).run_time_s
        for seed in (1, 1, 2)
    )
    assert np.array_equal(first, again)
    assert not np.array_equal(first, other)


def test_refusals() -> None:
    one = np.ones((1, 2))
    with pytest.raises(ValueError, match="at least one stage"):
        simulate_stage_dag([], [], 1)
    with pytest.raises(ValueError, match="lower numbers"):
        simulate_stage_dag([one], [[0]], 1)
    with pytest.raises(ValueError, match="one row"):
        simulate_stage_dag([one, np.ones((2, 2))], [[], []], 1)
    with pytest.raises(ValueError, match="negative"):
        simulate_stage_dag([-one], [[]], 1)
    with pytest.raises(ValueError, match="num_cores"):
        simulate_stage_dag([one], [[]], 0)
    with pytest.raises(ValueError, match="replication"):
        simulated_lognormal_stage_dag([(1, 1.0, 0.0)], [[]], 1, num_replications=0, seed=1)
    with pytest.raises(ValueError, match="needs a task"):
        simulated_lognormal_stage_dag([(0, 1.0, 0.0)], [[]], 1, num_replications=1, seed=1)
