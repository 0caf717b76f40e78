"""Changes of each way of counting windows to a batch: copies, state rows, stages, files."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import get_args

from headway.domain.sharing import WindowsHow
from headway.domain.window_set import WindowSet, WindowSpec
from headway.models.sharing import gain
from headway.models.sharing.consolidation import MergePlan, steady_horizon_ms
from headway.models.sharing.profiled_windows import WindowSetting, cost_cases
from headway.units import ms_to_s


def batch_change(
    how: WindowsHow, setting: WindowSetting, costs: gain.UnitCosts, merges: MergePlan
) -> gain.BatchTime:
    r"""Batch time of a way less that of the direct query, below 0 if it takes less time. [s]

    ``merges`` are the pieces from which a log merges windows.

    **(H8)** A log changes the time of a batch by `L + l K_b (1 + T/g) - b_c (m - 1) n - u U_0`,
    with `L` for its files and `l` per row of partial windows. A batch in which windows are due
    takes `J R + l (Q + Q_w)` longer, for `J` jobs of `R` seconds each, `Q` merged rows and `Q_w`
    rows of pieces that are kept. Fused windows: (H4) with the `G` of a second state only, with
    `u_c` instead of `u` for rows of panes, which are not combined before the shuffle, and with
    `b_r` for each row that is shuffled for this reason. After Enorm 2016,
    doi:10.1145/2933267.2933315.
    """
    keys, windows = setting.keys, setting.windows
    if how == "direct":
        return 0.0, 0.0
    before_s = costs.state_row_s * gain.direct_state_writes(keys, windows)
    copies_s = costs.copy_s * (windows.num_copies - 1.0) * setting.num_rows
    if how == "log":
        written = keys.batch_keys * (1.0 + keys.batch_s / ms_to_s(windows.pane_ms))
        files_s = costs.log_batch_s + costs.log_row_s * written
        every_s = files_s - copies_s - before_s
        if setting.is_update:
            read = keys.pane_keys * update_merges(windows, keys.batch_s)
            return every_s + costs.log_read_s + costs.log_row_s * read, 0.0
        jobs, rows = due_work(merges, keys)
        return every_s, costs.log_read_s * jobs + costs.log_row_s * rows
    spared_s = copies_s + before_s
    if how == "panes":
        every_s, closing_s = gain.shared_state_time(costs, keys, windows, row_s=costs.state_row_s)
        return costs.second_stage_s + every_s - spared_s, closing_s
    every_s, closing_s = gain.shared_state_time(costs, keys, windows, row_s=costs.closing_s)
    combined = min(setting.num_rows, keys.batch_keys * windows.num_copies)
    raw_s = costs.raw_shuffle_s * (setting.num_rows - combined)
    return costs.second_state_s + raw_s + every_s - spared_s, closing_s


def ways_of(setting: WindowSetting) -> tuple[WindowsHow, ...]:
    """The available ways, the direct query first; panes and fused windows require append mode.

    Enorm 2016 on Spark, which rejects two consecutive aggregations in any other mode.
    """
    return ("direct", "log") if setting.is_update else get_args(WindowsHow)


def due_work(merges: MergePlan, keys: gain.BatchKeys) -> tuple[float, float]:
    """Mean jobs of a log in a batch that closes panes, and rows of partial windows in them.

    The `J` and `Q + Q_w` of (H8), over a steady horizon. One job emits the windows, and one more
    for each size keeps those from which larger windows are merged.

    >>> windows = WindowSet.parse(["60s every 5s"])
    >>> plan = MergePlan(windows=windows, pane_ms=windows.pane_ms)
    >>> due_work(plan, gain.BatchKeys(batch_keys=1000.0, pane_keys=1000.0, batch_s=1.0))
    (1.0, 12000.0)
    """
    panes = max(keys.batch_s / ms_to_s(merges.pane_ms), 1.0)
    share = gain.closing_share(keys.batch_s, merges.windows)
    num_merged, kept_specs = _merged_and_kept(merges)
    num_kept = sum(merges.pane_ms / spec.slide_ms for spec in kept_specs)
    jobs = 1.0 + sum(min(keys.batch_s / ms_to_s(spec.slide_ms), 1.0) for spec in kept_specs) / share
    return jobs, keys.pane_keys * (num_merged + num_kept) * panes


@cache
def _merged_and_kept(merges: MergePlan) -> tuple[float, tuple[WindowSpec, ...]]:
    """Pieces merged per pane, and the windows that are kept for larger ones."""
    horizon_ms = steady_horizon_ms(merges)
    kept_ms = merges.kept_lengths_ms(horizon_ms)
    kept_specs = tuple(spec for spec in merges.made if spec.size_ms in kept_ms)
    return merges.total_cost(horizon_ms) * merges.pane_ms / horizon_ms, kept_specs


def update_merges(windows: WindowSet, batch_s: float) -> float:
    r"""Panes merged per key in update mode, in which a batch computes all windows that it touches.

    ``batch_s`` is the event time of a batch.

    **(H9)** In update mode, a log merges `Σ_i (s_i + T)/l_i · (s_i + g)/(2g)` panes per key: the
    windows of (H2) from their starts until now, which are half full on average. Enorm 2016,
    doi:10.1145/2933267.2933315, has no such mode.

    >>> update_merges(WindowSet.parse(["60s every 5s"]), 1.0)
    79.3
    """
    pane_s = ms_to_s(windows.pane_ms)
    return sum(
        (ms_to_s(spec.size_ms) + batch_s)
        / ms_to_s(spec.slide_ms)
        * (ms_to_s(spec.size_ms) + pane_s)
        / (2.0 * pane_s)
        for spec in windows.windows
    )


def cheapest_merges(setting: WindowSetting, merges: MergePlan) -> MergePlan:
    """The fastest way for a log to compute windows: with the roll-ups of a plan, or without.

    Pieces are counted without weights. Each size that is kept for larger ones needs a job of its
    own (H8), whose time the saved merges must exceed; "Factor windows", arXiv 2008.12379 (2020),
    counts only merges.
    """
    costs = next(cost_cases(setting))
    without = MergePlan(windows=setting.windows, pane_ms=setting.windows.pane_ms)
    return min(
        (without, replace(without, rollups=merges.rollups)),
        key=lambda plan: batch_change("log", setting, costs, plan)[1],
    )
