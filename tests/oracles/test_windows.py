"""The event simulation of windows keeps Spark's rules."""

from __future__ import annotations

import numpy as np
import pytest

from tests.oracles.windows import (
    OutputMode,
    RowStream,
    WindowTrace,
    simulate_windows,
)

DENSE = RowStream(rate_per_s=200.0, lag_s=0.5)


def simulated(
    rows: RowStream = DENSE,
    trigger_s: float = 10.0,
    mode: OutputMode = "append",
    delay_s: float = 10.0,
    duration_s: float = 5.0,
    no_data_batches: bool = True,
    ends_s: tuple[float, ...] = (60.0, 120.0, 180.0),
) -> WindowTrace:
    return simulate_windows(
        np.array(ends_s), np.full(40, duration_s), trigger_s, rows, mode=mode, seed=7,
        length_s=60.0, watermark_delay_s=delay_s, no_data_batches=no_data_batches,
    )  # fmt: skip


def test_one_batch_moves_the_watermark_and_the_next_emits() -> None:
    # 70.5 s is the first moment with event times past 60 + 10: read at 80 s, used at 90 s.
    assert simulated().latency_s == pytest.approx([35.0, 35.0, 35.0])
    assert simulated(delay_s=15.0).latency_s == pytest.approx([35.0, 35.0, 35.0])
    assert simulated(delay_s=9.4).latency_s == pytest.approx([25.0, 25.0, 25.0])


def test_an_update_needs_one_batch() -> None:
    assert simulated(mode="update").latency_s == pytest.approx([15.0, 15.0, 15.0])
    on_time = RowStream(rate_per_s=200.0)
    assert simulated(on_time, mode="update").latency_s == pytest.approx([5.0, 5.0, 5.0])


def test_free_running_batches_follow_each_other() -> None:
    trace = simulated(trigger_s=0.0, duration_s=4.0)
    assert np.diff(trace.start_s) == pytest.approx(4.0)
    # Read at 72 s, used at 76 s.
    assert trace.latency_s[0] == pytest.approx(20.0, abs=0.1)


def test_a_late_start_returns_to_the_grid() -> None:
    durations = np.array([13.0, 3.0, 3.0, 3.0])
    back = simulate_windows(
        np.array([60.0]), durations, 10.0, DENSE,
        mode="append", seed=1, length_s=60.0, watermark_delay_s=1.0,
    )  # fmt: skip
    assert back.start_s == pytest.approx([10.0, 23.0, 30.0, 40.0])


def test_the_last_watermark_emits_by_a_no_data_batch() -> None:
    stopped = RowStream(rate_per_s=200.0, lag_s=0.5, stop_s=75.0)
    trace = simulated(stopped)
    assert trace.latency_s[0] == pytest.approx(35.0)
    assert trace.num_rows[-1] == 0.0
    assert np.all(np.isinf(trace.latency_s[1:]))
    assert np.all(np.isinf(simulated(stopped, no_data_batches=False).latency_s))


def test_without_rows_past_the_watermark_a_window_stays() -> None:
    stopped = RowStream(rate_per_s=200.0, lag_s=0.5, stop_s=70.0)
    assert np.all(np.isinf(simulated(stopped).latency_s))


def test_idle_triggers_run_no_batch() -> None:
    sparse = RowStream(rate_per_s=0.02)
    with_none, without = (simulated(sparse, no_data_batches=on) for on in (True, False))
    assert np.all(without.num_rows > 0.0)
    assert np.any(with_none.num_rows == 0.0)
    assert not np.any((with_none.num_rows[1:] == 0.0) & (with_none.num_rows[:-1] == 0.0))
    for trace in (with_none, without):
        assert trace.start_s / 10.0 == pytest.approx(np.round(trace.start_s / 10.0))


def test_no_row_is_late_without_disorder() -> None:
    assert simulated(delay_s=0.0).num_late_rows.sum() == 0.0
    mixed = RowStream(rate_per_s=200.0, excess_mean_s=30.0, excess_cv=1.0)
    few, many = (simulated(mixed, delay_s=delay).num_late_rows.sum() for delay in (60.0, 0.0))
    assert 0.0 < few < many


def test_an_update_drops_late_rows_and_none_without_a_watermark() -> None:
    mixed = RowStream(rate_per_s=200.0, excess_mean_s=30.0, excess_cv=1.0)
    kept, cut = (simulated(mixed, mode="update", delay_s=delay) for delay in (np.inf, 0.0))
    assert kept.num_late_rows.sum() == 0.0
    assert cut.num_late_rows.sum() > 0.0
    assert np.all(kept.latency_s > cut.latency_s)


def test_a_seed_repeats() -> None:
    mixed = RowStream(rate_per_s=20.0, excess_mean_s=3.0, excess_cv=1.0)
    assert simulated(mixed).num_late_rows.tolist() == simulated(mixed).num_late_rows.tolist()


def test_refusals() -> None:
    for arguments in ({"rate_per_s": 0.0}, {"rate_per_s": 1.0, "lag_s": -1.0}):
        with pytest.raises(ValueError, match="lag_s"):
            RowStream(**arguments)
    with pytest.raises(ValueError, match="excess"):
        RowStream(rate_per_s=1.0, excess_cv=-1.0)
    with pytest.raises(ValueError, match="ends_s"):
        simulated(ends_s=(2.0, 1.0))
    with pytest.raises(ValueError, match="durations_s"):
        simulated(duration_s=0.0)
    with pytest.raises(ValueError, match="trigger_s"):
        simulated(trigger_s=-1.0)
    with pytest.raises(ValueError, match="append mode"):
        simulated(delay_s=np.inf)
