"""Close to saturation: what is still predicted, and that prediction and plan agree on it."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from headway import load_profile
from headway.digits import number_at, rank_of
from headway.domain import DurationNoise, FindingCode, JobProfile, Target
from headway.planner.candidates import Candidates, candidates_at
from headway.planner.question import Question, SearchSpace
from headway.words import words_of
from tests.factories import a_profile
from tests.models.job.test_predict import ask, codes, latency_of, straight
from tests.seeds import examples, first_of

ONE_OF_TWO_CORES = {"executors": 1, "cores_per_executor": 2, "shuffle_partitions": 2}
A_WORD_COUNT = load_profile(Path(__file__).parents[3] / "examples" / "word-count.profile.yaml")
PROFILES = {
    "word count": A_WORD_COUNT,
    "of the tests": a_profile(),
    "slow noise": straight(
        noise=DurationNoise(batch_ratio=0.15, autocorrelation=0.9, run_to_run_ratio=0.05)
    ),
    "wild": straight(
        noise=DurationNoise(batch_ratio=0.6, autocorrelation=0.2, run_to_run_ratio=0.2)
    ),
    "quiet": straight(0.001),
}


def planned_at(
    profile: JobProfile, rate_per_s: float, partitions: int, trigger_s: float, confidence: float
) -> Candidates:
    arrivals = replace(profile.arrivals, rate_per_s=rate_per_s)
    question = Question(
        profile=replace(profile, arrivals=arrivals),
        target=Target.parse("p99 <= 1h"),
        space=SearchSpace(max_nodes=1, cores_per_executor=2),
        confidence=confidence,
    )
    return candidates_at(question, [(1, partitions, trigger_s)])


def test_noise_alone_may_be_too_close_to_saturation() -> None:
    """A slow spell near the pole of (B8) ruled the mean: 102.9 s beside a p99 of 33.6 s."""
    prediction = ask(A_WORD_COUNT, 140718.0, trigger_s=0.0, **ONE_OF_TWO_CORES)
    assert prediction.offered_load_ratio is not None
    assert prediction.offered_load_ratio < 0.9
    assert prediction.stable
    assert codes(prediction) == {FindingCode.TOO_CLOSE_TO_SATURATION}
    assert prediction.tuple_latency is None


# Each profile, and each trigger, in every run.
SOME = [
    *(("word count", 0.0), ("of the tests", 1.0), ("slow noise", 5.0)),
    *(("wild", 0.0), ("quiet", 1.0), ("word count", 5.0)),
]
OTHERS = sorted({*product(PROFILES, (0.0, 1.0, 5.0))} - {*SOME})


@pytest.mark.parametrize("case", first_of([*SOME, *OTHERS], len(SOME)), ids=str)
def test_stable_means_up_to_the_stated_rate(case: tuple[str, float]) -> None:
    """A word count was stable at 150k/s beside "stable up to 142k/s"."""
    name, trigger_s = case
    profile = PROFILES[name]
    most_per_s = ask(profile, 1.0, trigger_s=trigger_s, **ONE_OF_TWO_CORES).sustainable_rate_per_s
    for ratio in (0.9, 0.99, 0.9999, 1.0001, 1.01, 1.05, 1.5):
        there = ask(profile, ratio * most_per_s, trigger_s=trigger_s, **ONE_OF_TWO_CORES)
        assert there.stable == (ratio < 1.0), ratio
        if not there.stable:
            assert there.tuple_latency is None


@pytest.mark.parametrize("trigger_s", [0.0, 1.0, 5.0])
def test_a_latency_is_predicted_up_to_the_stated_rate(trigger_s: float) -> None:
    """ "Predicted up to 135k/s" stood beside a p99 at 138k/s."""
    close = ask(A_WORD_COUNT, 145e3, trigger_s=trigger_s, **ONE_OF_TWO_CORES)
    (finding,) = (one for one in close.findings if one.code is FindingCode.TOO_CLOSE_TO_SATURATION)
    predicted_per_s = finding.numbers["told_up_to_per_s"]
    assert 136e3 <= predicted_per_s < 145e3
    next_per_s = number_at(rank_of(predicted_per_s) + 1)
    for rate_per_s, is_quotable in ((predicted_per_s, True), (next_per_s, False)):
        there = ask(A_WORD_COUNT, rate_per_s, trigger_s=trigger_s, **ONE_OF_TWO_CORES)
        assert there.is_quotable == is_quotable
    # The text has the offered load, since a query with a trigger may be busy all the time.
    load = finding.numbers["offered_load_ratio"]
    assert f"at an offered load of {load:.0%}" in words_of(finding)
    if trigger_s > 0:
        assert finding.numbers["utilization_ratio"] == pytest.approx(close.utilization_ratio)


def test_an_interval_is_open_where_a_plan_refuses_its_upper_end() -> None:
    for ratio in (0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95):
        planned = planned_at(A_WORD_COUNT, ratio * 141e3, 2, 0.0, 0.95)
        (latency_s,) = planned.latency_s(ratio * 141e3)
        there = ask(A_WORD_COUNT, ratio * 141e3, trigger_s=0.0, **ONE_OF_TWO_CORES)
        assert there.tuple_latency is not None
        interval = there.tuple_latency.interval90_p99_s
        assert interval is not None
        assert interval.high == pytest.approx(latency_s, rel=1e-6)


@pytest.mark.parametrize("name", PROFILES)
@examples(8, 40)
@given(
    distance=st.floats(1e-6, 0.4),
    trigger_s=st.sampled_from([0.0, 0.5, 2.0, 10.0]),
    partitions=st.integers(1, 16),
)
@example(distance=0.4, trigger_s=0.0, partitions=1)
def test_near_saturation_no_mean_exceeds_its_p99_and_the_plan_says_the_same(
    name: str, distance: float, trigger_s: float, partitions: int
) -> None:
    profile = PROFILES[name]
    asked: dict[str, Any] = {**ONE_OF_TWO_CORES, "shuffle_partitions": partitions}
    highest = ask(profile, 1.0, trigger_s=trigger_s, **asked).sustainable_rate_per_s
    rate_per_s = (1.0 - distance) * highest
    prediction = ask(profile, rate_per_s, trigger_s=trigger_s, **asked)
    assert prediction.stable
    for law in (prediction.batch_duration, prediction.tuple_latency):
        assert (law is None) == (FindingCode.TOO_CLOSE_TO_SATURATION in codes(prediction))
        if law is not None:
            assert law.mean_s <= law.p99_s
            assert law.interval90_mean_s is not None
            assert law.interval90_p99_s is not None
            assert law.interval90_mean_s.high <= law.interval90_p99_s.high
    planned = planned_at(profile, rate_per_s, partitions, trigger_s, confidence=0.5)
    held_at_per_s, _ = planned.upper_end().rate_and_factor(rate_per_s)
    if held_at_per_s[0] == rate_per_s:
        (latency_s,) = planned.latency_s(rate_per_s)
        assert math.isfinite(latency_s) == prediction.is_quotable
        if prediction.tuple_latency is not None:
            assert latency_s == pytest.approx(prediction.tuple_latency.p99_s, rel=1e-6)


@pytest.mark.parametrize("rate_per_s", [1.0, 100.0, 3000.0, 24000.0, 90000.0])
@pytest.mark.parametrize("trigger_s", [0.0, 1.0])
def test_the_upper_end_of_the_interval_is_what_a_plan_counts_on(
    rate_per_s: float, trigger_s: float
) -> None:
    """At 1 row/s a plan said 816 ms with 95% confidence, the interval 3.37 s."""
    prediction = ask(A_WORD_COUNT, rate_per_s, trigger_s=trigger_s, **ONE_OF_TWO_CORES)
    planned = planned_at(A_WORD_COUNT, rate_per_s, 2, trigger_s, confidence=0.95)
    interval = latency_of(prediction).interval90_p99_s
    assert interval is not None
    (planned_s,) = planned.latency_s(rate_per_s)
    if math.isinf(planned_s):
        # A plan counts on no latency where small errors grow as much as at that end.
        assert interval.high > 10.0 * latency_of(prediction).p99_s
    else:
        assert interval.high == pytest.approx(planned_s, rel=1e-3)


def test_a_younger_jvm_is_slower_at_the_upper_end_too() -> None:
    old, young = (
        ask(A_WORD_COUNT, 10.0, trigger_s=1.0, jvm_age_s=age_s, **ONE_OF_TWO_CORES)
        for age_s in (3000.0, 20.0)
    )
    ends = [latency_of(one).interval90_p99_s for one in (old, young)]
    assert ends[0] is not None
    assert ends[1] is not None
    assert ends[0].high < ends[1].high
