"""The first minutes of a fresh JVM: what a plan says of them, and plans for them."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.api.plan import plan
from headway.api.predict import predict
from headway.api.results import as_text
from headway.domain import Drift, JobProfile, Plan, WarmUp, WarmUpPoint
from headway.errors import InputError
from headway.formats.as_json import plan_json
from headway.formats.from_json import plan_from_json
from headway.models.estimation.warm_up import falling_ratios
from headway.planner.after_start import _simulated_batches, for_fresh_jvm
from headway.planner.recovery import Pace
from headway.report.explanation import explanation_text
from headway.report.sheet_text import sheet_text
from headway.report.stream import prediction_sheet, stream_sheet
from tests.factories import a_profile, kept

RATE = "20k/s"
TARGET = "p99 <= 4s"


def warmed(**changed: object) -> JobProfile:
    """A job whose first batch takes 3 s more, the next three times as long, that of 40 s a half."""
    points = (
        WarmUpPoint(jvm_age_s=8.0, duration_ratio=3.0, num_batches=2),
        WarmUpPoint(jvm_age_s=40.0, duration_ratio=1.5, num_batches=20),
    )
    figures: dict[str, object] = {
        "start_age_s": 5.0,
        "first_batch_extra_s": 3.0,
        "steady_age_s": 80.0,
        "points": points,
    }
    warm_up = WarmUp(**(figures | changed))  # type: ignore[arg-type]
    drift = Drift(exponent=0.0, reference_age_s=300.0)
    return replace(a_profile(), drift=drift, warm_up=warm_up)


def planned(profile: JobProfile, **asked: Any) -> Plan:
    options: dict[str, Any] = {"rate": RATE, "target": TARGET, "max_nodes": 8}
    return kept(plan(profile, **(options | asked)))


def test_the_first_minute_is_reported_in_numbers() -> None:
    found = planned(warmed())
    start = found.after_start
    assert start is not None
    assert start.evidence == "measured"
    assert start.holds_from_minute == 2
    assert start.by_minute_s[0] > found.target.limit_s
    assert start.first_batch_s is not None
    assert start.first_batch_s > 3.0
    assert start.expected_first_minute_s is not None
    assert 3.0 < start.expected_first_minute_s < start.by_minute_s[0]
    words = " ".join(as_text(found).split())
    assert "after a restart the target is met from minute 2 on; first minute p99" in words
    assert "minute 1 p99 up to" in " ".join(explanation_text(found).split())


def test_minutes_never_become_slower_and_end_with_the_plan() -> None:
    found = planned(warmed(steady_age_s=300.0))
    assert found.after_start is not None
    by_minute_s = found.after_start.by_minute_s
    assert len(by_minute_s) >= 2
    assert all(later <= earlier for earlier, later in pairwise(by_minute_s))
    assert by_minute_s[-1] >= found.planned_latency_s


def test_a_start_without_warm_up_meets_the_target_from_the_first_minute() -> None:
    level = (WarmUpPoint(jvm_age_s=8.0, duration_ratio=1.0, num_batches=2),)
    found = planned(warmed(first_batch_extra_s=0.0, points=level))
    assert found.after_start is not None
    assert found.after_start.holds_from_minute == 1
    assert found.after_start.by_minute_s == pytest.approx((found.planned_latency_s,))
    assert "met from the first minute on" in as_text(found)


def test_a_start_that_never_catches_up_says_so() -> None:
    """So long as batches take eight times as long, rows pile up."""
    slow = (WarmUpPoint(jvm_age_s=8.0, duration_ratio=60.0, num_batches=2),)
    found = planned(warmed(points=slow, steady_age_s=3600.0))
    assert found.after_start is not None
    assert found.after_start.holds_from_minute is None
    assert "missed for 10 minutes and more" in " ".join(as_text(found).split())


def test_without_a_fresh_jvm_on_record_nothing_is_made_up() -> None:
    """A drift fitted on warm batches tells nothing of the first ones."""
    drifting = replace(a_profile(), drift=Drift(exponent=0.2, reference_age_s=300.0))
    found = planned(drifting)
    assert found.after_start is not None
    assert found.after_start.evidence == "unavailable"
    assert found.after_start.by_minute_s == ()
    assert "after a restart" not in sheet_text(stream_sheet(found))
    assert "Unavailable: the profile has no batches of a fresh JVM" in " ".join(
        explanation_text(found).split()
    )
    with pytest.raises(InputError, match="has no batches of a fresh JVM"):
        planned(drifting, from_start=True)


def test_a_plan_from_the_start_holds_while_the_jvm_is_young() -> None:
    profile = warmed(first_batch_extra_s=0.0)
    warm, young = planned(profile), planned(profile, from_start=True)
    assert warm.after_start is not None
    assert young.after_start is not None
    assert young.feasible
    assert young.after_start.holds_from_minute == 1
    assert young.nodes >= warm.nodes
    # What it says of the start, a prediction at the age of the first batch says too.
    said = young.prediction.batch_duration
    asked = predict(
        profile,
        rate=RATE,
        jvm_age=5.0,
        executors=young.configuration.executors,
        cores=young.configuration.cores_per_executor,
        partitions=young.configuration.shuffle_partitions,
        trigger=young.configuration.trigger_s,
        max_offsets=young.configuration.max_offsets_per_trigger,
    ).batch_duration
    assert said is not None
    assert asked is not None
    assert said.mean_s == pytest.approx(asked.mean_s, rel=1e-6)


def test_a_fresh_jvm_multiplies_every_duration() -> None:
    profile = warmed()
    young = for_fresh_jvm(profile)
    assert young.stages[0].task_per_row_s == pytest.approx(3.0 * profile.stages[0].task_per_row_s)
    assert young.driver_phases[0].mean_s == pytest.approx(3.0 * profile.driver_phases[0].mean_s)
    assert young.age_factor(5.0) == 1.0


def test_the_minutes_are_in_the_json_of_a_plan() -> None:
    found = planned(warmed())
    data = json.loads(json.dumps(plan_json(found)))
    assert data["after_start"]["evidence"] == "measured"
    assert data["after_start"]["holds_from_minute"] == 2
    assert kept(plan_from_json(data)).after_start is not None
    del data["after_start"]
    assert kept(plan_from_json(data)).after_start is None


@given(
    ages_s=st.lists(st.floats(1.0, 1e4), min_size=1, max_size=40),
    seed=st.integers(0, 1000),
)
def test_ratios_fall_with_age_and_keep_the_mean(ages_s: list[float], seed: int) -> None:
    ratios = np.exp(np.random.default_rng(seed).normal(0.2, 0.5, len(ages_s)))
    found = falling_ratios(np.array(ages_s), ratios)
    assert sum(one.num_batches for one in found) == len(ages_s)
    assert all(young.duration_ratio > old.duration_ratio for young, old in pairwise(found))
    assert all(young.jvm_age_s < old.jvm_age_s for young, old in pairwise(found))
    mean = sum(one.num_batches * np.log(one.duration_ratio) for one in found) / len(ages_s)
    assert mean == pytest.approx(float(np.mean(np.log(ratios))), abs=1e-9)


def test_a_prediction_has_the_restart_of_its_setting_among_its_details() -> None:
    prediction = predict(warmed(), rate=RATE, trigger="2s")
    restart = prediction.restart
    assert restart is not None
    assert restart.session_s == 5.0
    # 20,000 rows per second came while JVM and session started; the first batch takes 3 s more.
    at_once = predict(warmed(), rate=RATE, trigger=f"{restart.jvm_s + 5.0}s").batch_duration
    assert at_once is not None
    assert restart.first_batch_s == pytest.approx(3.0 + at_once.mean_s, rel=0.01)
    assert "Starting again takes up to" not in as_text(prediction)
    assert "Starting again takes up to" in sheet_text(prediction_sheet(prediction))
    assert prediction.to_dict()["restart"]["session_s"] == 5.0
    # As a plan says it of the same setting, before its safety margin.
    plan_restart = planned(warmed(), trigger="2s").after_start
    assert plan_restart is not None
    assert plan_restart.restart is not None
    assert plan_restart.restart.total_s > restart.total_s
    assert predict(warmed(), rate="9M/s").restart is None
    assert predict(a_profile(), rate=RATE).restart is None


@pytest.mark.parametrize("trigger_s", [0.6, 0.7, 1.1])
def test_batches_begin_on_the_grid_of_any_trigger(trigger_s: float) -> None:
    quick = replace(warmed(), arrivals=replace(warmed().arrivals, rate_per_s=10.0))
    phases = tuple(replace(phase, mean_s=phase.mean_s / 50.0) for phase in quick.driver_phases)
    quick = replace(quick, driver_phases=phases)
    setting = replace(quick.baseline, trigger_s=trigger_s)
    begun_s = _simulated_batches(quick, setting, Pace.of(quick, setting))[:, 0]
    steady_s = np.diff(begun_s[begun_s > 100.0])
    assert len(steady_s) > 50
    assert steady_s == pytest.approx(np.full(len(steady_s), trigger_s))
