"""Verdicts on whether taking turns pays, and what they are made of."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path

import pytest

from headway.api.choosing import choose_in_own_process
from headway.domain import (
    Arrivals,
    Policy,
    ScheduledQuery,
    StateProfile,
    Target,
    WindowGrid,
    plan_parts,
)
from headway.models.job.duration import DurationModel, level_spans
from headway.models.simulation.gate import QueryWork, simulate_gate
from headway.report.schedule import headline, schedule_sheet
from headway.report.sheet_text import sheet_text
from headway.turns.query_work import query_work, shared_driver
from headway.turns.scheduling import are_aligned, choose, spread_out, verdict
from headway.turns.simulated_time import load_ratio, simulated_times
from tests.factories import a_profile


def works(num: int, *, spread: bool, limit: str = "3s") -> list[QueryWork]:
    made = []
    for at in range(num):
        query = ScheduledQuery(
            name=f"q{at:02}",
            trigger_s=1.0,
            windows=WindowGrid(slide_s=10.0, offset_s=10.0 * at / num if spread else 0.0),
            window_target=Target.parse(f"window p99 <= {limit}"),
        )
        made.append(
            QueryWork(
                query=query, rate_per_s=1e4, before_s=0.05, after_s=0.03, fixed_core_s=0.1,
                per_row_core_s=5e-6, noise_ratio=0.15,
            )
        )  # fmt: skip
    return made


def test_many_queries_with_spread_windows_take_turns_by_their_promise() -> None:
    found = verdict(works(12, spread=True), 2.0, cores_per_node=1)
    assert found.recommended is not None
    assert found.recommended.policy is Policy.PROMISE
    assert found.gain_ratio > 0.5
    assert not found.aligned
    assert found.spread_mean_s is None
    assert found.nodes_with is not None
    assert found.nodes_without is not None
    assert found.nodes_with < found.nodes_without


def test_windows_that_end_together_are_reported_and_what_shifting_them_would_give() -> None:
    found = verdict(works(12, spread=False), 2.0)
    assert found.aligned
    assert found.spread_mean_s is not None
    assert found.spread_mean_s < 0.5 * min(one.mean_s for one in found.figures)


def test_a_single_query_has_nobody_to_take_turns_with() -> None:
    found = verdict(works(1, spread=True), 2.0)
    assert found.recommended is None
    # What a shorter trigger gives is no merit of a policy.
    assert found.sparks_best.free_running
    assert abs(found.gain_ratio) < 0.05
    for gain_ratio, end in ((0.02, "the best policy lowers it by 2%."), (-3e-3, "lowers it.")):
        assert headline(replace(found, gain_ratio=gain_ratio)).endswith(end)


def test_beyond_capacity_no_policy_helps() -> None:
    heavy = [replace(work, per_row_core_s=1e-4) for work in works(4, spread=True)]
    found = verdict(heavy, 2.0)
    assert found.recommended is None
    assert not any(one.keeps_up for one in found.figures)


def test_beyond_capacity_no_latency_is_quoted() -> None:
    heavy = [replace(work, per_row_core_s=1e-4) for work in works(4, spread=True)]
    found = verdict(heavy, 2.0, policies=[Policy.FCFS])
    for figures in found.figures:
        assert figures.busy_ratio > 0.95
        assert figures.num_met == 0
        for query in figures.queries:
            assert (query.window_mean_s, query.window_p99_s) == (None, None)
            assert (query.row_mean_s, query.row_p99_s) == (None, None)
    text = sheet_text(schedule_sheet(found))
    assert " grows  grows" in text.splitlines()[-1]
    assert "2 cores are too few" in text


def test_few_at_once_cannot_use_all_cores_with_few_tasks() -> None:
    """Four queries of one task take 1.2 of the time of one core, and only one runs at a time."""
    works_of_a_task = [
        replace(work, per_row_core_s=3e-5, most_cores=1.0) for work in works(4, spread=True)
    ]
    assert load_ratio(works_of_a_task, 4.0, 1) == pytest.approx(1.2)
    assert load_ratio(works_of_a_task, 4.0, 4) == pytest.approx(0.3)


def near_saturation(limit: str, load: float = 0.9) -> QueryWork:
    return QueryWork(
        query=ScheduledQuery(
            name="a", trigger_s=2.0, row_target=Target.parse(f"p99 <= {limit}")
        ),
        rate_per_s=load * 1e4, before_s=0.15, after_s=0.0, fixed_core_s=0.04, per_row_core_s=1e-4,
        noise_ratio=0.15,
    )  # fmt: skip


def test_near_saturation_figures_are_those_of_a_long_run() -> None:
    """Within 300 s, queues of such a load have not yet been as long as they become."""
    work = near_saturation("4.3s")
    found = verdict([work], 1.0, policies=[])
    free = replace(work, query=replace(work.query, trigger_s=0.001))
    run = simulate_gate([free], None, cores=1.0, at_once=1, length_s=40_000.0, seed=7)
    (figures,) = found.figures[1].queries
    assert figures.row_mean_s == pytest.approx(run.queries[0].row_latency_mean_s, rel=0.1)
    assert figures.row_p99_s == pytest.approx(run.queries[0].row_latency_quantile_s(0.99), rel=0.2)
    assert figures.verdict is plan_parts.Verdict.NOT_KEPT


def test_a_target_within_the_statistical_error_is_too_close_to_tell() -> None:
    p99_s = verdict([near_saturation("9s")], 1.0, policies=[]).figures[1].p99_s
    found = verdict([near_saturation(f"{p99_s:.2f}s")], 1.0, policies=[])
    (query,) = found.figures[1].queries
    assert query.verdict is plan_parts.Verdict.TOO_CLOSE
    assert not query.meets_targets
    text = sheet_text(schedule_sheet(found))
    assert "Too close to tell under Spark, as fast as possible: in " in text
    assert "0 of 1, 1 too close" in text
    (query,) = verdict([near_saturation("60s")], 1.0, policies=[]).figures[1].queries
    assert query.verdict is plan_parts.Verdict.KEPT


def test_the_simulated_time_grows_with_the_relaxation_time_up_to_a_bound() -> None:
    light, medium, high = (
        simulated_times([near_saturation("9s", load)], 1.0, 1) for load in (0.6, 0.8, 0.9)
    )
    assert light == (340.0, 40.0, 20)
    assert 340.0 < medium[0] < 0.6 * high[0]
    assert high[1] / high[0] == pytest.approx(40.0 / 340.0)
    # The variance is unbounded: no length is enough, and the bound on batches ends it.
    extreme = simulated_times([near_saturation("9s", 0.99)], 1.0, 1)
    assert extreme[2] == 0
    assert extreme[0] / (0.19 / 0.01) < 12_000


def test_auto_picks_what_the_simulation_prefers() -> None:
    policy, at_once = choose(works(12, spread=True), 2.0, Policy.AUTO)
    assert policy is Policy.PROMISE
    assert 1 <= at_once <= 3


def test_of_a_given_policy_only_the_number_at_once_is_chosen() -> None:
    many = works(12, spread=True)
    predicted = verdict(many, 2.0, policies=[Policy.FCFS]).figures[-1]
    assert choose(many, 2.0, Policy.FCFS) == (Policy.FCFS, predicted.at_once)


def test_windows_are_aligned_by_when_they_close_not_by_their_start() -> None:
    assert are_aligned(works(3, spread=False))
    assert not are_aligned(works(3, spread=True))
    assert not are_aligned(works(1, spread=False))
    together = works(2, spread=False)
    query = replace(together[0].query, windows=WindowGrid(slide_s=10.0, watermark_delay_s=3.0))
    assert not are_aligned([replace(together[0], query=query), together[1]])
    assert not are_aligned(spread_out(together))


def test_the_work_of_a_profile_is_its_batch_on_cores_of_its_own() -> None:
    profile = a_profile()
    query = ScheduledQuery(name="q", trigger_s=1.0)
    work = query_work(profile, query, 5000.0, 8)
    spans = level_spans(profile.stages, 8, 8, 1000.0)
    alone = DurationModel(sum(one.mean_s for one in profile.driver_phases), spans)
    assert work.duration_s(5000.0, 8.0) == pytest.approx(float(alone.mean_s(5000.0)), rel=1e-6)
    assert work.after_s == pytest.approx(0.028)
    assert work.most_cores <= 8.0


def test_the_work_of_a_query_is_with_the_state_of_its_rate() -> None:
    """As the rate is tried, whatever the arrivals of the profile are."""
    state = StateProfile(
        rows=100_000,
        memory_bytes=10**7,
        commit_per_partition_s=0.001,
        growth_per_s=0.0,
        rate_exponent=1.0,
    )
    scan, aggregate = a_profile().stages
    stages = (scan, replace(aggregate, task_per_state_row_s=1e-6))
    profile = a_profile(state=state, stages=stages)
    query = ScheduledQuery(name="q", trigger_s=1.0)
    once, twice = (query_work(profile, query, rate, 8) for rate in (5000.0, 10_000.0))
    assert twice.fixed_core_s - once.fixed_core_s == pytest.approx(0.1)
    # In local mode, the driver's process goes through the same state.
    local = replace(profile, applications=(replace(profile.application, id="local-1"),))
    at_rate = replace(local, arrivals=Arrivals(rate_per_s=10_000.0))
    drivers = [shared_driver([job], [twice], 8, None) for job in (local, at_rate)]
    assert drivers[0] == drivers[1]


def test_the_choice_in_a_process_of_its_own_is_the_same_wherever_it_starts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = works(4, spread=True)
    for name in ("numpy", "pickle", "headway"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'executed')!r}, 'a')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", ["", *sys.path])
    monkeypatch.setattr("headway.turns.scheduling.choose", lambda *_: pytest.fail("in this one"))
    assert choose_in_own_process(few, 2.0, Policy.AUTO) == choose(few, 2.0, Policy.AUTO)
    assert not (tmp_path / "executed").exists()
