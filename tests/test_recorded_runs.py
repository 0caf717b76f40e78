"""The whole path on recorded real runs: log, profile, prediction, beside what was measured."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import headway
from headway.domain import Backtest, JobProfile

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

RECORDED = Path(__file__).parent / "data" / "recorded"
TRUTHS: list[dict[str, Any]] = json.loads((RECORDED / "truth.json").read_text())
FITTED = [one["name"] for one in TRUTHS[:2]]


@pytest.fixture(scope="module")
def log() -> Path:
    (found,) = RECORDED.glob("eventlog_v2_*")
    return found


@pytest.fixture(scope="module")
def profile(spark: SparkSession, log: Path) -> JobProfile:
    return headway.profile(log, queries=FITTED, session=spark)


def test_the_profile_tells_what_was_run(profile: JobProfile) -> None:
    assert [setting.query_name for setting in profile.settings] == FITTED
    assert [setting.configuration.trigger_s for setting in profile.settings] == [1.0, 2.0]
    assert [setting.configuration.shuffle_partitions for setting in profile.settings] == [2, 4]
    assert profile.shape.stateful_operators == ("stateStoreSave",)
    assert profile.coverage is not None
    for setting in profile.settings:
        assert setting.rate_per_s == pytest.approx(TRUTHS[0]["rate_per_s"], rel=0.03)


def test_a_run_that_was_not_fitted_is_predicted(profile: JobProfile) -> None:
    held_out = TRUTHS[2]
    prediction = headway.predict(
        profile,
        rate=held_out["rate_per_s"],
        trigger=held_out["trigger_s"],
        partitions=held_out["partitions"],
    )
    assert prediction.tuple_latency is not None
    measured = held_out["truth"]["latency"]
    assert prediction.tuple_latency.mean_s == pytest.approx(measured["mean"], rel=0.15)
    assert prediction.tuple_latency.p99_s == pytest.approx(measured["p99"], rel=0.2)


def test_the_backtest_sees_what_was_measured_at_the_source(spark: SparkSession, log: Path) -> None:
    found: Backtest = headway.backtest(log, session=spark)
    observed = {run.label.partition(" (")[0]: run.observed_latency for run in found.runs}
    for one in TRUTHS:
        assert observed[one["name"]].mean_s == pytest.approx(
            one["truth"]["latency"]["mean"], rel=0.1
        )


def test_a_profile_is_the_same_twice(spark: SparkSession, log: Path, profile: JobProfile) -> None:
    again = headway.profile(log, queries=FITTED, session=spark)
    assert replace(again, notes=profile.notes) == profile
    assert again.notes == profile.notes


def test_the_first_batches_of_the_log_are_kept(profile: JobProfile) -> None:
    """The first took 3.0 s for 537 rows; the next two 1.6 and 0.8 s, later ones like them 0.4."""
    warm_up = profile.warm_up
    assert warm_up is not None
    assert warm_up.start_age_s == pytest.approx(2.4, abs=0.1)
    assert 2.4 < warm_up.first_batch_extra_s < 3.0
    assert 2.0 < warm_up.points[0].duration_ratio < 4.0
    assert profile.age_factor(6.0) > profile.drift.factor(6.0)


def test_a_plan_says_what_the_first_minute_was_like(profile: JobProfile) -> None:
    """In the log the promise of later minutes was broken by rows that waited for 4.6 s."""
    found = headway.plan(profile, rate="20k/s", target="p99 <= 3s", trigger="1s", partitions=2)
    assert found.feasible
    assert found.after_start is not None
    assert found.after_start.holds_from_minute == 2
    expected_s, most_s = found.after_start.expected_first_minute_s, found.after_start.by_minute_s[0]
    assert expected_s is not None
    assert 3.5 < expected_s < 6.5
    assert expected_s < most_s < 8.0
