"""Costs of overlapping windows: unshared, shared in place and shared behind an exchange."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from headway.domain.checks import require_not_negative


class SharingMode(StrEnum):
    """The three ways of Enorm; the paper measures the second, but its model lacks it."""

    UNSHARED = "unshared"
    IN_PLACE = "shared in place"
    SPLIT = "shared, split"


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
        require_not_negative(
            "work of windows",
            num_rows=self.num_rows,
            row_s=self.row_s,
            num_panes=self.num_panes,
            num_groups=self.num_groups,
            num_keys=self.num_keys,
            num_merges=self.num_merges,
            copy_s=self.copy_s,
            merge_s=self.merge_s,
            num_migrations=self.num_migrations,
            migration_pause_s=self.migration_pause_s,
        )
        if not self.num_windows >= 1:
            raise ValueError(f"num_windows is {self.num_windows}; expected 1 or more per row")


def mode_work_s(mode: SharingMode, work: WindowWork) -> float:
    r"""Processor time of a period. [s]

    Notes
    -----
    **(H6)** Work of a period: unshared `n E W + M K`, in place `n E + Q + M K PW`, split
    `n E + Q + PW G K + M K`. There are `n` rows of `E` seconds in `W` windows each, `PW` panes, `G`
    groups and `M` migrations; sending a key's state takes `K` seconds, and all merges take `Q`.
    Enorm 2016, section 5.1.1, doi:10.1145/2933267.2933315, corrected: the cost of merges depends on
    the keys, and the printed "combine" mixes the first two ways.

    Examples
    --------
    >>> work = WindowWork(num_rows=1.8e7, row_s=2e-6, num_windows=4, num_panes=60, num_groups=2000,
    ...     num_keys=2000, num_merges=86, copy_s=5e-7, merge_s=2e-7)
    >>> [mode_work_s(mode, work) for mode in SharingMode]
    [144.0, 36.0344, 36.0944]
    """
    rows_s = work.num_rows * work.row_s
    moved_s = work.num_migrations * work.copy_s
    merges_s = work.num_merges * work.num_keys * work.merge_s
    if mode is SharingMode.UNSHARED:
        return rows_s * work.num_windows + moved_s
    if mode is SharingMode.IN_PLACE:
        return rows_s + merges_s + moved_s * work.num_panes
    return rows_s + merges_s + work.num_panes * work.num_groups * work.copy_s + moved_s


def mode_pause_s(mode: SharingMode, work: WindowWork) -> float:
    """Time per period in which rows wait for state that moves. [s]

    It is 0 if partial windows are behind an exchange.

    Notes
    -----
    Enorm 2016, section 5.1.1 (doi:10.1145/2933267.2933315).

    Examples
    --------
    >>> work = WindowWork(num_rows=1, row_s=1, num_windows=2, num_panes=2, num_groups=1,
    ...     num_keys=1, num_merges=2, copy_s=1, merge_s=1, num_migrations=3, migration_pause_s=2.0)
    >>> [mode_pause_s(mode, work) for mode in SharingMode]
    [6.0, 6.0, 0.0]
    """
    return 0.0 if mode is SharingMode.SPLIT else work.num_migrations * work.migration_pause_s


def split_break_even_windows(work: WindowWork) -> float:
    """Windows per row from which sharing behind an exchange costs less than not sharing.

    The work's own number of windows does not matter. Without rows, the result is ``inf``.

    Notes
    -----
    **(H7)** Splitting is cheaper than not sharing if there are `W > 1 + (PW G K + Q)/(n E)` windows
    per row, with the symbols of (H6). Migrations cost the same both ways. Enorm 2016, section
    5.1.1, doi:10.1145/2933267.2933315, corrected.

    Examples
    --------
    >>> work = WindowWork(num_rows=1e5, row_s=2e-6, num_windows=1, num_panes=60, num_groups=2000,
    ...     num_keys=2000, num_merges=86, copy_s=5e-7, merge_s=2e-7)
    >>> split_break_even_windows(work)
    1.472
    """
    rows_s = work.num_rows * work.row_s
    sent_s = work.num_panes * work.num_groups * work.copy_s
    merged_s = work.num_merges * work.num_keys * work.merge_s
    return 1.0 + (sent_s + merged_s) / rows_s if rows_s > 0.0 else float("inf")
