"""What a user says about timers and the time to live of keys, checked."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, get_args

from headway.domain.argument_values import Choice
from headway.errors import InputError
from headway.runtime.ordered.kept_state import Clock, KeyTimes, OnTimer
from headway.runtime.sharing.panes import WATERMARK
from headway.units import US_PER_MS, parse_duration_s

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.types import StructType

_TIMES = ("timestamp", "timestamp_ntz")
_US_PER_S = 1000 * US_PER_MS


def key_times(
    df: DataFrame,
    state: StructType,
    first_of_order: str,
    *,
    by_row: bool,
    timer: str | None,
    on_timer: OnTimer | None,
    forget_after: str | None,
    clock: Clock,
) -> KeyTimes | None:
    """What happens to keys as time passes; None if nothing does.

    With ``by_row``, rows wait for the watermark in the order of the column ``first_of_order``.
    """
    Choice(get_args(Clock)).read(clock, "clock")
    _require_timer(state, timer, on_timer)
    if timer is None and forget_after is None:
        return None
    if by_row and clock == "processing":
        raise InputError(
            "wait='watermark' is in event time, and a query has one clock; expected "
            "clock='event', or wait='batch'"
        )
    row_time = _row_time(df, first_of_order, by_row) if clock == "event" else None
    return KeyTimes(
        timer=timer,
        on_timer=on_timer,
        idle_us=None if forget_after is None else _duration_us(forget_after),
        row_time=row_time,
        by_row=by_row,
    )


def _require_timer(state: StructType, timer: str | None, on_timer: Any) -> None:
    if (timer is None) != (on_timer is None):
        missing, present = ("timer", "on_timer") if timer is None else ("on_timer", "timer")
        raise InputError(
            f"{missing} is missing for {present}; expected both: a column of the state with a "
            "time, and the function that is called once this time has passed"
        )
    if timer is None:
        return
    if timer not in state.names:
        raise InputError(
            f"timer: no column {timer} in the state; expected one of {', '.join(state.names)}"
        )
    if state[timer].dataType.typeName() not in _TIMES:
        raise InputError(
            f"timer: {timer} is of type {state[timer].dataType.simpleString()}; expected a "
            "timestamp, the time for which on_timer is called"
        )
    if not callable(on_timer):
        raise InputError(f"on_timer: got {on_timer!r}; expected a function of a key and its state")


def _duration_us(forget_after: str) -> int:
    try:
        duration_us = round(parse_duration_s(forget_after) * _US_PER_S)
    except InputError as error:
        raise InputError(f"forget_after: {error}") from None
    if duration_us <= 0:
        raise InputError(f"forget_after is {forget_after!r}; expected more than no time")
    return duration_us


def _row_time(df: DataFrame, first_of_order: str, by_row: bool) -> str | None:
    """The column with the event time of rows; none for a table that is one batch."""
    if by_row:
        kind = df.schema[first_of_order].dataType
        if kind.typeName() not in _TIMES:
            raise InputError(
                f"timers and forget_after need the time of a row, and {first_of_order} is of type "
                f"{kind.simpleString()}; expected a timestamp"
            )
        return first_of_order
    if not df.isStreaming:
        return None
    with_watermark = [field.name for field in df.schema.fields if WATERMARK in field.metadata]
    if len(with_watermark) != 1:
        number = f"has {', '.join(with_watermark)}" if with_watermark else "has none"
        raise InputError(
            f"clock='event' needs one column with a watermark, and the stream {number}; call "
            "withWatermark on the column with the time of a row, or expect clock='processing'"
        )
    return with_watermark[0]
