"""Which part of a fitted model has changed: the fixed time, the time per row, or everything."""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import numpy as np

from headway.models.arrays import Array

# Odds of twenty to one between two kinds of a shift.
_CLEAR_LEAD = 2.0 * float(np.log(20.0))

#: What has changed in ``a + b n``; unclear if batches do not differ enough in size to tell.
ShiftKind: TypeAlias = Literal["fixed time", "time per row", "everything", "unclear"]


class Shift(NamedTuple):
    """What has changed since an alarm's first batch, and each change if it were the only one.

    ``fixed_s`` and ``per_row_s`` are added to the fixed time and the time per row; ``ratio`` is a
    factor on all durations.
    """

    kind: ShiftKind
    fixed_s: float
    per_row_s: float
    ratio: float


def shift_since(
    num_rows: Array, duration_s: Array, fixed_s: float, per_row_s: float, relative_noise: float
) -> Shift:
    r"""What part of the model has changed, from the batches since.

    The batches are those from an alarm's first one on, and ``fixed_s`` and ``per_row_s`` the line
    that held before. The noise, above 0, is in proportion to the duration.

    **(E26)** What has changed: relative deviations of the batches since the drift began, regressed
    on `1/m_i` (fixed time), `n_i/m_i` (time per row) and `1` (everything by one factor), each
    alone. The answer is the kind with the smallest `χ^2` if it leads the next by `2 ln 20`;
    otherwise it is unclear, as it always is at one load.

    >>> rows = np.tile([5e3, 2e4], 10)
    >>> shift_since(rows, 2.0 + 4e-4 * rows, 2.0, 3e-4, 0.05).kind
    'time per row'
    """
    rows, duration = np.asarray(num_rows, dtype=float), np.asarray(duration_s, dtype=float)
    mean = fixed_s + per_row_s * rows
    if rows.size == 0 or not (np.all(mean > 0.0) and np.all(duration > 0.0)):
        raise ValueError("need at least one batch, with positive durations, measured and modelled")
    if not (relative_noise > 0.0 and fixed_s >= 0.0 and per_row_s >= 0.0 and np.all(rows >= 0.0)):
        raise ValueError("need relative_noise > 0 and neither rows nor the line negative")
    deviation = duration / mean - 1.0
    # Durations that have grown vary more as well.
    noise = relative_noise * max(1.0 + float(np.mean(deviation)), 1e-3)
    columns: dict[ShiftKind, Array] = {
        "fixed time": 1.0 / mean,
        "time per row": rows / mean,
        "everything": np.ones_like(mean),
    }
    amount, misfit = {}, {}
    for kind, column in columns.items():
        square = max(float(column @ column), 1e-300)
        amount[kind] = float(column @ deviation) / square
        residual = deviation - amount[kind] * column
        misfit[kind] = float(residual @ residual) / noise**2
    first, second = sorted(misfit, key=lambda kind: misfit[kind])[:2]
    is_clear = misfit[second] - misfit[first] >= _CLEAR_LEAD
    return Shift(
        first if is_clear else "unclear",
        amount["fixed time"],
        amount["time per row"],
        1.0 + amount["everything"],
    )
