"""The closed loop: without a policy it is the rate trace, with one the books balance."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace

import numpy as np
import pytest

from headway.models.simulation.closed_loop import (
    LoopJob,
    LoopTrace,
    Sight,
    simulate_closed_loop,
)
from headway.models.simulation.rate_trace import BatchNoise, simulate_rate_trace

QUIET = BatchNoise(batch_ratio=0.0)
JOB = LoopJob(
    duration={count: (0.2, ((4e-5 / count, 1.0),)) for count in range(1, 9)},
    cpu=(0.1, ((4e-5, 1.0),)),
    cores_per_executor=4,
    trigger_s=1.5,
    limit_s=3.0,
    noise=QUIET,
    dispersion=0.0,
    provisioning_s=(30.0, 30.0),
)
EVEN = LoopTrace(edges_s=np.array([0.0, 900.0]), rates_per_s=np.array([40_000.0]))
STEPS = LoopTrace(
    edges_s=np.array([0.0, 300.0, 600.0, 900.0]), rates_per_s=np.array([20e3, 90e3, 20e3])
)


@dataclass
class Script:
    """Executors by the clock."""

    steps: tuple[tuple[float, int], ...]
    period_s: float = 5.0
    sees_batches: bool = False

    def wanted(self, sight: Sight) -> int:
        return next(count for at_s, count in reversed(self.steps) if at_s <= sight.at_s)


def static(count: int) -> Script:
    return Script(((0.0, count),))


@pytest.mark.parametrize("trace", [EVEN, STEPS])
@pytest.mark.parametrize("outages", [(), ((200.0, 260.0),)])
def test_without_changes_it_is_the_rate_trace(
    trace: LoopTrace, outages: tuple[tuple[float, float], ...]
) -> None:
    fixed_s, ((per_row_s, _),) = JOB.duration[3]
    limited = replace(JOB, max_rows_per_trigger=250_000.0)
    ours = simulate_closed_loop(
        limited, replace(trace, outages_s=outages), static(3), executors=3, seed=1
    )
    theirs = simulate_rate_trace(
        lambda rows: fixed_s + per_row_s * rows, trace.edges_s, trace.rates_per_s, JOB.trigger_s,
        noise=QUIET, seed=1, num_runs=1, max_rows_per_trigger=250_000.0, dispersion=0.0,
        outages_s=outages,
    )  # fmt: skip
    num = len(ours.start_s)
    assert abs(num - len(theirs.start_s)) <= 1
    assert ours.start_s == pytest.approx(theirs.start_s[:num], abs=1e-6)
    assert ours.num_rows == pytest.approx(theirs.num_rows[:num], rel=1e-6)
    assert ours.duration_s == pytest.approx(theirs.duration_s[:num], rel=1e-6)
    # Rows of a batch wait evenly between its last and its first arrival.
    low = theirs.commit_s - theirs.last_arrival_s
    high = theirs.commit_s - theirs.first_arrival_s
    late = theirs.num_rows * np.clip((high - 3.0) / np.maximum(high - low, 1e-9), 0.0, 1.0)
    assert ours.late_rows.sum() == pytest.approx(late[:num].sum(), rel=0.02, abs=2000.0)


def test_noise_is_that_of_the_rate_trace() -> None:
    noisy = replace(JOB, noise=BatchNoise(batch_ratio=0.1, autocorrelation=0.3))
    run = simulate_closed_loop(noisy, EVEN, static(4), executors=4, seed=3)
    fixed_s, ((per_row_s, _),) = JOB.duration[4]
    ratio = run.duration_s / (fixed_s + per_row_s * run.num_rows)
    assert ratio.mean() == pytest.approx(1.0, abs=0.03)
    assert ratio.std() == pytest.approx(0.1, rel=0.2)


def test_late_rows_are_those_of_a_count_row_by_row() -> None:
    run = simulate_closed_loop(JOB, STEPS, static(1), executors=1, seed=1)
    taken = np.concatenate([[0.0], np.cumsum(run.num_rows)])
    number = np.arange(0.0, taken[-1], 500.0)
    arrival = run.arrivals.arrival_s(number, 0)
    batch = np.searchsorted(taken, number, side="right") - 1
    late = (run.start_s + run.duration_s)[batch] - arrival > JOB.limit_s
    assert run.late_rows.sum() == pytest.approx(late.sum() * 500.0, rel=0.01)
    assert 0.2 < run.late_ratio < 1.0
    rows, by_window = run.late_by(np.linspace(0.0, 900.0, 4))
    assert rows.sum() == pytest.approx(run.arrived_rows)
    assert by_window.sum() == pytest.approx(run.late_rows.sum() + run.unread_late_rows)


def test_executors_come_late_are_paid_at_once_and_slow_at_first() -> None:
    run = simulate_closed_loop(JOB, EVEN, Script(((0.0, 2), (300.0, 6))), executors=2, seed=1)
    assert run.executor_s == pytest.approx(300.0 * 2 + 600.0 * 6)
    assert run.num_changes == 1
    before = run.duration_s[(run.start_s > 250.0) & (run.start_s < 329.0)]
    first = run.duration_s[(run.start_s >= 330.0)][:2]
    after = run.duration_s[run.start_s > 350.0]
    assert before == pytest.approx(0.2 + 4e-5 / 2 * 60_000)
    assert first.min() >= 2.0 * (0.2 + 4e-5 / 6 * 60_000)
    assert np.median(after) == pytest.approx(0.2 + 4e-5 / 6 * 60_000)


def test_a_removal_makes_one_batch_longer_and_calls_off_what_is_on_its_way_first() -> None:
    run = simulate_closed_loop(JOB, EVEN, Script(((0.0, 6), (300.0, 4))), executors=6, seed=1)
    longest = int(np.argmax(run.duration_s))
    assert run.duration_s[longest] == pytest.approx(5.9 + 0.2 + 1e-5 * run.num_rows[longest])
    assert run.start_s[longest] == pytest.approx(300.0, abs=1.6)
    called_off = Script(((0.0, 4), (300.0, 6), (320.0, 4)))
    calm = simulate_closed_loop(JOB, EVEN, called_off, executors=4, seed=1)
    assert calm.duration_s.max() < 1.0
    assert calm.num_changes == 2
    assert calm.num_reversals(1800.0) == 1


def test_costs_that_rise_and_silence_are_what_the_policy_sees() -> None:
    costlier = replace(EVEN, cost_ratio=((0.0, 1.0), (450.0, 1.6)))
    run = simulate_closed_loop(JOB, costlier, static(4), executors=4, seed=1)
    early, late = run.duration_s[run.start_s < 440.0], run.duration_s[run.start_s > 460.0]
    assert np.median(late) == pytest.approx(1.6 * np.median(early))

    seen: list[Sight] = []

    @dataclass
    class Watching(Script):
        def wanted(self, sight: Sight) -> int:
            seen.append(sight)
            return 1

    overloaded = replace(EVEN, rates_per_s=np.array([200_000.0]))
    simulate_closed_loop(JOB, overloaded, Watching(()), executors=1, seed=1)
    assert max(one.silent_s for one in seen) > 60.0
    assert all(one.asked_rows <= one.arrived_rows + 1e-6 for one in seen)
    assert all(b.cpu_s >= a.cpu_s - 1e-9 for a, b in itertools.pairwise(seen))


def test_a_size_without_a_duration_is_an_error() -> None:
    with pytest.raises(ValueError, match="99 executors"):
        simulate_closed_loop(JOB, EVEN, static(99), executors=4, seed=1)


@dataclass
class AlsoTrigger(Script):
    """The trigger interval, too, by the clock."""

    trigger_s: float = 1.5
    at_s: float = 300.0
    then_s: float = 3.0

    def wanted(self, sight: Sight) -> int:
        if sight.at_s >= self.at_s:
            self.trigger_s = self.then_s
        return super().wanted(sight)


def test_another_trigger_restarts_the_query_on_its_grid_with_its_limit() -> None:
    limited = replace(JOB, max_rows_per_trigger=90_000.0)
    run = simulate_closed_loop(limited, EVEN, AlsoTrigger(((0.0, 4),)), executors=4, seed=1)
    assert [one.trigger_s for one in run.steps] == [1.5, 3.0]
    assert run.num_changes == 1
    assert run.num_reversals(1800.0) == 0
    before = run.start_s[run.start_s < 300.0]
    after = run.start_s[run.start_s > 320.0]
    assert np.diff(before) == pytest.approx(1.5)
    assert np.diff(after) == pytest.approx(3.0)
    assert after % 3.0 == pytest.approx(np.zeros(len(after)), abs=1e-6)
    # Twice the rows in a batch, within twice the limit.
    assert np.median(run.num_rows[run.start_s > 320.0]) == pytest.approx(120_000.0)
    longest = int(np.argmax(run.duration_s))
    assert run.start_s[longest] == pytest.approx(300.0, abs=3.0)
    mean_s = 0.2 + 1e-5 * run.num_rows[longest]
    assert run.duration_s[longest] == pytest.approx(2.2 + mean_s)
