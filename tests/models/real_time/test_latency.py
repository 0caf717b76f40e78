"""Latency in Real-Time Mode against queries simulated row by row, and its laws."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.models.arrays import Array
from headway.models.queues.queueing import lindley_waits_s, pollaczek_khinchine_wait
from headway.models.real_time.latency import gap_probability, real_time_latency
from headway.models.real_time.stages import (
    RealTimeStage,
    required_slots,
    shuffle_wait_limit_s,
    shuffled_wait,
    sustainable_rate_per_s,
)
from tests.oracles.real_time import PlayedStage, simulate_real_time
from tests.seeds import examples

LEVELS = np.array([0.5, 0.95, 0.99])


def simulated(
    rate_per_s: float,
    stages: list[RealTimeStage],
    num_rows: int = 200_000,
    **setting: float,
) -> Array:
    latency = simulate_real_time(
        rate_per_s,
        [
            PlayedStage(shares=stage.shares, row_s=stage.row_s, row_cv=stage.row_cv)
            for stage in stages
        ],
        flush_s=setting.get("flush_s", 0.05),
        trigger_s=setting.get("trigger_s", 2.0),
        gap_s=setting.get("gap_s", 0.0),
        num_rows=num_rows,
        seed=1,
    )
    return latency[num_rows // 20 :]


def stage(num_tasks: int, row_s: float, row_cv: float = 1.0, share: float | None = None):  # type: ignore[no-untyped-def]
    return RealTimeStage(num_tasks=num_tasks, row_s=row_s, row_cv=row_cv, largest_share=share)


def test_stateless_query_is_a_row_of_poisson_queues() -> None:
    source = [stage(8, 2e-4)]
    latency = real_time_latency(20_000.0, source)
    rows = simulated(20_000.0, source, 400_000)
    exact = pollaczek_khinchine_wait(1.0 / 2500.0, 2e-4, 2.0 * 2e-4**2, 8.0 * 2e-4**3)
    assert latency.mean_s == pytest.approx(float(exact.mean_s) + 2e-4)
    assert latency.mean_s == pytest.approx(rows.mean(), rel=0.03)
    assert latency.quantile_s(LEVELS) == pytest.approx(np.quantile(rows, LEVELS), rel=0.06)


@pytest.mark.parametrize(("num_tasks", "row_s"), [(20, 5e-4), (8, 2.8e-4), (40, 1e-3)])
def test_a_stateful_query_against_simulation(num_tasks: int, row_s: float) -> None:
    stages = [stage(8, 2e-4), stage(num_tasks, row_s)]
    latency = real_time_latency(20_000.0, stages, trigger_s=2.0)
    rows = simulated(20_000.0, stages, 300_000)
    assert latency.mean_s == pytest.approx(rows.mean(), rel=0.02)
    assert latency.quantile_s(LEVELS) == pytest.approx(np.quantile(rows, LEVELS), rel=0.04)
    assert latency.mean_s > 0.025  # half of the shuffle's clock, which the rows cannot escape


def test_three_stages_against_simulation() -> None:
    stages = [stage(4, 1e-4), stage(8, 3e-4), stage(8, 3e-4)]
    latency = real_time_latency(16_000.0, stages, trigger_s=2.0)
    rows = simulated(16_000.0, stages, 300_000)
    assert latency.mean_s == pytest.approx(rows.mean(), rel=0.02)
    assert latency.quantile_s(LEVELS) == pytest.approx(np.quantile(rows, LEVELS), rel=0.04)
    assert sum(latency.stage_mean_s) == pytest.approx(latency.mean_s)


def test_skewed_partitions() -> None:
    stages = [stage(8, 1e-4, 1.0, 0.4), stage(20, 4e-4, 1.0, 0.2)]
    latency = real_time_latency(10_000.0, stages, trigger_s=2.0)
    rows = simulated(10_000.0, stages, 300_000)
    assert latency.utilization_ratio == pytest.approx((0.4, 0.8))
    assert latency.mean_s == pytest.approx(rows.mean(), rel=0.03)
    assert latency.quantile_s(LEVELS) == pytest.approx(np.quantile(rows, LEVELS), rel=0.08)


def test_gaps_between_batches() -> None:
    stages = [stage(4, 5e-4)]
    setting = {"trigger_s": 9.0, "gap_s": 1.0, "flush_s": 0.0}
    latency = real_time_latency(4000.0, stages, **setting)
    rows = simulated(4000.0, stages, 800_000, **setting)
    assert gap_probability(0.5, 9.0, 1.0) == pytest.approx(0.2)
    assert latency.gap_mean_s == pytest.approx(0.1)
    assert latency.mean_s == pytest.approx(rows.mean(), rel=0.05)
    assert np.mean(rows > 0.02) == pytest.approx(0.2, abs=0.01)
    assert float(latency.quantile_s(0.99)) == pytest.approx(np.quantile(rows, 0.99), rel=0.03)


def test_rows_sent_one_by_one() -> None:
    stages = [stage(8, 2e-4), stage(8, 2e-4)]
    latency = real_time_latency(20_000.0, stages, flush_s=0.0)
    rows = simulated(20_000.0, stages, 400_000, flush_s=0.0)
    assert latency.mean_s == pytest.approx(rows.mean(), rel=0.05)
    assert latency.quantile_s(LEVELS) == pytest.approx(np.quantile(rows, LEVELS), rel=0.08)


@pytest.mark.parametrize(("num_writers", "tolerance"), [(1, 0.03), (4, 0.08), (16, 0.06)])
def test_wait_of_buffers_by_phases(num_writers: int, tolerance: float) -> None:
    generator, waits = np.random.default_rng(2), []
    for _ in range(150):
        phases = np.sort(generator.random(num_writers)) * 0.05
        times = (np.arange(40)[:, np.newaxis] * 0.05 + phases).ravel()
        rows = generator.poisson(30.0 / num_writers, len(times))
        work = generator.gamma(rows * 1.0 + 1e-12, 1e-3)  # exponential rows, added up
        of_run = lindley_waits_s(np.diff(times, append=times[-1]), work)
        waits.append(of_run[10 * num_writers :])
    sample = np.concatenate(waits)
    wait = shuffled_wait(600.0, 1e-3, 1.0, num_writers, 0.05)
    assert float(wait.mean_s) == pytest.approx(sample.mean(), rel=tolerance, abs=2e-5)


def test_many_writers_of_few_rows_are_poisson() -> None:
    exact = shuffled_wait(800.0, 1e-3, 0.7, 1, 0.0)
    reference = pollaczek_khinchine_wait(1.0 / 800.0, 1e-3, 1.49e-6, 1.49**3 * 1e-9)
    assert [float(value) for value in exact] == pytest.approx([float(value) for value in reference])
    many = shuffled_wait(800.0, 1e-3, 0.7, 40_000, 0.05)
    assert float(many.mean_s) == pytest.approx(float(exact.mean_s), rel=0.01)
    assert float(many.variance_s2) == pytest.approx(float(exact.variance_s2), rel=0.03)


def test_each_task_needs_a_slot() -> None:
    assert required_slots([stage(8, 1e-4), stage(20, 1e-4), stage(20, 1e-4)]) == 48


def test_latencies_are_infinite_from_the_sustainable_rate_on() -> None:
    stages = [stage(4, 1e-3), stage(2, 1e-3, 1.0, 0.8)]
    limit = sustainable_rate_per_s(stages, trigger_s=9.0, gap_s=1.0)
    assert limit == pytest.approx(0.9 / (0.8 * 1e-3))
    setting = {"trigger_s": 9.0, "gap_s": 1.0}
    assert real_time_latency(0.99 * limit, stages, **setting).is_stable
    beyond = real_time_latency(limit, stages, **setting)
    assert not beyond.is_stable
    assert beyond.mean_s == np.inf
    assert np.all(np.isinf(beyond.quantile_s(LEVELS)))


@examples(8, 25)
@given(
    st.floats(0.02, 0.9),
    st.floats(0.0, 1.5),
    st.integers(1, 30),
    st.sampled_from([0.0, 0.01, 0.05]),
    st.sampled_from([0.0, 1.0]),
    st.sampled_from([0.5, 1.0, 3.0]),
)
def test_latency_grows_with_load_and_with_the_gap(
    busy: float, cv: float, num_tasks: int, flush_s: float, gap_s: float, dispersion: float
) -> None:
    stages = [stage(4, 2e-4, cv), stage(num_tasks, num_tasks * 5e-5, cv)]

    def at(busy: float, gap_s: float):  # type: ignore[no-untyped-def]
        return real_time_latency(
            busy / 5e-5,
            stages,
            flush_s=flush_s,
            trigger_s=60.0,
            gap_s=gap_s,
            dispersion=dispersion,
        )

    latency = at(busy, gap_s)
    quantiles = latency.quantile_s(np.array([0.01, 0.5, 0.9, 0.99, 0.999]))
    assert np.all(np.diff(quantiles) > 0.0)
    assert latency.mean_s >= sum(one.row_s for one in stages) + 0.5 * flush_s
    assert latency.law is not None
    assert latency.law.mean_s == pytest.approx(latency.mean_s, rel=0.02)
    assert at(busy, gap_s + 0.5).mean_s > latency.mean_s
    assert at(1.04 * busy, gap_s).mean_s >= latency.mean_s
    assert latency.mean_s <= latency.quantile_s(0.99)
    near = [at(busy * 1.01**power, gap_s) for power in range(3)]
    logs = np.log([[one.mean_s, float(one.quantile_s(0.99))] for one in near])
    assert np.all(np.abs(np.diff(logs, n=2, axis=0)) <= 0.02)


def test_what_a_shuffle_buffer_holds() -> None:
    assert shuffle_wait_limit_s(0.0, 100.0) == 0.05
    assert shuffle_wait_limit_s(1e6, 100.0) == pytest.approx(0.9 * 32768.0 / 1e8)


def test_simulation_by_hand() -> None:
    """Constant rows of one task: what the gap and the clock make of each is known."""
    one = PlayedStage(shares=np.ones(1), row_s=1e-4, row_cv=0.0)
    latency = simulate_real_time(
        50.0, [one], flush_s=0.0, trigger_s=3.0, gap_s=1.0, num_rows=20_000, seed=4
    )
    arrival = np.cumsum(np.random.default_rng(4).exponential(1.0 / 50.0, 20_000))
    place = arrival % 4.0
    in_gap = place > 3.0
    assert latency.min() >= 1e-4 * (1.0 - 1e-6)
    assert np.all(latency[in_gap] >= 4.0 - place[in_gap])
    assert latency[~in_gap & (place > 0.1) & (place < 2.9)].max() < 0.01
    flushed = simulate_real_time(
        50.0, [one, one], flush_s=0.2, trigger_s=60.0, gap_s=0.0, num_rows=20_000, seed=4
    )
    assert flushed.max() < 0.21
    assert flushed.mean() == pytest.approx(0.1, abs=0.003)


def test_refusals() -> None:
    source = [stage(2, 1e-3)]
    for arguments in ({"num_tasks": 0}, {"row_s": 0.0}, {"row_cv": 3.0}):
        with pytest.raises(ValueError, match="need a task"):
            RealTimeStage(**({"num_tasks": 2, "row_s": 1e-3, "row_cv": 1.0} | arguments))
    with pytest.raises(ValueError, match="rows_ratio"):
        RealTimeStage(num_tasks=2, row_s=1e-3, row_cv=1.0, rows_ratio=0.0)
    with pytest.raises(ValueError, match="largest_share"):
        stage(2, 1e-3, 1.0, 0.3)
    for function in (required_slots, lambda none: sustainable_rate_per_s(none, trigger_s=1.0)):
        with pytest.raises(ValueError, match="at least one stage"):
            function([])
    with pytest.raises(ValueError, match="trigger_s"):
        sustainable_rate_per_s(source, trigger_s=0.0)
    for rate, dispersion in ((0.0, 1.0), (1.0, 0.0)):
        with pytest.raises(ValueError, match="rate_per_s"):
            real_time_latency(rate, source, dispersion=dispersion)
    with pytest.raises(ValueError, match=r"0\.\.1"):
        gap_probability(1.0, 1.0, 0.0)
    with pytest.raises(ValueError, match="row_bytes"):
        shuffle_wait_limit_s(1.0, 0.0)
    for num_writers, period_s in ((0, 0.05), (1, -0.05)):
        with pytest.raises(ValueError, match="num_writers"):
            shuffled_wait(1.0, 0.1, 1.0, num_writers, period_s)
    with pytest.raises(ValueError, match="rate_per_s"):
        shuffled_wait(0.0, 0.1, 1.0, 1, 0.05)
    with pytest.raises(ValueError, match="strictly"):
        real_time_latency(1.0, source).quantile_s(0.0)
    with pytest.raises(ValueError, match="a stage"):
        simulate_real_time(1.0, [], flush_s=0.0, trigger_s=1.0, gap_s=0.0, num_rows=1, seed=1)


@pytest.mark.statistical
@pytest.mark.parametrize("busy", [0.3, 0.5, 0.7, 0.85])
@pytest.mark.parametrize("num_writers", [1, 2, 8, 32])
@pytest.mark.parametrize("num_tasks", [1, 8, 32])
@pytest.mark.parametrize("cv", [0.3, 1.0])
def test_latency_against_simulation_over_a_grid(
    busy: float, num_writers: int, num_tasks: int, cv: float
) -> None:
    rate_per_s = 500.0 * num_tasks
    stages = [
        stage(num_writers, 0.3 * num_writers / rate_per_s, cv),
        stage(num_tasks, busy * num_tasks / rate_per_s, cv),
    ]
    latency = real_time_latency(rate_per_s, stages, trigger_s=1.0)
    rows = simulated(rate_per_s, stages, 1_500_000, trigger_s=1.0)
    assert latency.mean_s == pytest.approx(rows.mean(), rel=0.06)
    assert latency.quantile_s(LEVELS) == pytest.approx(np.quantile(rows, LEVELS), rel=0.11)
