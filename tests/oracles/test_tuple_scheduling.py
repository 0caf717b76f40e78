"""Tuples under overload against fluid limits and the figures of the paper."""

from __future__ import annotations

import pytest

from tests.oracles.closed_forms import share_in_time
from tests.oracles.tuple_scheduling import TupleOrder, simulate_d_over, simulate_tuples

# 80% of the tuples find their key in memory: 2 us; the others wait for the disk.
DISK = {10e-6: 1.44, 50e-6: 4.64}


def in_time(order: TupleOrder, disk_s: float) -> float:
    return simulate_tuples(
        order, rate_per_s=4e5, shares=[0.8, 0.2], costs_s=[2e-6, disk_s], limit_s=0.5,
        length_s=15.0 if order is TupleOrder.BATCH else 6.0,
    ).in_time_ratio  # fmt: skip


@pytest.mark.parametrize(
    ("disk_s", "subset", "earliest", "batch"),
    [(10e-6, 0.890, 0.889, 0.694), (50e-6, 0.818, 0.818, 0.216)],
)
def test_dear_tuples_are_dropped_first(
    disk_s: float, subset: float, earliest: float, batch: float
) -> None:
    assert in_time(TupleOrder.SUBSET, disk_s) == pytest.approx(subset, abs=0.02)
    assert in_time(TupleOrder.EARLIEST, disk_s) == pytest.approx(earliest, abs=0.02)
    # Blind to costs it is the share that fits.
    assert in_time(TupleOrder.BATCH, disk_s) == pytest.approx(batch, abs=0.03)
    assert in_time(TupleOrder.NONE, disk_s) < 0.15
    fluid = float(share_in_time(DISK[disk_s], 0.8, 0.64))
    assert in_time(TupleOrder.SUBSET, disk_s) == pytest.approx(fluid, abs=0.01)


@pytest.mark.parametrize(("stamp_s", "share"), [(0.0, 0.866), (0.02, 0.696)])
def test_d_over_is_blind_within_a_stamp(stamp_s: float, share: float) -> None:
    # Costs times 20 and rates over 20: as many tuples a stamp as 1 ms has of the full rate.
    found = simulate_d_over(
        rate_per_s=2e4, shares=[0.8, 0.2], costs_s=[4e-5, 2e-4], limit_s=0.5, length_s=3.0,
        stamp_s=stamp_s,
    )  # fmt: skip
    assert found.in_time_ratio == pytest.approx(share, abs=0.03)


@pytest.mark.parametrize(("rate", "share"), [(1.5e6, 0.80), (2.0e6, 0.60)])
def test_figure_7c_by_arithmetic(rate: float, share: float) -> None:
    found = {
        order: simulate_tuples(
            order, rate_per_s=rate, shares=[1.0], costs_s=[1 / 1.2e6], limit_s=1.0, length_s=30.0
        ).in_time_ratio
        for order in TupleOrder
    }
    assert found[TupleOrder.SUBSET] == pytest.approx(share, abs=0.03)
    assert found[TupleOrder.BATCH] == pytest.approx(share, abs=0.03)
    # Late after 4.0 and 1.5 s, of which one is not counted.
    assert found[TupleOrder.NONE] == pytest.approx(
        max(1.2e6 / (rate - 1.2e6) - 1.0, 0.0) / 28.0, abs=0.04
    )


def test_figure_7a_with_less_memory_the_order_matters_more() -> None:
    shares = []
    for in_memory in (1.0, 0.9, 0.7):
        found = [
            simulate_tuples(
                order, rate_per_s=1.1e6, shares=[in_memory, 1.0 - in_memory],
                costs_s=[1 / 1.2e6, 8 / 1.2e6], limit_s=1.0, length_s=12.0,
            ).in_time_ratio
            for order in (TupleOrder.NONE, TupleOrder.BATCH, TupleOrder.SUBSET)
        ]  # fmt: skip
        assert found == sorted(found)
        shares.append(found)
    assert shares[0] == [1.0, 1.0, 1.0]
    assert shares[1][0] < 0.3 < shares[1][1] < shares[1][2]
    assert shares[2][2] > 0.65


def test_what_cannot_be_simulated_is_refused() -> None:
    with pytest.raises(ValueError, match="twice the limit"):
        simulate_tuples(
            TupleOrder.NONE, rate_per_s=1.0, shares=[1.0], costs_s=[1.0], limit_s=1.0, length_s=1.0
        )
