"""Gain of sharing: state rows counted one by one, break-even as measured, signs as they must be."""

from __future__ import annotations

import math
from statistics import fmean

import pytest

from headway.domain.window_set import WindowSet
from headway.models.sharing.gain import (
    BatchKeys,
    UnitCosts,
    break_even_keys,
    break_even_rows,
    closing_share,
    direct_state_writes,
    panes_change_s,
    shared_state_time,
    shared_state_writes,
)

MINUTE = WindowSet.parse(["60s every 5s"])
# Fitted to ten measured cells, direct and by panes, of 10k to 200k rows and 100 to 10,000 keys.
COSTS = UnitCosts(copy_s=5e-8, state_row_s=6e-6, second_stage_s=0.096)


def keys(number: float, batch_s: float = 1.0) -> BatchKeys:
    return BatchKeys(batch_keys=number, pane_keys=number, batch_s=batch_s)


@pytest.mark.parametrize("texts", [["60s every 5s"], ["20s every 6s", "9s"], ["10s"]])
@pytest.mark.parametrize("batch_ms", [500, 1000, 7000])
def test_state_rows_are_those_of_counting_windows_one_by_one(
    texts: list[str], batch_ms: int
) -> None:
    windows = WindowSet.parse(texts)
    counted_direct, counted_panes = [], []
    step = 125
    for start in range(0, 90_000, step):
        end = start + batch_ms
        touched = {
            (spec.size_ms, first)
            for spec in windows.windows
            for at in range(start, end, step)
            for first in spec.starts_with(at, at)
        }
        counted_direct.append(len(touched))
        counted_panes.append(len({at // windows.pane_ms for at in range(start, end, step)}))
    # Rows at times a step apart leave up to a step of the batch uncovered.
    one = keys(1.0, batch_ms / 1000)
    assert fmean(counted_direct) == pytest.approx(direct_state_writes(one, windows), rel=0.1)
    assert fmean(counted_panes) == pytest.approx(shared_state_writes(one, windows)[0], rel=0.15)


def test_state_rows_are_about_those_measured() -> None:
    # Spark wrote 12,000 and 3,400 a batch, 1000 keys.
    assert direct_state_writes(keys(1000), MINUTE) == pytest.approx(12_000, rel=0.03)
    every_batch, closing = shared_state_writes(keys(1000), MINUTE)
    shared = every_batch + closing_share(1.0, MINUTE) * closing
    assert shared == pytest.approx(3_400, rel=0.07)


@pytest.mark.parametrize(("number", "rows"), [(100, 168_000), (1000, 82_000), (10_000, 0)])
def test_panes_pay_from_as_many_rows_as_the_fit_says(number: float, rows: float) -> None:
    assert break_even_rows(COSTS, keys(number), MINUTE) == pytest.approx(rows, rel=0.03)


def test_the_break_evens_are_where_the_change_is_nothing() -> None:
    rows = break_even_rows(COSTS, keys(1000), MINUTE)
    assert panes_change_s(rows, COSTS, keys(1000), MINUTE) == pytest.approx(0.0, abs=1e-12)
    number = break_even_keys(50_000, COSTS, keys(1000), MINUTE)
    assert panes_change_s(50_000, COSTS, keys(number), MINUTE) == pytest.approx(0.0, abs=1e-12)


@pytest.mark.parametrize("texts", [["60s every 5s"], ["20s every 5s", "30s every 10s"], ["10s"]])
def test_held_rows_are_those_of_counting_panes_and_windows_one_by_one(texts: list[str]) -> None:
    windows = WindowSet.parse(texts)
    pane_ms, batch_ms, held = windows.pane_ms, 1000, []
    for end in range(600_000, 690_000, 125):
        # The watermark is the end of the batch before; panes that it has passed are in windows.
        passed = (end - batch_ms) // pane_ms * pane_ms
        panes = -(-(end - passed) // pane_ms)
        fed = {
            (spec.size_ms, begin)
            for spec in windows.windows
            for pane in range(passed - spec.size_ms, passed, pane_ms)
            for begin in spec.starts_with(pane, pane)
            if begin + spec.size_ms > passed
        }
        held.append(panes + len(fed))
    costs = UnitCosts(copy_s=0.0, state_row_s=1.0, second_stage_s=0.0, held_row_s=1.0)
    every_batch_s, _ = shared_state_time(costs, keys(1.0), windows, row_s=1.0)
    assert every_batch_s == pytest.approx(fmean(held), rel=0.1)


def test_rows_of_one_cost_take_what_their_number_says() -> None:
    costs, some = UnitCosts(copy_s=0.0, state_row_s=3e-6, second_stage_s=0.0), keys(1000)
    every_batch_s, closing_s = shared_state_time(costs, some, MINUTE, row_s=3e-6)
    every_batch, closing = shared_state_writes(some, MINUTE)
    assert every_batch_s == pytest.approx(3e-6 * every_batch)
    assert closing_s == pytest.approx(3e-6 * closing)


def test_a_row_that_is_held_costs_no_less_than_nothing() -> None:
    with pytest.raises(ValueError, match="held_row_s is -1"):
        UnitCosts(copy_s=0.0, state_row_s=1.0, second_stage_s=0.0, held_row_s=-1.0)


def test_one_window_a_row_leaves_nothing_to_share() -> None:
    tumbling = WindowSet.parse(["10s"])
    assert break_even_rows(COSTS, keys(1000), tumbling) == math.inf
    assert panes_change_s(1e9, COSTS, keys(1000), tumbling) > 0


def test_keys_are_counted_over_some_time() -> None:
    with pytest.raises(ValueError, match="batch_s is 0"):
        keys(1.0, 0.0)
