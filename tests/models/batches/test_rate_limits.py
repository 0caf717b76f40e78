"""Rate limits and recovery against published values, limits, and the event simulation."""

from __future__ import annotations

import numpy as np
import pytest

from headway.models.batches.microbatch import AffineDuration
from headway.models.batches.rate_limits import (
    rate_limited_backlog,
    rate_limited_is_stable,
    recovery_capped_s,
    recovery_uncapped,
)
from tests.oracles.microbatch import simulate_microbatch


def test_a_cap_below_the_input_of_an_interval_is_unstable() -> None:
    caps = np.array([9_999.0, 10_001.0])
    assert rate_limited_is_stable(1000.0, caps, 10.0, 1.0, 1e-4).tolist() == [False, True]
    # Free running, it takes more than lambda a / (1 - r) = 2000 rows.
    assert rate_limited_is_stable(1000.0, np.array([1990.0, 2010.0]), 0.0, 1.0, 5e-4).tolist() == [
        False,
        True,
    ]


def test_golden_recovery() -> None:
    recovery = recovery_uncapped(2.0, 0.6, 10.0, 300.0)
    assert recovery == pytest.approx((8.0, 475.068), rel=1e-5)
    assert recovery_uncapped(2.0, 0.6, 10.0, 9.0) == (0.0, 0.0)
    assert recovery_uncapped(2.0, 0.0, 10.0, 90.0) == (1.0, 2.0)
    assert recovery_uncapped(2.0, 0.9, 10.0, 300.0) == (np.inf, np.inf)


def test_recovery_against_simulation() -> None:
    trace = simulate_microbatch(
        AffineDuration(2.0, 6e-4),
        1000.0,
        10.0,
        num_batches=20,
        num_warmup_batches=0,
        seed=1,
        dispersion=0.0,
        initial_backlog_s=300.0,
    )
    # The first batch with no more than an interval's rows starts when recovery is over.
    back = int(np.argmax(trace.interval_s <= 10.0 + 1e-9))
    assert trace.duration_s[0] == pytest.approx(182.0)
    assert back == 8
    assert trace.start_s[back] == pytest.approx(475.068, abs=10.0)


def test_capped_recovery_against_simulation() -> None:
    time_s = float(recovery_capped_s(1000.0, 15_000.0, 10.0, 2.0, 6e-4, 300.0))
    assert time_s == pytest.approx(825.0)
    trace = simulate_microbatch(
        AffineDuration(2.0, 6e-4),
        1000.0,
        10.0,
        num_batches=200,
        num_warmup_batches=0,
        seed=1,
        dispersion=0.0,
        initial_backlog_s=300.0,
        max_rows_per_trigger=15_000.0,
    )
    caught_up = trace.start_s[int(np.argmax(trace.num_backlog_rows <= 0.0))]
    assert caught_up == pytest.approx(time_s, rel=0.06)
    assert float(recovery_capped_s(2000.0, 15_000.0, 10.0, 2.0, 6e-4, 300.0)) == np.inf


@pytest.mark.parametrize(("rate_per_s", "left_rows"), [(900.0, 26.0), (950.0, 187.6)])
def test_the_backlog_behind_a_cap(rate_per_s: float, left_rows: float) -> None:
    backlog = rate_limited_backlog(rate_per_s, 10_000.0, 10.0, 50.0)
    trace = simulate_microbatch(
        AffineDuration(1.0, 1e-6), rate_per_s, 10.0, num_batches=60_000, seed=4,
        dispersion=50.0, max_rows_per_trigger=10_000.0,
    )  # fmt: skip
    # The recursion of the backlog itself, three million times.
    assert float(backlog.mean_rows) == pytest.approx(left_rows, rel=0.01)
    assert float(backlog.mean_rows) == pytest.approx(trace.num_backlog_rows.mean(), rel=0.08)
    assert float(backlog.sd_rows) == pytest.approx(trace.num_backlog_rows.std(), rel=0.08)
    left = float(np.mean(trace.num_backlog_rows > 0.0))
    assert float(backlog.probability) == pytest.approx(left, rel=0.1)


def test_the_backlog_delays_every_row_by_its_own_time() -> None:
    capped, free = (
        simulate_microbatch(
            AffineDuration(1.0, 1e-6), 950.0, 10.0, num_batches=60_000, seed=4,
            dispersion=50.0, max_rows_per_trigger=cap,
        )
        for cap in (10_000.0, np.inf)
    )  # fmt: skip
    extra_s = capped.latency_mean_s() - free.latency_mean_s()
    expected_s = float(rate_limited_backlog(950.0, 10_000.0, 10.0, 50.0).mean_delay_s)
    # Some 190 rows of 10,000 wait for a trigger: that they are left is what chance decides.
    assert extra_s == pytest.approx(expected_s, rel=0.15)


def test_a_laxer_cap_leaves_less_behind() -> None:
    backlog = rate_limited_backlog(1000.0, np.array([9_000.0, 10_000.0, 10_100.0, 10_500.0]), 10.0)
    assert np.all(np.isinf(backlog.mean_rows[:2]))
    assert np.all(np.diff(backlog.mean_rows[2:]) < 0.0)


def test_refusals() -> None:
    with pytest.raises(ValueError, match="rate_per_s"):
        rate_limited_is_stable(-1.0, 1.0, 1.0, 1.0, 1.0)
    with pytest.raises(ValueError, match="outage_s"):
        recovery_uncapped(1.0, 0.5, 4.0, -1.0)
    with pytest.raises(ValueError, match="outage_s"):
        recovery_capped_s(1.0, 100.0, 4.0, 1.0, 0.0, -1.0)
    with pytest.raises(ValueError, match="max_rows_per_trigger"):
        rate_limited_backlog(1.0, 0.0, 1.0)
