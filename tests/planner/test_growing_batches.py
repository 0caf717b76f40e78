"""Plans of queries whose batches grow: until which date they hold."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from headway.api.page import page as page_of
from headway.api.results import as_text
from headway.domain import (
    DriverPhase,
    DurationGrowth,
    Finding,
    FindingCode,
    JobProfile,
    StreamAnswer,
    Target,
)
from headway.domain.finding import CAUTIONS
from headway.planner.question import SearchSpace
from headway.report.wording import headline
from tests.factories import a_profile
from tests.planner.plans import plan

TARGET = Target.parse("p99 <= 12s")
HOUR_S = 3600.0
ENDED = datetime(2026, 9, 21, 14, 30, tzinfo=UTC)
SPACE = SearchSpace(max_nodes=1, cores_per_executor=8)
LISTING = DurationGrowth(
    first_s=0.4,
    last_s=0.8,
    span_s=HOUR_S,
    part="latest_offset",
    part_first_s=0.1,
    part_last_s=0.5,
    causes=("listing",),
    part_rise_ratio=0.45 / HOUR_S,
    ended="2026-09-21T14:30:00Z",
    batch_ratio=0.08,
    autocorrelation=0.3,
)
STAGE = replace(
    LISTING,
    part="aggregate",
    part_first_s=0.2,
    part_last_s=0.6,
    causes=("state_rows",),
)


def with_listing(listing_s: float, growth: DurationGrowth | None = None) -> JobProfile:
    """The counting query, which lists files for some time in each batch."""
    profile = a_profile(growth=growth)
    listing = DriverPhase(name="latest_offset", mean_s=listing_s, sd_s=0.01)
    return replace(profile, driver_phases=(listing, *profile.driver_phases[1:]))


def planned(
    profile: JobProfile, rate_per_s: float = 5000.0, space: SearchSpace = SPACE
) -> StreamAnswer:
    return plan(profile, replace(profile.arrivals, rate_per_s=rate_per_s), TARGET, space)


def promise_of(answer: StreamAnswer) -> Finding:
    promise, cause = (finding for finding in answer.findings if finding.code in CAUTIONS)
    assert promise.code is FindingCode.GROWTH_ENDS_PROMISE
    assert cause.code is FindingCode.GROWTH_CAUSE
    return promise


def keeps(answer: StreamAnswer, profile: JobProfile) -> bool:
    """Whether the plan's own setting meets the target for another job."""
    configuration = answer.configuration
    fixed = replace(
        SPACE,
        shuffle_partitions=configuration.shuffle_partitions,
        trigger_s=configuration.trigger_s,
    )
    return planned(profile, answer.rate_per_s, fixed).feasible


@pytest.mark.parametrize("rate_per_s", [2000.0, 5000.0, 9000.0])
def test_the_date_is_that_on_which_the_target_is_missed(rate_per_s: float) -> None:
    growth = replace(LISTING, part_rise_ratio=1.2 / HOUR_S)
    answer = planned(with_listing(0.3, growth), rate_per_s)
    assert answer.feasible
    promise = promise_of(answer)
    assert promise.numbers["is_missed"] == 1.0
    held_s = promise.numbers["held_s"]
    # A higher rate brings as many more files; a lower one is no excuse.
    faster = max(rate_per_s / 5000.0, 1.0)
    for ratio, holds in ((0.99, True), (1.01, False)):
        listing_s = 0.5 + faster * 1.2 * ratio * held_s / HOUR_S
        assert keeps(answer, with_listing(listing_s)) is holds
    until = ENDED + timedelta(seconds=held_s)
    assert promise.names["until"] == f"{until:%Y-%m-%d %H:%M} UTC"


def test_a_plan_is_made_for_the_time_of_the_growth_again() -> None:
    growth = replace(LISTING, part_rise_ratio=1.2 / HOUR_S)
    held_s = promise_of(planned(with_listing(0.3, growth))).numbers["held_s"]
    assert HOUR_S <= held_s <= 4 * HOUR_S
    # By then no setting meets the target, so nothing is promised.
    steep = replace(growth, part_rise_ratio=9.0 / HOUR_S)
    refused = planned(with_listing(0.3, steep))
    assert not refused.feasible
    assert refused.findings[0].code is FindingCode.BATCHES_GROW
    assert refused.kept_probability is None


def test_nothing_is_promised_beyond_four_times_the_run() -> None:
    growth = replace(LISTING, part_rise_ratio=0.02 / HOUR_S)
    answer = planned(with_listing(0.3, growth))
    promise = promise_of(answer)
    assert (promise.numbers["held_s"], promise.numbers["is_missed"]) == (4 * HOUR_S, 0.0)
    assert promise.names["until"] == "2026-09-21 18:30 UTC"
    assert "what comes after that is not known" in " ".join(as_text(answer).split())


def test_growth_by_the_batch_is_faster_on_a_shorter_trigger() -> None:
    growth = replace(
        LISTING,
        part="commit_offsets",
        part_first_s=0.02,
        part_last_s=0.036,
        part_rise_ratio=0.04 / HOUR_S,
        causes=("checkpoint",),
    )
    spaces = [replace(SPACE, trigger_s=trigger_s) for trigger_s in (3.0, 1.0, 0.5)]
    rises = [
        promise_of(planned(a_profile(growth=growth), space=space)).numbers["part_rise_ratio"]
        for space in spaces
    ]
    # It was profiled on a trigger of a second.
    assert rises == pytest.approx([0.04 / HOUR_S, 0.04 / HOUR_S, 0.08 / HOUR_S])


def test_a_growing_stage_is_extrapolated_as_a_whole() -> None:
    growth = replace(STAGE, part_rise_ratio=4.0 / HOUR_S)
    profile = a_profile(growth=growth)
    answer = planned(profile)
    held_s, is_missed = (promise_of(answer).numbers[name] for name in ("held_s", "is_missed"))
    assert is_missed
    for share, holds in ((0.99, True), (1.01, False)):
        ratio = growth.part_after_s(share * held_s) / 0.4
        scan, aggregate = profile.stages
        longer = replace(
            aggregate,
            task_fixed_s=ratio * aggregate.task_fixed_s,
            task_per_row_s=ratio * aggregate.task_per_row_s,
        )
        assert keeps(answer, replace(profile, growth=None, stages=(scan, longer))) is holds


@pytest.mark.parametrize(
    "growth", [replace(LISTING, part_rise_ratio=None), replace(LISTING, ended=None)]
)
def test_what_is_not_measured_well_enough_is_refused(growth: DurationGrowth) -> None:
    answer = planned(with_listing(0.3, growth))
    assert not answer.feasible
    assert [finding.code for finding in answer.findings][:2] == [
        FindingCode.BATCHES_GROW,
        FindingCode.GROWTH_CAUSE,
    ]
    assert headline(answer).endswith("no plan holds unless that stops")


def test_the_headline_has_the_date() -> None:
    growth = replace(LISTING, part_rise_ratio=1.2 / HOUR_S)
    answer = planned(with_listing(0.3, growth))
    until = promise_of(answer).names["until"]
    said = (
        f"1 node meets p99 <= 12.0 s at 5k/s until {until}, as its batches take longer and longer"
    )
    assert headline(answer) == said
    text, page = (" ".join(words.split()) for words in (as_text(answer), page_of(answer)))
    for words in (text, page):
        assert f"until {until}, as its batches take longer and longer" in words
        assert "caution: latest_offset gets longer, by up to 1.20 s in an hour" in words
    assert "the folder of the source has more and more files to list" in text
