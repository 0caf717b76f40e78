"""Stopping a query between two batches, so that none is interrupted."""

from __future__ import annotations

import contextlib
import json
import math
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from headway.assumptions import tuning
from headway.errors import ActuatorError, first_line
from headway.runtime.sharing.files import SparkFiles
from headway.units import counted, format_duration

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_PARTITIONS_KEY = "spark.sql.shuffle.partitions"
_POLL_EVERY_S = 0.02
_LOOKS_WITHOUT_TRIGGER = 2
_LOOKS_UNTIL_IDLE = 5  # progress is available shortly before its batch counts as over


class NoGapError(ActuatorError):
    """A query had no gap between batches in time; it keeps running, and may have one later."""


def least_gap_s(trigger_s: float) -> float:
    """Minimum time to the next trigger for a stop [s].

    >>> least_gap_s(1.0), least_gap_s(10.0)
    (0.5, 2.0)
    """
    return float(max(tuning.LEAST_GAP_S.value, tuning.LEAST_GAP_SHARE.value * trigger_s))


def to_next_trigger_s(trigger_s: float, now_s: float) -> float:
    """Time to the next trigger of Spark's grid, which begins in 1970 [s].

    >>> to_next_trigger_s(2.0, 11.5)
    0.5
    """
    return trigger_s * (math.floor(now_s / trigger_s) + 1) - now_s if trigger_s > 0 else 0.0


def left_no_gap(trigger_s: float, started_s: float, ended_s: float) -> bool:
    """Whether a batch ended too late for a stop before the trigger after its own; instants.

    >>> left_no_gap(2.0, 10.0, 11.2), left_no_gap(2.0, 10.0, 11.7), left_no_gap(2.0, 10.0, 12.9)
    (False, True, True)
    """
    left_s = to_next_trigger_s(trigger_s, started_s) - (ended_s - started_s)
    return left_s <= least_gap_s(trigger_s)


def is_in_gap(query: StreamingQuery, trigger_s: float) -> bool:
    """Whether no batch runs and the next trigger is far enough away, by a single check."""
    if query.status["isTriggerActive"]:
        return False
    return to_next_trigger_s(trigger_s, time.time()) > least_gap_s(trigger_s)


def wait_for_gap(
    query: StreamingQuery,
    trigger_s: float,
    *,
    may_cut: bool = False,
    is_wanted: Callable[[], bool] = lambda: True,
) -> bool:
    """Wait until no batch runs and the next trigger is far enough away; False if it never is.

    It gives up after ten batches without such a gap, or a minute without any progress, since a
    query that runs as fast as possible, or cannot keep up, has none; with ``may_cut`` after one
    batch that the next one follows at once; and as soon as the stop is no longer wanted.
    """
    num_batches, looks, active_looks = 0, 0, 0
    last_batch = _last_seen(query)
    heard_s = time.monotonic()
    silent_s = tuning.SILENT_STOP_S.value + 2.0 * trigger_s
    most_batches = tuning.MOST_BATCHES_WITHOUT_GAP.value
    while num_batches < most_batches and time.monotonic() - heard_s < silent_s:
        if not query.isActive:
            return True
        if not is_wanted():
            return False
        if (newest_batch := _last_seen(query)) != last_batch:
            last_batch, heard_s = newest_batch, time.monotonic()
            num_batches, active_looks = num_batches + 1, 0
        is_idle = not query.status["isTriggerActive"]
        looks = looks + 1 if is_idle else 0
        active_looks = 0 if is_idle else active_looks + 1
        if may_cut and num_batches and active_looks > _LOOKS_UNTIL_IDLE:
            return False
        # A single check may be between two parts of a trigger.
        left_s = to_next_trigger_s(trigger_s, time.time())
        if looks >= _LOOKS_WITHOUT_TRIGGER and left_s > least_gap_s(trigger_s):
            return True
        time.sleep(_POLL_EVERY_S)
    return False


def stop_between_batches(
    query: StreamingQuery,
    trigger_s: float,
    *,
    may_cut: bool,
    is_wanted: Callable[[], bool] = lambda: True,
) -> float:
    """Stop a query in the gap between two batches; returns how long the wait for it took [s].

    With ``may_cut`` it is stopped within a batch if there is no gap, as soon as the current batch
    has ended without one, so that little of the next one is done. That batch runs again, with the
    same rows, so a sink that is not idempotent then has them twice. ``is_wanted`` is called
    repeatedly while there is no gap; if it returns False, the query keeps running. Raises
    NoGapError if there is no gap and batches may not be interrupted, or the stop is no longer
    wanted; ActuatorError if the query does not stop.
    """
    began_s = time.monotonic()
    is_gap = wait_for_gap(query, trigger_s, may_cut=may_cut, is_wanted=is_wanted)
    if not is_gap and not is_wanted():
        raise NoGapError("the request to stop was withdrawn; nothing was changed")
    if not is_gap and not may_cut:
        number = counted(tuning.MOST_BATCHES_WITHOUT_GAP.value, "batch", "batches")
        raise NoGapError(
            f"the query has no gap between batches ({number} without "
            f"{format_duration(least_gap_s(trigger_s))} to the next trigger), so a stop would "
            "interrupt one; nothing was changed. With an idempotent sink, half_done='allow' stops "
            "it"
        )
    waited_s = time.monotonic() - began_s
    try:
        query.stop()
    except Exception as error:
        # An error in the thread of foreachBatch because of a stop is not a failure of the query.
        if query.isActive:
            raise ActuatorError(
                f"the query did not stop ({type(error).__name__}: {first_line(error)}); it runs "
                "on as it was"
            ) from None
    return waited_s


def newest_batches(files: SparkFiles, checkpoint: str) -> tuple[int, int]:
    """Numbers of the newest batch that was begun, and of the newest completed; -1 for none."""
    begun, completed = (
        max((int(n) for n in files.names(f"{checkpoint}/{log}") if n.isdecimal()), default=-1)
        for log in ("offsets", "commits")
    )
    return begun, completed


def partitions_of_checkpoint(files: SparkFiles, checkpoint: str) -> int | None:
    """Shuffle partitions of the state in a checkpoint, from its newest offsets; None if unknown."""
    newest, _ = newest_batches(files, checkpoint)
    if newest < 0:
        return None
    # A version, the metadata of a batch, then the offsets.
    for line in files.read(f"{checkpoint}/offsets/{newest}").splitlines()[1:2]:
        with contextlib.suppress(ValueError):
            number = json.loads(line).get("conf", {}).get(_PARTITIONS_KEY)
            return int(number) if number is not None else None
    return None


def _last_seen(query: StreamingQuery) -> tuple[int, str] | None:
    last: Any = query._jsq.lastProgress()
    return None if last is None else (int(last.batchId()), str(last.timestamp()))
