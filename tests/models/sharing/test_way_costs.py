"""What a log does in a batch: jobs and rows counted one by one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from headway.domain.window_set import WindowSet
from headway.models.sharing.consolidation import MergePlan, with_rollups
from headway.models.sharing.gain import BatchKeys
from headway.models.sharing.way_costs import due_work, update_merges

SETS = [["60s every 5s"], ["20s every 6s", "9s"], ["10s"], ["60s every 5s", "10s"]]


@pytest.mark.parametrize("texts", SETS)
def test_the_panes_of_update_mode_are_those_from_a_windows_start_until_now(
    texts: list[str],
) -> None:
    windows = WindowSet.parse(texts)
    pane_ms = windows.pane_ms
    # A batch of one pane, at every place of the grid.
    found = [
        sum(
            (start + pane_ms - begin) // pane_ms
            for spec in windows.windows
            for begin in spec.starts_with(start, start + pane_ms)
        )
        for start in range(600_000, 780_000, pane_ms)
    ]
    # Batches much shorter than a pane touch the windows of one.
    assert update_merges(windows, 1e-9) == pytest.approx(sum(found) / len(found), rel=0.02)


def plans(texts: list[str]) -> list[MergePlan]:
    windows = WindowSet.parse(texts)
    plain = MergePlan(windows=windows, pane_ms=windows.pane_ms)
    return [plain, with_rollups(plain)]


@pytest.mark.parametrize("texts", SETS)
def test_rows_of_due_windows_are_those_of_their_pieces(texts: list[str]) -> None:
    keys = BatchKeys(batch_keys=10.0, pane_keys=10.0, batch_s=0.5)
    for plan in plans(texts):
        horizon = 1_080_000
        merged, kept = 0, set()
        for spec in plan.made:
            for end in spec.ends_between(0, horizon):
                pieces = plan.pieces(spec, end - spec.size_ms)
                merged += len(pieces)
                kept |= {p.length_ms for p in pieces if p.length_ms > plan.pane_ms}
        kept_windows = sum(
            len(spec.ends_between(0, horizon)) for spec in plan.made if spec.size_ms in kept
        )
        per_pane = (merged + kept_windows) * plan.pane_ms / horizon
        _, rows = due_work(plan, keys)
        assert rows == pytest.approx(10.0 * per_pane)


def test_pieces_that_are_kept_take_jobs_of_their_own() -> None:
    keys = BatchKeys(batch_keys=10.0, pane_keys=10.0, batch_s=1.0)
    plain, _ = plans(["60s every 5s"])
    (half_minute,) = WindowSet.parse(["30s"]).windows
    with_one = replace(plain, rollups=(half_minute,))
    jobs, rows = due_work(plain, keys)
    more_jobs, fewer_rows = due_work(with_one, keys)
    assert jobs == 1.0
    # One in six of the batches that close a pane ends half a minute.
    assert more_jobs == pytest.approx(1.0 + 1.0 / 6.0)
    assert fewer_rows < rows
