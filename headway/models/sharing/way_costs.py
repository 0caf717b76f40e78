"""What each way of counting windows changes in a batch, and the work of the paper's modes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import TypeAlias, get_args

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


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowWork:
    """Work within one period, which is the longest window.

    ``num_windows`` are windows per row, at least 1, ``num_panes`` panes per period, ``num_groups``
    groups of keys that move together, ``num_merges`` merges of a key per period, ``num_migrations``
    moves of a group per period. ``copy_s`` is the time to send one copy of a key's state,
    ``merge_s`` the time to merge it.
    """

    num_rows: float
    row_s: float
    num_windows: float
    num_panes: float
    num_groups: float
    num_keys: float
    num_merges: float
    copy_s: float
    merge_s: float
    num_migrations: float = 0.0
    migration_pause_s: float = 0.0


def mode_work_s(work: WindowWork) -> dict[str, float]:
    r"""Processor time of a period in each mode; the paper's model lacks the second. [s]

    **(H6)** Work of a period: unshared `n E W + M K`, in place `n E + Q + M K PW`, split
    `n E + Q + PW G K + M K`. There are `n` rows of `E` seconds in `W` windows each, `PW` panes, `G`
    groups and `M` migrations; sending a key's state takes `K` seconds, and all merges take `Q`.
    Enorm 2016, section 5.1.1, doi:10.1145/2933267.2933315, corrected: the cost of merges depends on
    the keys, and the printed "combine" mixes the first two ways.

    >>> work = WindowWork(num_rows=1.8e7, row_s=2e-6, num_windows=4, num_panes=60, num_groups=2000,
    ...     num_keys=2000, num_merges=86, copy_s=5e-7, merge_s=2e-7)
    >>> mode_work_s(work)
    {'unshared': 144.0, 'shared in place': 36.0344, 'shared, split': 36.0944}
    """
    rows_s = work.num_rows * work.row_s
    moved_s = work.num_migrations * work.copy_s
    merges_s = work.num_merges * work.num_keys * work.merge_s
    sent_s = work.num_panes * work.num_groups * work.copy_s
    return {
        "unshared": rows_s * work.num_windows + moved_s,
        "shared in place": rows_s + merges_s + moved_s * work.num_panes,
        "shared, split": rows_s + merges_s + sent_s + moved_s,
    }


def mode_pause_s(work: WindowWork) -> dict[str, float]:
    """Time per period in which rows wait for state that moves, in each mode. [s]

    It is 0 if partial windows are behind an exchange. Enorm 2016, section 5.1.1.

    >>> work = WindowWork(num_rows=1, row_s=1, num_windows=2, num_panes=2, num_groups=1,
    ...     num_keys=1, num_merges=2, copy_s=1, merge_s=1, num_migrations=3, migration_pause_s=2.0)
    >>> mode_pause_s(work)
    {'unshared': 6.0, 'shared in place': 6.0, 'shared, split': 0.0}
    """
    pause_s = work.num_migrations * work.migration_pause_s
    return {"unshared": pause_s, "shared in place": pause_s, "shared, split": 0.0}


def split_break_even_windows(work: WindowWork) -> float:
    """Windows per row from which sharing behind an exchange costs less than not sharing.

    The work's own number of windows does not matter. Without rows, the result is ``inf``.

    **(H7)** Splitting is cheaper than not sharing if there are `W > 1 + (PW G K + Q)/(n E)` windows
    per row, with the symbols of (H6). Migrations cost the same both ways. Enorm 2016, section
    5.1.1, doi:10.1145/2933267.2933315, corrected.

    >>> work = WindowWork(num_rows=1e5, row_s=2e-6, num_windows=1, num_panes=60, num_groups=2000,
    ...     num_keys=2000, num_merges=86, copy_s=5e-7, merge_s=2e-7)
    >>> split_break_even_windows(work)
    1.472
    """
    rows_s = work.num_rows * work.row_s
    sent_s = work.num_panes * work.num_groups * work.copy_s
    merged_s = work.num_merges * work.num_keys * work.merge_s
    return 1.0 + (sent_s + merged_s) / rows_s if rows_s > 0.0 else float("inf")


Move: TypeAlias = tuple[int, int, float]
"""The node that a key group leaves, the one that it moves to, and its load."""


def flux_moves(nodes: Sequence[Sequence[float]]) -> tuple[Move, ...]:
    """One period of Flux: each busy node hands a key group to an idle one.

    ``nodes`` are the loads of the key groups of each node, in any one unit. There is at most one
    move per pair of nodes, and none if no move reduces the variance.

    Flux 2003 as Enorm 2016, section 3.2 (doi:10.1145/2933267.2933315) uses it: nodes are ordered by
    load; the first is paired with the last, the second with the second last, and so on. The largest
    group with less load than the difference of the pair moves. Spark cannot move single partitions
    of state; this models the gain of an even distribution.

    >>> flux_moves([[30, 25, 20], [20, 20], [15, 10], [10]])
    ((0, 3, 30),)
    """
    loads = [sum(groups) for groups in nodes]
    order = sorted(range(len(nodes)), key=lambda node: -loads[node])
    moves = []
    for first, last in zip(order[: len(order) // 2], reversed(order), strict=False):
        difference = loads[first] - loads[last]
        fitting = [load for load in nodes[first] if 0 < load < difference]
        if fitting:
            moves.append((first, last, max(fitting)))
    return tuple(moves)


def after_moves(
    nodes: Sequence[Sequence[float]], moves: Sequence[Move]
) -> tuple[tuple[float, ...], ...]:
    """Loads of the key groups of each node after moves, in the order of ``nodes`` (Enorm 2016).

    >>> nodes = [[30, 25, 20], [10]]
    >>> [sum(groups) for groups in after_moves(nodes, flux_moves(nodes))]
    [45, 40]
    """
    loads = [list(groups) for groups in nodes]
    for source, target, load in moves:
        loads[source].remove(load)
        loads[target].append(load)
    return tuple(map(tuple, loads))


def mode_work(
    setting: WindowSetting, merges: MergePlan
) -> tuple[Mapping[str, float], float, Mapping[str, float]]:
    """Work of the paper's modes over the longest window, with the costs of the profile.

    It is the processor time of all slots together, then the windows per row of (H7), then the pause
    if the keys of one partition move while their rows wait: the time to send and receive the copies
    of their state. The cost of writing a state row is used for sending a copy and for a merge.
    Enorm 2016, section 5.1.1.
    """
    windows, slots = setting.windows, setting.configuration.num_slots
    costs = next(cost_cases(setting))
    period_s = ms_to_s(windows.longest_ms)
    horizon_ms = steady_horizon_ms(merges)
    unweighted = MergePlan(windows=windows, pane_ms=windows.pane_ms, rollups=merges.rollups)
    work = WindowWork(
        num_rows=setting.rate_per_s * period_s,
        row_s=costs.copy_s * slots,
        num_windows=max(windows.num_copies, 1.0),
        num_panes=windows.longest_ms / windows.pane_ms,
        num_groups=setting.keys.pane_keys,
        num_keys=setting.keys.pane_keys,
        num_merges=unweighted.total_cost(horizon_ms) * windows.longest_ms / horizon_ms,
        copy_s=costs.state_row_s * slots,
        merge_s=costs.state_row_s * slots,
    )
    copies = setting.keys.pane_keys * work.num_panes / setting.configuration.shuffle_partitions
    moving = replace(work, num_migrations=1.0, migration_pause_s=copies * work.copy_s)
    return mode_work_s(work), split_break_even_windows(work), mode_pause_s(moving)


def partition_deal(setting: WindowSetting) -> tuple[float, float]:
    """How evenly the last stage's partitions load the slots: as assigned, and after best moves.

    Both are the load of the busiest slot over an even share. One of the partitions has, in
    addition, the share of the rows that one task always gets.

    Flux 2003 as in Enorm 2016, section 3.2 (doi:10.1145/2933267.2933315), repeated until nothing
    moves. Spark does not move partitions; the gain of a move may be achieved by other shuffle
    partitions or salted keys.
    """
    number, slots = setting.configuration.shuffle_partitions, setting.configuration.num_slots
    hot = max(stage.hot_share_ratio for stage in setting.profile.stages)
    loads = [(1.0 - hot) / number + (hot if index == 0 else 0.0) for index in range(number)]
    dealt = tuple(tuple(loads[slot::slots]) for slot in range(slots))
    moved = dealt
    for _ in range(number):
        moves = flux_moves(moved)
        if not moves:
            break
        moved = after_moves(moved, moves)
    as_dealt, at_best = (max(map(sum, nodes)) * slots for nodes in (dealt, moved))
    return as_dealt, at_best
