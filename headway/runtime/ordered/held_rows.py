"""Rows of a bucket that wait until the watermark has passed them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from headway.runtime.ordered.pieces import Pieces, as_bytes, joined, may_grow, times_us


@dataclass(frozen=True, slots=True, kw_only=True)
class HeldRows:
    """Rows that are due, those that keep waiting, and the time of the first of these.

    ``num_late`` and ``num_untimed`` of the arrived rows are in neither.
    """

    due: Any
    waiting: Pieces = ()
    first_us: int | None = None
    num_late: int = 0
    num_untimed: int = 0


def parted(
    time: str,
    arrived: Any,
    waiting: Pieces,
    *,
    passed_us: int | None,
    watermark_us: int,
    logged: bool,
) -> HeldRows:
    """Part rows by a watermark, in the order of the column ``time``.

    With ``logged``, arrived rows are added to the stored ones. Those that an earlier watermark,
    ``passed_us``, let through are then still among these.
    """
    stored = joined(waiting)
    held = stored
    if logged and stored is not None and passed_us is not None:
        held = stored.filter(pc.greater_equal(times_us(stored.column(time)), passed_us))
    due, still_held = None, []
    if held is not None:
        passed = pc.less(times_us(held.column(time)), watermark_us)
        due = held.filter(passed)
        still_held.append(held.filter(pc.invert(passed)))
    num_late = num_untimed = 0
    if arrived is not None:
        arrived_us = times_us(arrived.column(time))
        num_late = pc.sum(pc.less(arrived_us, watermark_us)).as_py() or 0
        num_untimed = arrived_us.null_count
        # Rows that are late, or without a time, are left out.
        still_held.append(arrived.filter(pc.greater_equal(arrived_us, watermark_us)))
    rows = pa.concat_tables(still_held) if still_held else None
    if rows is None or not len(rows):
        return HeldRows(due=due, num_late=num_late, num_untimed=num_untimed)
    accepted = rows.slice(0, 0) if arrived is None else still_held[-1]
    num_stored = len(accepted) + (0 if stored is None else len(stored))
    if not logged or not may_grow(waiting, num_stored, len(rows)):
        pieces: Pieces = (as_bytes(rows),)
    else:
        pieces = (*waiting, as_bytes(accepted)) if len(accepted) else waiting
    return HeldRows(
        due=due,
        waiting=pieces,
        first_us=int(pc.min(times_us(rows.column(time))).as_py()),
        num_late=num_late,
        num_untimed=num_untimed,
    )
