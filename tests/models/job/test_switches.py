"""What a switch saves, by numbers worked out by hand."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from headway.domain import (
    EmptyBatches,
    JobProfile,
    RowsLaw,
    StateOperatorProfile,
    StateProfile,
)
from headway.domain.switches import Switch
from headway.models.batches.intervals import held_back_trigger_s
from headway.models.job.setting import after_commit_s, duration_model
from headway.models.job.switches import file_time_s, turned, without_coalescing
from headway.models.job.turned import TimesSaved, TurnedJob, turned_job, with_times_saved
from tests.factories import a_profile, a_stage_observed

WIDER = math.exp(1.6448536 * 0.05)
"""The noise between runs of the profile is 5%."""


def job(profile: JobProfile, switch: Switch) -> TurnedJob:
    result = turned(profile, switch)
    assert not isinstance(result, str), result
    return result


def task_s(profile: JobProfile) -> float:
    return profile.stages[1].task_fixed_s


def with_state(num_stores: int = 8, **metrics_ms: float) -> JobProfile:
    """Eight stores, whose commits take 30 ms each; metrics are sums over them."""
    operator = StateOperatorProfile(
        name="stateStoreSave",
        rows=1000,
        memory_bytes=10**6,
        num_stores=num_stores,
        commit_s=0.03 * num_stores,
        store_metrics=metrics_ms,
    )
    state = StateProfile(
        rows=1000,
        memory_bytes=10**6,
        commit_per_partition_s=0.03,
        growth_per_s=0.0,
        updated_rows=800.0,
        updated_row_s=2e-6,
        operators=(operator,),
    )
    return a_profile(state=state, state_partitions=8)


def test_asynchronous_progress_takes_both_logs_out_of_the_batch() -> None:
    profile = a_profile()
    turned_jobs = job(profile, Switch.ASYNC_PROGRESS)
    before, after = (duration_model(one, 8, 8).driver_s for one in (profile, turned_jobs.expected))
    assert before - after == pytest.approx(0.03 + 0.028)
    assert after_commit_s(turned_jobs.expected) == 0.0
    least = duration_model(turned_jobs.least, 8, 8).driver_s
    assert before - least == pytest.approx(0.058 / WIDER)
    # More than there is cannot be saved.
    assert duration_model(turned_jobs.most, 8, 8).driver_s == pytest.approx(after)


def test_a_file_takes_the_mean_of_both_logs() -> None:
    assert file_time_s(a_profile()) == pytest.approx(0.029)


def test_changelog_flushes_once_in_ten_commits_and_uploads_beside_the_batch() -> None:
    # Of each of eight stores: flush 5 ms, checkpoint 3 ms, upload 20 ms; a file takes 10 ms, half
    # of an upload, since the logs' 29 ms are more.
    profile = with_state(
        rocksdbCommitFlushLatency=40.0,
        rocksdbCommitCheckpointLatency=24.0,
        rocksdbCommitFileSyncLatencyMs=160.0,
    )
    turned_jobs = job(profile, Switch.CHANGELOG)
    saved_s = [task_s(profile) - task_s(one) for one in turned_jobs]
    snapshot_s = 0.9 * 0.008
    assert saved_s[0] == pytest.approx(snapshot_s + 0.020 - 0.010)
    assert saved_s[1] == pytest.approx(snapshot_s / WIDER)
    assert saved_s[2] == pytest.approx((snapshot_s + 0.020) * WIDER)


def test_changelog_needs_to_know_what_commits_do() -> None:
    assert turned(a_profile(), Switch.CHANGELOG) == "the log shows no state"
    assert "what commits of RocksDB do" in str(turned(with_state(), Switch.CHANGELOG))


def test_stores_that_stay_loaded_save_what_tasks_take_beyond_them_and_other_tasks() -> None:
    """Of a task, 30 ms are commits and 0.2 ms updates, and a task that reads takes 12.5 ms."""
    profile = with_state()
    rows = 3.5 * 5000.0**0.7 / 8
    beyond_s = 0.06 + 1.25e-5 * rows - 0.03 - 0.0002 - 0.0125
    saved_s = [task_s(profile) - task_s(one) for one in job(profile, Switch.KEEP_LOADED)]
    assert saved_s == pytest.approx([beyond_s, 0.0, (beyond_s + 0.0125) * WIDER])
    # What is reported of loading is saved at least.
    slow = with_state(rocksdbLoadLatencyMs=8 * 40.0)
    assert task_s(slow) - task_s(job(slow, Switch.KEEP_LOADED).expected) == pytest.approx(0.04)


def test_an_operator_with_several_stores_commits_them_in_one_task() -> None:
    profile = with_state(num_stores=32)
    assert task_s(profile) - task_s(job(profile, Switch.NO_CHECKSUMS).expected) == pytest.approx(
        4 * 0.003
    )


def test_checksums_take_a_tenth_of_a_commit_and_half_at_most() -> None:
    profile = with_state()
    saved_s = [task_s(profile) - task_s(one) for one in job(profile, Switch.NO_CHECKSUMS)]
    assert saved_s == pytest.approx([0.003, 0.0, 0.015 * WIDER])


def test_the_file_manager_takes_most_of_commits_and_two_thirds_of_the_logs() -> None:
    profile = with_state()
    turned_jobs = job(profile, Switch.FILE_MANAGER)
    saved_s = [task_s(profile) - task_s(one) for one in turned_jobs]
    assert saved_s == pytest.approx([0.965 * 0.03, 0.9 * 0.03 / WIDER, 0.98 * 0.03 * WIDER])
    drivers_s = [duration_model(one, 8, 8).driver_s for one in (profile, *turned_jobs)]
    assert drivers_s[0] - drivers_s[1] == pytest.approx(0.68 * 0.058)
    assert drivers_s[0] - drivers_s[2] == pytest.approx(0.5 * 0.058 / WIDER)
    assert job(a_profile(shape=stateless().shape), Switch.FILE_MANAGER).expected.stages == (
        a_profile().stages
    )


def test_rocksdb_adds_what_rows_cost_and_takes_collections_away() -> None:
    """800 rows in 8 tasks: 100 rows of 10 us, and 3 ms; collections are a fifth of a task.

    Updates of 2 us are less than the file that the first makes; 125 rows are copied for 0.3 us.
    """
    profile = with_state()
    saved_s = task_s(profile) - task_s(job(profile, Switch.ROCKSDB).expected)
    assert saved_s == pytest.approx(125 * 3e-7 - 100 * 10e-6 - 0.003)
    observed = replace(a_stage_observed(), gc_ratio=0.2)
    busy = replace(
        profile, stages=(profile.stages[0], replace(profile.stages[1], observed=observed))
    )
    rows = 3.5 * 5000.0**0.7 / 8
    gc_s = 0.2 * (0.06 + 1.25e-5 * rows)
    turned_jobs = job(busy, Switch.ROCKSDB)
    assert task_s(busy) - task_s(turned_jobs.expected) == pytest.approx(saved_s + 0.5 * gc_s)
    assert task_s(busy) - task_s(turned_jobs.most) == pytest.approx(
        (gc_s + 125 * 1e-6 - 100 * (4e-6 - 2e-6)) * WIDER
    )
    assert "how many rows of state" in str(
        turned(replace(profile, state=replace(profile.state, updated_rows=None)), Switch.ROCKSDB)  # type: ignore[type-var]
    )


def test_windows_wait_for_the_next_batch_with_rows() -> None:
    empty = EmptyBatches(num_per_batch=0.5, duration_s=0.1, emitted_share=0.4, ahead_s=2.0)
    assert empty.emitted_share * empty.ahead_s == pytest.approx(0.8)
    assert job(a_profile(empty_batches=empty), Switch.NO_EMPTY_BATCHES).expected == a_profile()
    assert "no batches without rows" in str(turned(a_profile(), Switch.NO_EMPTY_BATCHES))
    with pytest.raises(ValueError, match=r"emitted_share is 1\.2"):
        replace(empty, emitted_share=1.2)


def stateless(**changes: Any) -> JobProfile:
    """A job without state whose exchange has 100 bytes a row."""
    observed = replace(a_stage_observed(), shuffle_read_bytes_per_row=100.0)
    last = replace(
        a_profile().stages[1], observed=observed, rows=RowsLaw(scale=1.0, exponent=1.0), **changes
    )
    shape = replace(a_profile().shape, stateful_operators=())
    return a_profile(stages=(a_profile().stages[0], last), shape=shape)


def test_adaptive_execution_merges_what_is_small() -> None:
    """Batches of 5,000 rows are 500 kB, less than the least size of a task: one task."""
    merged = job(stateless(), Switch.ADAPTIVE).expected
    (rule,) = [stage.coalescing for stage in merged.stages if stage.coalescing]
    assert (rule.advisory_bytes, rule.smallest_bytes) == (64 * 2**20, 2**20)
    one_task = duration_model(merged, 8, 8, batch_rows=5000.0).levels[1]
    assert float(one_task.at(5000.0)) == pytest.approx(0.06 + 1.25e-5 * 5000.0)
    assert without_coalescing(merged).stages[1].tasks_rule == "shuffle"
    assert "with state" in str(turned(a_profile(), Switch.ADAPTIVE))


def test_what_is_saved_beyond_the_fixed_time_shortens_the_rows() -> None:
    """A task has 3.5 * 5000^0.7 / 8 rows; half of them would take as long as what is left over."""
    profile = a_profile()
    rows = 3.5 * 5000.0**0.7 / 8
    saved: TimesSaved = {}, {1: 0.06 + 1.25e-5 * rows / 2}
    shorter = with_times_saved(profile, saved).stages[1]
    assert shorter.task_fixed_s == 0.0
    assert shorter.task_per_row_s == pytest.approx(1.25e-5 / 2)
    assert with_times_saved(profile, ({"wal_commit": 1.0}, {})).driver_phases[2].sd_s == 0


def test_the_ends_of_what_is_added_change_places() -> None:
    added: TimesSaved = {}, {1: -0.01}
    turned_jobs = turned_job(a_profile(), added, added, added)
    more_s = [task_s(one) - 0.06 for one in turned_jobs]
    assert more_s == pytest.approx([0.01, 0.01 * WIDER, 0.01 / WIDER])


@pytest.mark.parametrize(
    ("trigger_s", "min_rows", "delay_s", "interval_s"),
    [
        (1.0, 100.0, None, 1.0),  # reached before the next trigger
        (1.0, 2500.0, None, 3.0),
        (1.0, 2500.0, 1.5, 2.0),  # the delay ends the wait
        (0.0, 2500.0, None, 2.5),
        (0.0, 1e9, None, 900.0),
        (0.1, 300.0, None, 0.35),  # as many as arrive by a trigger: half of the batches wait on
    ],
)
def test_triggers_wait_for_rows_or_a_delay(
    trigger_s: float, min_rows: float, delay_s: float | None, interval_s: float
) -> None:
    assert held_back_trigger_s(trigger_s, 1000.0, min_rows, delay_s) == pytest.approx(interval_s)
