"""What a profile can speak for: ranges, reasons, spreads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.domain import DurationNoise, JobProfile
from headway.models.job.calibration import fewest_rows, reasons_outside, spread_ratio
from tests.factories import a_configuration, a_profile


def profile_of(**changes: Any) -> JobProfile:
    """Seen at 2 and 8 slots, 4 and 16 partitions, 1000 to 9000 rows; runs differ by 5 %."""
    seen = a_profile().settings[0]
    small = a_configuration(executors=1, cores_per_executor=2, shuffle_partitions=4)
    large = a_configuration(executors=2, cores_per_executor=4, shuffle_partitions=16)
    return replace(
        a_profile(),
        noise=DurationNoise(batch_ratio=0.1, autocorrelation=0.0, run_to_run_ratio=0.05),
        settings=(
            replace(seen, configuration=small, rows_per_batch_low=1000, rows_per_batch_high=2000),
            replace(seen, configuration=large, rows_per_batch_low=6000, rows_per_batch_high=9000),
        ),
        **changes,
    )


OF_RUN_AND_FIT = 0.05 * 2**0.5  # two runs tell two things: the fit is as unsure as a run


@pytest.mark.parametrize(
    ("slots", "partitions", "rows", "doublings"),
    [
        (2, 4, 1000.0, 0),
        (8, 16, 9000.0, 0),
        (5, 7, 3000.0, 0),
        (16, 8, 3000.0, 1),
        (1, 8, 3000.0, 1),
        (4, 64, 3000.0, 2),
        (4, 2, 3000.0, 1),
        (4, 8, 9000.0 * 1.5, 0),
        (4, 8, 9000.0 * 1.5 * 8, 3),
        (4, 8, 1000.0 / 1.5 / 4, 2),
        (16, 32, 9000.0 * 1.5 * 2, 3),
    ],
)
def test_a_tenth_of_spread_for_every_doubling(
    slots: int, partitions: int, rows: float, doublings: int
) -> None:
    spread = float(spread_ratio(profile_of(), slots, partitions, rows))
    assert spread == pytest.approx(np.hypot(OF_RUN_AND_FIT, 0.1 * doublings))


def test_settings_are_taken_together() -> None:
    spread = spread_ratio(profile_of(), np.array([4.0, 16.0]), 8.0, np.array([3000.0, 3000.0]))
    assert spread == pytest.approx([OF_RUN_AND_FIT, np.hypot(OF_RUN_AND_FIT, 0.1)])


def test_inside_there_is_no_reason() -> None:
    assert list(reasons_outside(profile_of(), 4, 8, 3000.0)) == []
    assert list(reasons_outside(profile_of(), 2, 16, 9000.0 * 1.5)) == []


def test_each_reason_names_what_was_asked_and_what_was_seen() -> None:
    reasons = list(reasons_outside(profile_of(), 32, 2, 1e6))
    assert len(reasons) == 3
    assert reasons[0].startswith("32 slots, profiled for 2 to 8")
    assert reasons[1].startswith("2 shuffle partitions, profiled for 4 to 16")
    assert reasons[2].startswith("1,000,000 rows per batch")


def test_partitions_do_not_matter_without_an_exchange() -> None:
    profile = profile_of(stages=a_profile().stages[:1])
    for partitions in (1, 4, 10**6):
        assert list(reasons_outside(profile, 4, partitions, 3000.0)) == []
        assert float(spread_ratio(profile, 4, partitions, 3000.0)) == pytest.approx(OF_RUN_AND_FIT)


def test_the_smallest_batch_has_a_margin() -> None:
    assert fewest_rows(profile_of()) == pytest.approx(1000.0 / 1.5)


def test_no_rows_at_all_are_far_but_finite() -> None:
    assert OF_RUN_AND_FIT < float(spread_ratio(profile_of(), 4, 8, 0.0)) < np.inf


@given(
    slots=st.integers(1, 10**4),
    partitions=st.integers(1, 10**4),
    rows=st.floats(0.0, 1e12),
)
def test_it_is_wider_exactly_where_there_is_a_reason(
    slots: int, partitions: int, rows: float
) -> None:
    profile = profile_of()
    spread = float(spread_ratio(profile, slots, partitions, rows))
    reasons = list(reasons_outside(profile, slots, partitions, rows))
    assert np.isfinite(spread)
    assert (spread > OF_RUN_AND_FIT) == bool(reasons) or spread == pytest.approx(
        OF_RUN_AND_FIT, rel=1e-6
    )
