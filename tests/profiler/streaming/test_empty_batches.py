"""Batches without rows: how many ran, and how much earlier they emitted windows."""

from __future__ import annotations

from typing import Any

import pytest

from headway.profiler.streaming.observations import empty_batches


def report(
    batch_id: int, started_s: float, rows: float, removed: int = 0, *, ran: bool = True
) -> dict[str, Any]:
    """A batch of 0.3 s, of which 0.1 s are after its commit."""
    phases_s = {"triggerExecution": 0.3, "commitOffsets": 0.1}
    return {
        "batch_id": batch_id,
        "started_s": started_s,
        "num_rows": rows,
        "phases_s": phases_s | ({"addBatch": 0.1} if ran else {}),
        "stateful_operators": [{"num_removed": removed}],
    }


def test_windows_of_empty_batches_are_ahead_of_the_next_with_rows() -> None:
    """Thirty of forty rows leave in two empty batches, 4 s and 2 s before the next with rows."""
    reports = [
        report(0, 100.0, 50, removed=10),
        report(1, 101.0, 0, removed=20),
        report(2, 103.0, 0, removed=10),
        report(3, 105.0, 40),
    ]
    empty = empty_batches(reports, 0.0)
    assert empty is not None
    assert empty.num_per_batch == 1.0
    assert empty.duration_s == pytest.approx(0.3)
    assert empty.emitted_share == pytest.approx(30 / 40)
    assert empty.ahead_s == pytest.approx((20 * 4.0 + 10 * 2.0) / 30)
    assert empty.emitted_share * empty.ahead_s == pytest.approx(0.75 * 100 / 30)


def test_triggers_at_which_nothing_ran_are_no_batches() -> None:
    """An idle query announces its next batch, which then runs with rows."""
    idle = [report(1, 101.0, 0, ran=False), report(1, 102.0, 0, ran=False)]
    assert empty_batches([report(0, 100.0, 5), *idle, report(1, 103.0, 5)], 0.0) is None


def test_a_batch_that_waited_for_an_empty_one_would_have_begun_earlier() -> None:
    """A row came half way through the 0.3 s; at triggers of 0.25 s, it would have begun at one."""
    reports = [report(0, 100.0, 1), report(1, 100.3, 0, removed=1), report(2, 100.603, 1)]
    for trigger_s, held_up_s in ((0.0, 0.153), (0.25, 0.103)):
        empty = empty_batches(reports, 0.0, trigger_s)
        assert empty is not None
        assert empty.ahead_s == pytest.approx(0.303 - held_up_s)
    # It came after the empty one had ended.
    later = empty_batches([*reports[:2], report(2, 100.62, 1)], 0.0)
    assert later is not None
    assert later.ahead_s == pytest.approx(0.32)


def test_an_empty_batch_at_the_end_is_ahead_of_nothing() -> None:
    empty = empty_batches([report(0, 100.0, 5), report(1, 101.0, 0, removed=3)], 0.0)
    assert empty is not None
    assert (empty.emitted_share, empty.ahead_s) == (1.0, 0.0)


def test_the_warm_up_does_not_count() -> None:
    reports = [report(0, 90.0, 0, removed=3), report(1, 101.0, 5), report(2, 102.0, 0)]
    empty = empty_batches(reports, 100.0)
    assert empty is not None
    assert (empty.num_per_batch, empty.emitted_share) == (1.0, 0.0)
