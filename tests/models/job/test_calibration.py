"""What a profile can speak for: ranges, reasons, spreads."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.assumptions.predictions import (
    CALIBRATED_DOUBLINGS,
    SPREAD_PER_DOUBLING_OF_PARTITIONS_RATIO,
    SPREAD_PER_DOUBLING_RATIO,
)
from headway.domain import DurationNoise, JobProfile
from headway.models.job.calibration import (
    doublings_beyond,
    fewest_rows,
    is_calibrated,
    reasons_outside,
    spread_ratio,
)
from headway.words import all_words
from tests.factories import a_configuration, a_profile


def profile_of(**changes: Any) -> JobProfile:
    """Seen at 2 and 8 slots, 4 and 16 partitions, 1000 to 9000 rows; runs differ by 5%."""
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


SPREADS_PER_DOUBLING = (
    SPREAD_PER_DOUBLING_RATIO.value,
    SPREAD_PER_DOUBLING_OF_PARTITIONS_RATIO.value,
    SPREAD_PER_DOUBLING_RATIO.value,
)
OF_RUN_AND_FIT = 0.05 * 2**0.5  # two runs tell two things: the fit is as unsure as a run


@pytest.mark.parametrize(
    ("slots", "partitions", "rows", "doublings"),
    [
        (2, 4, 1000.0, (0, 0, 0)),
        (8, 16, 9000.0, (0, 0, 0)),
        (5, 7, 3000.0, (0, 0, 0)),
        (16, 8, 3000.0, (1, 0, 0)),
        (1, 8, 3000.0, (1, 0, 0)),
        (4, 64, 3000.0, (0, 2, 0)),
        (4, 2, 3000.0, (0, 1, 0)),
        (4, 8, 9000.0 * 8, (0, 0, 3)),
        (4, 8, 1000.0 / 4, (0, 0, 2)),
        (16, 32, 9000.0 * 2, (1, 1, 1)),
    ],
)
def test_doublings_of_each_kind_add_spread_of_their_own(
    slots: int, partitions: int, rows: float, doublings: tuple[int, int, int]
) -> None:
    assert doublings_beyond(profile_of(), slots, partitions, rows) == pytest.approx(doublings)
    spread = float(spread_ratio(profile_of(), slots, partitions, rows))
    expected = np.multiply(SPREADS_PER_DOUBLING, doublings)
    assert spread == pytest.approx(float(np.sqrt(OF_RUN_AND_FIT**2 + np.square(expected).sum())))


def test_settings_are_taken_together() -> None:
    spread = spread_ratio(profile_of(), np.array([4.0, 16.0]), 8.0, np.array([3000.0, 3000.0]))
    assert spread == pytest.approx(
        [OF_RUN_AND_FIT, np.hypot(OF_RUN_AND_FIT, SPREAD_PER_DOUBLING_RATIO.value)]
    )
    far = is_calibrated(profile_of(), np.array([4.0, 33.0]), 8.0, np.array([3000.0, 3000.0]))
    assert far.tolist() == [True, False]


def test_the_nearest_of_several_profiled_sizes_counts() -> None:
    one_size = replace(profile_of(), settings=profile_of().settings[:1])
    assert float(doublings_beyond(one_size, 8, 4, 1500.0)[0]) == 2.0
    assert float(doublings_beyond(profile_of(), 8, 4, 1500.0)[0]) == 0.0
    assert float(doublings_beyond(profile_of(), 16, 4, 1500.0)[0]) == 1.0


@pytest.mark.parametrize(
    ("slots", "partitions", "rows"),
    [(4, 8, 3000.0), (8, 64, 36000.0), (32, 16, 250.0), (1, 1, 9000.0)],
)
def test_up_to_four_times_the_interval_speaks(slots: int, partitions: int, rows: float) -> None:
    assert 2.0**CALIBRATED_DOUBLINGS.value == 4.0
    assert list(reasons_outside(profile_of(), slots, partitions, rows)) == []
    assert is_calibrated(profile_of(), slots, partitions, rows)


def test_progress_alone_speaks_for_the_slots_and_partitions_on_record_only() -> None:
    stage = replace(a_profile().stages[0], tasks_rule="source", separation="totals")
    profile = profile_of(stages=(stage,))
    for slots, partitions, rows in ((2, 4, 1000.0), (8, 16, 36000.0), (4, 8, 250.0)):
        assert is_calibrated(profile, slots, partitions, rows)
        assert list(reasons_outside(profile, slots, partitions, rows)) == []
    for slots, partitions in ((9, 8), (1, 8), (4, 17), (4, 3)):
        assert not is_calibrated(profile, slots, partitions, 3000.0)
        (why,) = all_words(reasons_outside(profile, slots, partitions, 3000.0))
        assert why.endswith(": no tasks were recorded, only progress events")
    (why,) = all_words(reasons_outside(profile, 16, 8, 3000.0))
    assert why.startswith("16 slots, outside the profiled 2 to 8: ")


def test_each_reason_names_what_was_asked_and_what_was_seen() -> None:
    reasons = all_words(reasons_outside(profile_of(), 33, 65, 1e6))
    assert len(reasons) == 3
    assert reasons[0].startswith("33 slots, more than 4 times outside the profiled 2 to 8: ")
    assert reasons[1].startswith(
        "65 shuffle partitions, more than 4 times outside the profiled 4 to 16: "
    )
    assert reasons[2].startswith("1,000,000 rows per batch, more than 4 times outside")


def test_partitions_do_not_matter_without_an_exchange() -> None:
    profile = profile_of(stages=a_profile().stages[:1])
    for partitions in (1, 4, 10**6):
        assert list(reasons_outside(profile, 4, partitions, 3000.0)) == []
        assert float(spread_ratio(profile, 4, partitions, 3000.0)) == pytest.approx(OF_RUN_AND_FIT)


def test_less_is_known_of_batches_below_the_smallest_profiled() -> None:
    assert fewest_rows(profile_of()) == 1000.0


def test_no_rows_at_all_are_far_but_finite() -> None:
    assert OF_RUN_AND_FIT < float(spread_ratio(profile_of(), 4, 8, 0.0)) < np.inf
    assert len(list(reasons_outside(profile_of(), 4, 8, 0.0))) == 1


@given(
    slots=st.integers(1, 10**4),
    partitions=st.integers(1, 10**4),
    rows=st.floats(0.0, 1e12),
)
def test_what_is_called_calibrated_has_an_interval_that_was_judged(
    slots: int, partitions: int, rows: float
) -> None:
    profile = profile_of()
    spread = float(spread_ratio(profile, slots, partitions, rows))
    reasons = list(reasons_outside(profile, slots, partitions, rows))
    widest = np.hypot(
        OF_RUN_AND_FIT, CALIBRATED_DOUBLINGS.value * np.linalg.norm(SPREADS_PER_DOUBLING)
    )
    assert bool(is_calibrated(profile, slots, partitions, rows)) == (not reasons)
    assert spread + 1e-12 >= OF_RUN_AND_FIT
    assert np.isfinite(spread)
    assert reasons or spread <= widest + 1e-9
