"""What batches tell of a line: against simulated fits, scans and enumeration."""

from __future__ import annotations

import numpy as np
import pytest

from headway.models.arrays import Array
from headway.models.estimation.identifiability import (
    next_run,
)
from tests.models.estimation.batches import FIXED_S, PER_ROW_S, mean_s

NOISE, MEAN_ROWS = 0.1, 1e4


# The design study: spread of batch sizes, simulated error of the slope for 100 batches. At 0.01
# fits were free to become negative there.
def least_batches(rows: Array, size: float, planned: float, accuracy: float) -> int:
    """By trying one number after the other."""
    limit = (accuracy * float(mean_s(np.array(planned))) / 1.959964) ** 2
    for num_batches in range(400):
        tried = np.concatenate([rows, np.full(num_batches, size)])
        weighted = np.column_stack([np.ones(len(tried)), tried])
        weighted /= (NOISE * mean_s(tried))[:, np.newaxis]
        if np.unique(tried).size > 1:
            at = np.array([1.0, planned])
            if float(at @ np.linalg.inv(weighted.T @ weighted) @ at) <= limit * (1.0 + 1e-9):
                return num_batches
        elif planned == rows[0] and (NOISE * mean_s(rows)[0]) ** 2 / len(tried) <= limit:
            return num_batches
    return 400


@pytest.mark.parametrize("planned", [1e4, 2e4, 6e4])
@pytest.mark.parametrize("before", [np.full(30, 1e4), np.repeat([5e3, 1.5e4], 10)])
def test_the_next_run_equals_trying_all(before: Array, planned: float) -> None:
    possible = np.array([0.0, 1e3, 3e3, 2e4, 3e4, 8e4])
    found = next_run(
        before,
        FIXED_S,
        PER_ROW_S,
        NOISE,
        planned_rows=planned,
        possible_rows=possible,
        accuracy_ratio=0.04,
    )
    needed = [least_batches(before, size, planned, 0.04) for size in possible]
    assert found is not None
    assert found.num_batches == min(needed)
    if found.num_batches:
        assert found.num_rows == possible[int(np.argmin(needed))]


def test_no_run_is_enough_where_the_other_load_is_too_little_known() -> None:
    one = np.array([1e4])
    found = next_run(
        one, FIXED_S, PER_ROW_S, 0.5, planned_rows=1e6, possible_rows=one, accuracy_ratio=0.01
    )
    assert found is None


def test_refusals() -> None:
    for rows, fixed_s, per_row_s, said in (
        (np.zeros(0), 2.0, 3e-4, "need batches"),
        (np.ones(3), 0.0, 0.0, "nor both 0"),
        (np.ones(3), -2.0, 1.0, "must not be negative"),
    ):
        with pytest.raises(ValueError, match=said):
            next_run(
                rows, fixed_s, per_row_s, 0.1,
                planned_rows=1.0, possible_rows=np.ones(1), accuracy_ratio=0.1,
            )  # fmt: skip
    with pytest.raises(ValueError, match="planned_rows"):
        next_run(
            np.ones(3), 2.0, 3e-4, 0.1,
            planned_rows=0.0, possible_rows=np.ones(1), accuracy_ratio=0.1,
        )  # fmt: skip
    with pytest.raises(ValueError, match="accuracy_ratio"):
        next_run(
            np.ones(3), 2.0, 3e-4, 0.1,
            planned_rows=1.0, possible_rows=np.ones(1), accuracy_ratio=-1.0,
        )  # fmt: skip
