"""The simulated gate against closed forms and the figures of the design."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from headway.domain import EventTimeLag, Policy, ScheduledQuery, Target, WindowGrid
from headway.models.scheduling.stagger import stagger_offsets_s
from headway.models.simulation.gate import GateOutcome, QueryWork, simulate_gate

FREE_RUNNING_S = 0.001


def a_work(name: str = "a", *, trigger_s: float = FREE_RUNNING_S, **changes: float) -> QueryWork:
    work = QueryWork(
        query=ScheduledQuery(name=name, trigger_s=trigger_s),
        rate_per_s=1e4,
        before_s=0.05,
        after_s=0.03,
        fixed_core_s=0.1,
        per_row_core_s=5e-6,
        noise_ratio=0.15,
    )
    return replace(work, **changes)  # type: ignore[arg-type]


def windowed(ends_s: list[float], trigger_s: float = FREE_RUNNING_S) -> list[QueryWork]:
    works = []
    for at, end_s in enumerate(ends_s):
        query = ScheduledQuery(
            name=f"q{at:02}",
            trigger_s=trigger_s,
            windows=WindowGrid(slide_s=10.0, offset_s=end_s),
            window_target=Target.parse("window p99 <= 2s"),
        )
        works.append(replace(a_work(), query=query))
    return works


def figures(run: GateOutcome) -> tuple[float, float]:
    return float(run.window_latency_s.mean()), float(np.quantile(run.window_latency_s, 0.99))


def test_a_query_alone_on_its_trigger() -> None:
    work = a_work(trigger_s=1.0, noise_ratio=0.0)
    run = simulate_gate([work], None, cores=2.0, at_once=1, length_s=240.0)
    # 10,000 rows: 0.08 s of the driver, 0.15 core-s on two cores.
    assert run.queries[0].num_batches == 200
    assert run.queries[0].row_latency_mean_s == pytest.approx(0.5 + 0.155)
    assert run.queries[0].row_latency_quantile_s(0.9) == pytest.approx(0.9 + 0.155, abs=1e-3)
    assert run.queries[0].rows_later_than(0.655) == pytest.approx(0.5, abs=1e-3)
    assert run.busy_ratio == pytest.approx(0.075, rel=0.01)


def test_a_millisecond_decides_on_a_trigger_so_lags_are_drawn_by_their_shares() -> None:
    """Windows end on triggers: a row that is 0 ms old closes them there, one of 1 ms a tick on."""
    (work,) = windowed([0.0], trigger_s=1.0)
    lags = tuple(
        EventTimeLag(lag_s=lag_s, batch_share=share) for lag_s, share in ((0.0, 0.7), (0.001, 0.3))
    )
    duration_s = 0.155
    simulated = replace(work, noise_ratio=0.0, closing_lags=lags)
    run = simulate_gate([simulated], None, cores=2.0, at_once=1, length_s=4000.0)
    latency_s = run.queries[0].window_latency_s
    assert set(np.round(latency_s, 3)) == {1.0 + duration_s, 2.0 + duration_s}
    assert latency_s.mean() == pytest.approx(1.3 + duration_s, abs=0.07)
    alone = replace(simulated, closing_lags=lags[:1])
    run = simulate_gate([alone], None, cores=2.0, at_once=1, length_s=400.0)
    assert run.queries[0].window_latency_s.mean() == pytest.approx(1.0 + duration_s)


def test_a_query_that_cannot_use_all_cores() -> None:
    work = a_work(trigger_s=1.0, noise_ratio=0.0, most_cores=1.0)
    run = simulate_gate([work], None, cores=2.0, at_once=1, length_s=240.0)
    assert run.queries[0].row_latency_mean_s == pytest.approx(0.5 + 0.23)


def test_a_window_takes_the_batch_that_reads_its_closing_row_and_the_next() -> None:
    # Free running, 0.1 + rate T of work: windows close anywhere in a batch of T.
    work = replace(windowed([0.0])[0], noise_ratio=0.0)
    work = replace(work, query=replace(work.query, windows=WindowGrid(slide_s=3.701)))
    run = simulate_gate([work], None, cores=1.0, at_once=1, length_s=4000.0)
    duration_s = (0.08 + 0.1) / (1.0 - 5e-6 * 1e4)
    assert run.window_latency_s.mean() == pytest.approx(2.5 * duration_s, rel=0.01)


def test_spread_ends_leave_at_once_under_least_slack() -> None:
    ends_s = np.random.default_rng(1).uniform(0.0, 10.0, 16).tolist()
    works = windowed(ends_s)
    found = {
        policy: figures(simulate_gate(works, policy, cores=2.0, at_once=2, length_s=340.0))
        for policy in (None, Policy.FCFS, Policy.LEAST_SLACK, Policy.PROMISE, Policy.ECONOMY)
    }
    assert found[None] == pytest.approx((3.34, 4.56), rel=0.05)
    assert found[Policy.FCFS] == pytest.approx((3.00, 4.24), rel=0.05)
    for policy in (Policy.LEAST_SLACK, Policy.PROMISE, Policy.ECONOMY):
        mean_s, p99_s = found[policy]
        assert mean_s < 0.85
        assert p99_s < 1.5


def test_aligned_ends_leave_little_to_order() -> None:
    works = windowed([0.0] * 16)
    ungated = figures(simulate_gate(works, None, cores=2.0, at_once=2, length_s=340.0))
    fcfs = figures(simulate_gate(works, Policy.FCFS, cores=2.0, at_once=2, length_s=340.0))
    promise = figures(simulate_gate(works, Policy.PROMISE, cores=2.0, at_once=2, length_s=340.0))
    assert ungated == pytest.approx((3.40, 4.94), rel=0.08)
    assert fcfs == pytest.approx((3.05, 4.08), rel=0.06)
    # Nobody's window is out early: the last one waits for all the others.
    assert promise[1] > fcfs[1]


def test_promise_keeps_what_rows_and_windows_were_promised() -> None:
    works = windowed(np.linspace(0.0, 9.0, 10).tolist())
    for at in range(8):
        rows = ScheduledQuery(
            name=f"rows{at}", trigger_s=FREE_RUNNING_S, row_target=Target.parse("p99 <= 2s")
        )
        works.append(a_work(rate_per_s=2000.0))
        works[-1] = replace(works[-1], query=rows)
    late = {}
    for policy in (Policy.FCFS, Policy.PROMISE):
        run = simulate_gate(works, policy, cores=2.0, at_once=2, length_s=340.0)
        late[policy] = float(np.mean(run.window_latency_s > 2.0))
        assert max(one.rows_later_than(2.0) for one in run.queries[10:]) < 0.03
    assert late[Policy.FCFS] > 0.9
    assert late[Policy.PROMISE] == 0.0


def test_more_at_once_use_what_drivers_leave_idle() -> None:
    works = windowed([0.0] * 16)
    means = [
        figures(simulate_gate(works, Policy.FCFS, cores=2.0, at_once=at_once, length_s=340.0))[0]
        for at_once in (1, 2, 3)
    ]
    assert means == pytest.approx([5.38, 3.05, 2.61], rel=0.06)


def test_staggered_triggers_keep_batches_apart() -> None:
    # The row that closes a window comes just after the tick at its end.
    works = [replace(one, closing_delay_s=0.01) for one in windowed([0.0] * 8, trigger_s=1.0)]
    offsets_s = stagger_offsets_s([1.0] * 8, [0.2] * 8)
    together = simulate_gate(works, None, cores=2.0, at_once=8, length_s=340.0)
    apart = simulate_gate(
        works, Policy.STAGGER, cores=2.0, at_once=8, length_s=340.0, offsets_s=offsets_s
    )
    assert figures(together)[0] == pytest.approx(2.59, rel=0.08)
    assert figures(apart)[0] < 0.8 * figures(together)[0]
    rows = [np.mean([one.row_latency_mean_s for one in run.queries]) for run in (together, apart)]
    assert rows[1] < 0.75 * rows[0]


def test_windows_that_starve_count_as_late() -> None:
    works = windowed([0.0] * 3)
    # Beyond capacity: the backlog grows, and with it what is open at the end.
    works = [replace(work, per_row_core_s=1e-4) for work in works]
    run = simulate_gate(works, Policy.PROMISE, cores=2.0, at_once=2, length_s=200.0)
    assert sum(one.num_open for one in run.queries) > 0
    assert len(run.window_latency_s) >= 3 * 15


def test_the_same_seed_gives_the_same_run() -> None:
    runs = [
        simulate_gate(
            windowed([0.0, 3.0]), Policy.FCFS, cores=1.0, at_once=1, length_s=99.0, seed=seed
        ).window_latency_s
        for seed in (1, 1, 2)
    ]
    assert np.array_equal(runs[0], runs[1])
    assert not np.array_equal(runs[0], runs[2])


def test_a_run_needs_time_after_its_warm_up() -> None:
    with pytest.raises(ValueError, match="after the warm-up"):
        simulate_gate([a_work()], None, cores=2.0, at_once=1, length_s=30.0)


def test_an_overloaded_core_is_busy_to_the_end() -> None:
    """The batch that runs when the simulation ends counts, and the warm-up counts for nothing."""
    heavy = a_work(per_row_core_s=2e-4, noise_ratio=0.0, before_s=0.0, after_s=0.0)
    for length_s in (100.0, 340.0, 351.0):
        run = simulate_gate([heavy], None, cores=1.0, at_once=1, length_s=length_s)
        assert run.busy_ratio == pytest.approx(1.0)


def test_an_interval_through_the_end_of_the_warm_up_counts_in_part() -> None:
    # 4 of 10 s are work: 0 to 4 s, 10 to 14 s, and so on.
    work = a_work(
        trigger_s=10.0, per_row_core_s=0.0, fixed_core_s=4.0, noise_ratio=0.0, before_s=0.0
    )
    run = simulate_gate([work], None, cores=1.0, at_once=1, warm_up_s=43.0, length_s=53.0)
    assert run.busy_ratio == pytest.approx(0.4)
