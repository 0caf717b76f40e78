"""Bursts as promises: the chain of batches, what a plan makes of it, and the simulation's word."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from headway.cli.main import cli
from headway.domain import (
    Arrivals,
    Burst,
    CatchUp,
    Deadline,
    DuringBurst,
    JobProfile,
    RateTrace,
    StreamAnswer,
    Target,
    parse_promise,
)
from headway.errors import InputError
from headway.formats.from_json import plan_from_json
from headway.models.job.duration import DurationModel, LevelSpan
from headway.planner.playback import simulate_plan
from headway.planner.question import SearchSpace
from headway.planner.recovery import Pace, burst_effect, worked_off_s
from tests.factories import a_profile
from tests.planner.plans import plan
from tests.seeds import examples

SPACE = SearchSpace(max_nodes=24, cores_per_executor=2)
RATE_PER_S = 5000.0


def costly() -> JobProfile:
    """A query whose rows take a fifth of a millisecond, profiled with large batches too."""
    profile = a_profile()
    scan = replace(profile.stages[0], num_source_tasks=64, task_per_row_s=2e-4)
    seen = replace(
        profile.settings[0],
        configuration=replace(profile.settings[0].configuration, executors=10),
        rows_per_batch_high=1e6,
    )
    return replace(profile, stages=(scan, profile.stages[1]), settings=(seen,))


def planned(*promises: str, rate_per_s: float = RATE_PER_S) -> StreamAnswer:
    target, *others = [parse_promise(text) for text in promises]
    assert isinstance(target, Target)
    also = [one for one in others if not isinstance(one, Deadline)]
    return plan(costly(), Arrivals(rate_per_s=rate_per_s), target, SPACE, further_targets=also)


@pytest.mark.parametrize(
    "text",
    [
        "p99 <= 5s during 150k/s for 2m",
        "batch mean <= 500ms during 8k/s for 30s every 15m",
        "catch_up <= 1m after 150k/s for 2m",
    ],
)
def test_promises_are_read_as_they_are_written(text: str) -> None:
    promise = parse_promise(text)
    assert parse_promise(str(promise)) == promise


def test_far_over_capacity_a_backlog_is_never_processed() -> None:
    """Its size grows until it cannot be counted; a static table adds no rows to any of it."""
    scan = LevelSpan("scan", 0.1, ((2e-3, 1.0, 1.0), (1e-6, 0.0, 1.0)))
    pace = Pace(model=DurationModel(0.2, (scan,)), rate_per_s=np.array([1e5]), trigger_s=1.0)
    assert worked_off_s(pace, 1e17).tolist() == [np.inf]


def test_the_short_form_is_the_same_burst() -> None:
    long = Burst.parse("150k/s for 2m every 1h")
    assert Burst.parse_short("150k/s:2m:1h") == long
    assert parse_promise("p99 <= 3s during 150k/s for 2m every 1h") == DuringBurst(
        target=Target.parse("p99 <= 3s"), burst=long
    )
    assert parse_promise("catch_up <= 1m after 150k/s for 2m every 1h") == CatchUp(
        limit_s=60.0, after=long
    )


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("150k/s", "no burst"),
        ("150k/s:0s", "above zero"),
        ("150k/s:2m:1m", "before the last has ended"),
        ("fast:2m", "not a rate"),
        ("150k/s:2", "not a duration"),
        ("150k/s:2m:1h:3", "no burst"),
    ],
)
def test_a_burst_that_is_none_is_one_clear_line(text: str, said: str) -> None:
    with pytest.raises(InputError, match=said):
        Burst.parse_short(text)


def test_a_burst_below_the_usual_rate_is_refused_by_name() -> None:
    with pytest.raises(InputError, match="not above the input rate of 5k/s"):
        planned("p99 <= 3s", "p99 <= 3s during 4k/s for 1m")


def test_a_batch_job_has_no_bursts() -> None:
    profile = Path(__file__).parents[2] / "examples" / "nightly-totals.profile.yaml"
    asked = ["plan", str(profile), "--target", "deadline <= 10m", "--burst", "1k/s:1m"]
    result = CliRunner().invoke(cli, asked)
    assert result.exit_code == 2
    assert "--burst: not with a deadline" in result.output


def test_the_command_plans_through_bursts() -> None:
    profile = Path(__file__).parents[2] / "examples" / "word-count.profile.yaml"
    asked = ["plan", str(profile), "--rate", "20k/s", "--target", "p99 <= 8s", "--json"]
    result = CliRunner().invoke(cli, [*asked, "--burst", "60k/s:1m:10m"], standalone_mode=False)
    found = json.loads(result.stdout)
    assert found["also"] == ["p99 <= 8.00 s during 60k/s for 1 min every 10 min"]
    assert plan_from_json(found).feasible


def slow_model() -> DurationModel:
    return DurationModel(0.2, (LevelSpan("stage 0", 0.1, ((1e-5, 1.0, 1.0),)),))


def largest_rows(trigger_s: float, burst: Burst, rate_per_s: float = 10_000.0) -> float:
    pace = Pace(model=slow_model(), rate_per_s=rate_per_s, trigger_s=trigger_s)
    return float(burst_effect(pace, burst)[0])


@examples(12, 60)
@given(
    trigger_s=st.sampled_from([0.0, 0.5, 2.0, 10.0]),
    rate_per_s=st.floats(11_000.0, 120_000.0),
    length_s=st.floats(0.1, 100.0),
    ratio=st.floats(1.01, 2.0),
)
def test_harder_bursts_bring_larger_batches_and_longer_recoveries(
    trigger_s: float, rate_per_s: float, length_s: float, ratio: float
) -> None:
    burst = Burst(rate_per_s=rate_per_s, length_s=length_s)
    here = largest_rows(trigger_s, burst)
    longer = largest_rows(trigger_s, replace(burst, length_s=ratio * length_s))
    higher = largest_rows(trigger_s, replace(burst, rate_per_s=ratio * rate_per_s))
    assert here <= higher * (1 + 1e-3)
    # Where bursts begin is looked at in eight places of an interval, not everywhere.
    assert here <= longer * 1.15
    assert here >= 10_000.0 * max(trigger_s, 0.3)


def test_a_lasting_burst_is_its_own_steady_state() -> None:
    burst = Burst(rate_per_s=50_000.0, length_s=3600.0)
    assert largest_rows(1.0, burst) == pytest.approx(50_000.0, rel=1e-3)


def test_a_short_burst_is_one_larger_batch() -> None:
    burst = Burst(rate_per_s=50_000.0, length_s=1.0)
    assert largest_rows(10.0, burst) == pytest.approx(140_000.0)


def test_a_burst_takes_more_nodes_than_none_and_no_more_than_a_lasting_rate() -> None:
    without = planned("p99 <= 4s")
    burst = planned("p99 <= 4s", "p99 <= 4s during 60k/s for 2m")
    lasting = planned("p99 <= 4s", rate_per_s=60_000.0)
    assert without.feasible
    assert burst.feasible
    assert lasting.feasible
    assert without.nodes < burst.nodes <= lasting.nodes
    assert any("during 60k/s" in line for line in burst.binding)
    limit = burst.configuration.max_offsets_per_trigger
    assert limit is None or limit > 2 * RATE_PER_S * max(burst.configuration.trigger_s, 0.5)


def test_a_short_burst_takes_less_than_a_long_one() -> None:
    short = planned("p99 <= 4s", "p99 <= 4s during 60k/s for 100ms")
    long = planned("p99 <= 4s", "p99 <= 4s during 60k/s for 2m")
    assert short.feasible
    assert short.nodes < long.nodes


def test_what_breaks_a_burst_promise_is_reported_with_its_number() -> None:
    answer = planned("p99 <= 4s", "p99 <= 2500ms during 46k/s for 2m")
    assert answer.feasible
    assert answer.rejected[0].change == "one node fewer"
    assert "during 46k/s for 2 min" in answer.rejected[0].reason
    assert answer.rejected[0].latency_s is not None
    assert answer.rejected[0].latency_s > 4.0


def test_where_a_burst_is_too_much_the_plan_says_so_and_what_goes_without() -> None:
    answer = planned("p99 <= 4s", "p99 <= 4s during 600k/s for 2m")
    assert not answer.feasible
    assert any("during 600k/s" in line for line in answer.binding)
    assert any("nearest plan" in line for line in answer.binding)
    assert any("meets both p99 <= 4.00 s and p99" in line for line in answer.binding)
    (without,) = [one for one in answer.nearest if one.gives_way == "burst"]
    assert "without p99 <= 4.00 s during 600k/s" in without.text
    three = planned("p99 <= 4s", "p99 <= 4s during 600k/s for 2m", "catch_up <= 15m after 30m")
    assert any("meets all of p99 <= 4.00 s, p99" in line for line in three.binding)


@pytest.mark.parametrize("every", ["", " every 4m"])
@pytest.mark.parametrize("length", ["5s", "60s"])
def test_the_simulation_keeps_what_a_plan_promises_of_bursts(length: str, every: str) -> None:
    promise = f"p95 <= 4s during 50k/s for {length}{every}"
    answer = planned("p95 <= 4s", promise, f"catch_up <= 20s after 50k/s for {length}")
    assert answer.feasible
    length_s = float(length.removesuffix("s"))
    trace = RateTrace(
        times_s=(0.0, 20.3, 20.3 + length_s),
        rates_per_s=(RATE_PER_S, 50_000.0, RATE_PER_S),
        end_s=length_s + 80.0,
    )
    simulated = simulate_plan(answer, trace, num_runs=40, seed=7)
    in_burst = [one for one in simulated.stretches if one.rate_per_s > 40_000.0]
    assert in_burst
    assert np.mean([one.late_ratio for one in in_burst]) <= 0.05
    assert not simulated.ends_behind
    # What comes twenty seconds after a burst is served as before it.
    calm = [one for one in simulated.stretches if one.start_s > 20.3 + length_s + 20.0]
    assert max(one.backlog_rows for one in calm) < 3.0 * simulated.stretches[0].backlog_rows


def test_the_plan_without_the_burst_would_miss_it() -> None:
    answer = planned("p95 <= 4s")
    trace = RateTrace(
        times_s=(0.0, 60.0, 120.0), rates_per_s=(RATE_PER_S, 50_000.0, RATE_PER_S), end_s=240.0
    )
    simulated = simulate_plan(answer, trace, num_runs=8, seed=7)
    burst = max(simulated.stretches, key=lambda one: one.rate_per_s)
    assert (burst.late_ratio or 0.0) > 0.2


@pytest.mark.parametrize("after", ["", "catch_up <= 5m after 8k/s for 1m"])
def test_the_max_rate_under_bursts_is_one_that_can_be_asked(after: str) -> None:
    """At the rate of the burst there is none, and a plan for it is refused."""
    job = replace(a_profile(), arrivals=Arrivals(rate_per_s=RATE_PER_S))
    promise = parse_promise(after or "p99 <= 5s during 8k/s for 1m")
    assert isinstance(promise, DuringBurst | CatchUp)
    target = Target.parse("p99 <= 5s")
    space = replace(SPACE, max_nodes=3)
    found = plan(job, job.arrivals, target, space, further_targets=[promise])
    rates_per_s = [found.max_rate_per_s, *(one.sustainable_rate_per_s for one in found.frontier)]
    for rate_per_s in rates_per_s:
        assert rate_per_s is not None
        assert 7900.0 < rate_per_s < 8000.0
        asked = plan(job, Arrivals(rate_per_s=rate_per_s), target, space, further_targets=[promise])
        assert asked.feasible
