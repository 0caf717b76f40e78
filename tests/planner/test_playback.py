"""A plan simulated against traces: what is promised holds, what is not is reported."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from headway.domain import (
    Arrivals,
    Finding,
    FindingCode,
    JobProfile,
    Outage,
    PlannedDurations,
    RateTrace,
    StateProfile,
    StreamAnswer,
    Target,
)
from headway.errors import InputError
from headway.planner.playback import _model, simulate_plan
from headway.planner.question import SearchSpace
from headway.report.playback import verdict_text
from tests.factories import a_plan, a_profile
from tests.planner.plans import plan

RATE_PER_S = 5000.0


@cache
def planned(target: str = "p99 <= 2s") -> StreamAnswer:
    space = SearchSpace(max_nodes=4, cores_per_executor=4)
    profile = a_profile()
    # Batches of half a million rows are on record: the plan has a rate limit.
    seen = replace(profile.settings[0], rows_per_batch_high=500_000.0)
    profile = replace(profile, settings=(seen,))
    return plan(profile, Arrivals(rate_per_s=RATE_PER_S), Target.parse(target), space)


def growing_job(growth_per_s: float) -> JobProfile:
    """The counting query, each row of whose state costs its task a microsecond."""
    state = StateProfile(
        rows=1_000_000, memory_bytes=10**8, commit_per_partition_s=0.001, growth_per_s=growth_per_s
    )
    profile = a_profile(state=state)
    holding = replace(profile.stages[-1], task_per_state_row_s=1e-6)
    return replace(profile, stages=(*profile.stages[:-1], holding))


def _none() -> PlannedDurations:
    raise AssertionError("the plan holds its durations")


def steady(length_s: float = 600.0, rate_per_s: float = RATE_PER_S) -> RateTrace:
    return RateTrace(times_s=(0.0,), rates_per_s=(rate_per_s,), end_s=length_s)


def test_at_the_planned_rate_the_promise_holds_and_the_prediction_is_met() -> None:
    found = simulate_plan(planned(), steady())
    predicted = planned().prediction.tuple_latency
    assert predicted is not None
    assert found.late_ratio <= 0.01
    assert found.mean_s == pytest.approx(predicted.mean_s, rel=0.03)
    assert found.p99_s == pytest.approx(predicted.p99_s, rel=0.05)
    assert not found.ends_behind
    assert found.recoveries == ()
    assert len(found.stretches) == 120


def test_a_rate_that_is_too_much_ends_behind() -> None:
    most_per_s = planned().prediction.sustainable_rate_per_s
    found = simulate_plan(planned(), steady(rate_per_s=3 * most_per_s))
    assert found.ends_behind
    assert found.late_ratio > 0.5
    known = [one.p99_s for one in found.stretches if one.p99_s is not None]
    assert known[-1] > known[10]
    # What came last was not read before the end: its latency is unknown, but it is waiting.
    assert found.stretches[-1].p99_s is None
    assert found.stretches[-1].late_ratio == 1.0
    assert found.stretches[-1].backlog_rows == pytest.approx(found.peak_backlog_rows)


def test_rows_that_wait_at_the_end_are_late() -> None:
    """A batch that lasts until the end leaves the rows that arrive during it unread."""
    unlimited = replace(
        planned(), configuration=replace(planned().configuration, max_offsets_per_trigger=None)
    )
    over_per_s = 4 * planned().prediction.sustainable_rate_per_s
    trace = RateTrace(
        times_s=(0.0, 300.0), rates_per_s=(RATE_PER_S, over_per_s), end_s=600.0, rate_at_end_per_s=0
    )
    playback = simulate_plan(unlimited, trace)
    late = [part.late_ratio for part in playback.stretches if part.start_s > 310.0]
    assert min(share or 0.0 for share in late) > 0.99
    # All that arrive from the fifth minute on are, but for the last seconds, within the limit yet.
    limit_s = unlimited.target.limit_s
    assert playback.longest_late_s == pytest.approx(300.0 - limit_s, abs=10.0)
    assert playback.ends_behind
    arrived = 300.0 * (RATE_PER_S + over_per_s)
    assert playback.late_ratio == pytest.approx(300.0 * over_per_s / arrived, abs=0.02)


def test_an_outage_until_the_end_makes_its_rows_late() -> None:
    outage = Outage(start_s=520.0, length_s=80.0)
    playback = simulate_plan(planned(), steady(), outages=[outage])
    (target,) = playback.targets
    assert target.met is False
    assert playback.p99_s > 60.0
    assert playback.late_ratio == pytest.approx((80.0 - 2.0) / 600.0, abs=0.01)
    assert not playback.ends_behind


@pytest.mark.parametrize("limit", [None, 20_000])
def test_a_backlog_that_is_worked_off_does_not_grow(limit: int | None) -> None:
    """Whether it grows depends on the rate at the end, not on what is left from before."""
    limited = replace(
        planned(), configuration=replace(planned().configuration, max_offsets_per_trigger=limit)
    )
    over_per_s = 5 * limited.prediction.sustainable_rate_per_s
    rates_per_s = (RATE_PER_S, over_per_s, RATE_PER_S)
    burst = RateTrace(times_s=(0.0, 545.0, 565.0), rates_per_s=rates_per_s, end_s=600.0)
    playback = simulate_plan(limited, burst)
    assert playback.feasible is False
    assert not playback.ends_behind
    first_rates = RateTrace(times_s=(0.0, 300.0), rates_per_s=rates_per_s[:2], end_s=600.0)
    assert simulate_plan(limited, first_rates).ends_behind


def test_the_state_grows_with_the_rows_of_the_trace() -> None:
    """The plan says when growing state makes it miss its target: so does its simulation."""
    profile = growing_job(growth_per_s=5000.0)
    answer = plan(
        profile,
        Arrivals(rate_per_s=RATE_PER_S),
        Target.parse("p99 <= 2s"),
        SearchSpace(max_nodes=1, cores_per_executor=8),
    )
    (numbers,) = (
        finding.numbers
        for finding in answer.findings
        if finding.code is FindingCode.STATE_BREAKS_PROMISE
    )
    length_s = 4.0 * numbers["missed_after_s"]
    playback = simulate_plan(answer, steady(length_s), num_runs=4)
    assert playback.feasible is False
    p50_s = [part.p50_s for part in playback.stretches if part.p50_s is not None]
    assert p50_s[-1] > 1.5 * p50_s[0]
    # Without any row there is no growth.
    mostly_idle = RateTrace(
        times_s=(0.0, 60.0), rates_per_s=(RATE_PER_S, RATE_PER_S / 1000), end_s=length_s
    )
    assert simulate_plan(answer, mostly_idle, num_runs=4).feasible
    held = replace(answer, prediction=replace(answer.prediction, findings=()))
    assert simulate_plan(held, steady(length_s), num_runs=4).feasible


def test_other_growth_is_not_simulated_and_the_headline_says_so() -> None:
    assert not simulate_plan(planned(), steady(), num_runs=1).growth_left_out
    ending = Finding(
        code=FindingCode.GROWTH_ENDS_PROMISE,
        numbers={"span_s": 60.0, "part_rise_ratio": 0.01, "held_s": 500.0, "is_missed": 1.0},
        names={"part": "add_batch", "until": "2026-01-01 12:00 UTC"},
    )
    growing = replace(planned(), findings=(ending,))
    playback = simulate_plan(growing, steady(), num_runs=1)
    assert playback.growth_left_out
    assert "if batches take no longer than when profiled" in verdict_text(playback)
    assert not simulate_plan(growing, steady(length_s=400.0), num_runs=1).growth_left_out


def test_an_outage_is_reported_with_its_recovery() -> None:
    outage = Outage(start_s=200.0, length_s=60.0)
    found = simulate_plan(planned(), steady(), outages=[outage])
    (recovery,) = found.recoveries
    assert recovery.outage == outage
    assert 0 < recovery.median_s <= recovery.worst_s < 300.0
    assert found.longest_late_s >= 55.0
    assert found.max_s >= 60.0
    assert 0.05 < found.late_ratio < 0.5
    before = [one for one in found.stretches if one.start_s < 190.0]
    assert max(one.late_ratio or 0.0 for one in before) < 0.05


def naive_backlog(edges: list[float], outage: Outage, trigger_s: float) -> list[float]:
    """The peak backlog of stretches, simulated row group by row group without noise."""
    moment = np.arange(0.0, edges[-1], 0.01)
    waiting, peaks = 0.0, np.zeros(len(edges) - 1)
    model, free_s, next_s = _model(planned().durations or _none()), 0.0, trigger_s
    for now_s in moment:
        is_out = outage.start_s <= now_s < outage.start_s + outage.length_s
        if now_s + 1e-9 >= max(free_s, next_s) and not is_out:
            free_s = now_s + float(model.mean_s(waiting))
            next_s = trigger_s * (math.floor(now_s / trigger_s + 1e-9) + 1.0)
            waiting = 0.0
        waiting += 0.01 * RATE_PER_S
        place = min(int(np.searchsorted(edges, now_s, side="right")) - 1, len(peaks) - 1)
        peaks[place] = max(peaks[place], waiting)
    return list(peaks)


def test_the_backlog_grows_during_the_outage_and_falls_after_it() -> None:
    outage = Outage(start_s=200.0, length_s=60.0)
    found = simulate_plan(planned(), steady(), outages=[outage])
    width_s = 5.0
    backlog = {one.start_s: one.backlog_rows for one in found.stretches}
    usual = max(rows for start_s, rows in backlog.items() if start_s + width_s <= 200.0)
    during = [backlog[one] for one in backlog if one >= 200.0 and one + width_s <= 260.0]
    assert during == sorted(during)
    assert during[0] > usual
    peak = max(backlog, key=lambda start_s: backlog[start_s])
    assert peak <= 260.0 <= peak + width_s + 1.0
    assert backlog[peak] == pytest.approx(60.0 * RATE_PER_S, rel=0.1)
    # Rows that arrived in the outage are read after it: their latency stands where they arrived.
    late = [one.start_s for one in found.stretches if (one.late_ratio or 0.0) > 0.5]
    assert min(late) < 205.0


def test_the_backlog_is_that_of_a_simulation_row_by_row() -> None:
    even = replace(
        planned(),
        arrivals=Arrivals(rate_per_s=RATE_PER_S, dispersion_ratio=0.0),
        durations=replace(
            planned().durations or _none(), batch_noise_ratio=0.0, run_to_run_ratio=0.0
        ),
    )
    trigger_s = even.configuration.trigger_s
    assert trigger_s > 0
    outage = Outage(start_s=200.0, length_s=60.0)
    found = simulate_plan(even, steady(), outages=[outage], num_runs=1)
    edges = [*(one.start_s for one in found.stretches), 600.0]
    theirs = naive_backlog(edges, outage, trigger_s)
    ours = [one.backlog_rows for one in found.stretches]
    assert ours == pytest.approx(theirs, rel=0.02, abs=0.03 * RATE_PER_S)


def test_the_backlog_is_known_where_nothing_arrives() -> None:
    trace = RateTrace(
        times_s=(0.0, 200.0, 400.0), rates_per_s=(RATE_PER_S, 0.0, RATE_PER_S), end_s=600.0
    )
    found = simulate_plan(planned(), trace, outages=[Outage(start_s=150.0, length_s=100.0)])
    silent = [one for one in found.stretches if 206.0 < one.start_s < 240.0]
    assert len(found.stretches) == 120
    assert all(one.p99_s is None for one in silent)
    # What came before the silence waits through it, for the outage lasts on.
    assert all(one.backlog_rows > 40.0 * RATE_PER_S for one in silent)


def test_a_recovery_that_the_trace_does_not_show_is_none() -> None:
    outage = Outage(start_s=500.0, length_s=99.0)
    (recovery,) = simulate_plan(planned(), steady(), outages=[outage]).recoveries
    assert recovery.worst_s == math.inf


@pytest.mark.parametrize("target", ["mean <= 1s", "p50 <= 1s", "p99 <= 1.5s"])
def test_a_query_has_recovered_once_a_batch_meets_its_target(target: str) -> None:
    """Not once it has no row above the limit: half of the rows of any batch may be above a p50."""
    outage = Outage(start_s=200.0, length_s=60.0)
    answer = replace(planned(), target=Target.parse(target))
    playback = simulate_plan(answer, steady(), outages=[outage])
    assert playback.limit_s is not None
    late = [part.late_ratio or 0.0 for part in playback.stretches if part.start_s < 190.0]
    if target.startswith(("mean", "p50")):
        assert min(late) > 0.05
    (recovery,) = playback.recoveries
    # What is left of the outage is at most one batch of its rows, and one more trigger.
    assert 0.0 < recovery.worst_s < 20.0


def test_a_query_of_windows_has_recovered_once_its_rows_are_as_old_as_usual() -> None:
    on_windows = replace(planned(), target=Target.parse("window p99 <= 9s"))
    times_s = []
    for length_s in (60.0, 200.0):
        outage = Outage(start_s=200.0, length_s=length_s)
        (recovery,) = simulate_plan(on_windows, steady(), outages=[outage]).recoveries
        times_s.append(recovery.median_s)
    # The first batch reads the rows of the outage, which are not.
    assert 0.0 < times_s[0] <= times_s[1] < 60.0


def test_a_target_on_batches_counts_batches() -> None:
    on_batches = planned("batch p99 <= 1s")
    assert simulate_plan(on_batches, steady()).late_ratio <= 0.01
    impossible = replace(on_batches, target=Target.parse("batch p99 <= 1ms"))
    assert simulate_plan(impossible, steady()).late_ratio == 1.0


def test_a_target_on_windows_has_no_late_rows_to_count() -> None:
    on_windows = replace(planned(), target=Target.parse("window p99 <= 9s"))
    assert simulate_plan(on_windows, steady()).limit_s is None


def test_the_same_seed_gives_the_same() -> None:
    assert simulate_plan(planned(), steady(), seed=5) == simulate_plan(planned(), steady(), seed=5)
    assert simulate_plan(planned(), steady(), seed=5) != simulate_plan(planned(), steady(), seed=6)


def test_what_cannot_be_simulated_is_one_line() -> None:
    with pytest.raises(InputError, match="does not contain batch durations"):
        simulate_plan(a_plan(), steady())
    with pytest.raises(InputError, match=r"an outage of 20\.0 s at 9\.7 min ends after the trace"):
        simulate_plan(planned(), steady(), outages=[Outage(start_s=582.0, length_s=20.0)])
    assert planned().configuration.trigger_s > 0.2
    with pytest.raises(InputError, match="no batch starts in the trace of 200 ms"):
        simulate_plan(planned(), steady(length_s=0.2))
    with pytest.raises(InputError, match=r"about [0-9,]+ batches in .* give a shorter trace"):
        simulate_plan(planned(), steady(length_s=1e9))
