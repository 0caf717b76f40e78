"""The upper end of durations below the profiled range: fewer rows never take longer."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import headway
from headway.domain import JobProfile
from headway.formats.profile_file import load_profile
from headway.models.job.duration import stacked
from headway.models.job.predict import predict
from headway.models.job.setting import duration_model, setting_law
from headway.models.job.upper_end import UpperEnd

EXAMPLES = Path(__file__).parents[3] / "examples"
# Between the sizes of batches that are tried (P4), the latency falls by no more.
BETWEEN_SIZES = 0.02


@pytest.fixture(scope="module")
def of_one_size() -> JobProfile:
    """A query that reads files, by batches of 20,000 rows alone; rows arrive as they are read."""
    return replace(load_profile(EXAMPLES / "nightly-backlog.profile.yaml"), drain=None)


@pytest.mark.parametrize("trigger_s", [0.0, 1.0])
def test_the_upper_end_of_latency_does_not_fall_with_the_rate(
    of_one_size: JobProfile, trigger_s: float
) -> None:
    configuration = replace(of_one_size.baseline, trigger_s=trigger_s)
    upper_ends_s = []
    for rate_per_s in np.geomspace(500.0, 30_000.0, 40).tolist():
        arrivals = replace(of_one_size.arrivals, rate_per_s=rate_per_s)
        latency = predict(of_one_size, configuration, arrivals).tuple_latency
        assert latency is not None
        interval = latency.interval90_p99_s
        assert interval is not None
        assert interval.high is not None
        upper_ends_s.append(interval.high)
    longest_s = np.maximum.accumulate(upper_ends_s)
    assert np.all(np.array(upper_ends_s) >= (1.0 - BETWEEN_SIZES) * longest_s)


@pytest.mark.parametrize("num_slots", [2, 4, 8])
def test_tasks_that_follow_the_rows_make_no_rate_worse_than_a_higher_one(
    of_one_size: JobProfile, num_slots: int
) -> None:
    """Where files make more tasks, a row costs more, then less: neither decides alone."""
    profile = replace(of_one_size, row_cost_half_range_ratio=None)
    rates_per_s = np.geomspace(15_000.0, 60_000.0, 150)
    at_each = np.full_like(rates_per_s, 1.0)
    end = UpperEnd(
        profile=profile,
        durations=stacked([duration_model(profile, num_slots, 8)] * len(rates_per_s)),
        num_slots=num_slots * at_each,
        partitions=8.0 * at_each,
        trigger_s=16.0 * at_each,
        score=1.645,
    )
    rate_per_s, factor = end.rate_and_factor(rates_per_s)
    law = setting_law(
        profile, end.durations, rate_per_s=rate_per_s, trigger_s=end.trigger_s, factor=factor
    )
    p99_s = np.asarray(law.tuple_latency_quantile_s(0.99))
    assert np.isfinite(p99_s[0])
    is_finite = np.isfinite(p99_s)
    assert np.all(is_finite[:-1] >= is_finite[1:])
    longest_s = np.maximum.accumulate(p99_s[is_finite])
    assert np.all(p99_s[is_finite] >= (1.0 - BETWEEN_SIZES) * longest_s)


def test_a_plan_for_fewer_rows_takes_no_more_nodes(of_one_size: JobProfile) -> None:
    plans = [
        headway.plan(
            of_one_size,
            rate=rate,
            target="p99 <= 2s",
            trigger="0s",
            max_nodes=2,
            node_cores=2,
            partitions=2,
        )
        for rate in ("1500/s", "2k/s", "3k/s")
    ]
    assert [plan.feasible for plan in plans] == [True] * 3
    assert {plan.configuration.executors for plan in plans} == {1}
