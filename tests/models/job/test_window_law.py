"""Window latency of a profiled job: what its plan and rows tell, and when they do not."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from headway.domain import (
    Arrivals,
    DurationNoise,
    EventTimeWindow,
    JobProfile,
    Prediction,
)
from headway.models.batches.microbatch import AffineDuration
from headway.models.job.predict import predict
from headway.models.job.setting import after_commit_s, duration_model
from headway.words import all_words
from tests.factories import a_configuration
from tests.oracles.microbatch import simulate_microbatch
from tests.oracles.windows import RowStream, simulate_windows
from tests.planner.jobs import SEEN
from tests.planner.jobs import windowed as windowed_job

SESSION = EventTimeWindow(kind="session", size_s=20.0)


def windowed(noise_ratio: float = 0.0, **shape: Any) -> JobProfile:
    noise = DurationNoise(batch_ratio=noise_ratio, autocorrelation=0.0, run_to_run_ratio=0.05)
    return replace(windowed_job(**shape), noise=noise)


def at(profile: JobProfile, trigger_s: float, rate_per_s: float = 5000.0) -> Prediction:
    return predict(profile, a_configuration(trigger_s=trigger_s), Arrivals(rate_per_s=rate_per_s))


def test_append_waits_for_the_watermark_and_one_more_batch() -> None:
    found = at(windowed(), 10.0)
    assert found.window_latency is not None
    assert found.batch_duration is not None
    after_s = after_commit_s(windowed())
    # Ends on the grid, read 0.5 s late and 10 s delayed: 9.5 s to the trigger that moves the
    # watermark, and one interval more to the one that emits.
    expected_s = 10.0 + 0.5 + 9.5 + 10.0 + found.batch_duration.mean_s - after_s
    assert found.window_latency.mean_s == pytest.approx(expected_s, rel=1e-3)
    held = found.window_latency.interval90_mean_s
    assert held is not None
    assert held.low < found.window_latency.mean_s < held.high


def test_an_update_is_final_with_its_last_row() -> None:
    found = at(windowed(output_mode="update"), 10.0)
    assert found.window_latency is not None
    assert found.batch_duration is not None
    expected_s = 0.5 + 9.5 + found.batch_duration.mean_s - after_commit_s(windowed())
    assert found.window_latency.mean_s == pytest.approx(expected_s, rel=1e-3)


@pytest.mark.parametrize(("lag_s", "is_old"), [(0.5, False), (90.0, False), (3e7, True)])
def test_old_event_times_are_named_as_a_part_of_the_latency(lag_s: float, is_old: bool) -> None:
    observed = replace(SEEN, event_time_lag_s=lag_s, event_time_lags=())
    minutes = EventTimeWindow(kind="tumbling", size_s=120.0, slide_s=120.0)
    found = at(replace(windowed(windows=(minutes,)), observed_arrivals=observed), 10.0)
    assert found.window_latency is not None
    texts = [text for text in all_words(found.findings) if "event times of the newest" in text]
    assert len(texts) == is_old
    if is_old:
        assert "window latency contains 347 d by which" in texts[0]
        assert found.window_latency.mean_s > lag_s


@pytest.mark.parametrize(("lag_s", "waited_s"), [(-0.001, 0.0), (0.0, 0.0), (0.001, 10.0)])
def test_rows_that_come_just_after_the_trigger_are_read(lag_s: float, waited_s: float) -> None:
    # The end plus the delay meets a trigger: a few milliseconds decide on a whole interval.
    profile = replace(windowed(), observed_arrivals=replace(SEEN, event_time_lag_s=lag_s))
    found = at(profile, 10.0)
    assert found.window_latency is not None
    assert found.batch_duration is not None
    shown_s = found.batch_duration.mean_s - after_commit_s(profile)
    expected_s = 10.0 + waited_s + 10.0 + shown_s
    assert found.window_latency.mean_s == pytest.approx(expected_s, rel=1e-3)


def test_a_session_ends_a_gap_after_its_last_row() -> None:
    append, update = (
        at(windowed(windows=(SESSION,), output_mode=mode), 10.0).window_latency
        for mode in ("append", "update")
    )
    assert append is not None
    assert update is not None
    assert append.mean_s > 10.0 + 0.5 + 10.0
    # Before the session has even ended.
    assert update.mean_s < 0.0


def test_against_the_event_simulation() -> None:
    profile, trigger_s, rate_per_s = windowed(noise_ratio=0.1), 2.0, 5000.0
    found = at(profile, trigger_s, rate_per_s).window_latency
    assert found is not None
    configuration = a_configuration(trigger_s=trigger_s)
    model = duration_model(profile, configuration.num_slots, configuration.shuffle_partitions)
    rows = np.array(rate_per_s * trigger_s)
    slope_s, mean_s = float(model.slope_s(rows)), float(model.mean_s(rows))
    trace = simulate_microbatch(
        AffineDuration(mean_s - slope_s * float(rows), slope_s, 0.1),
        rate_per_s,
        trigger_s,
        num_batches=4000,
        seed=1,
    )
    simulated = simulate_windows(
        np.arange(60.0, 7000.0, 60.0),
        trace.duration_s,
        trigger_s,
        RowStream(rate_per_s=500.0, lag_s=0.5),
        mode="append",
        seed=2,
        length_s=60.0,
        watermark_delay_s=10.0,
        after_commit_s=after_commit_s(profile),
    )
    assert found.mean_s == pytest.approx(simulated.latency_s.mean(), rel=0.02)
    assert found.p99_s == pytest.approx(np.quantile(simulated.latency_s, 0.99), rel=0.03)


@pytest.mark.parametrize(
    ("shape", "said"),
    [
        ({"output_mode": None}, "has no output mode"),
        ({"watermark_delay_s": None}, "has no watermark delay"),
    ],
)
def test_what_the_plan_does_not_say_is_said(shape: dict[str, Any], said: str) -> None:
    found = at(windowed(**shape), 10.0)
    assert found.window_latency is None
    assert any(said in warning for warning in all_words(found.findings))


def test_without_event_times_nothing_is_reported() -> None:
    profile = replace(windowed(), observed_arrivals=replace(SEEN, event_time_lag_s=None))
    found = at(profile, 10.0)
    assert found.window_latency is None
    assert any("no event times were recorded" in warning for warning in all_words(found.findings))


def test_a_query_without_windows_is_not_asked() -> None:
    found = at(windowed(windows=()), 10.0)
    assert found.window_latency is None
    assert not any("window" in warning for warning in all_words(found.findings))


def test_over_capacity_no_window_leaves_in_time() -> None:
    assert at(windowed(), 10.0, rate_per_s=1e9).window_latency is None
