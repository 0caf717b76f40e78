"""Predictions of a setting: hand-computed values, regimes, laws, and the event simulation."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.domain import (
    Z90,
    Arrivals,
    Configuration,
    Drift,
    DriverPhase,
    DurationNoise,
    FindingCode,
    JobProfile,
    LatencyDistribution,
    Metric,
    Prediction,
    RowsLaw,
    StateProfile,
)
from headway.domain.finding import OF_PROFILE
from headway.models.batches.microbatch import AffineDuration
from headway.models.job.capacity import Capacity, sustainable_rate_per_s
from headway.models.job.duration import DurationModel
from headway.models.job.predict import predict, predictions_at
from headway.models.job.setting import (
    after_commit_s,
    duration_model,
    load_ratio,
    settled_batch_rows,
)
from headway.report.wording import stability_text
from headway.words import all_words
from tests.factories import a_configuration, a_profile
from tests.oracles.microbatch import simulate_microbatch
from tests.planner.jobs import SLIDING, windowed
from tests.seeds import examples

SETTINGS = {
    "executors": st.integers(1, 12),
    "cores": st.integers(1, 8),
    "partitions": st.integers(1, 64),
    "trigger_s": st.sampled_from([0.0, 0.1, 0.25, 0.5, 1.0, 3.0, 10.0]),
    "rate_per_s": st.floats(1.0, 1e6),
    "batch_ratio": st.sampled_from([0.0, 0.05, 0.15, 0.3]),
    "autocorrelation": st.sampled_from([0.0, 0.3, 0.9]),
    "dispersion": st.sampled_from([0.0, 1.0, 100.0]),
}


def straight(noise_ratio: float = 0.1, **changes: Any) -> JobProfile:
    """A batch takes 0.5 s and 20 us a row; 0.1 s of that passes after the commit."""
    stage = replace(
        a_profile().stages[0],
        num_source_tasks=4,
        rows=RowsLaw(scale=1.0, exponent=1.0),
        task_fixed_s=0.1,
        task_per_row_s=8e-5,
        task_per_partition_s=0.0,
        task_noise_ratio=0.0,
    )
    return replace(
        a_profile(),
        **{
            "driver_phases": (
                DriverPhase(name="query_planning", mean_s=0.3, sd_s=0.0),
                DriverPhase(name="commit_offsets", mean_s=0.1, sd_s=0.0),
            ),
            "stages": (stage,),
            "noise": DurationNoise(
                batch_ratio=noise_ratio, autocorrelation=0.0, run_to_run_ratio=0.0
            ),
            **changes,
        },
    )


def ask(
    profile: JobProfile, rate_per_s: float, *, jvm_age_s: float | None = None, **changes: Any
) -> Prediction:
    arrivals = replace(profile.arrivals, rate_per_s=rate_per_s)
    return predict(profile, a_configuration(**changes), arrivals, jvm_age_s=jvm_age_s)


def codes(prediction: Prediction) -> set[FindingCode]:
    """What is said of the setting itself, not of what the profile speaks for."""
    return {one.code for one in prediction.findings if one.code not in OF_PROFILE}


def latency_of(prediction: Prediction) -> LatencyDistribution:
    assert prediction.tuple_latency is not None
    return prediction.tuple_latency


def ask_any(question: dict[str, Any]) -> tuple[JobProfile, Prediction]:
    profile = replace(
        a_profile(),
        noise=DurationNoise(
            batch_ratio=question["batch_ratio"],
            autocorrelation=question["autocorrelation"],
            run_to_run_ratio=0.05,
        ),
        arrivals=Arrivals(rate_per_s=5000.0, dispersion_ratio=question["dispersion"]),
    )
    return profile, ask(
        profile,
        question["rate_per_s"],
        executors=question["executors"],
        cores_per_executor=question["cores"],
        shuffle_partitions=question["partitions"],
        trigger_s=question["trigger_s"],
    )


def test_on_the_grid_half_the_trigger_and_the_batch_to_its_commit() -> None:
    prediction = ask(straight(0.0), 10000.0, trigger_s=2.0)
    duration_s = 0.5 + 2e-5 * 20000.0
    assert prediction.batch_duration is not None
    assert prediction.batch_duration.mean_s == pytest.approx(duration_s, rel=1e-3)
    latency = latency_of(prediction)
    assert latency.mean_s == pytest.approx(1.0 + duration_s - 0.1, rel=1e-3)
    assert latency.p50_s == pytest.approx(1.0 + duration_s - 0.1, rel=1e-3)
    assert latency.p99_s == pytest.approx(0.99 * 2.0 + duration_s - 0.1, rel=2e-3)
    assert prediction.utilization_ratio == pytest.approx(duration_s / 2.0, rel=1e-3)
    assert prediction.phases_s["wait"] == pytest.approx(1.0, rel=1e-3)
    assert prediction.phases_s["query_planning"] == pytest.approx(0.3)
    assert "commit_offsets" not in prediction.phases_s
    assert prediction.phases_s["scan"] == pytest.approx(0.1 + 2e-5 * 20000.0, rel=1e-3)


def test_free_running_one_and_a_half_batches() -> None:
    prediction = ask(straight(0.0), 10000.0, trigger_s=0.0)
    settled_s = 0.5 / (1.0 - 0.2)
    assert prediction.batch_duration is not None
    assert prediction.batch_duration.mean_s == pytest.approx(settled_s, rel=1e-3)
    assert latency_of(prediction).mean_s == pytest.approx(1.5 * settled_s - 0.1, rel=2e-3)
    # A batch always runs, though a second of input adds only 0.2 s of work.
    assert prediction.utilization_ratio == 1.0
    assert prediction.offered_load_ratio == pytest.approx(0.2)
    assert prediction.gain_ratio == pytest.approx(1.25)
    assert prediction.stable


@pytest.mark.parametrize("trigger_s", [0.0, 2.0])
def test_a_query_without_rows_is_not_busy(trigger_s: float) -> None:
    """A row in 1,000 s makes one batch of half a second in that time, whatever the trigger."""
    rare = ask(straight(0.0), 0.001, trigger_s=trigger_s)
    assert rare.utilization_ratio == pytest.approx(0.5 / 1000.0, rel=2e-3)
    bursts = predict(
        straight(0.0),
        a_configuration(trigger_s=trigger_s),
        Arrivals(rate_per_s=0.001, dispersion_ratio=10.0),
    )
    assert bursts.utilization_ratio == pytest.approx(rare.utilization_ratio / 10.0, rel=2e-2)


@pytest.mark.parametrize("trigger_s", [0.0, 2.0])
def test_a_query_that_falls_behind_is_always_busy(trigger_s: float) -> None:
    behind = ask(straight(), 100000.0, trigger_s=trigger_s)
    assert not behind.stable
    assert behind.utilization_ratio == 1.0
    assert behind.offered_load_ratio == pytest.approx(2.0)


def test_the_sustainable_rate_of_a_straight_line() -> None:
    # 20 us a row, nine tenths of the time.
    prediction = ask(straight(0.0), 10000.0)
    assert prediction.sustainable_rate_per_s == pytest.approx(45000.0, rel=1e-3)


@pytest.mark.parametrize("trigger_s", [0.0, 0.5, 10.0])
@pytest.mark.parametrize("exponent", [0.3, 0.8, 1.0])
@pytest.mark.parametrize("per_row_s", [1e-9, 2e-5, 4e2])
def test_the_sustainable_rate_is_that_of_trying_rates(
    per_row_s: float, exponent: float, trigger_s: float
) -> None:
    """It is solved by the rows of a batch; settled rows of rate after rate say the same."""
    stage = replace(
        straight(0.0).stages[0],
        task_per_row_s=per_row_s,
        rows=RowsLaw(scale=2.0, exponent=exponent),
    )
    profile = straight(0.0, stages=(stage,))
    asked = Capacity.of(profile, a_configuration(trigger_s=trigger_s), age_factor=1.5)
    rates_per_s = asked.stable_up_to_per_s * np.array([1.0, 1.0002])
    within, beyond = load_ratio(
        profile,
        asked.model,
        rate_per_s=rates_per_s,
        trigger_s=trigger_s,
        factor=1.5,
        highest_offered_load=0.9,
    )
    assert within <= 1.0
    # No rate above the last one is tried.
    assert beyond > 1.0 or asked.stable_up_to_per_s == 1e12


def test_batches_without_a_fixed_time_are_sustainable_by_their_rows() -> None:
    stage = replace(straight(0.0).stages[0], task_fixed_s=0.0, task_per_row_s=1e-3)
    profile = straight(0.0, driver_phases=(), stages=(stage,))
    asked = Capacity.of(profile, a_configuration(trigger_s=0.0))
    per_row_s = float(asked.model.slope_s(1.0))
    assert asked.stable_up_to_per_s == pytest.approx(0.9 / per_row_s, rel=2e-4)


def test_sustainable_rates_have_no_smallest() -> None:
    slow = replace(straight(0.0).stages[0], task_per_row_s=400.0)
    profile = straight(0.0, stages=(slow,))
    assert ask(profile, 0.001, trigger_s=1.0).sustainable_rate_per_s == pytest.approx(
        0.009, rel=1e-3
    )


@pytest.mark.parametrize(
    ("executors", "times", "is_sure"), [(2, 1.5, True), (16, 1.5, False), (16, 5.0, True)]
)
def test_far_outside_the_profile_only_the_low_end_of_durations_is_sure(
    executors: int, times: float, is_sure: bool
) -> None:
    """On eight times the slots, durations may be 0.5 times as long as expected: (P32)."""
    run = replace(a_profile().settings[0], rows_per_batch_low=1.0, rows_per_batch_high=1e9)
    profile = replace(a_profile(), settings=(run,))
    configuration = a_configuration(executors=executors, trigger_s=2.0)
    rate_per_s = times * sustainable_rate_per_s(profile, configuration)
    prediction = predict(profile, configuration, Arrivals(rate_per_s=rate_per_s))
    assert not prediction.stable
    assert prediction.is_surely_unstable is is_sure
    assert ("outside what was profiled" in stability_text(prediction)) is not is_sure


def test_close_to_saturation_a_setting_is_not_called_unstable() -> None:
    """Up to 50,000 rows/s can be carried; a setting is called stable up to nine tenths of that."""
    run = replace(a_profile().settings[0], rows_per_batch_low=1.0, rows_per_batch_high=1e9)
    profile = straight(settings=(run,))
    rates_per_s = (44e3, 46e3, 48e3, 52e3, 60e3, 90e3)
    predictions = [ask(profile, rate_per_s, trigger_s=2.0) for rate_per_s in rates_per_s]
    assert [one.is_close_to_saturation for one in predictions[1:3]] == [True, True]
    is_sure = [prediction.is_surely_unstable for prediction in predictions]
    assert is_sure == [False, False, False, True, True, True]


def test_a_verdict_needs_more_than_the_spread_of_runs() -> None:
    """A fit to one run, and runs that differ by a tenth, leave 0.75 to 1.33 of 50,000 rows/s."""
    run = replace(a_profile().settings[0], rows_per_batch_low=1.0, rows_per_batch_high=1e9)
    noise = DurationNoise(batch_ratio=0.1, autocorrelation=0.0, run_to_run_ratio=0.1)
    profile = straight(settings=(run,), noise=noise)
    rates_per_s = (36e3, 40e3, 60e3, 70e3)
    predictions = [ask(profile, rate_per_s, trigger_s=2.0) for rate_per_s in rates_per_s]
    assert [prediction.is_surely_stable for prediction in predictions] == [
        True,
        False,
        False,
        False,
    ]
    assert [prediction.is_surely_unstable for prediction in predictions] == [
        False,
        False,
        False,
        True,
    ]


@pytest.mark.statistical
def test_sure_verdicts_are_seldom_wrong() -> None:
    """Runs that differ by 12%, a fit to four of them, and rates of half to twice the capacity."""
    generator = np.random.default_rng(7)
    run = replace(a_profile().settings[0], rows_per_batch_low=1.0, rows_per_batch_high=1e9)
    noise = DurationNoise(batch_ratio=0.05, autocorrelation=0.0, run_to_run_ratio=0.12)
    profile = straight(settings=(run,) * 4, noise=noise)
    num_sure = num_wrong = 0
    for _ in range(1_000):
        fitted_ratio = float(np.exp(generator.normal(0.0, 0.12, 4)).mean())
        grows_from_per_s = 50e3 / float(np.exp(generator.normal(0.0, 0.12)))
        rate_per_s = 50e3 * float(np.exp(generator.uniform(-np.log(2.0), np.log(2.0))))
        asked = replace(profile, arrivals=Arrivals(rate_per_s=rate_per_s))
        capacity = Capacity.of(asked, a_configuration(trigger_s=2.0), fitted_ratio)
        is_sure_to_hold = capacity.is_stable and capacity.load_at_end(Z90) < 1.0
        num_sure += is_sure_to_hold or capacity.is_surely_over
        num_wrong += is_sure_to_hold and rate_per_s > grows_from_per_s
        num_wrong += capacity.is_surely_over and rate_per_s < grows_from_per_s
    assert num_sure > 500
    assert num_wrong < 0.03 * num_sure


def test_a_rate_limit_may_bind_first() -> None:
    prediction = ask(straight(0.0), 10000.0, trigger_s=2.0, max_offsets_per_trigger=40000)
    assert prediction.stable
    assert prediction.sustainable_rate_per_s == pytest.approx(20000.0)


def test_beyond_capacity_there_is_no_latency_but_a_rate() -> None:
    prediction = ask(straight(), 60000.0)
    assert not prediction.stable
    assert not prediction.calibrated
    assert prediction.batch_duration is None
    assert prediction.tuple_latency is None
    assert prediction.phases_s == {}
    assert 0 < prediction.sustainable_rate_per_s < 50000.0
    (finding,) = (one for one in prediction.findings if one.code not in OF_PROFILE)
    assert finding.code is FindingCode.OVER_CAPACITY
    assert finding.numbers["stable_up_to_per_s"] == prediction.sustainable_rate_per_s
    assert ask(straight(), 0.99 * prediction.sustainable_rate_per_s).stable


@pytest.mark.parametrize("trigger_s", [0.0, 0.3, 2.0])
@pytest.mark.parametrize("limit", [1, 100, 5000, 12000, 20000, 24000, 30000, 10**6])
def test_a_rate_limit_is_held_to_the_stability_rule(trigger_s: float, limit: int) -> None:
    """(B12): a full batch has to bring more rows than arrive meanwhile."""
    rate_per_s = 10000.0
    prediction = ask(straight(), rate_per_s, trigger_s=trigger_s, max_offsets_per_trigger=limit)
    interval_s = max(trigger_s, 0.5 + 2e-5 * limit)
    assert prediction.stable == (rate_per_s * interval_s < limit)
    if prediction.stable:
        assert prediction.sustainable_rate_per_s > rate_per_s
    else:
        assert prediction.tuple_latency is None
        assert FindingCode.RATE_LIMIT_TOO_LOW in codes(prediction)
        assert prediction.sustainable_rate_per_s == pytest.approx(limit / interval_s)
    tight = FindingCode.RATE_LIMIT_LEAVES_LITTLE in codes(prediction)
    assert tight == (rate_per_s * interval_s < limit < 1.2 * rate_per_s * interval_s)


def test_the_limit_that_is_advised_is_enough() -> None:
    refused = ask(straight(), 10000.0, trigger_s=0.0, max_offsets_per_trigger=100)
    (finding,) = refused.findings
    rows = int(finding.numbers["enough_rows"])
    advised = ask(straight(), 10000.0, trigger_s=0.0, max_offsets_per_trigger=rows)
    assert advised.stable
    assert advised.findings == ()


def test_a_young_jvm_is_slower_by_the_drift() -> None:
    profile = straight(0.0, drift=Drift(exponent=0.5, reference_age_s=400.0))
    old, young = (ask(profile, 10000.0, trigger_s=4.0, jvm_age_s=age_s) for age_s in (400.0, 100.0))
    assert old == ask(profile, 10000.0, trigger_s=4.0)
    assert old.batch_duration is not None
    assert young.batch_duration is not None
    assert young.batch_duration.mean_s == pytest.approx(2 * old.batch_duration.mean_s, rel=1e-6)
    assert latency_of(young).p99_s > latency_of(old).p99_s
    assert young.sustainable_rate_per_s == pytest.approx(old.sustainable_rate_per_s / 2, rel=1e-3)
    assert sum(young.phases_s.values()) == pytest.approx(latency_of(young).mean_s, rel=1e-9)


def test_what_compilation_wins_dies_out_beyond_the_oldest_profiled_jvm() -> None:
    profile = straight(0.0, drift=Drift(exponent=0.5, reference_age_s=400.0))
    oldest = replace(profile.settings[0], jvm_age_s=1600.0)
    aged = replace(profile, settings=(oldest, *profile.settings))
    seconds = {}
    for age_s in (400.0, 1599.0, 1600.0, 1601.0, 16000.0, 1e9):
        predicted = ask(aged, 10000.0, trigger_s=4.0, jvm_age_s=age_s).batch_duration
        assert predicted is not None
        seconds[age_s] = predicted.mean_s
    assert seconds[1600.0] == pytest.approx(seconds[400.0] / 2)
    # As steep on both sides of the oldest, and never below what the slope leaves.
    before_s, after_s = seconds[1599.0] - seconds[1600.0], seconds[1600.0] - seconds[1601.0]
    assert after_s == pytest.approx(before_s, rel=0.01)
    assert seconds[16000.0] == pytest.approx(seconds[1600.0] * (1 - 0.5 * 0.9))
    assert seconds[1e9] == pytest.approx(seconds[1600.0] * 0.5, rel=1e-5)


def test_a_young_jvm_needs_a_larger_rate_limit() -> None:
    profile = straight(0.0, drift=Drift(exponent=0.5, reference_age_s=400.0))
    asked = {"trigger_s": 0.0, "max_offsets_per_trigger": 9000}
    assert ask(profile, 10000.0, jvm_age_s=400.0, **asked).stable
    assert not ask(profile, 10000.0, jvm_age_s=100.0, **asked).stable


@pytest.mark.parametrize("age_s", [0.0, -1.0, float("nan")])
def test_an_age_is_positive(age_s: float) -> None:
    with pytest.raises(ValueError, match="jvm_age_s"):
        ask(straight(), 10000.0, jvm_age_s=age_s)


def test_inside_the_profile_it_is_calibrated_outside_wider() -> None:
    inside = ask(a_profile(), 5000.0)
    assert inside.calibrated
    assert all_words(inside.findings) == ()
    outside = ask(a_profile(), 5000.0, executors=16)
    assert not outside.calibrated
    assert any("64 slots" in warning for warning in all_words(outside.findings))
    widths = []
    for latency in (latency_of(inside), latency_of(outside)):
        assert latency.interval90_p99_s is not None
        widths.append(latency.interval90_p99_s.high / latency.interval90_p99_s.low)
    assert widths[1] > widths[0] > 1.0


def test_an_interval_may_reach_into_instability() -> None:
    profile = straight(
        noise=DurationNoise(batch_ratio=0.05, autocorrelation=0.0, run_to_run_ratio=0.2)
    )
    latency = latency_of(ask(profile, 40000.0))
    assert latency.interval90_mean_s is not None
    assert latency.interval90_mean_s.high == math.inf
    assert latency.interval90_mean_s.low < latency.mean_s < math.inf


def test_close_to_saturation_no_latency_is_reported() -> None:
    prediction = ask(straight(0.01), 46000.0)
    assert not prediction.stable  # it is stable up to 45k/s
    assert not prediction.calibrated
    assert not prediction.is_quotable
    assert prediction.tuple_latency is None
    assert prediction.batch_duration is None
    assert prediction.phases_s == {}
    (finding,) = (one for one in prediction.findings if one.code not in OF_PROFILE)
    assert finding.code is FindingCode.TOO_CLOSE_TO_SATURATION
    latency_up_to_per_s = finding.numbers["told_up_to_per_s"]
    assert latency_up_to_per_s == pytest.approx(45000.0, rel=3e-3)
    assert ask(straight(0.01), latency_up_to_per_s).is_quotable
    assert not ask(straight(0.01), 1.005 * latency_up_to_per_s).is_quotable


def test_a_trigger_that_most_batches_overrun_is_reported() -> None:
    prediction = ask(straight(), 10000.0, trigger_s=0.3)
    assert not prediction.calibrated
    assert codes(prediction) == {FindingCode.MOSTLY_OVERRUNS}
    assert prediction.overrun_probability > 0.5
    # The driver alone takes longer than the interval, so more slots are no advice.
    (finding,) = (one for one in prediction.findings if one.code not in OF_PROFILE)
    assert set(finding.numbers) == {"overrun_probability", "enough_trigger_s"}
    longer = ask(straight(), 10000.0, trigger_s=finding.numbers["enough_trigger_s"])
    assert longer.overrun_probability < 0.5


def test_more_slots_are_advised_with_how_many_if_batches_then_end_in_time() -> None:
    """On one slot a batch of 5,000 rows takes 1.2 s, on two 0.8 s."""
    one_slot = {"executors": 1, "cores_per_executor": 1, "trigger_s": 1.0}
    (finding,) = (
        one for one in ask(straight(), 5000.0, **one_slot).findings if one.code not in OF_PROFILE
    )
    assert finding.numbers["enough_slots"] == 2
    assert finding.numbers["enough_trigger_s"] > 1.2
    (words,) = all_words([finding])
    assert words.endswith("or 2 slots would avoid that")
    assert ask(straight(), 5000.0, **(one_slot | {"executors": 2})).overrun_probability < 0.5


def test_a_query_without_exchange() -> None:
    prediction = ask(straight(), 10000.0, shuffle_partitions=999)
    assert not any("partitions" in warning for warning in all_words(prediction.findings))
    assert all(stage.tasks_rule == "source" for stage in straight().stages)


def test_without_a_cost_per_row_rates_are_printed_up_to_four_times_the_profiled_rows() -> None:
    free = replace(straight().stages[0], task_per_row_s=0.0)
    profile = straight(stages=(free,))
    prediction = ask(profile, 10000.0)
    batch_rows = prediction.sustainable_rate_per_s * prediction.configuration.trigger_s
    assert batch_rows == pytest.approx(4.0 * profile.rows_per_batch_range[1], rel=0.01)
    assert ask(profile, 1e9).stable


@examples(15, 100)
@given(question=st.fixed_dictionaries(SETTINGS))
def test_every_prediction_is_ordered_complete_and_finite(question: dict[str, Any]) -> None:
    _, prediction = ask_any(question)
    assert 0 <= prediction.utilization_ratio < math.inf
    assert prediction.sustainable_rate_per_s >= 0
    if not prediction.is_quotable:
        assert prediction.tuple_latency is None
        assert prediction.batch_duration is None
        assert prediction.sustainable_rate_per_s > 0
        assert prediction.stable or prediction.sustainable_rate_per_s < question["rate_per_s"]
        return
    for law in (prediction.batch_duration, prediction.tuple_latency):
        assert law is not None
        assert 0 < law.p50_s <= law.p95_s <= law.p99_s < math.inf
        assert 0 < law.mean_s < math.inf
        for value, interval in (
            (law.mean_s, law.interval90_mean_s),
            (law.p99_s, law.interval90_p99_s),
        ):
            assert interval is not None
            assert 0 < interval.low <= value <= interval.high
    latency = latency_of(prediction)
    assert sum(prediction.phases_s.values()) == pytest.approx(latency.mean_s, rel=1e-6)
    assert prediction.phases_s["wait"] > 0
    assert min(prediction.phases_s.values()) >= 0


@examples(10, 60)
@given(question=st.fixed_dictionaries(SETTINGS), growth=st.floats(1.0, 4.0))
def test_latency_never_falls_with_the_rate(question: dict[str, Any], growth: float) -> None:
    profile, slow = ask_any(question)
    _, fast = ask_any({**question, "rate_per_s": question["rate_per_s"] * growth})
    assert slow.stable or not fast.stable
    if not fast.is_quotable or near_saturation(profile, fast):
        return
    for field in ("mean_s", "p50_s", "p95_s", "p99_s"):
        before, after = getattr(slow.tuple_latency, field), getattr(fast.tuple_latency, field)
        # Rows that come in groups are charged with the slope, which falls with the batch.
        assert before <= after * (1 + (1e-6 if question["dispersion"] <= 1 else 1e-3))


def near_saturation(profile: JobProfile, prediction: Prediction) -> bool:
    """Where a slow spell is close to instability a lognormal no longer tells the tail."""
    return prediction.arrivals.rate_per_s > 0.9 * prediction.sustainable_rate_per_s


@examples(10, 40)
@given(question=st.fixed_dictionaries(SETTINGS), more=st.integers(1, 4))
def test_more_slots_never_predict_slower(question: dict[str, Any], more: int) -> None:
    profile, few = ask_any(question)
    _, many = ask_any({**question, "executors": question["executors"] + more})
    assert many.stable or not few.stable
    if few.is_quotable and not near_saturation(profile, few):
        # The makespan of noisy tasks is known to 2.5%.
        assert latency_of(many).mean_s <= latency_of(few).mean_s * 1.03
        assert latency_of(many).p99_s <= latency_of(few).p99_s * 1.03


def simulated_affine(profile: JobProfile, configuration: Configuration) -> AffineDuration:
    model: DurationModel = duration_model(
        profile, configuration.num_slots, configuration.shuffle_partitions
    )
    rows = settled_batch_rows(model, profile.arrivals.rate_per_s, configuration.trigger_s)
    slope_s = float(model.slope_s(rows))
    return AffineDuration(
        fixed_s=float(model.mean_s(rows)) - slope_s * float(rows),
        per_row_s=slope_s,
        relative_noise=profile.noise.batch_ratio,
        after_commit_s=after_commit_s(profile),
    )


def check_against_simulation(
    trigger_s: float, offered_load: float, noise: float, dispersion: float, num_batches: int
) -> None:
    rate_per_s = offered_load / 2e-5
    profile = straight(noise, arrivals=Arrivals(rate_per_s=rate_per_s, dispersion_ratio=dispersion))
    prediction = ask(profile, rate_per_s, trigger_s=trigger_s)
    trace = simulate_microbatch(
        simulated_affine(profile, prediction.configuration),
        rate_per_s,
        trigger_s,
        num_batches=num_batches,
        seed=20261121,
        dispersion=dispersion,
    )
    latency = latency_of(prediction)
    # Intervals that follow the grid are a little shorter than (B2) has them: up to 4% at the
    # transition, with this much noise.
    mean_tolerance = 0.03 if noise <= 0.1 else 0.04
    assert latency.mean_s == pytest.approx(trace.latency_mean_s(), rel=mean_tolerance)
    assert latency.p99_s == pytest.approx(float(trace.latency_quantile_s(0.99)), rel=0.05)


@pytest.mark.parametrize("trigger_s", [0.0, 0.6, 0.8, 2.0, 5.0])
@pytest.mark.parametrize("offered_load", [0.1, 0.4, 0.7])
def test_the_event_simulation_agrees(trigger_s: float, offered_load: float) -> None:
    check_against_simulation(trigger_s, offered_load, 0.1, 1.0, 6000)


@pytest.mark.statistical
@pytest.mark.parametrize("trigger_s", [0.0, 0.5, 0.6, 0.7, 0.8, 1.0, 1.3, 2.0, 3.0, 5.0])
@pytest.mark.parametrize("offered_load", [0.05, 0.2, 0.35, 0.5, 0.6, 0.7])
@pytest.mark.parametrize("noise", [0.02, 0.1, 0.2])
@pytest.mark.parametrize("dispersion", [0.0, 1.0, 50.0])
def test_the_event_simulation_agrees_at_length(
    trigger_s: float, offered_load: float, noise: float, dispersion: float
) -> None:
    check_against_simulation(trigger_s, offered_load, noise, dispersion, 40000)


def test_a_curved_law_is_replaced_by_its_tangent() -> None:
    """Against batches that follow the curve itself, simulated one by one."""
    curved = replace(straight().stages[0], rows=RowsLaw(scale=40.0, exponent=0.6))
    profile = straight(0.1, stages=(curved,), arrivals=Arrivals(rate_per_s=20000.0))
    prediction = ask(profile, 20000.0, trigger_s=0.0)
    model = duration_model(profile, 8, 8)
    random = np.random.default_rng(7)
    log_sd = math.sqrt(math.log1p(0.01))
    interval_s, weighted, total = 1.0, 0.0, 0.0
    for _ in range(20000):
        noise = math.exp(log_sd * random.standard_normal() - 0.5 * log_sd**2)
        duration_s = float(model.mean_s(20000.0 * interval_s)) * noise
        weighted += interval_s * (0.5 * interval_s + duration_s - 0.1)
        total += interval_s
        interval_s = duration_s
    assert latency_of(prediction).mean_s == pytest.approx(weighted / total, rel=0.02)


def test_the_sustainable_rate_is_to_a_part_in_ten_thousand() -> None:
    for trigger_s in (0.0, 2.0):
        highest = sustainable_rate_per_s(a_profile(), a_configuration(trigger_s=trigger_s))
        below, above = (
            ask(a_profile(), highest * share, trigger_s=trigger_s) for share in (0.999, 1.01)
        )
        assert below.stable
        # Above, it is unstable or said to be close to it.
        assert not (above.stable and above.calibrated)


def test_the_burstiness_asked_about_counts_not_the_profiled_one() -> None:
    profile = a_profile()
    smooth = predict(profile, a_configuration(), Arrivals(rate_per_s=5000.0, dispersion_ratio=0.0))
    bursty = predict(profile, a_configuration(), Arrivals(rate_per_s=5000.0, dispersion_ratio=1e4))
    assert smooth.tuple_latency is not None
    assert bursty.tuple_latency is not None
    assert bursty.tuple_latency.p99_s > 1.01 * smooth.tuple_latency.p99_s


def test_a_state_that_grows_is_named_with_its_size() -> None:
    profile = a_profile(
        state=StateProfile(
            rows=2_000_000, memory_bytes=10**9, commit_per_partition_s=0.001, growth_per_s=5000.0
        )
    )
    quiet = predict(profile, a_configuration(), Arrivals(rate_per_s=5000.0))
    assert quiet.findings == ()
    holding = replace(profile.stages[-1], task_per_state_row_s=1e-6)
    priced = replace(profile, stages=(*profile.stages[:-1], holding))
    said = predict(priced, a_configuration(), Arrivals(rate_per_s=5000.0))
    (finding,) = said.findings
    assert finding.code is FindingCode.STATE_GROWS
    assert finding.numbers["growth_per_s"] == 5000.0
    assert finding.numbers["state_rows"] == 2e6
    # Eight tasks on eight slots share a second of work for every million rows.
    assert 0.12 <= finding.numbers["batch_s_per_million_rows"] < 0.3
    assert said.calibrated == quiet.calibrated
    assert said.batch_duration is not None
    assert quiet.batch_duration is not None
    assert said.batch_duration.mean_s > quiet.batch_duration.mean_s + 0.2
    # One that follows the rate grows in its last batches by chance only.
    follows = replace(priced, state=replace(priced.state, rate_exponent=1.0))  # type: ignore[type-var]
    assert predict(follows, a_configuration(), Arrivals(rate_per_s=5000.0)).findings == ()


@pytest.mark.parametrize("trigger_s", [0.0, 2.0])
@pytest.mark.parametrize("of_windows", [False, True])
def test_several_rates_are_predicted_as_each_alone(trigger_s: float, of_windows: bool) -> None:
    """From idle to over capacity, so that some have no latency, and some a chain of batches."""
    profile = windowed(windows=(SLIDING,), output_mode="update") if of_windows else a_profile()
    setting = replace(profile.baseline, trigger_s=trigger_s)
    rates_per_s = np.geomspace(50.0, 3e6, 12).tolist()
    together = predictions_at(profile, setting, profile.arrivals, rates_per_s)
    quoted = [prediction for prediction in together if prediction.is_quotable]
    assert 0 < len(quoted) < len(together)
    for rate_per_s, prediction in zip(rates_per_s, together, strict=True):
        alone = predict(profile, setting, replace(profile.arrivals, rate_per_s=rate_per_s))
        codes = [finding.code for finding in alone.findings]
        assert [finding.code for finding in prediction.findings] == codes
        assert (prediction.stable, prediction.calibrated) == (alone.stable, alone.calibrated)
        for metric in Metric:
            found, expected = prediction.latency(metric), alone.latency(metric)
            assert (found is None) == (expected is None)
            if found is not None and expected is not None:
                # Quantiles of windows are searched for, to three digits.
                within = 2e-3 if metric is Metric.WINDOW else 1e-6
                assert found.statistics_s == pytest.approx(expected.statistics_s, rel=within)
                for name, interval in expected.intervals90_s.items():
                    assert found.intervals90_s[name].low == pytest.approx(interval.low, rel=within)
                    assert found.intervals90_s[name].high == pytest.approx(
                        interval.high, rel=within
                    )
        assert prediction.phases_s == pytest.approx(alone.phases_s, rel=1e-6, abs=1e-9)


def test_latencies_that_are_not_asked_for_change_no_other() -> None:
    profile = windowed(windows=(SLIDING,), output_mode="update")
    rates_per_s = np.geomspace(50.0, 3e6, 12).tolist()
    whole = predictions_at(profile, profile.baseline, profile.arrivals, rates_per_s)
    asked = predictions_at(
        profile, profile.baseline, profile.arrivals, rates_per_s, metrics=(Metric.WINDOW,)
    )
    assert any(prediction.batch_duration is not None for prediction in whole)
    for prediction, other in zip(asked, whole, strict=True):
        assert prediction == replace(other, batch_duration=None)
