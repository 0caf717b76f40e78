"""Costs of tasks, recovered from batches that were made of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from headway.domain import Separation, StageProfile, StateOperatorProfile
from headway.domain.profile import CHECKPOINT_PHASES
from headway.models.job.setting import duration_model
from headway.profiler.operators import Operator
from headway.profiler.streaming.batch_samples import unpacked
from headway.profiler.streaming.batch_sizes import has_one_size, without_feedback
from headway.profiler.streaming.fit import fit_duration
from headway.profiler.streaming.samples import (
    ArrivalSeries,
    BatchSample,
    QueryRun,
    StateSample,
)
from headway.profiler.streaming.stage_fit import fit_stage
from headway.profiler.streaming.stage_kinds import StageKind
from headway.profiler.streaming.stage_runs import StageRuns
from headway.profiler.streaming.summarize import profile_of_runs
from headway.profiler.streaming.task_times import parts_s
from headway.profiler.streaming.times_at_age import StageTimes
from tests.factories import a_configuration, a_profile, a_stage_sample

FIXED_S, PER_ROW_S, PER_STATE_ROW_S, HANDOVER_S = 0.02, 2e-6, 0.8e-6, 0.002
SLOTS = 2


def a_batch(number: int, rows: int, partitions: int, in_state: int, slowness: float) -> BatchSample:
    """A map stage of two tasks, and one that holds the state; all tasks of a stage are alike."""
    reduce_s = FIXED_S + PER_ROW_S * rows / partitions + PER_STATE_ROW_S * in_state / partitions
    stages = tuple(
        a_stage_sample(
            level=level,
            num_tasks=num_tasks,
            rows=float(rows),
            task_mean_s=slowness * (slot_s + HANDOVER_S),
            outside_run_s=0.008,
            scheduler_delay_s=0.004,
            span_s=slowness * (slot_s * num_tasks / SLOTS + HANDOVER_S),
            run_s=1.0,
            cpu_s=1.0,
        )
        for level, num_tasks, slot_s in (
            (0, 2, 0.01 + 1e-5 * rows / 2),
            (1, partitions, reduce_s),
        )
    )
    return BatchSample(
        batch_id=number,
        started_s=float(number),
        interval_s=1.0,
        jvm_age_s=300.0 + number,
        duration_s=0.1 + sum(stage.span_s for stage in stages),
        phases_s={},
        num_rows=rows,
        # Spark reports what the state of all its stores took to commit.
        state_commit_s=partitions * (FIXED_S - 0.008),
        state=StateSample(num_rows=in_state, memory_bytes=0, num_stores=partitions),
        event_time_lag_s=None,
        stages_s=sum(stage.span_s for stage in stages),
        stages=stages,
    )


def a_run(rows: int, partitions: int, *, grows: bool, slowness: float = 1.0) -> QueryRun:
    """Eight batches, of which each leaves its rows in the state if that grows."""
    profile = a_profile()
    return QueryRun(
        query_id=f"{rows}-{partitions}",
        query_name="growing",
        shape=profile.shape,
        configuration=a_configuration(
            executors=1, cores_per_executor=SLOTS, shuffle_partitions=partitions
        ),
        arrivals=ArrivalSeries(
            counted="rows",
            arrived_rows=np.full(8, float(rows)),
            interval_s=np.ones(8),
            lag_rows=None,
            partition_rows={},
        ),
        rate_per_s=float(rows),
        num_cut=0,
        pinned_state_partitions=partitions,
        source_partitions=2,
        batches=tuple(
            a_batch(number, rows, partitions, rows * number if grows else 5_000, slowness)
            for number in range(1, 9)
        ),
    )


def recorded(runs: Sequence[QueryRun], stage_index: int) -> tuple[StageRuns, StageTimes]:
    """A stage, and its times as recorded."""
    stage = StageRuns(runs=runs, stage_index=stage_index)
    return stage, StageTimes.of(runs, stage_index)


def fitted(runs: Sequence[QueryRun], stage_index: int) -> StageProfile:
    """A stage with the costs of its tasks."""
    return fit_stage(*recorded(runs, stage_index), ())[0]


def test_a_row_of_a_growing_state_has_its_price() -> None:
    runs = [
        a_run(rows, partitions, grows=True, slowness=slowness)
        for rows, partitions, slowness in ((35_000, 2, 1.05), (200_000, 2, 0.96), (100_000, 8, 1.0))
    ]
    fit = fitted(runs, 1)
    assert fit.task_per_state_row_s == pytest.approx(PER_STATE_ROW_S, rel=0.1)
    assert fit.task_per_row_s == pytest.approx(PER_ROW_S, rel=0.3)
    # Nothing is charged to the state that another stage holds.
    assert fitted(runs, 0).task_per_state_row_s == 0.0


def with_windows_behind(run: QueryRun) -> QueryRun:
    """The run with a second aggregation, which Spark reports first, and which holds ten rows."""
    writes = ("StateStoreRestore", "StateStoreSave")
    kinds = (
        StageKind(0, False, ("MicroBatchScan",), 0),
        StageKind(0, True, writes, 0),
        StageKind(0, True, writes, 1),
    )
    batches = []
    for batch in run.batches:
        source, reduce = batch.stages
        windows = replace(reduce, level=2, rows_read=10.0, task_mean_s=FIXED_S, cpu_s=0.0)
        stages = tuple(
            replace(stage, kind=kind)
            for stage, kind in zip((source, reduce, windows), kinds, strict=True)
        )
        operators = tuple(
            StateOperatorProfile(
                name="stateStoreSave", rows=rows, memory_bytes=0, num_stores=4, commit_s=commit_s
            )
            for rows, commit_s in ((10, 0.0), (batch.state.num_rows, 1.0))
        )
        state = replace(batch.state, num_rows=batch.state.num_rows + 10, operators=operators)
        batches.append(replace(batch, stages=stages, state=state))
    return replace(run, batches=tuple(batches))


def test_each_of_two_stages_has_the_state_of_its_own_operator() -> None:
    runs = [
        with_windows_behind(a_run(rows, partitions, grows=True))
        for rows, partitions in ((35_000, 2), (200_000, 2), (100_000, 8))
    ]
    first, second = (fitted(runs, stage_index) for stage_index in (1, 2))
    assert first.task_per_state_row_s == pytest.approx(PER_STATE_ROW_S, rel=0.1)
    assert second.task_per_state_row_s == 0.0
    # The commits are those of the first aggregation, too.
    commit_s = [batch.state_commit_s / batch.stages[1].num_tasks for batch in runs[0].batches]
    outside_s = [batch.stages[1].outside_run_s for batch in runs[0].batches]
    assert parts_s(*recorded(runs[:1], 1)) == pytest.approx(np.add(outside_s, commit_s))
    assert parts_s(*recorded(runs[:1], 2)) == pytest.approx(outside_s)


def test_a_state_that_stays_is_no_reason() -> None:
    runs = [a_run(rows, 2, grows=False) for rows in (35_000, 200_000)]
    assert fitted(runs, 1).task_per_state_row_s == 0.0


def a_join_run(rows: int, interval_s: float, partitions: int, slowness: float = 1.0) -> QueryRun:
    """Batches that find what arrived in the two seconds before their own rows, and keep these."""
    run = a_run(rows, partitions, grows=False)
    held = round(2.0 * rows / interval_s)
    batches = []
    for number in range(1, 9):
        batch = a_batch(number, rows, partitions, held, slowness)
        state = replace(batch.state, num_rows=held + rows, num_updated=rows)
        batches.append(replace(batch, interval_s=interval_s, state=state))
    return replace(
        run,
        shape=replace(run.shape, stateful_operators=("symmetricHashJoin",)),
        rate_per_s=rows / interval_s,
        batches=tuple(batches),
    )


JOIN_RUNS = ((16_000, 0.3, 2, 1.03), (100_000, 2.0, 8, 0.98), (200_000, 3.0, 2, 1.0))


def test_the_rows_that_a_join_holds_have_their_price() -> None:
    """As fast as possible there are thirteen times as many of them as rows in a batch."""
    runs = [a_join_run(*figures) for figures in JOIN_RUNS]
    fit = fitted(runs, 1)
    assert fit.task_per_state_row_s == pytest.approx(PER_STATE_ROW_S, rel=0.25)
    assert fit.task_per_row_s == pytest.approx(PER_ROW_S, rel=0.25)
    # RocksDB copies nothing, so what the rows of the state take is not separated there.
    in_rocksdb = [replace(run, state_store="RocksDBStateStoreProvider") for run in runs]
    assert fitted(in_rocksdb, 1).task_per_state_row_s == 0.0


def test_a_join_is_predicted_at_another_interval_with_the_state_of_its_rate() -> None:
    runs = [a_join_run(*figures) for figures in JOIN_RUNS]
    profile = profile_of_runs(runs, a_profile().applications, "0.1.0")
    asked = a_join_run(60_000, 1.0, 4)
    at_rate = replace(profile, arrivals=replace(profile.arrivals, rate_per_s=asked.rate_per_s))
    assert at_rate.num_held_rows == pytest.approx(120_000, rel=0.01)
    levels = duration_model(at_rate, SLOTS, 4).levels
    predicted_s = sum(float(level.at(60_000.0)) for level in levels)
    assert predicted_s == pytest.approx(asked.batches[0].stages_s, rel=0.03)


def test_handover_is_no_part_of_the_time_of_a_slot() -> None:
    runs = [a_run(rows, 8, grows=False) for rows in (40_000, 400_000)]
    stage, handover_s, _ = fit_stage(*recorded(runs, 1), ())
    assert handover_s == pytest.approx(HANDOVER_S)
    state_s = PER_STATE_ROW_S * 5_000 / 8
    assert stage.task_fixed_s == pytest.approx(FIXED_S + state_s, abs=3e-4)
    # With as many slots as tasks nothing is handed over.
    assert fit_stage(*recorded(runs, 0), ())[1] == 0.0


def with_first_batch(run: QueryRun, slowness: float = 1.0) -> QueryRun:
    """The run with its first batch, which read nothing."""
    first = a_batch(0, 0, run.configuration.shuffle_partitions, 0, slowness)
    return replace(run, without_rows=(first,))


def test_batches_without_rows_tell_the_fixed_time() -> None:
    # Runs of neighbouring sizes, off by some per cent as a whole: a line through them says little,
    # and Spark reports 8 ms.
    sizes = ((150_000, 1.06), (200_000, 0.97), (260_000, 1.05))
    alone = [a_run(rows, 2, grows=False, slowness=slowness) for rows, slowness in sizes]
    runs = [with_first_batch(run, 0.9 + 0.1 * place) for place, run in enumerate(alone)]
    found = fitted(runs, 0)
    without = fitted(alone, 0)
    true_s = 0.01 + HANDOVER_S
    assert abs(found.task_fixed_s - true_s) < 0.3 * true_s
    assert abs(found.task_fixed_s - true_s) <= abs(without.task_fixed_s - true_s)


def test_one_run_charges_its_rows_with_what_a_batch_without_rows_does_not_take() -> None:
    run = a_run(100_000, 2, grows=False)
    assert fitted([run], 1).separation == "parts"
    fit = fitted([with_first_batch(run)], 1)
    assert fit.separation == "empty"
    assert fit.task_fixed_s == pytest.approx(FIXED_S + HANDOVER_S)
    state_s = PER_STATE_ROW_S * 5_000 / 2
    assert fit.task_per_row_s == pytest.approx((PER_ROW_S * 50_000 + state_s) / 50_000)


def test_first_batches_of_other_stages_do_not_count() -> None:
    run = a_run(100_000, 2, grows=False)
    first = a_batch(0, 0, 2, 0, 1.0)
    other = replace(run, without_rows=(replace(first, stages=first.stages[:1]),))
    assert fitted([other], 1).separation == "parts"


def with_operators(run: QueryRun, *names: str) -> QueryRun:
    """The run, whose stages are known to run these operators."""
    operators = tuple(
        Operator(is_replanned=False, position=position, name=name, table=None)
        for position, name in enumerate(names)
    )

    def known(batch: BatchSample) -> BatchSample:
        stages = tuple(replace(stage, operators=operators) for stage in batch.stages)
        return replace(batch, stages=stages)

    return replace(
        run,
        batches=tuple(map(known, run.batches)),
        without_rows=tuple(map(known, run.without_rows)),
    )


def test_the_first_batch_of_own_operators_compiles_their_code() -> None:
    own = with_operators(with_first_batch(a_run(100_000, 2, grows=False)), "HashAggregate")
    assert fitted([own], 1).separation == "parts"
    (first,) = own.without_rows
    later = replace(own, without_rows=(replace(first, batch_id=7),))
    assert fitted([later], 1).separation == "empty"


@pytest.mark.parametrize(
    ("operator", "separation"),
    [("HashAggregate", "tasks"), ("FlatMapGroupsInPandas", "parts")],
)
def test_code_of_the_user_may_cost_by_key_and_not_by_row(
    operator: str, separation: Separation
) -> None:
    run = with_operators(a_run(100_000, 2, grows=False), operator)
    batches = [
        replace(
            batch,
            stages=tuple(
                replace(stage, task_sd_s=0.01, rows_variance=4e8, rows_time_covariance_s=100.0)
                for stage in batch.stages
            ),
        )
        for batch in run.batches
    ]
    unequal = replace(run, batches=tuple(batches))
    assert fitted([unequal], 1).separation is separation


def at_one_rate(rows: Sequence[int]) -> QueryRun:
    """Batches of these rows, which arrived at a thousand per second."""
    batches = [
        replace(a_batch(number, num_rows, 2, 5_000, 1.0), interval_s=num_rows / 1_000.0)
        for number, num_rows in enumerate(rows)
    ]
    return replace(a_run(1_000, 2, grows=False), batches=tuple(batches))


def test_batches_that_follow_the_durations_before_them_show_no_cost_of_rows() -> None:
    # Slowness that lasts for several batches makes the batches after it large.
    slowness = np.convolve(np.random.default_rng(3).normal(0.0, 0.15, 64), np.ones(5), "valid")
    rows = [round(1_000.0 * float(np.exp(value))) for value in slowness]
    follows = at_one_rate(rows)
    assert np.std(rows) / np.mean(rows) > 0.25
    assert has_one_size([follows])
    assert np.ptp(np.array(rows) * without_feedback([follows])) < 2.0
    # Other rates, and a query that falls behind, do show it.
    batches = [replace(batch, interval_s=1.0) for batch in follows.batches]
    assert not has_one_size([replace(follows, batches=tuple(batches))])
    assert not has_one_size([at_one_rate([round(100 * 1.1**number) for number in range(60)])])


def aged(run: QueryRun, first_age_s: float, exponent: float) -> QueryRun:
    """The run at an age of its JVM, by which the driver became faster; its tasks did not."""
    batches = []
    for number, batch in enumerate(run.batches):
        age_s = first_age_s + number
        driver_s = 0.1 * (age_s / 1_000.0) ** -exponent
        batches.append(
            replace(
                batch,
                jvm_age_s=age_s,
                duration_s=batch.stages_s + driver_s,
                phases_s={"add_batch": batch.stages_s + driver_s},
            )
        )
    return replace(run, batches=tuple(batches))


def test_the_driver_of_an_older_jvm_is_faster_and_its_tasks_are_not() -> None:
    ages_s = (60.0, 250.0, 1_000.0)
    sizes = ((50_000, 2), (400_000, 2), (100_000, 8))
    runs = [
        aged(a_run(rows, partitions, grows=False), age_s, 0.3)
        for (rows, partitions), age_s in zip(sizes, ages_s, strict=True)
    ]
    fit = fit_duration(runs)
    assert fit.drift.driver_exponent == pytest.approx(0.3, abs=0.08)
    assert fit.drift.exponent == pytest.approx(0.0, abs=0.02)
    driver_s = sum(phase.mean_s for phase in fit.driver_phases)
    assert driver_s == pytest.approx(0.1, rel=0.1)
    seen_s = [np.mean([batch.duration_s for batch in run.batches]) for run in runs]
    # The exponent is drawn to the usual one.
    assert fit.modelled_mean_s == pytest.approx(seen_s, rel=0.04)


def test_a_profile_is_asked_at_the_age_of_its_driver() -> None:
    profile = a_profile()
    drift = replace(profile.drift, driver_exponent=0.5)
    profile = replace(profile, drift=drift, warm_up=None)
    young = profile.at_age(drift.reference_age_s / 4.0)
    for phase, later in zip(young.driver_phases, profile.driver_phases, strict=True):
        slower = 1.0 if phase.name in CHECKPOINT_PHASES else 2.0
        assert phase.mean_s == pytest.approx(slower * later.mean_s)
    assert young.stages == profile.stages
    assert profile.at_age(drift.reference_age_s) == profile
    # Older than any profiled run, it goes on as the inverse of the age.
    oldest_s = max(drift.reference_age_s, *(one.jvm_age_s for one in profile.settings))
    far = profile.at_age(1e6 * oldest_s).driver_phases[-1].mean_s
    assert far >= 0.49 * profile.at_age(oldest_s).driver_phases[-1].mean_s


def test_rows_that_were_packed_before_an_exchange_are_those_of_the_batch() -> None:
    batch = a_batch(1, 5000, 4, 0, 1.0)
    first, second = batch.stages
    packed = replace(second, rows_read=8.0, rows_largest=3.0, rows_variance=0.5)
    found = unpacked(replace(batch, stages=(first, packed)))
    assert found.stages[0] == first
    assert found.stages[1].rows_read == 5000.0
    assert found.stages[1].rows_largest == 1250.0
    assert found.stages[1].rows_variance == 0.0
    assert found.stages[1].task_mean_s == second.task_mean_s
