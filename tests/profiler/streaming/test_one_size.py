"""Batches of one size do not show the cost of a row: what a profile of them may say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from headway.domain import Arrivals, FindingCode, JobProfile, Target
from headway.formats.profile_file import dump_profile, load_profile
from headway.models.job.advice import SettingLatency, advised_runs
from headway.models.job.calibration import is_calibrated, spread_ratio
from headway.models.job.capacity import Capacity
from headway.models.job.predict import predict
from headway.planner.question import Question, SearchSpace
from headway.planner.verdict import judged_setting
from headway.profiler.streaming.fit import fit_duration
from headway.words import all_words
from tests.profiler.streaming.one_size_jobs import (
    RUN_RATIO,
    SLOTS,
    DrawnJob,
    DrawnStage,
    drawn_job,
    drawn_job_of_own_operators,
    profile_from_one_run,
    run_of,
)
from tests.seeds import seeds

SIZES = (0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0)


def a_job(rows_share: float, *, kind: str = "alike", cpu_ratio: float = 0.0) -> DrawnJob:
    """Tasks of a second, of which a share is for rows, which use so much CPU."""
    stage = DrawnStage(
        num_tasks=8,
        reported_s=0.005,
        set_up_s=0.0,
        waiting_s=0.995 - rows_share,
        rows_s=rows_share,
        rows_cpu_ratio=cpu_ratio,
    )
    return DrawnJob(kind=kind, rows=1_000.0, driver_s=0.1, stages=(stage,), exponent=1.0)


def a_profile_of(rows_share: float, **changes: object) -> tuple[DrawnJob, JobProfile]:
    job = a_job(rows_share, **changes)  # type: ignore[arg-type]
    return job, profile_from_one_run(job, np.random.default_rng(1))


@pytest.mark.parametrize(
    ("operators", "is_bounded"),
    [
        (("HashAggregate", "StateStoreSave"), True),
        (("HashAggregate", "ArrowEvalPython"), False),
        (("DeserializeToObject", "MapGroups"), False),
        ((), False),
    ],
)
def test_few_rows_of_sql_operators_do_not_explain_a_long_task(
    operators: tuple[str, ...], is_bounded: bool
) -> None:
    job = a_job(0.0)
    stage = replace(job.stages[0], operators=operators)
    few_rows = replace(job, rows=16.0, stages=(replace(job.stages[0], waiting_s=0.1), stage))
    profile = profile_from_one_run(few_rows, np.random.default_rng(1))
    fitted = profile.stages[1]
    rows_s = 2.0 * fitted.task_per_row_s
    assert (rows_s <= 0.021) == is_bounded
    assert rows_s + fitted.task_fixed_s == pytest.approx(1.0, abs=0.2)


def test_unequal_tasks_that_vary_by_more_than_they_take_show_no_negative_time() -> None:
    job = a_job(0.95, kind="unequal tasks")
    wild = replace(job, stages=(replace(job.stages[0], other_sd_ratio=1.5),))
    profile = profile_from_one_run(wild, np.random.default_rng(1))
    stage = profile.stages[0]
    assert stage.task_fixed_s == pytest.approx(0.05, abs=0.02)
    assert stage.task_per_row_s * 1_000.0 / 8 == pytest.approx(0.95, abs=0.2)


def test_without_other_evidence_the_cost_of_a_row_is_anything() -> None:
    _, profile = a_profile_of(0.5)
    assert profile.row_cost_half_range_ratio == pytest.approx(1.0, abs=0.02)
    stage = profile.stages[0]
    rows_s = stage.task_per_row_s * 1_000.0 / 8
    assert rows_s / (rows_s + stage.task_fixed_s) == pytest.approx(0.75, abs=0.02)


def test_rows_that_are_as_many_in_every_batch_do_not_narrow_the_range() -> None:
    """Two rows in a task and none in another show what a row costs behind an exchange, not before.

    The first stage leaves open a cost of a row from nothing to all of its time.
    """
    job = a_job(0.5)
    run = run_of(replace(job, stages=job.stages * 2), np.random.default_rng(1))
    sizes = np.random.default_rng(2).normal(1.0, 0.1, len(run.batches))
    batches = tuple(
        replace(
            batch,
            num_rows=round(size * job.rows),
            stages=(
                replace(batch.stages[0], rows_read=size * job.rows),
                replace(
                    batch.stages[1],
                    rows_read=16.0,
                    rows_variance=4.0,
                    rows_time_covariance_s=1.0,
                    task_sd_s=0.5,
                ),
            ),
        )
        for batch, size in zip(run.batches, sizes, strict=True)
    )
    fit = fit_duration([replace(run, batches=batches)])
    assert [stage.rows.exponent for stage in fit.stages] == pytest.approx([1.0, 0.0], abs=0.02)
    assert fit.stages[1].task_per_row_s == pytest.approx(0.25, rel=0.1)
    assert fit.row_cost_half_range_ratio == pytest.approx(1.0, abs=0.02)


def test_cpu_time_is_at_least_for_the_rows() -> None:
    _, profile = a_profile_of(0.8, cpu_ratio=1.0)
    assert profile.row_cost_half_range_ratio == pytest.approx(0.18, abs=0.03)


@pytest.mark.parametrize(
    ("kind", "half_range_ratio"), [("empty batch", 0.26), ("unequal tasks", 0.2)]
)
def test_other_evidence_narrows_the_range(kind: str, half_range_ratio: float) -> None:
    _, profile = a_profile_of(0.6, kind=kind)
    assert profile.row_cost_half_range_ratio is not None
    # The first batch of a query may be off by a third.
    assert 0.3 < profile.row_cost_half_range_ratio / half_range_ratio < 2.0


def test_the_cpu_time_of_own_operators_shows_the_cost_of_a_row() -> None:
    own = ("HashAggregate", "Exchange")
    for fixed_s, rows_s in ((0.04, 0.01), (0.04, 2.0)):
        stage = DrawnStage(
            num_tasks=8, reported_s=0.01, set_up_s=0.006, waiting_s=fixed_s - 0.016,
            rows_s=rows_s, rows_cpu_ratio=1 / 1.15, operators=own,
        )  # fmt: skip
        job = DrawnJob(kind="alike", rows=8e4, driver_s=0.1, stages=(stage,), exponent=1.0)
        fitted = profile_from_one_run(job, np.random.default_rng(2)).stages[0]
        assert fitted.task_per_row_s * 1e4 == pytest.approx(rows_s, rel=0.3, abs=0.004)


def test_at_the_profiled_size_nothing_is_open() -> None:
    _, profile = a_profile_of(0.5)
    known = replace(profile, row_cost_half_range_ratio=None)
    rows = profile.rows_per_batch_range[0]
    assert float(spread_ratio(profile, 4, 8, rows)) == float(spread_ratio(known, 4, 8, rows))
    assert is_calibrated(profile, 4, 8, rows)
    assert is_calibrated(known, 4, 8, 3.9 * rows)
    assert not is_calibrated(profile, 4, 8, 3.9 * rows)


def test_the_file_of_a_profile_keeps_it(tmp_path: Path) -> None:
    _, profile = a_profile_of(0.8, cpu_ratio=1.0)
    file = tmp_path / "one.profile.yaml"
    file.write_text(dump_profile(profile))
    ratio = load_profile(file).row_cost_half_range_ratio
    assert ratio == pytest.approx(profile.row_cost_half_range_ratio, rel=1e-5)
    known = replace(profile, row_cost_half_range_ratio=None)
    assert "row_cost_half_range_ratio" not in dump_profile(known)


def test_beyond_the_expected_limit_stability_is_not_known() -> None:
    job, profile = a_profile_of(0.5)
    configuration = replace(job.configuration, trigger_s=0.0)
    expected = Capacity.of(profile, configuration)
    for rate_per_s in (1.5 * expected.stable_up_to_per_s, 1e9):
        prediction = predict(profile, configuration, Arrivals(rate_per_s=rate_per_s))
        assert prediction.stable
        assert not prediction.calibrated
        assert prediction.tuple_latency is None
        (finding, *_) = prediction.findings
        assert finding.code is FindingCode.STABILITY_NOT_KNOWN
        (words, *_) = all_words(prediction.findings)
        assert "is not known: no batch was larger than 1,000 rows" in words
        assert prediction.sustainable_rate_per_s <= 4_000.0 / float(expected.model.mean_s(4_000.0))


def test_far_from_the_profiled_size_it_says_what_is_not_known() -> None:
    job, profile = a_profile_of(0.5)
    for ratio, words in ((5.0, "no batch was larger than"), (0.1, "no batch was smaller than")):
        trigger_s = 20.0
        prediction = predict(
            profile,
            replace(job.configuration, trigger_s=trigger_s),
            Arrivals(rate_per_s=ratio * 1_000.0 / trigger_s),
        )
        assert not prediction.calibrated
        assert any(words in text for text in all_words(prediction.findings))


def test_a_run_of_another_size_is_advised_and_would_settle_it() -> None:
    job, profile = a_profile_of(0.5)
    trigger_s = 20.0
    prediction = predict(
        profile,
        replace(job.configuration, trigger_s=trigger_s),
        Arrivals(rate_per_s=4_000.0 / trigger_s),
    )
    first = advised_runs(profile, SettingLatency.of(prediction))[0]
    assert first.num_rows > 1_500.0
    narrowing = first.narrowing
    assert narrowing is not None
    assert narrowing.error_after_ratio < 0.6 * narrowing.error_now_ratio


def intervals(job: DrawnJob, profile: JobProfile, rng: np.random.Generator) -> Iterator[bool]:
    """Whether the interval holds a run's mean duration, at each size."""
    for ratio in SIZES:
        trigger_s = 10.0 * job.mean_s(max(ratio, 1.0)) * max(ratio, 1.0)
        prediction = predict(
            profile,
            replace(job.configuration, trigger_s=trigger_s),
            Arrivals(rate_per_s=ratio * job.rows / trigger_s, dispersion_ratio=0.0),
        )
        assert prediction.batch_duration is not None
        ends = prediction.batch_duration.interval90_mean_s
        assert ends is not None
        run_s = job.mean_s(ratio) * np.exp(rng.normal(0.0, RUN_RATIO))
        yield bool(ends.low <= run_s <= ends.high)


def probability(
    job: DrawnJob, profile: JobProfile, target: Target, *, rate_per_s: float, trigger_s: float
) -> float:
    """That the target is met, as a plan would say."""
    arrivals = Arrivals(rate_per_s=rate_per_s, dispersion_ratio=0.0)
    question = Question(
        profile=replace(profile, arrivals=arrivals),
        target=target,
        space=SearchSpace(max_nodes=1, cores_per_executor=SLOTS),
        confidence=0.95,
    )
    return judged_setting(question, replace(job.configuration, trigger_s=trigger_s)).probability


def squared_error(job: DrawnJob, profile: JobProfile, rng: np.random.Generator) -> float:
    """Of the probability that a target is met, at a size and for a limit drawn at random."""
    ratio = float(np.exp(rng.uniform(np.log(0.1), np.log(10.0))))
    target = Target.parse("batch mean <= 1s")
    limit_s = job.mean_s(1.0) * float(np.exp(rng.uniform(np.log(0.1), np.log(10.0))))
    trigger_s = 4.0 * job.mean_s(max(ratio, 1.0)) * max(ratio, 1.0)
    probable = probability(
        job,
        profile,
        replace(target, limit_s=limit_s),
        rate_per_s=ratio * job.rows / trigger_s,
        trigger_s=trigger_s,
    )
    is_met = job.mean_s(ratio) * np.exp(rng.normal(0.0, RUN_RATIO)) <= limit_s
    return (probable - float(is_met)) ** 2


@pytest.mark.parametrize(
    ("draw", "num_jobs"),
    [
        (drawn_job_of_own_operators, 60),
        pytest.param(drawn_job_of_own_operators, 360, marks=pytest.mark.statistical),
        pytest.param(drawn_job, 360, marks=pytest.mark.statistical),
    ],
)
def test_what_is_said_of_drawn_jobs_is_borne_out(
    draw: Callable[[np.random.Generator], DrawnJob], num_jobs: int
) -> None:
    """A job has much the same error at all sizes, so the share of 60 jobs may be off by 0.04."""
    rng = np.random.default_rng(0)
    held, squares = [], []
    for _ in range(num_jobs):
        job = draw(rng)
        profile = profile_from_one_run(job, rng)
        held += list(intervals(job, profile, rng))
        squares.append(squared_error(job, profile, rng))
        configuration, limit_per_s = replace(job.configuration, trigger_s=0.0), job.limit_per_s
        half = predict(profile, configuration, Arrivals(rate_per_s=0.5 * limit_per_s))
        assert half.stable, "not stable below half of the true limit"
        assert half.sustainable_rate_per_s <= 2.0 * limit_per_s
    assert 0.85 <= np.mean(held) <= 0.98
    assert np.mean(squares) <= 0.1


@pytest.mark.parametrize("seed", seeds(2, 40))
def test_no_rate_above_twice_the_limit_is_sure(seed: int) -> None:
    rng = np.random.default_rng(seed)
    job = drawn_job(rng)
    profile = profile_from_one_run(job, rng)
    sure = probability(
        job,
        profile,
        Target.parse("p99 <= 20h"),
        rate_per_s=2.0 * job.limit_per_s,
        trigger_s=0.0,
    )
    assert sure < 0.95
