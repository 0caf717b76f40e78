"""A plan played against traces: what is promised holds, what is not is told."""

from __future__ import annotations

import math
from dataclasses import replace
from functools import cache

import pytest

from headway.domain import Arrivals, Outage, Plan, RateTrace, Target
from headway.errors import InputError
from headway.planner.playback import play
from headway.planner.search import plan
from headway.planner.space import SearchSpace
from tests.factories import a_plan, a_profile

RATE_PER_S = 5000.0


@cache
def planned(target: str = "p99 <= 2s") -> Plan:
    space = SearchSpace(max_nodes=4, cores_per_executor=4)
    return plan(a_profile(), Arrivals(rate_per_s=RATE_PER_S), Target.parse(target), space)


def steady(length_s: float = 600.0, rate_per_s: float = RATE_PER_S) -> RateTrace:
    return RateTrace(times_s=(0.0,), rates_per_s=(rate_per_s,), end_s=length_s)


def test_at_the_planned_rate_the_promise_holds_and_the_prediction_is_met() -> None:
    found = play(planned(), steady())
    predicted = planned().prediction.tuple_latency
    assert predicted is not None
    assert found.late_ratio <= 0.01
    assert found.mean_s == pytest.approx(predicted.mean_s, rel=0.03)
    assert found.p99_s == pytest.approx(predicted.p99_s, rel=0.05)
    assert not found.ends_behind
    assert found.recoveries == ()
    assert len(found.stretches) == 96


def test_a_rate_that_is_too_much_ends_behind() -> None:
    most_per_s = planned().prediction.sustainable_rate_per_s
    found = play(planned(), steady(rate_per_s=3 * most_per_s))
    assert found.ends_behind
    assert found.late_ratio > 0.5
    assert found.stretches[-1].p99_s > found.stretches[10].p99_s


def test_an_outage_is_told_with_its_recovery() -> None:
    outage = Outage(start_s=200.0, length_s=60.0)
    found = play(planned(), steady(), outages=[outage])
    (recovery,) = found.recoveries
    assert recovery.outage == outage
    assert 0 < recovery.median_s <= recovery.worst_s < 300.0
    assert found.longest_late_s >= 55.0
    assert found.max_s >= 60.0
    assert 0.05 < found.late_ratio < 0.5
    before = [one for one in found.stretches if one.start_s < 190.0]
    assert max(one.late_ratio for one in before) < 0.05


def test_a_recovery_that_the_trace_does_not_show_is_none() -> None:
    outage = Outage(start_s=500.0, length_s=99.0)
    (recovery,) = play(planned(), steady(), outages=[outage]).recoveries
    assert recovery.worst_s == math.inf


def test_a_target_on_batches_counts_batches() -> None:
    on_batches = planned("batch p99 <= 1s")
    assert play(on_batches, steady()).late_ratio <= 0.01
    impossible = replace(on_batches, target=Target.parse("batch p99 <= 1ms"))
    assert play(impossible, steady()).late_ratio == 1.0


def test_a_target_on_windows_has_no_late_rows_to_count() -> None:
    on_windows = replace(planned(), target=Target.parse("window p99 <= 9s"))
    assert play(on_windows, steady()).limit_s is None


def test_the_same_seed_plays_the_same() -> None:
    assert play(planned(), steady(), seed=5) == play(planned(), steady(), seed=5)
    assert play(planned(), steady(), seed=5) != play(planned(), steady(), seed=6)


def test_what_cannot_be_played_is_one_line() -> None:
    with pytest.raises(InputError, match="does not hold how long batches take"):
        play(a_plan(), steady())
    with pytest.raises(InputError, match="ends after the trace"):
        play(planned(), steady(), outages=[Outage(start_s=590.0, length_s=20.0)])
    with pytest.raises(InputError, match="give a shorter trace"):
        play(planned(), steady(length_s=1e9))
