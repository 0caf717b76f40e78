"""The cost of each way to move a group of keys to another node, for the figures of Enorm."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from headway.domain.checks import require_not_negative


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
