"""The paper's modes of sharing overlapping windows: their work, and moves of keys between nodes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TypeAlias

from headway.domain.checks import require_not_negative
from headway.models.sharing.consolidation import MergePlan, steady_horizon_ms
from headway.models.sharing.profiled_windows import WindowSetting, cost_cases
from headway.units import ms_to_s


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowWork:
    """Work within one period, which is the longest window.

    ``num_windows`` are windows per row, ``num_panes`` panes per period, ``num_groups`` groups of
    keys that move together, ``num_merges`` merges of a key per period, ``num_migrations`` moves of
    a group per period. ``copy_s`` is the time to send one copy of a key's state, ``merge_s`` the
    time to merge it.
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

    def __post_init__(self) -> None:
        if not self.num_windows >= 1:
            raise ValueError(f"num_windows is {self.num_windows}; expected 1 or more per row")
        require_not_negative("work of windows", **asdict(self))


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
