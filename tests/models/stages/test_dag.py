"""Run times of jobs against list scheduling of their stages, simulated task by task."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.models.laws.distributions import max_lognormal, max_normal
from headway.models.stages.dag import StageDag, pooled_stages, run_time, run_time_bounds
from headway.models.stages.makespan import makespan_moments, mean_first_idle
from headway.models.stages.schedule import JobStage, Moment, StageSchedule, latest
from tests.oracles.stage_dag import StageDagTrace, simulated_lognormal_stage_dag
from tests.seeds import examples

Shape = tuple[tuple[int, float, float, tuple[int, ...]], ...]
# A two-sided join with an aggregation, a diamond, chains beside each other, a broadcast, a fan-in.
JOBS: dict[str, tuple[int, Shape]] = {
    "join": (16, ((24, 1.0, 0.3, ()), (24, 1.0, 0.3, ()), (8, 1.0, 0.3, (0, 1)))),
    "unlike join": (16, ((20, 1.0, 0.3, ()), (4, 3.0, 0.3, ()), (16, 1.0, 0.3, (0, 1)))),
    "diamond": (8, ((12, 1.0, 0.5, ()), (20, 0.5, 0.5, (0,)), (5, 2.0, 0.5, (0,)),
                    (8, 1.0, 0.5, (1, 2)))),
    "chains": (16, ((8, 1.0, 1.0, ()), (6, 1.5, 1.0, ()), (8, 1.0, 1.0, (0,)),
                    (6, 1.5, 1.0, (1,)))),
    "broadcast": (16, ((1, 2.0, 0.3, ()), (100, 0.5, 0.3, ()), (100, 0.5, 0.3, (0, 1)))),
    "fan-in": (16, (*[(4, 1.0, 1.0, ())] * 4, (4, 1.0, 0.3, (0, 1, 2, 3)))),
}  # fmt: skip


def job(shape: Shape) -> StageDag:
    return StageDag(
        stages=tuple(
            JobStage(num_tasks=count, mean_s=mean, cv=cv, parents=parents)
            for count, mean, cv, parents in shape
        )
    )


def simulated(dag: StageDag, num_cores: int, num_replications: int, seed: int = 1) -> StageDagTrace:
    return simulated_lognormal_stage_dag(
        [(stage.num_tasks, stage.mean_s, stage.cv) for stage in dag.stages],
        [stage.parents for stage in dag.stages],
        num_cores,
        num_replications=num_replications,
        seed=seed,
    )


def random_job(seed: int, num_cores: int, cvs: list[float]) -> StageDag:
    generator = np.random.default_rng(seed)
    shape = []
    for number in range(int(generator.integers(2, 9))):
        count = max(int(np.exp(generator.uniform(0.0, np.log(6.0 * num_cores)))), 1)
        mean = float(np.exp(generator.uniform(np.log(0.3), np.log(3.0))))
        above = generator.integers(0, max(number, 1), int(generator.integers(0, 3)))
        parents = tuple(sorted({int(one) for one in above})) if number else ()
        shape.append((count, mean, float(generator.choice(cvs)), parents))
    return job(tuple(shape))


@pytest.mark.parametrize("name", JOBS)
def test_usual_jobs_against_simulation(name: str) -> None:
    num_cores, shape = JOBS[name]
    dag = job(shape)
    sample = simulated(dag, num_cores, 2000).run_time_s
    time = run_time(dag, num_cores)
    assert time.mean_s == pytest.approx(sample.mean(), rel=0.03)
    assert time.sd_s == pytest.approx(sample.std(), rel=0.25)
    lower_s, upper_s = run_time_bounds(dag, num_cores)
    assert lower_s <= sample.mean() <= upper_s


@pytest.mark.parametrize("num_cores", [3, 8, 40])
def test_a_chain_is_the_sum_of_its_makespans(num_cores: int) -> None:
    dag = job(((20, 1.0, 0.5, ()), (7, 2.0, 0.2, (0,)), (33, 0.3, 1.0, (1,))))
    alone = [makespan_moments(stage.num_tasks, num_cores, stage.cv) for stage in dag.stages]
    scales = [stage.mean_s for stage in dag.stages]
    time = run_time(dag, num_cores)
    expected = sum(one.mean * scale for one, scale in zip(alone, scales, strict=True))
    variance = sum((one.sd * scale) ** 2 for one, scale in zip(alone, scales, strict=True))
    assert time.mean_s == pytest.approx(expected, rel=1e-9)
    assert time.sd_s == pytest.approx(np.sqrt(variance), rel=1e-9)


def test_without_noise_and_with_room_it_is_the_critical_path() -> None:
    dag = job(((4, 1.0, 0.0, ()), (4, 2.0, 0.0, ()), (3, 1.5, 0.0, (0,)), (2, 1.0, 0.0, (1, 2))))
    time = run_time(dag, 20)
    assert time.mean_s == pytest.approx(1.0 + 1.5 + 1.0)
    assert time.sd_s == pytest.approx(0.0, abs=1e-9)
    stage_ends = StageSchedule(dag.pooled, 20).stage_ends()
    assert [end.mean_s for end in stage_ends] == pytest.approx([1.0, 2.0, 2.5, 3.5])


def test_one_core_does_all_the_work() -> None:
    dag = job(((3, 1.0, 0.5, ()), (4, 2.0, 0.5, ()), (2, 1.0, 0.5, (0, 1))))
    time = run_time(dag, 1)
    assert time.mean_s == pytest.approx(dag.work_s, rel=1e-6)
    assert run_time_bounds(dag, 1) == pytest.approx((dag.work_s, dag.work_s))


def test_bounds_of_constant_stages_are_grahams() -> None:
    dag = job(((9, 1.0, 0.0, ()), (5, 2.0, 0.0, (0,))))
    lower, upper = run_time_bounds(dag, 4)
    assert lower == pytest.approx(9 / 4 + 5 * 2.0 / 4)
    assert upper == pytest.approx(19.0 / 4 + 0.75 * 3.0)
    assert lower <= simulated(dag, 4, 1).run_time_s[0] <= upper


@examples(12, 60)
@given(st.integers(0, 10_000), st.sampled_from([1, 3, 8, 32]), st.sampled_from([0.0, 0.3, 1.0]))
def test_run_times_are_within_bounds_and_grow_with_delays(
    seed: int, num_cores: int, cv: float
) -> None:
    dag = random_job(seed, num_cores, [cv])
    time = run_time(dag, num_cores)
    assert np.isfinite(time.mean_s)
    assert np.isfinite(time.sd_s)
    lower_s, upper_s = run_time_bounds(dag, num_cores)
    assert lower_s <= time.mean_s <= upper_s
    assert time.sd_s >= 0.0
    stage_ends = StageSchedule(dag.pooled, num_cores).stage_ends()
    for stage, end in zip(dag.pooled, stage_ends, strict=True):
        assert all(stage_ends[parent].mean_s < end.mean_s for parent in stage.parents)
    slower = StageDag(
        stages=tuple(replace(stage, mean_s=1.5 * stage.mean_s) for stage in dag.stages)
    )
    assert run_time(slower, num_cores).mean_s == pytest.approx(1.5 * time.mean_s)
    assert run_time(dag, 100 * num_cores).mean_s <= time.mean_s * 1.03


@examples(10, 25)
@given(st.integers(0, 10_000), st.sampled_from([2, 6]))
def test_means_keep_their_bounds(seed: int, num_cores: int) -> None:
    dag = random_job(seed, num_cores, [0.1, 1.0])
    sample = simulated(dag, num_cores, 200, seed).run_time_s
    noise = 4.5 * sample.std() / np.sqrt(200.0)
    lower, upper = run_time_bounds(dag, num_cores)
    assert lower - noise <= sample.mean() <= upper + noise


def test_the_latest_of_normals() -> None:
    alike = [Moment(1.0, row) for row in 0.5 * np.eye(2)]
    assert latest(alike, np.zeros(2)).mean_s == pytest.approx(1.0 + 0.5 * max_normal(2).mean, 1e-4)
    assert latest(alike, np.zeros(2)).sd_s == pytest.approx(0.5 * max_normal(2).sd, rel=2e-3)
    # What both have in common is not in competition.
    common = [Moment(1.0, np.array([3.0, *row])) for row in 0.5 * np.eye(2)]
    joined = latest(common, np.zeros(3))
    assert joined.mean_s == pytest.approx(1.0 + 0.5 * max_normal(2).mean, rel=1e-3)
    assert joined.sd_s == pytest.approx(np.hypot(3.0, 0.5 * max_normal(2).sd), rel=1e-3)


@pytest.mark.parametrize("cv", [0.1, 0.5, 1.0])
def test_the_latest_of_lognormals(cv: float) -> None:
    alike = [Moment(1.0, row) for row in cv * np.eye(2)]
    joined = latest(alike, np.full(2, 3.0 * cv + cv**3))
    expected = max_lognormal(2, cv)
    assert joined.mean_s == pytest.approx(expected.mean, rel=1e-3)
    assert joined.sd_s == pytest.approx(expected.sd, rel=5e-3)


def test_one_that_is_surely_last() -> None:
    early, late = Moment(1.0, np.array([0.1, 0.0])), Moment(9.0, np.array([0.0, 0.3]))
    joined = latest([early, late], np.ones(2))
    assert joined.mean_s == pytest.approx(9.0, rel=1e-5)
    assert joined.sd_s == pytest.approx(0.3, rel=1e-2)
    constant = [Moment(time, np.zeros(2)) for time in (2.0, 3.0, 1.0)]
    assert latest(constant, np.zeros(2)).mean_s == 3.0


def test_the_first_idle_core() -> None:
    generator = np.random.default_rng(3)
    for num_tasks, num_cores, cv in ((20, 16, 0.3), (64, 8, 0.5), (10, 4, 1.0), (33, 16, 0.1)):
        log_variance = np.log1p(cv * cv)
        normal = generator.standard_normal((4000, num_tasks))
        times = np.exp(np.sqrt(log_variance) * normal - log_variance / 2.0)
        free = np.zeros((4000, num_cores))
        for task in times.T:
            free[np.arange(4000), free.argmin(axis=1)] += task
        expected = free.min(axis=1).mean()
        assert mean_first_idle(num_tasks, num_cores, cv) == pytest.approx(expected, rel=0.06)
    assert mean_first_idle(4, 8, 0.5) == 0.0
    assert mean_first_idle(5, 1, 0.5) == 5.0


def test_stages_that_are_alike_are_pooled() -> None:
    def stage(mean: float, *parents: int) -> JobStage:
        return JobStage(num_tasks=4, mean_s=mean, cv=0.5, parents=parents)

    # Alike and in a row, but the last is waited for by nobody.
    merged, pool_of = pooled_stages((stage(1.0), stage(1.1), stage(1.0), stage(1.0, 0, 1)))
    assert pool_of == (0, 0, 1, 2)
    assert merged[2].parents == (0,)
    assert merged[0].work_s == pytest.approx(8.4)
    _, pool_of = pooled_stages((stage(1.0), stage(3.0), stage(1.0, 0, 1)))
    assert pool_of == (0, 1, 2)
    # A stage between two that are alike keeps its place in the line.
    _, pool_of = pooled_stages((stage(1.0), stage(5.0), stage(1.0)))
    assert pool_of == (0, 1, 2)


def test_refusals() -> None:
    one = JobStage(num_tasks=1, mean_s=1.0, cv=0.1)
    for arguments in ({"num_tasks": 0}, {"mean_s": 0.0}, {"cv": -0.1}, {"cv": 11.0}):
        with pytest.raises(ValueError, match="need a task"):
            JobStage(**({"num_tasks": 1, "mean_s": 1.0, "cv": 0.1} | arguments))
    with pytest.raises(ValueError, match="at least one stage"):
        StageDag(stages=())
    with pytest.raises(ValueError, match="does not come before"):
        StageDag(stages=(JobStage(num_tasks=1, mean_s=1.0, cv=0.1, parents=(0,)),))
    for function in (run_time, run_time_bounds):
        with pytest.raises(ValueError, match="num_cores"):
            function(StageDag(stages=(one,)), 0)
    with pytest.raises(ValueError, match="one moment"):
        latest([], np.zeros(1))


@pytest.mark.statistical
@pytest.mark.parametrize("cv", [0.1, 0.3, 1.0])
@pytest.mark.parametrize("num_cores", [4, 16, 64])
def test_random_jobs_against_simulation(num_cores: int, cv: float) -> None:
    errors, spreads = [], []
    for seed in range(120):
        dag = random_job(seed, num_cores, [cv])
        sample = simulated(dag, num_cores, 300, seed).run_time_s
        time = run_time(dag, num_cores)
        errors.append(time.mean_s / sample.mean() - 1.0)
        spreads.append(time.sd_s / sample.std() - 1.0)
    assert np.median(np.abs(errors)) < 0.03
    assert np.quantile(np.abs(errors), 0.9) < 0.09
    assert np.median(np.abs(spreads)) < 0.25


def test_the_widest_spread_may_be_off_by_a_rounding() -> None:
    stage = JobStage(num_tasks=2, mean_s=13.6, cv=float(np.nextafter(10.0, 11.0)))
    assert stage.work_s > 0
    with pytest.raises(ValueError, match=r"cv in 0\.\.10"):
        JobStage(num_tasks=2, mean_s=13.6, cv=10.1)
