"""Laws that every prediction keeps, over random profiles: means, jumps, and order."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from headway.domain import Arrivals, Configuration, DurationNoise, JobProfile, Prediction, Target
from headway.models.job.predict import predict
from headway.planner.candidates import candidates_at
from headway.planner.question import Question, SearchSpace
from headway.planner.verdict import kept_probability
from tests.planner.enumeration import random_profile
from tests.seeds import examples

MOST_JUMP = 0.02
MORE_RATE = 1.01
# One step of the scores among which a probability is looked for, at its steepest.
ONE_STEP = 6.0 / 128 / math.sqrt(2.0 * math.pi)


def noisy_profile(seed: int) -> JobProfile:
    """A random job whose noise lasts, as that of real jobs does."""
    random = np.random.default_rng(seed)
    profile = random_profile(random)
    noise = DurationNoise(
        batch_ratio=float(random.uniform(0.01, 0.3)),
        autocorrelation=float(random.uniform(0.0, 0.95)),
        run_to_run_ratio=float(random.uniform(0.02, 0.12)),
    )
    return replace(profile, noise=noise)


def a_setting(profile: JobProfile, trigger_s: float) -> Configuration:
    baseline = profile.settings[0].configuration
    return replace(baseline, trigger_s=trigger_s, max_offsets_per_trigger=None)


def at_rate(profile: JobProfile, setting: Configuration, rate_per_s: float) -> Prediction:
    arrivals = Arrivals(rate_per_s=rate_per_s, dispersion_ratio=profile.arrivals.dispersion_ratio)
    return predict(profile, setting, arrivals)


@examples(6, 25)
@given(
    seed=st.integers(0, 10_000),
    trigger_s=st.sampled_from([0.0, 0.2, 1.0, 5.0]),
    load=st.floats(0.01, 0.999),
)
def test_no_mean_is_above_its_p99(seed: int, trigger_s: float, load: float) -> None:
    profile = noisy_profile(seed)
    setting = a_setting(profile, trigger_s)
    highest_per_s = at_rate(profile, setting, 1.0).sustainable_rate_per_s
    found = at_rate(profile, setting, load * highest_per_s)
    for law in (found.batch_duration, found.tuple_latency):
        if law is not None:
            assert law.mean_s <= law.p99_s
            assert law.p50_s <= law.p95_s <= law.p99_s
            mean, p99 = law.interval90_mean_s, law.interval90_p99_s
            assert mean is not None
            assert p99 is not None
            assert mean.low <= law.mean_s <= mean.high
            assert p99.low <= law.p99_s <= p99.high


@examples(6, 25)
@given(
    seed=st.integers(0, 10_000),
    trigger_s=st.sampled_from([0.0, 0.2, 1.0, 5.0]),
    load=st.floats(0.01, 0.97),
)
def test_a_little_more_rate_makes_no_jump(seed: int, trigger_s: float, load: float) -> None:
    """Latencies grow more and more steeply towards saturation, but never by a step of 2%."""
    profile = noisy_profile(seed)
    setting = a_setting(profile, trigger_s)
    rate_per_s = load * at_rate(profile, setting, 1.0).sustainable_rate_per_s
    found = [at_rate(profile, setting, rate_per_s * MORE_RATE**power) for power in range(3)]
    for laws in ([one.batch_duration for one in found], [one.tuple_latency for one in found]):
        known = [law for law in laws if law is not None]
        if len(known) == len(found):
            figures_s = np.array([[law.mean_s, law.p99_s] for law in known])
            assert_no_jump(figures_s)


def assert_no_jump(figures_s: np.ndarray) -> None:
    """Of figures at three rates a little apart: each step is like the one before."""
    steps = np.diff(np.log(figures_s), axis=0)
    assert np.all(np.abs(steps[1] - steps[0]) <= MOST_JUMP)


@examples(6, 25)
@given(
    seed=st.integers(0, 10_000),
    trigger_s=st.sampled_from([0.0, 0.2, 1.0, 5.0]),
    load=st.floats(0.01, 0.9),
    confidence=st.sampled_from([0.5, 0.8, 0.95]),
)
def test_a_little_more_rate_makes_no_jump_in_a_plan(
    seed: int, trigger_s: float, load: float, confidence: float
) -> None:
    """What is planned with a margin moves as evenly as what is predicted."""
    profile = noisy_profile(seed)
    setting = a_setting(profile, trigger_s)
    rate_per_s = load * at_rate(profile, setting, 1.0).sustainable_rate_per_s
    question = a_question(profile, rate_per_s, confidence)
    of_setting = (setting.executors, setting.shuffle_partitions, trigger_s)
    candidate = candidates_at(question, [of_setting])
    rates_per_s = [rate_per_s * MORE_RATE**power for power in range(3)]
    planned_s = np.array([candidate.latency_s(rate)[0] for rate in rates_per_s])
    if np.all(np.isfinite(planned_s)):
        assert_no_jump(planned_s)


def a_question(profile: JobProfile, rate_per_s: float, confidence: float) -> Question:
    baseline = profile.settings[0].configuration
    return Question(
        profile=replace(profile, arrivals=replace(profile.arrivals, rate_per_s=rate_per_s)),
        target=Target.parse("p99 <= 1s"),
        space=SearchSpace(
            max_nodes=baseline.executors, cores_per_executor=baseline.cores_per_executor
        ),
        confidence=confidence,
    )


def probability(profile: JobProfile, trigger_s: float, rate_per_s: float, limit_s: float) -> float:
    baseline = profile.settings[0].configuration
    question = a_question(profile, rate_per_s, 0.95).with_limit(0, limit_s)
    setting = (baseline.executors, baseline.shuffle_partitions, trigger_s)
    return kept_probability(candidates_at(question, [setting]))


@examples(4, 8)
@given(seed=st.integers(0, 10_000), trigger_s=st.sampled_from([0.0, 1.0]), load=st.floats(0.1, 0.9))
def test_a_longer_limit_is_likelier_kept(seed: int, trigger_s: float, load: float) -> None:
    profile = noisy_profile(seed)
    setting = a_setting(profile, trigger_s)
    rate_per_s = load * at_rate(profile, setting, 1.0).sustainable_rate_per_s
    found = at_rate(profile, setting, rate_per_s).tuple_latency
    middle_s = 2.0 if found is None else found.p99_s
    every = [
        probability(profile, trigger_s, rate_per_s, ratio * middle_s)
        for ratio in (0.5, 0.8, 0.9, 0.95, 1.0, 1.05, 1.1, 1.25, 2.0)
    ]
    assert every == sorted(every)


@examples(4, 8)
@given(seed=st.integers(0, 10_000), trigger_s=st.sampled_from([0.0, 1.0]))
def test_a_higher_rate_is_no_likelier_kept(seed: int, trigger_s: float) -> None:
    profile = noisy_profile(seed)
    setting = a_setting(profile, trigger_s)
    highest_per_s = at_rate(profile, setting, 1.0).sustainable_rate_per_s
    found = at_rate(profile, setting, 0.7 * highest_per_s).tuple_latency
    limit_s = 2.0 if found is None else found.p99_s
    every = [
        probability(profile, trigger_s, share * highest_per_s, limit_s)
        for share in (0.3, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9)
    ]
    assert all(after <= before + ONE_STEP for before, after in pairwise(every))
    assert every[0] >= every[-1]
