"""Latencies of the rows of a running query, from the offsets that its batches report."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from headway.assumptions.logs import AT_ONCE_MS
from headway.assumptions.tuning import LEAST_GAP_S
from headway.models.arrays import Array
from headway.units import ms_to_s


class RowWaits(NamedTuple):
    """Rows in parts: the latencies of each part are uniform between two ends.

    These are the latencies of its last row and of its first; ``batch`` is the index of the batch
    that read it.
    """

    low_s: Array
    high_s: Array
    num_rows: Array
    batch: NDArray[np.intp]

    def late_rows(self, limit_s: float) -> float:
        """Rows later than a limit, which is above 0: (A13).

        >>> RowWaits(*np.array([[1.0], [2.0], [10.0]]), np.array([1])).late_rows(1.5)
        5.0
        """
        if not limit_s > 0.0:
            raise ValueError("limit_s must be positive")
        width = self.high_s - self.low_s
        share = (self.high_s - limit_s) / np.where(width > 0.0, width, 1.0)
        is_late = (self.low_s > limit_s).astype(np.float64)
        late_share = np.where(width > 0.0, np.clip(share, 0.0, 1.0), is_late)
        return float((self.num_rows * late_share).sum())


def asked_in_vain_s(started_s: float, free_s: float, trigger_s: float) -> float | None:
    """When the source of an idle query was last asked, and had no rows: one trigger before (A13).

    None if the query was not idle, or for a shorter time than a busy driver may take from one batch
    to the next, which says nothing. Not for batches that wait for more than rows: for a gate, or
    for a minimum number of rows.

    Parameters
    ----------
    started_s : when a batch began: an instant since 1970 [s]
    free_s : when Spark was done with the batch before it [s]
    trigger_s : trigger interval; 0 asks again and again [s]

    >>> asked_in_vain_s(100.0, 70.4, 1.0), asked_in_vain_s(72.0, 70.4, 2.0)
    (99.0, None)
    """
    asked_s = started_s - max(trigger_s, ms_to_s(AT_ONCE_MS.value))
    return asked_s if asked_s >= free_s + LEAST_GAP_S.value else None


def row_waits(
    available_s: Array, available_rows: Array, position_rows: Array, committed_s: Array
) -> RowWaits:
    r"""Latencies of the rows of successive batches, however far the query is behind.

    The rows of the first batch are left out, since its start is not known.

    Parameters
    ----------
    available_s : (n,) array, increasing, when each batch was planned and the source asked [s]
    available_rows : (n,) array, not decreasing, the latest offset at that time [rows]
    position_rows : (n,) array, not decreasing, where its rows end: at most what was available
    committed_s : (n,) array, when its rows were committed [s]

    **(A13)** Latency from offsets. Let `A(t)` be the number of rows that had arrived, linear
    between the times at which the source was asked. Row `x` of batch `k` arrived at `A^(-1)(x)` and
    is committed at `c_k`: its latency is `c_k - A^(-1)(x)`. This gives a mixture (D5) with a part
    for each piece of a batch between two such times. Without a backlog it is (B7). Exact for rows
    that arrive evenly between two such times. A batch that began later than its trigger ended a
    pause: at the trigger before, the source had been asked, too, and had no rows.

    Each second 20 rows arrive and a batch reads 10: each row waits longer than the one before.

    >>> at_s = np.array([0.0, 1.0, 2.0])
    >>> waits = row_waits(at_s, 20.0 * at_s, 10.0 * at_s, at_s + 0.5)
    >>> waits.low_s, waits.high_s, waits.num_rows
    (array([1. , 1.5]), array([1.5, 2. ]), array([10., 10.]))
    """
    planned_s, arrived, read, committed = (
        np.asarray(values, dtype=np.float64)
        for values in (available_s, available_rows, position_rows, committed_s)
    )
    shapes = {values.shape for values in (planned_s, arrived, read, committed)}
    if planned_s.ndim != 1 or len(shapes) > 1:
        raise ValueError("need four 1-D arrays of one length")
    if any(np.any(np.diff(values) < 0.0) for values in (planned_s, arrived, read)):
        raise ValueError("times, rows and positions must not decrease")
    if len(planned_s) < 2:
        empty = np.zeros(0)
        return RowWaits(empty, empty, empty, empty.astype(np.intp))
    # The times of rows that arrived before the first batch was planned are not known.
    first = max(read[0], arrived[0])
    bounds = np.unique(np.concatenate([read[1:], arrived, [first]]))
    bounds = bounds[(bounds >= first) & (bounds <= min(read[-1], arrived[-1]))]
    batch = np.minimum(np.searchsorted(read, bounds[1:], side="left"), len(read) - 1)
    done_s = committed[batch]
    came_first_s = _came_s(planned_s, arrived, bounds[:-1], side="right")
    came_last_s = _came_s(planned_s, arrived, bounds[1:], side="left")
    return RowWaits(done_s - came_last_s, done_s - came_first_s, np.diff(bounds), batch)


def _came_s(
    planned_s: Array, arrived: Array, rows: Array, *, side: Literal["left", "right"]
) -> Array:
    """Arrival times: just after the row with a number, or of that row."""
    after = np.clip(np.searchsorted(arrived, rows, side=side), 1, len(arrived) - 1)
    step_rows = arrived[after] - arrived[after - 1]
    share = (rows - arrived[after - 1]) / np.where(step_rows > 0.0, step_rows, 1.0)
    arrival_s: Array = planned_s[after - 1] + share * (planned_s[after] - planned_s[after - 1])
    return arrival_s
