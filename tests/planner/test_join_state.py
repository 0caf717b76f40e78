"""Plans of joins whose logs end before their state is full."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from headway.domain import Arrivals, FindingCode, JobProfile, StatefulOperator, StateProfile, Target
from headway.planner.question import SearchSpace
from headway.planner.state_growth import full_join_rows, with_full_join
from headway.words import all_words
from tests.factories import a_profile
from tests.planner.plans import plan

JOIN = StatefulOperator(name="StreamingSymmetricHashJoin", holds_back_s=3600.0)


def joining(operator: StatefulOperator = JOIN, **state: Any) -> JobProfile:
    """A join of both sides of 5,000 rows/s, with a watermark of 10 min and a range of an hour."""
    figures: dict[str, Any] = {
        "rows": 2_000_000,
        "memory_bytes": 2 * 10**8,
        "commit_per_partition_s": 0.001,
        "growth_per_s": 5000.0,
    }
    profile = a_profile(state=StateProfile(**(figures | state)))
    shape = replace(
        profile.shape,
        stateful_operators=("symmetricHashJoin",),
        chain=(operator,),
        watermark_delay_s=600.0,
        state_rows=(figures | state)["rows"],
    )
    return replace(profile, shape=shape)


def test_the_full_state_is_the_rate_times_watermark_and_range() -> None:
    profile = joining()
    rows = profile.settings[-1].rate_per_s * (600 + 3600)
    assert full_join_rows(profile) == pytest.approx(rows)
    full = with_full_join(profile).state
    assert full is not None
    assert full.rows == pytest.approx(rows)
    assert full.memory_bytes == pytest.approx(2e8 * rows / 2e6)
    assert (full.growth_per_s, full.rate_exponent) == (0.0, 1.0)


def test_only_rows_that_are_written_count() -> None:
    """If a filter lets one of four rows into the join, it keeps a quarter."""
    profile = joining()
    last = profile.settings[-1]
    batch_rows = 0.5 * (last.rows_per_batch_low + last.rows_per_batch_high)
    quarter = joining(updated_rows=0.25 * batch_rows)
    whole_rows = full_join_rows(profile)
    assert whole_rows is not None
    assert full_join_rows(quarter) == pytest.approx(0.25 * whole_rows)


def test_the_rows_of_a_batch_are_there_beside_those_that_it_finds() -> None:
    profile = joining(updated_rows=40_000.0)
    held_rows, full = full_join_rows(profile), with_full_join(profile)
    assert held_rows is not None
    assert full.state is not None
    assert full.state.rows == pytest.approx(held_rows + 40_000)
    assert full.num_held_rows == pytest.approx(held_rows)
    faster = replace(full, arrivals=Arrivals(rate_per_s=2.0 * full.settings[-1].rate_per_s))
    assert faster.num_held_rows == pytest.approx(2.0 * held_rows)


@pytest.mark.parametrize(
    "profile",
    [
        joining(growth_per_s=0.0),
        joining(rows=20_500_000),
        joining(replace(JOIN, holds_back_s=None)),
        joining(replace(JOIN, name="StateStoreSave")),
    ],
    ids=["it stopped growing", "nearly full", "one side is kept", "no join"],
)
def test_other_states_stay_as_they_are(profile: JobProfile) -> None:
    assert with_full_join(profile) is profile


def test_a_plan_is_made_for_the_full_state_and_says_so() -> None:
    profile = joining()
    target, space = Target.parse("p99 <= 4s"), SearchSpace(max_nodes=4, cores_per_executor=4)
    answer = plan(profile, Arrivals(rate_per_s=10_000.0), target, space)
    (finding,) = [
        finding for finding in answer.findings if finding.code is FindingCode.JOIN_NOT_FULL
    ]
    rate_ratio = 10_000.0 / profile.settings[-1].rate_per_s
    full_rows = full_join_rows(profile)
    assert full_rows is not None
    assert finding.numbers["full_state_rows"] == pytest.approx(full_rows * rate_ratio)
    assert finding.numbers["state_rows"] == 2_000_000
    assert "was not full in the log" in " ".join(all_words(answer.findings))
    assert not [
        finding for finding in answer.findings if finding.code is FindingCode.STATE_BREAKS_PROMISE
    ]
