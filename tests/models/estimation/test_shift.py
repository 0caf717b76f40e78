"""Which part of a line has moved: how often the answer is right."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headway.models.arrays import Array
from headway.models.estimation.drift import ShiftKind, shift_since
from tests.models.estimation.batches import FIXED_S, PER_ROW_S, lognormal
from tests.seeds import examples

NOISE = 0.1
CHANGED: dict[ShiftKind, tuple[float, float]] = {
    "fixed time": (1.6 * FIXED_S, PER_ROW_S),
    "time per row": (FIXED_S, 1.6 * PER_ROW_S),
    "everything": (1.4 * FIXED_S, 1.4 * PER_ROW_S),
}


def answers(kind: ShiftKind, rows: Array, num_samples: int) -> Counter[ShiftKind]:
    fixed_s, per_row_s = CHANGED[kind]
    random = np.random.default_rng(1)
    noise = lognormal(random, NOISE, (num_samples, len(rows)))
    return Counter(
        shift_since(rows, (fixed_s + per_row_s * rows) * row, FIXED_S, PER_ROW_S, NOISE).kind
        for row in noise
    )


@pytest.mark.parametrize("kind", CHANGED)
def test_loads_that_differ_tell_the_kind(kind: ShiftKind) -> None:
    found = answers(kind, np.tile([2e3, 2e4], 20), 200)
    assert found[kind] >= 190
    assert sum(found[other] for other in CHANGED if other != kind) <= 4


@pytest.mark.parametrize("kind", CHANGED)
def test_one_load_leaves_the_kind_open(kind: ShiftKind) -> None:
    assert answers(kind, np.full(40, 1e4), 50)["unclear"] == 50


@pytest.mark.parametrize("kind", CHANGED)
def test_few_batches_are_seldom_wrong(kind: ShiftKind) -> None:
    found = answers(kind, np.tile([5e3, 1.5e4], 5), 400)
    assert sum(found[other] for other in CHANGED if other != kind) <= 24


def test_amounts_come_back() -> None:
    rows = np.tile([2e3, 2e4], 3)
    level = shift_since(rows, 3.0 + 3e-4 * rows, 2.0, 3e-4, 0.01)
    assert level.kind == "fixed time"
    assert level.fixed_s == pytest.approx(1.0)
    slope = shift_since(rows, 2.0 + 2e-4 * rows, 2.0, 3e-4, 0.01)
    assert slope.kind == "time per row"
    assert slope.per_row_s == pytest.approx(-1e-4)
    both = shift_since(rows, 1.5 * (2.0 + 3e-4 * rows), 2.0, 3e-4, 0.01)
    assert both.kind == "everything"
    assert both.ratio == pytest.approx(1.5)


@examples(25, 100)
@given(
    st.lists(st.tuples(st.floats(0, 1e6), st.floats(1e-3, 1e3)), min_size=1, max_size=9),
    st.floats(0.01, 1.0),
)
def test_never_nan(batches: list[tuple[float, float]], noise: float) -> None:
    rows, duration = np.array(batches).T
    found = shift_since(rows, duration, 2.0, 3e-4, noise)
    assert np.all(np.isfinite([found.fixed_s, found.per_row_s, found.ratio]))


def test_refusals() -> None:
    with pytest.raises(ValueError, match="at least one batch"):
        shift_since(np.zeros(0), np.zeros(0), 2.0, 3e-4, 0.1)
    with pytest.raises(ValueError, match="relative_noise > 0"):
        shift_since(np.ones(1), np.ones(1), 2.0, 3e-4, 0.0)
