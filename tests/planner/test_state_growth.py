"""Plans of queries whose state grows: for how long they hold."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from headway.api.page import page as page_of
from headway.api.results import as_text
from headway.domain import (
    Finding,
    FindingCode,
    JobProfile,
    StateProfile,
    StreamAnswer,
    Target,
)
from headway.domain.finding import CAUTIONS
from headway.formats.as_json import json_text, plan_json
from headway.formats.from_json import plan_from_json
from headway.planner.question import SearchSpace
from headway.words import all_words
from tests.factories import a_profile
from tests.planner.plans import plan

TARGET = Target.parse("p99 <= 2s")


def growing(growth_per_s: float, rows: int = 1_000_000, cost_s: float = 1e-6) -> JobProfile:
    """The counting query, each row of whose state costs its task a microsecond."""
    profile = a_profile(
        state=StateProfile(
            rows=rows, memory_bytes=10**8, commit_per_partition_s=0.001, growth_per_s=growth_per_s
        )
    )
    holding = replace(profile.stages[-1], task_per_state_row_s=cost_s)
    return replace(profile, stages=(*profile.stages[:-1], holding))


def planned(profile: JobProfile, rate_per_s: float = 5000.0) -> StreamAnswer:
    arrivals = replace(profile.arrivals, rate_per_s=rate_per_s)
    return plan(profile, arrivals, TARGET, SearchSpace(max_nodes=1, cores_per_executor=8))


def broken(answer: StreamAnswer) -> Finding:
    (finding,) = (one for one in answer.findings if one.code in CAUTIONS)
    assert finding.code is FindingCode.STATE_BREAKS_PROMISE
    return finding


def keeps_with(answer: StreamAnswer, profile: JobProfile, rows: float) -> bool:
    """Whether the plan's own setting keeps the target with a state of so many rows."""
    assert profile.state is not None
    state = replace(profile.state, rows=int(rows))
    configuration = answer.configuration
    fixed = SearchSpace(
        max_nodes=1,
        cores_per_executor=8,
        shuffle_partitions=configuration.shuffle_partitions,
        trigger_s=configuration.trigger_s,
    )
    return plan(replace(profile, state=state), answer.arrivals, TARGET, fixed).feasible


@pytest.mark.parametrize("growth_per_s", [10.0, 5000.0, 40_000.0])
def test_the_moment_at_which_the_state_breaks_the_promise_is_reported(growth_per_s: float) -> None:
    profile = growing(growth_per_s)
    answer = planned(profile)
    assert answer.feasible
    numbers = broken(answer).numbers
    assert numbers["growth_per_s"] == growth_per_s
    then = numbers["state_rows_then"]
    assert then == pytest.approx(1_000_000 + growth_per_s * numbers["missed_after_s"])
    assert keeps_with(answer, profile, 1_000_000 + 0.99 * (then - 1_000_000))
    assert not keeps_with(answer, profile, 1_000_000 + 1.01 * (then - 1_000_000))


def test_a_higher_rate_makes_the_state_grow_faster() -> None:
    profile = growing(5000.0)
    slow, fast = (broken(planned(profile, rate_per_s)) for rate_per_s in (5000.0, 10_000.0))
    assert fast.numbers["growth_per_s"] == 2 * slow.numbers["growth_per_s"]
    assert fast.numbers["missed_after_s"] < slow.numbers["missed_after_s"]


@pytest.mark.parametrize(
    "profile",
    [growing(0.0), growing(5000.0, cost_s=0.0), growing(1e-3), a_profile()],
    ids=["bounded", "free", "for years", "none"],
)
def test_a_state_that_breaks_nothing_is_no_caution(profile: JobProfile) -> None:
    assert not [one for one in planned(profile).findings if one.code in CAUTIONS]


def test_the_headline_says_for_how_long() -> None:
    answer = planned(growing(40_000.0))
    seconds = broken(answer).numbers["missed_after_s"]
    assert seconds < 600
    text = " ".join(as_text(answer).split())
    assert (
        "until the growing state makes it miss the target caution: the state grows by 40k/s" in text
    )
    page = " ".join(page_of(answer).split())
    assert "until the growing state makes it miss the target" in page
    assert '<p class="bad">caution: the state grows by 40k/s at this rate' in page


def test_a_saved_plan_says_the_same_number_of_rows() -> None:
    """A file has six digits of an estimate, so a sentence with more of them would differ."""
    found = planned(growing(2000.0, rows=1_298_695), rate_per_s=5000.3)
    saved = plan_from_json(json.loads(json_text(plan_json(found))))
    texts = [all_words((*plan.findings, *plan.prediction.findings)) for plan in (found, saved)]
    assert texts[0] == texts[1]
    assert any("1,299,000 rows" in text for text in texts[0])
