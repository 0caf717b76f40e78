"""Key groups moved between nodes: which ones, and the cost of each way to move them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from headway.domain.checks import require_not_negative


class Move(NamedTuple):
    """A key group, by its index on the node it leaves, that moves to another node."""

    source: int
    target: int
    load: float


def flux_moves(nodes: Sequence[Sequence[float]]) -> tuple[Move, ...]:
    """One period of Flux: each busy node hands a key group to an idle one.

    ``nodes`` are the loads of the key groups of each node, in any one unit. There is at most one
    move per pair of nodes, and none if no move reduces the variance.

    Notes
    -----
    Flux 2003 as Enorm 2016, section 3.2 (doi:10.1145/2933267.2933315) uses it: nodes are ordered by
    load; the first is paired with the last, the second with the second last, and so on. The largest
    group with less load than the difference of the pair moves. Spark cannot move single partitions
    of state; this models the gain of an even distribution.

    Examples
    --------
    >>> flux_moves([[30, 25, 20], [20, 20], [15, 10], [10]])
    (Move(source=0, target=3, load=30),)
    """
    loads = [sum(groups) for groups in nodes]
    order = sorted(range(len(nodes)), key=lambda node: -loads[node])
    moves = []
    for first, last in zip(order[: len(order) // 2], reversed(order), strict=False):
        difference = loads[first] - loads[last]
        fitting = [load for load in nodes[first] if 0 < load < difference]
        if fitting:
            moves.append(Move(first, last, max(fitting)))
    return tuple(moves)


def after_moves(
    nodes: Sequence[Sequence[float]], moves: Sequence[Move]
) -> tuple[tuple[float, ...], ...]:
    """Loads of the key groups of each node after the moves, in the order of ``nodes``.

    Notes
    -----
    Enorm 2016, section 3.2 (doi:10.1145/2933267.2933315).

    Examples
    --------
    >>> nodes = [[30, 25, 20], [10]]
    >>> [sum(groups) for groups in after_moves(nodes, flux_moves(nodes))]
    [45, 40]
    """
    loads = [list(groups) for groups in nodes]
    for move in moves:
        loads[move.source].remove(move.load)
        loads[move.target].append(move.load)
    return tuple(map(tuple, loads))


class Migration(StrEnum):
    """How a key group moves to another node."""

    INSTANT = "instant"
    DISRUPTIVE = "disruptive"
    SMOOTH = "smooth"


@dataclass(frozen=True, slots=True, kw_only=True)
class MigrationCost:
    """Cost of a move: how long rows wait, how long the move takes, and processor time."""

    pause_s: float
    takes_s: float
    work_s: float


def migration_costs(
    *, state_copies: float, copy_s: float, longest_window_s: float, rows_work_s: float
) -> Mapping[Migration, MigrationCost]:
    """Pause, time and work of moving one key group in each way.

    ``state_copies`` are copies of key state in the group: keys, times panes if those are stored
    separately. ``copy_s`` is the time to send and receive one of them, ``longest_window_s`` the
    time until no window needs the state of the old node, and ``rows_work_s`` the work of the
    group's rows over that time, done twice in a smooth migration. None may be negative or infinite.

    Instant: partial results of both nodes are merged until no window needs the old ones; the same
    copies are sent, but later. Disruptive: rows wait for the copies. Smooth: both nodes work for
    the duration of a window.

    Notes
    -----
    Enorm 2016, sections 4.5 and 7.2-7.4 (doi:10.1145/2933267.2933315).

    Examples
    --------
    >>> costs = migration_costs(state_copies=50_000, copy_s=2e-5, longest_window_s=300.0,
    ...     rows_work_s=30.0)
    >>> [(cost.pause_s, cost.takes_s, cost.work_s) for cost in costs.values()]
    [(0.0, 300.0, 1.0), (1.0, 1.0, 1.0), (0.0, 300.0, 30.0)]
    """
    require_not_negative(
        "migration",
        state_copies=state_copies,
        copy_s=copy_s,
        longest_window_s=longest_window_s,
        rows_work_s=rows_work_s,
    )
    copied_s = state_copies * copy_s
    return {
        Migration.INSTANT: MigrationCost(pause_s=0.0, takes_s=longest_window_s, work_s=copied_s),
        Migration.DISRUPTIVE: MigrationCost(pause_s=copied_s, takes_s=copied_s, work_s=copied_s),
        Migration.SMOOTH: MigrationCost(pause_s=0.0, takes_s=longest_window_s, work_s=rows_work_s),
    }
