"""Advice outside the knobs: it comes where it should, and its numbers hold."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from headway.domain import (
    Advice,
    Arrivals,
    Coalescing,
    Drift,
    EventTimeWindow,
    JobProfile,
    MemoryProfile,
    RowsLaw,
    StateOperatorProfile,
    StateProfile,
    Target,
)
from headway.models.job.switches import without_coalescing
from headway.planner.question import SearchSpace
from headway.planner.tasks import with_source_partitions
from tests.factories import a_profile, a_stage_observed
from tests.planner.jobs import windowed
from tests.planner.plans import plan

SPACE = SearchSpace(max_nodes=4, cores_per_executor=8)
TARGET = Target.parse("p99 <= 2s")
USUAL = a_stage_observed()


def advice_on(profile: JobProfile, rate_per_s: float = 5000.0) -> tuple[Advice, ...]:
    return plan(profile, Arrivals(rate_per_s=rate_per_s), TARGET, SPACE).advice


def advice_with(profile: JobProfile, word: str, rate_per_s: float = 5000.0) -> list[str]:
    return [one.text for one in advice_on(profile, rate_per_s) if word in one.text]


def observed(per_row_s: float = 2e-4, **changes: float) -> JobProfile:
    """A job whose stage behind the exchange has dear rows, and was observed to be peculiar."""
    stage = replace(
        a_profile().stages[1],
        task_per_row_s=per_row_s,
        observed=replace(USUAL, **changes),  # type: ignore[arg-type]
    )
    return replace(a_profile(), stages=(a_profile().stages[0], stage))


def test_more_source_partitions_win_what_is_said() -> None:
    busy = replace(a_profile().stages[0], task_per_row_s=1e-4)
    profile = replace(a_profile(), stages=(busy, a_profile().stages[1]))
    space = replace(SPACE, max_nodes=1, trigger_s=1.0, shuffle_partitions=8)
    arrivals = Arrivals(rate_per_s=15000.0)
    before = plan(profile, arrivals, TARGET, space)
    (advice,) = [one for one in before.advice if "source partitions" in one.text]
    after = plan(with_source_partitions(profile, 8), arrivals, TARGET, space)
    assert advice.latency_s is not None
    assert advice.latency_s == pytest.approx(after.planned_latency_s)
    assert advice.latency_s < before.planned_latency_s
    assert "source partitions" not in " ".join(one.text for one in after.advice)


def test_a_slow_checkpoint_is_reported_with_what_a_fast_one_would_win() -> None:
    (advice,) = [one for one in advice_on(a_profile()) if "offset and commit logs" in one.text]
    assert "take 58 ms" in advice.text
    assert "a faster checkpoint store would lower p99 to" in advice.text
    assert advice.text.endswith("at best")
    assert not advice_with(a_profile(), "asyncProgressTrackingEnabled")
    stateless = replace(a_profile(), shape=replace(a_profile().shape, stateful_operators=()))
    to_files = replace(stateless, shape=replace(stateless.shape, sink="FileSink[/data]"))
    assert not advice_with(to_files, "asyncProgressTrackingEnabled")
    to_kafka = replace(stateless, shape=replace(stateless.shape, sink="KafkaTable"))
    (text,) = advice_with(to_kafka, "asyncProgressTrackingEnabled")
    assert "--allow async-progress" in text
    assert "90% interval" in text
    fast = replace(
        a_profile(),
        driver_phases=tuple(replace(phase, mean_s=0.001) for phase in a_profile().driver_phases),
    )
    assert advice_with(fast, "offset and commit logs") == []


@pytest.mark.parametrize(("limit", "is_advised"), [("2s", False), ("5m", False), ("1h", True)])
def test_a_limit_of_an_hour_needs_no_query_that_runs_all_the_time(
    limit: str, is_advised: bool
) -> None:
    target = Target.parse(f"p99 <= {limit}")
    found = plan(a_profile(), Arrivals(rate_per_s=500.0), target, SPACE).advice
    texts = [one.text for one in found if "Trigger.AvailableNow" in one.text]
    assert len(texts) == is_advised
    if is_advised:
        assert re.search(r"start the query every 5\d[.\d]* min with", texts[0])
        every_min = float(re.search(r"every ([\d.]+) min", texts[0])[1])  # type: ignore[index]
        used = float(re.search(r"for (\d+)% of the time", texts[0])[1]) / 100  # type: ignore[index]
        assert every_min * (1 + used) <= 60.5


def test_state_commits_are_reported_where_they_cost() -> None:
    state = StateProfile(rows=1, memory_bytes=1, commit_per_partition_s=0.03, growth_per_s=0.0)
    (text,) = advice_with(replace(a_profile(), state=state), "committing state")
    assert "30 ms per partition" in text
    quick = replace(state, commit_per_partition_s=0.001)
    assert advice_with(replace(a_profile(), state=quick), "committing state") == []


@pytest.mark.parametrize(
    ("changes", "word"),
    [({"largest_task_ratio": 2.4}, "2.4 times"), ({"gc_ratio": 0.3}, "garbage collection")],
)
def test_what_tasks_tell_is_reported(changes: dict[str, float], word: str) -> None:
    assert len(advice_with(observed(**changes), word)) == 1
    assert advice_with(observed(), word) == []


def test_skew_of_a_stage_whose_rows_cost_nothing_is_no_advice() -> None:
    for share in (0.3, 0.9):
        arrivals = windowed().observed_arrivals
        assert arrivals is not None
        free = observed(0.0, largest_task_ratio=2.4)
        source = replace(free.stages[0], task_per_row_s=0.0)
        free = replace(
            free,
            stages=(source, free.stages[1]),
            observed_arrivals=replace(arrivals, largest_partition_share=share),
        )
        assert advice_with(free, "skew") == []


def test_only_state_on_the_heap_is_advised_to_leave_it() -> None:
    """Without recorded state, RocksDB would change nothing."""
    busy = observed(gc_ratio=0.3)
    operator = StateOperatorProfile(
        name="stateStoreSave", rows=10**6, memory_bytes=2**28, num_stores=8, commit_s=0.0
    )
    stored = replace(
        busy,
        state=StateProfile(
            rows=10**6,
            memory_bytes=2**28,
            commit_per_partition_s=0.0,
            growth_per_s=0.0,
            updated_rows=1000.0,
            updated_row_s=5e-6,
            operators=(operator,),
        ),
    )
    outside = replace(stored, state_store="RocksDBStateStoreProvider")
    space = replace(SPACE, trigger_s=0.0, shuffle_partitions=8)
    for profile, is_advised in (
        (stored, True),
        (outside, False),
        (replace(busy, state=None), False),
    ):
        advice = plan(profile, Arrivals(rate_per_s=5000.0), TARGET, space).advice
        assert any("--allow rocksdb" in one.text for one in advice) == is_advised
    (text,) = advice_with(stored, "garbage collection")
    assert "a larger heap would lower p99 to" in text
    quick = observed(1e-9, gc_ratio=0.3)
    brief = replace(quick.stages[1], task_fixed_s=0.0, task_per_partition_s=0.0)
    assert advice_with(replace(quick, stages=(quick.stages[0], brief)), "garbage collection") == []


def test_commits_that_one_wave_of_tasks_makes_are_not_fewer_with_fewer_partitions() -> None:
    state = StateProfile(rows=1, memory_bytes=1, commit_per_partition_s=0.03, growth_per_s=0.0)
    profile = replace(a_profile(), state=state)
    space = replace(SPACE, shuffle_partitions=8)
    found = plan(profile, Arrivals(rate_per_s=5000.0), TARGET, space).advice
    (text,) = [one.text for one in found if "committing state" in one.text]
    assert "in 1 wave of tasks" in text
    assert "fewer shuffle partitions" not in text


def test_a_busy_source_partition_is_reported() -> None:
    arrivals = windowed().observed_arrivals
    assert arrivals is not None
    dear = replace(a_profile().stages[0], task_per_row_s=2e-4)
    job = replace(a_profile(), stages=(dear, a_profile().stages[1]))
    skewed = replace(job, observed_arrivals=replace(arrivals, largest_partition_share=0.6))
    assert len(advice_with(skewed, "has 60% of the rows")) == 1
    even = replace(job, observed_arrivals=replace(arrivals, largest_partition_share=0.26))
    assert advice_with(even, "of the rows") == []


def test_a_young_jvm_is_reported_where_the_logs_show_that_it_is_slower() -> None:
    slow_start = replace(a_profile(), drift=Drift(exponent=0.2, reference_age_s=300.0))
    (text,) = advice_with(slow_start, "s after a start")
    assert "30 s after a start, batches take 58% longer" in text
    assert "--jvm-age 30s" in text
    steady = replace(a_profile(), drift=Drift(exponent=0.02, reference_age_s=300.0))
    assert advice_with(steady, "after a start") == []
    # Profiled as young as that, it is what the plan speaks for.
    young = replace(a_profile(), drift=Drift(exponent=0.2, reference_age_s=30.0))
    assert advice_with(young, "after a start") == []


def test_sliding_windows_copy_rows() -> None:
    sliding = EventTimeWindow(kind="sliding", size_s=60.0, slide_s=5.0)
    (text,) = advice_with(windowed(windows=(sliding,)), "copied into 12 windows")
    assert "headway windows" in text
    assert advice_with(windowed(), "copied into") == []


def test_what_sharing_windows_saves_is_what_the_command_predicts() -> None:
    sliding = EventTimeWindow(kind="sliding", size_s=60.0, slide_s=5.0)
    job = windowed(windows=(sliding,))
    dear = replace(job.stages[0], task_per_row_s=1e-4)
    (text,) = advice_with(replace(job, stages=(dear, *job.stages[1:])), "copied into")
    assert "would save" in text
    cheap = replace(job.stages[0], task_per_row_s=1e-8)
    last = replace(job.stages[1], task_per_row_s=1e-9)
    (text,) = advice_with(replace(job, stages=(cheap, last)), "copied into")
    assert "would not pay off here" in text


def test_a_stream_that_came_in_bursts_is_reported_with_its_peak() -> None:
    arrivals = windowed().observed_arrivals
    assert arrivals is not None
    bursty = replace(arrivals, rate_p50_per_s=1000.0, rate_max_per_s=3100.0)
    (text,) = advice_with(replace(a_profile(), observed_arrivals=bursty), "--burst", 5000.0)
    assert "3.1 times" in text
    assert "15.5k/s" in text
    even = replace(arrivals, rate_p50_per_s=1000.0, rate_max_per_s=1200.0)
    assert advice_with(replace(a_profile(), observed_arrivals=even), "--burst") == []


def test_a_hot_key_is_reported_with_what_salting_would_win() -> None:
    hot = replace(a_profile().stages[1], hot_share_ratio=0.4, task_per_row_s=2e-4)
    profile = replace(a_profile(), stages=(a_profile().stages[0], hot))
    (advice,) = [one for one in advice_on(profile, 20000.0) if "salting" in one.text]
    assert "gets 40% of the rows" in advice.text
    cool = replace(hot, hot_share_ratio=0.0)
    even = replace(profile, stages=(a_profile().stages[0], cool))
    assert advice_with(even, "salting", 20000.0) == []


def test_spill_is_reported() -> None:
    memory = MemoryProfile(peak_task_bytes=1, spilled_bytes=10)
    assert len(advice_with(replace(a_profile(), memory=memory), "spilled to disk")) == 1


def test_skewed_keys_and_state_by_key_in_python_name_the_command() -> None:
    skewed = advice_with(observed(largest_task_ratio=2.4), "headway ordered")
    assert [text.split(":")[0] for text in skewed] == ["skew"]
    by_key = replace(
        a_profile(),
        shape=replace(a_profile().shape, python_operators=("FlatMapGroupsInPandasWithState",)),
    )
    (text,) = advice_with(by_key, "headway ordered")
    assert text.startswith("FlatMapGroupsInPandasWithState calls Python for each group")
    mapped = replace(by_key, shape=replace(by_key.shape, python_operators=("MapInPandas",)))
    assert not advice_with(mapped, "headway ordered")


def merged(bytes_per_row: float) -> JobProfile:
    """A job without state, whose dear stage behind the exchange adaptive execution coalesces."""
    stage = replace(
        a_profile().stages[1],
        tasks_rule="coalesced",
        num_source_tasks=1,
        task_per_row_s=1e-4,
        coalescing=Coalescing(
            exchange_bytes_per_row=bytes_per_row, advisory_bytes=64 * 2**20, smallest_bytes=2**20
        ),
        rows=RowsLaw(scale=1.0, exponent=1.0),
    )
    return replace(a_profile(), stages=(a_profile().stages[0], stage), state=None)


def test_coalescing_is_advised_against_where_slots_stay_idle() -> None:
    space = replace(SPACE, max_nodes=1, trigger_s=1.0, shuffle_partitions=8)
    arrivals = Arrivals(rate_per_s=5000.0)
    before = plan(merged(20.0), arrivals, TARGET, space)
    (advice,) = [one for one in before.advice if "adaptive execution" in one.text]
    assert "into 1 task on 8 slots" in advice.text
    assert "spark.sql.adaptive.coalescePartitions.enabled=false" in advice.text
    after = plan(without_coalescing(merged(20.0)), arrivals, TARGET, space)
    assert advice.latency_s == pytest.approx(after.planned_latency_s)
    gain = re.search(r"(\d+)% less", advice.text)
    assert gain is not None
    gain_ratio = 1.0 - after.planned_latency_s / before.planned_latency_s
    assert int(gain[1]) == pytest.approx(100 * gain_ratio, abs=1)
    # Rows of 20 kB are a task for each slot, and rows that cost nothing gain nothing.
    for idle in (merged(20_000.0), with_cheap_rows(merged(20.0))):
        answer = plan(idle, arrivals, TARGET, space)
        assert not any("adaptive execution" in one.text for one in answer.advice)


def with_cheap_rows(profile: JobProfile) -> JobProfile:
    stage = replace(profile.stages[1], task_per_row_s=1e-7)
    return replace(profile, stages=(profile.stages[0], stage))
