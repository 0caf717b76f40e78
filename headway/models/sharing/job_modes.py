"""The paper's modes, moves of keys and assignment of partitions, for a profiled query."""

from __future__ import annotations

from dataclasses import replace

from headway.domain.sharing import ModeWork
from headway.models.sharing.consolidation import MergePlan, steady_horizon_ms
from headway.models.sharing.modes import (
    SharingMode,
    WindowWork,
    mode_pause_s,
    mode_work_s,
    split_break_even_windows,
)
from headway.models.sharing.profiled_windows import WindowSetting, cost_cases
from headway.models.sharing.rebalancing import Migration, after_moves, flux_moves, migration_costs
from headway.units import ms_to_s


def mode_work(setting: WindowSetting, merges: MergePlan) -> ModeWork:
    """Work of the paper's modes over the longest window, with the costs of the profile.

    It is the processor time of all slots together, and the pause if the keys of one partition move.

    Notes
    -----
    Enorm 2016, section 5.1.1 (doi:10.1145/2933267.2933315). The cost of writing a state row is used
    for sending a copy and for a merge.
    """
    windows, slots = setting.windows, setting.configuration.num_slots
    costs = next(cost_cases(setting)).costs
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
    moved = migration_costs(
        state_copies=setting.keys.pane_keys
        * work.num_panes
        / setting.configuration.shuffle_partitions,
        copy_s=work.copy_s,
        longest_window_s=period_s,
        rows_work_s=work.num_rows * work.row_s / setting.configuration.shuffle_partitions,
    )
    pause_s = moved[Migration.DISRUPTIVE].pause_s
    moving = replace(work, num_migrations=1.0, migration_pause_s=pause_s)
    return ModeWork(
        work_s={mode.value: mode_work_s(mode, work) for mode in SharingMode},
        break_even_windows_ratio=split_break_even_windows(work),
        pause_s={mode.value: mode_pause_s(mode, moving) for mode in SharingMode},
    )


def partition_deal(setting: WindowSetting) -> tuple[float, float]:
    """How evenly the last stage's partitions load the slots: as assigned, and after best moves.

    Both are the load of the busiest slot over an even share. One of the partitions has, in
    addition, the share of the rows that one task always gets.

    Notes
    -----
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
