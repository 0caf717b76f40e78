"""The windows of a running query, from its logical plan."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING

from headway.domain import WindowGrid
from headway.units import parse_duration_s

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_MICROS_PER_S = 1e6
_WATERMARK = re.compile(r"EventTimeWatermark .*: timestamp(?:_ntz)?, (.+)$", re.MULTILINE)
# Spark's form of the start of a window: event time minus its distance from the last start.
_START = re.compile(r"LongType\) - (-?\d+)\) % (\d+)\)")
_SIZE = re.compile(r"\) \+ (\d+)\), LongType, Timestamp")
_READY_WITHIN_S = 10.0


def windows_of_plan(plan: str) -> WindowGrid | None:
    """Windows and watermark of a logical plan; None unless it has both.

    Of several windows, the one with the longest slide is used; of several watermarks, the latest.
    """
    delays_s = [_interval_s(text) for text in _WATERMARK.findall(plan)]
    starts = [(int(slide), int(start)) for start, slide in _START.findall(plan)]
    if not delays_s or not starts:
        return None
    slide, start = max(starts)
    size = max((int(size_text) for size_text in _SIZE.findall(plan)), default=slide)
    return WindowGrid(
        slide_s=slide / _MICROS_PER_S,
        offset_s=(start + size) % slide / _MICROS_PER_S,
        watermark_delay_s=max(delays_s),
    )


def windows_of_query(query: StreamingQuery) -> WindowGrid | None:
    """Windows and watermark of a running query, once Spark has made its plan.

    None if the query has no event-time window, or ends before it has a plan.
    """
    from py4j.protocol import Py4JJavaError

    deadline_s = time.monotonic() + _READY_WITHIN_S
    while query.isActive and time.monotonic() < deadline_s:
        try:
            return windows_of_plan(query._jsq.streamingQuery().logicalPlan().toString())
        except Py4JJavaError:
            # Only the query's own thread may create the plan.
            time.sleep(0.05)
    return None


def _interval_s(text: str) -> float:
    """An interval as Spark prints it, e.g. ``1 minutes 30 seconds``."""
    parts = re.findall(r"(-?[\d.]+) (\w+?)s?\b", text)
    return sum(parse_duration_s(f"{value} {unit}s") for value, unit in parts if float(value))
